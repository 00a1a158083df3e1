"""Simulation-based calibration: whether posteriors hold what they promise, over all the prior."""

import json
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Array, Float, Int

from prisma_sbi.diagnostics.probabilities import (
    brier_score,
    discrete_pit,
    log_scores,
    probability_test,
)
from prisma_sbi.diagnostics.ranks import coverage_table, rank_pit, uniformity
from prisma_sbi.diagnostics.tarp import tarp
from prisma_sbi.encoding.tree import describe_model
from prisma_sbi.inference.batch import map_trips
from prisma_sbi.models.trip_data import TripData
from prisma_sbi.models.trip_model import TripModel
from prisma_sbi.region.profiles import RoadProfiles
from prisma_sbi.region.record import Region
from prisma_sbi.simulator.driver import Road
from prisma_sbi.study.gain import information_gain
from prisma_sbi.study.samplers import Draws, Progress, Sampler, named_sampler
from prisma_sbi.study.simulations import Simulations, simulate

PARAMETERS = ("aggressiveness", "detour")


def calibrate(
    region: Region,
    profiles: RoadProfiles,
    *,
    model: TripModel | None = None,
    n_simulations: int = 1_000,
    sampler: str | Sampler = "grid",
    seed: int = 0,
    progress: Progress | None = None,
) -> xr.Dataset:
    r"""Rank truths drawn from the prior among draws from the posteriors of their data.

    Parameters
    ----------
    region
        Public inputs.
    profiles
        One road, for the calibration of one type of trip, or several.
    model
        Prior and likelihood; by default flat, and the law of the whole trace.
    n_simulations
        How many.
    sampler
        ``"grid"`` (the adaptive grid alone), a method of
        :func:`~prisma_sbi.encoding.encode` that gives draws, or a :class:`Sampler`.
    seed
        Of truths, data and draws.
    progress
        Called with simulations done and simulations in all.

    Returns
    -------
    xarray.Dataset
        Along ``simulation``, with ``parameter`` (aggressiveness, detour), ``draw`` and
        ``pool_vehicle``:

        ========================= ==========================================================
        ``truth``                 (simulation, parameter)
        ``draws``                 (simulation, draw, parameter)
        ``rank``                  (simulation, parameter): draws below the truth
        ``mean``, ``sd``          (simulation, parameter): of the posterior
        ``z_score``               (mean - truth) / sd
        ``contraction``           1 - posterior variance / prior variance
        ``true_vehicle``          (simulation)
        ``vehicle_draws``         (simulation, draw)
        ``vehicle_probability``   (simulation, pool_vehicle)
        ``true_probability``      (simulation): probability of the true vehicle
        ``log_score``             (simulation): log posterior density of the whole truth, in
                                  nats; NaN if the method knows no evidence
        ``log_gain``              the same minus the log prior density; its mean is the
                                  information that a trace gives about all descriptors
        ``gain``                  (simulation, descriptor): information about aggressiveness,
                                  detour and vehicle, each on its own, in nats; ``gain_error``
        ``n_vehicles``            (simulation): effective number of vehicles left
        ``road``, ``flags``       (simulation)
        ========================= ==========================================================

    Notes
    -----
    If truth and data come from the model, the truth is one more draw from the posterior, so its
    rank among the draws is uniform [1]_. Under the trace law that is what Bayes' theorem says;
    for what it means under the summaries see :func:`~prisma_sbi.study.simulate`.

    References
    ----------
    .. [1] Talts, Betancourt, Simpson, Vehtari and Gelman, Validating Bayesian inference
       algorithms with simulation-based calibration, 2018.
       https://doi.org/10.48550/arXiv.1804.06788
    """
    model = model or TripModel.of(region, likelihood="trace")
    chosen = named_sampler(sampler, seed=seed) if isinstance(sampler, str) else sampler
    simulations = simulate(model, profiles, n_simulations, seed=seed)
    draws = chosen(region, simulations, progress)
    found = ranked(region, simulations, draws)
    return found.assign_attrs(
        model=json.dumps(describe_model(model)), sampler=repr(chosen), seed=seed
    )


