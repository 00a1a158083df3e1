"""The distances that are reported as multiples of a floor, in one registry.

A new one is a function of two populations and a line in :data:`DISTANCES`; floors, scores,
tables and the law tests then cover it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from prisma_sbi.evaluation.autocorrelation import autocorrelation_distance
from prisma_sbi.evaluation.frechet import frechet_distance
from prisma_sbi.evaluation.population import Population

type Distance = Callable[[Population, Population], float]


def acf(real: Population, synthetic: Population) -> float:
    """Distance between the mean autocorrelation curves."""
    return autocorrelation_distance(real.autocorrelation, synthetic.autocorrelation)


def fid(real: Population, synthetic: Population) -> float:
    """Fréchet distance over the squared amplitude scale of the real population."""
    return frechet_distance(real.power_w, synthetic.power_w, scale=real.scale_w)


DISTANCES: Mapping[str, Distance] = MappingProxyType({"acf": acf, "fid": fid})
"""Name of a distance -> its function; zero on identical populations and symmetric."""
