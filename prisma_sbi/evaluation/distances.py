"""The distances that are reported as multiples of a floor, in one registry.

A new one is a function of two populations, a line in :data:`ALL_DISTANCES` and its entry in the
registry of metrics; floors, multiples and the law tests then cover it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from prisma_sbi.evaluation.autocorrelation import autocorrelation_distance
from prisma_sbi.evaluation.energy_statistic import energy_statistic
from prisma_sbi.evaluation.frechet import frechet_distance
from prisma_sbi.evaluation.marginals import wasserstein
from prisma_sbi.evaluation.population import Population
from prisma_sbi.evaluation.spectrum import log_spectral_distance

type Distance = Callable[[Population, Population], float]


def acf(real: Population, synthetic: Population) -> float:
    """Distance between the mean autocorrelation curves."""
    return autocorrelation_distance(real.autocorrelation, synthetic.autocorrelation)


def fid(real: Population, synthetic: Population) -> float:
    """Fréchet distance over the squared amplitude scale of the real population."""
    return frechet_distance(real.power_w, synthetic.power_w, scale=real.scale_w)


def spectrum_db(real: Population, synthetic: Population) -> float:
    """Distance between the mean spectral densities in dB."""
    return log_spectral_distance(real.periodogram, synthetic.periodogram)


def levels_kw(real: Population, synthetic: Population) -> float:
    """Wasserstein distance between the laws of the power while driving, in kW."""
    return wasserstein(real.levels_w, synthetic.levels_w) / 1e3


def energy_mj(real: Population, synthetic: Population) -> float:
    """Wasserstein distance between the laws of the energy of a trace, in MJ."""
    return wasserstein(real.energy_j, synthetic.energy_j) / 1e6


def duration_s(real: Population, synthetic: Population) -> float:
    """Wasserstein distance between the laws of the duration within the horizon, in s."""
    return wasserstein(real.duration_s, synthetic.duration_s)


def start_end(real: Population, synthetic: Population) -> float:
    """Energy statistic of the two ends, in the root of km; NaN where places are unknown.

    Trips of which one end is unknown are left out.
    """
    sides = [side.ends_km for side in (real, synthetic) if side.ends_km is not None]
    known = [ends[np.isfinite(ends).all(axis=1)] for ends in sides]
    if len(known) < 2 or not all(len(ends) for ends in known):
        return float("nan")
    return energy_statistic(known[0], known[1])


DISTANCES: Mapping[str, Distance] = MappingProxyType({"acf": acf, "fid": fid})
"""The published distances by name; zero on identical populations and symmetric."""

ALL_DISTANCES: Mapping[str, Distance] = MappingProxyType(
    {
        **DISTANCES,
        "spectrum": spectrum_db,
        "levels_w1": levels_kw,
        "energy_w1": energy_mj,
        "duration_w1": duration_s,
        "start_end": start_end,
    }
)
"""All distances by name, with the same two laws."""