def calibration_pit(calibration: xr.Dataset, *, seed: int = 0) -> xr.Dataset:
    """What must be uniform, as numbers in (0, 1) along ``simulation``.

    Parameters
    ----------
    calibration
        From :func:`calibrate`.
    seed
        Of the places within a rank, and of the reference points of TARP.

    Returns
    -------
    xarray.Dataset
        ``aggressiveness``, ``detour``: ranks; ``vehicle``: share of the probability below the
        true vehicle, vehicles in the order of their mass; ``joint``: TARP over aggressiveness
        and detour.
    """
    truth, draws = calibration["truth"].values, calibration["draws"].values
    n_draws = calibration.sizes["draw"]
    found = {
        name: rank_pit(calibration["rank"].values[:, axis], n_draws, seed=seed + axis)
        for axis, name in enumerate(PARAMETERS)
    }
    # Vehicles have no order of their own; by mass, neighbors are alike.
    order = np.argsort(calibration["vehicle_mass_kg"].values, kind="stable")
    place = np.argsort(order)
    found["vehicle"] = discrete_pit(
        calibration["vehicle_probability"].values[:, order],
        place[calibration["true_vehicle"].values],
        seed=seed + 2,
    )
    found["joint"] = tarp(draws, truth, seed=seed + 3)
    coords = {"simulation": calibration["simulation"]}
    return xr.Dataset({name: ("simulation", pit) for name, pit in found.items()}, coords=coords)


