"""Posterior calibration: whether posteriors hold what they promise around one observed trip."""

import json

import equinox as eqx
import jax
import numpy as np
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.encoding.tree import describe_model
from prisma_sbi.inference.alignment import AlignSettings
from prisma_sbi.inference.quadrature import GridSettings
from prisma_sbi.models.trip_model import TripModel
from prisma_sbi.region.profiles import RoadProfiles
from prisma_sbi.region.record import Region
from prisma_sbi.simulator.driver import roads_from_profiles
from prisma_sbi.study.calibration import ranked
from prisma_sbi.study.samplers import GridSampler, Progress, Sampler, named_sampler
from prisma_sbi.study.simulations import (
    Simulations,
    TwoRecords,
    check_roads,
    packed,
    packed_likelihood,
    simulate_at,
)

_FINE_GRID = GridSettings(n_levels=10, n_split=32)
"""For the one posterior that truths are drawn from."""


def posterior_calibrate(
    region: Region,
    profiles: RoadProfiles,
    observed: np.ndarray,
    *,
    model: TripModel | None = None,
    n_simulations: int = 200,
    sampler: str | Sampler = "grid",
    seed: int = 0,
    progress: Progress | None = None,
) -> xr.Dataset:
    r"""Rank truths drawn from the posterior of a trip among draws given that trip and one more.

    Parameters
    ----------
    region
        Public inputs.
    profiles
        The road of the trip.
    observed : (time,)
        Its power in W.
    model
        Prior and likelihood; by default flat, and the law of the whole trace.
    n_simulations
        How many truths.
    sampler
        As for :func:`~prisma_sbi.study.calibrate`: what is tested. Truths come from a finer
        grid whatever it is.
    seed
        Of truths, data and draws.
    progress
        Called with simulations done and simulations in all.

    Returns
    -------
    xarray.Dataset
        As :func:`~prisma_sbi.study.calibrate` returns it. It describes the observed trip and
        is as private as that.

    Raises
    ------
    InputDataError
        If the road is not routed, or there is not one road and one trace of its length.

    Notes
    -----
    Calibration over the prior says little about the corner of it where a trip lies. Here
    :math:`\theta' \sim p(\theta \mid y)`, :math:`y' \sim p(y' \mid \theta')`, and
    :math:`\theta'` is then one more draw from :math:`p(\theta \mid y, y') \propto p(\theta)\,
    p(y \mid \theta)\, p(y' \mid \theta)`, so its rank is uniform [1]_. Whether the simulator
    explains the observed trip is not asked.

    References
    ----------
    .. [1] Säilynoja, Schmitt, Bürkner and Vehtari, Posterior SBC: simulation-based calibration
       checking conditional on data, 2025. https://doi.org/10.48550/arXiv.2502.03279
    """
    _validate.at_least(1, n_simulations=n_simulations)
    model = model or TripModel.of(region, likelihood="trace")
    observed = _checked(region, profiles, observed)
    chosen = named_sampler(sampler, seed=seed) if isinstance(sampler, str) else sampler
    seen = packed(model, observed[None])
    readable = eqx.tree_at(lambda m: m.likelihood, model, packed_likelihood(model))
    alone = Simulations(
        model=readable,
        roads=roads_from_profiles(profiles),
        road=np.zeros(1, int),
        point=np.full((1, 2), np.nan, np.float32),
        vehicle=np.zeros(1, int),
        data=seen,
    )
    fine = GridSampler(
        grid=_FINE_GRID, align=AlignSettings(), n_draws=n_simulations, seed=seed, chunk_size=1
    )
    truths = fine(region, alone, None)
    key = jax.random.fold_in(jax.random.key(seed), 1)
    again = simulate_at(model, profiles, truths.point[0], truths.vehicle[0], key)
    both = eqx.tree_at(
        lambda s: (s.model.likelihood, s.data),
        again,
        (
            TwoRecords(readable.likelihood),
            np.concatenate([np.broadcast_to(seen, again.data.shape), again.data], axis=1),
        ),
    )
    found = ranked(region, both, chosen(region, both, progress))
    return found.assign_attrs(
        kind="posterior_calibration",
        model=json.dumps(describe_model(model)),
        sampler=repr(chosen),
        seed=seed,
    )


def _checked(region: Region, profiles: RoadProfiles, observed: np.ndarray) -> np.ndarray:
    """The trace, or a clear error."""
    check_roads(profiles)
    observed = np.asarray(observed, np.float32)
    expected = (region.constants.n_times,)
    if len(profiles) != 1 or observed.shape != expected or not np.all(np.isfinite(observed)):
        raise InputDataError(
            f"Expected one road and a trace of shape {expected} without gaps; got {len(profiles)} "
            f"and {observed.shape} with {int(np.sum(~np.isfinite(observed)))} gaps."
        )
    return observed