def calibration_table(calibration: xr.Dataset, *, seed: int = 0) -> pd.DataFrame:
    """Tests of uniformity and coverage, one row a quantity.

    Parameters
    ----------
    calibration
        From :func:`calibrate`.
    seed
        As for :func:`calibration_pit`.

    Returns
    -------
    pandas.DataFrame
        Index ``aggressiveness``, ``detour``, ``vehicle``, ``joint``. Columns ``n``, ``ecdf_p``
        (probability that chance strays as far at some point), ``chi_square_p``, ``mean`` and
        ``variance`` of the PIT (0.5 and 0.083), ``coverage_50``, ``coverage_90``, and ``ok``:
        whether the ECDF stays in its envelope at 99 %.
    """
    rows = {}
    for name, pit in calibration_pit(calibration, seed=seed).items():
        found = uniformity(pit.values)
        covered = coverage_table(pit.values, levels=(0.5, 0.9))["coverage"]
        rows[str(name)] = {
            "n": found.n,
            "ecdf_p": found.ecdf_p,
            "chi_square_p": found.chi_square_p,
            "mean": found.mean,
            "variance": found.variance,
            "coverage_50": covered[0],
            "coverage_90": covered[1],
            "ok": found.inside(0.99),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def vehicle_test(calibration: xr.Dataset) -> dict[str, float]:
    """Whether the probabilities of vehicles are what they claim.

    Parameters
    ----------
    calibration
        From :func:`calibrate`.

    Returns
    -------
    ``brier`` (mean Brier score, 0 at best), ``log`` (mean log probability of the truth, nats),
    and of :func:`~prisma_sbi.diagnostics.probability_test` ``brier_z``, ``brier_p``, ``log_z``,
    ``log_p``.
    """
    given = calibration["vehicle_probability"].values, calibration["true_vehicle"].values
    found = probability_test(*given)
    scores = {"brier": brier_score(*given).score, "log": float(np.mean(log_scores(*given)))}
    return scores | {
        name: getattr(found, name) for name in ("brier_z", "brier_p", "log_z", "log_p")
    }


def sbc_tree(calibration: xr.Dataset, *, seed: int = 0) -> xr.DataTree:
    """The group ``prior_sbc`` from which ArviZ's ``plot_ecdf_pit`` draws.

    One chain, simulations as draws: what is spread over chains and draws of a single fit
    elsewhere is spread over simulations here.
    """
    pit = calibration_pit(calibration, seed=seed)
    group = xr.Dataset(
        {name: (("chain", "draw"), values.values[None]) for name, values in pit.items()},
        coords={"chain": [0], "draw": np.arange(pit.sizes["simulation"])},
    )
    return xr.DataTree.from_dict({"prior_sbc": group})


def ranked(region: Region, simulations: Simulations, draws: Draws) -> xr.Dataset:
    """Lay out truths, draws, and what follows from both, as :func:`calibrate` returns it."""
    truth, point = simulations.point.astype(np.float64), draws.point.astype(np.float64)
    known = information_gain(simulations.model, draws.point, draws.vehicle_probability, truth=truth)
    log_joint, log_prior = _log_joint_at_truth(simulations)
    rows = np.arange(len(truth))
    log_score = log_joint - draws.log_evidence
    each, both = ("simulation", "parameter"), ("simulation", "draw", "parameter")
    variables: dict[str, Any] = {
        "truth": (each, truth),
        "draws": (both, draws.point),
        "rank": (each, np.sum(point < truth[:, None], axis=1)),
        **{name: (each, known[name].values) for name in ("mean", "sd", "z_score", "contraction")},
        "true_vehicle": ("simulation", simulations.vehicle),
        "vehicle_draws": (("simulation", "draw"), draws.vehicle),
        "vehicle_probability": (("simulation", "pool_vehicle"), draws.vehicle_probability),
        "true_probability": (
            "simulation",
            draws.vehicle_probability[rows, simulations.vehicle],
        ),
        "log_score": ("simulation", log_score, {"units": "nat"}),
        "log_gain": ("simulation", log_score - log_prior, {"units": "nat"}),
        "road": ("simulation", simulations.road),
        "flags": ("simulation", draws.flags),
        "gain": (("simulation", "descriptor"), known["gain"].values, {"units": "nat"}),
        "gain_error": (("simulation", "descriptor"), known["gain_error"].values),
        "n_vehicles": ("simulation", known["n_vehicles"].values),
        "vehicle_mass_kg": ("pool_vehicle", region.vehicles.coefficients[:, 0], {"units": "kg"}),
    }
    return xr.Dataset(
        variables,
        coords={
            "simulation": rows,
            "parameter": list(PARAMETERS),
            "descriptor": known["descriptor"].values,
        },
        attrs={
            "kind": "calibration",
            "format_version": 1,
            "region_fingerprint": region.fingerprint,
        },
    )


def _log_joint_at_truth(simulations: Simulations) -> tuple[np.ndarray, np.ndarray]:
    """Log joint density of truth and data, and log prior density of the truth."""
    exact, candidates = simulations.model.exact()
    choice = np.searchsorted(candidates, simulations.vehicle)

    def solve(rows: np.ndarray) -> dict[str, jax.Array]:
        road, data = simulations.trips(rows)
        joint, prior = _joint_chunk(
            exact, road, data, jnp.asarray(simulations.point[rows]), jnp.asarray(choice[rows])
        )
        return {"joint": joint, "prior": prior}

    found = map_trips(solve, len(simulations), chunk_size=64)
    return found["joint"].astype(np.float64), found["prior"].astype(np.float64)


@eqx.filter_jit
def _joint_chunk(
    model: TripModel,
    road: Road,
    data: Float[Array, "row data"],
    point: Float[Array, "row 2"],
    choice: Int[Array, " row"],
) -> tuple[Float[Array, " row"], Float[Array, " row"]]:
    """The same for a chunk."""

    def one(trip, at, chosen):
        prior = model.log_prior(at) + model.log_vehicle_prior[chosen]
        value = model.likelihood.log_likelihoods(
            at, model.pool[chosen[None]], trip, model.constants
        )[0]
        return prior + value, prior

    trips = TripData(road, model.likelihood.observe(data, model.constants))
    return jax.vmap(one)(trips, point, choice)
