"""Encoding: from observed traces to the descriptors of every trip, with their uncertainty."""

import os
from collections.abc import Callable
from os import PathLike
from pathlib import Path

import jax
import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError, RegionMismatchError
from prisma_sbi.diagnostics.convergence import FitFlag
from prisma_sbi.encoding.checkpoint import digest, trip_seeds
from prisma_sbi.encoding.fitting import Fitting, parameter_box
from prisma_sbi.encoding.methods import EncodeSettings, Method
from prisma_sbi.encoding.status import FitStatus
from prisma_sbi.encoding.tree import describe_model, fit_tree
from prisma_sbi.models.summary import summarize, summary_residuals
from prisma_sbi.models.trip_model import TripModel
from prisma_sbi.region.profiles import RoadProfiles, RouteStatus
from prisma_sbi.region.record import Region
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.simulator.driver import roads_from_profiles
from prisma_sbi.simulator.trip import simulate_trips

_POOR_MISFIT = 0.2
_EDGE = 1e-3
"""A point this near to its bound, as a share of the domain, lies on it."""


def encode(
    region: Region,
    traces: xr.Dataset,
    *,
    method: str = Method.MAP,
    model: TripModel | None = None,
    settings: EncodeSettings | None = None,
    chunk_size: int | None = None,
    checkpoint: str | PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> xr.DataTree:
    """Infer the descriptors of every trip from its trace.

    Parameters
    ----------
    region
        Public inputs.
    traces
        Dataset with ``power_w (trip, time)`` and ``start_lat``, ``start_lon``, ``end_lat``,
        ``end_lon`` per trip, as the telemetry readers make it.
    method
        A :class:`Method`; short for ``settings=EncodeSettings(method=...)``.
    model
        By default :meth:`TripModel.of(region) <prisma_sbi.models.TripModel.of>`: flat prior,
        likelihood of the summaries, vehicle summed out.
    settings
        Method and work per trip.
    chunk_size
        Trips per compiled call; by default what suits the method, 4 to 16.
    checkpoint
        Folder for finished chunks. If a run is interrupted, the same call goes on from
        there; the caller deletes the folder once the result is saved.
    progress
        Called with trips done and trips in all.

    Returns
    -------
    xarray.DataTree
        ``posterior`` (``aggressiveness``, ``detour``, ``vehicle`` with dimensions
        ``chain, draw, trip``; one draw where the method gives a point), ``sample_stats``
        (status and flags, the loss at the best point and its parts, ``best_...``,
        probabilities of vehicles, diagnostics), ``observed_data`` (the traces) and
        ``constant_data`` (endpoints, route length). Every trip stays, in order; what failed
        says so in ``status`` and holds NaN.

    Raises
    ------
    InputDataError
        If the traces lack a variable or have another length or step than the region.
    RegionMismatchError
        If the traces, or the model, belong to another region.
    ValueError
        If method and settings disagree, or the draws of a chunk would not fit into memory.

    Notes
    -----
    Under a flat prior the best point is the published encoder [1]_. Endpoints are read from
    the trace and held fixed.

    References
    ----------
    .. [1] Zeiseweis et al., PRISMA, 2026. https://doi.org/10.48550/arXiv.2610.35521
    """
    settings = _checked_settings(method, settings)
    model = _checked_model(region, model, settings)
    chunk_size = Method(settings.method).chunk_size if chunk_size is None else chunk_size
    power_w = _checked_power(region, traces)
    _check_memory(region, settings, chunk_size)
    profiles = route_profiles(
        region,
        *(traces[name].values for name in ("start_lat", "start_lon", "end_lat", "end_lon")),
    )
    finite = np.isfinite(power_w).all(axis=1)
    good = finite & np.any(np.where(np.isfinite(power_w), power_w, 0.0) != 0.0, axis=1)
    rows = np.flatnonzero(good & (profiles.status == RouteStatus.OK))
    status = np.where(good, FitStatus.NOT_ROUTED, FitStatus.BAD_TRACE).astype(np.int8)
    found: dict[str, np.ndarray] = {}
    if rows.size:
        fitted = profiles.take(rows)
        seeds = trip_seeds(traces["trip"].values[rows])
        fitting = Fitting(
            region=region,
            model=model,
            settings=settings,
            roads=jax.tree.map(np.asarray, roads_from_profiles(fitted)),
            power_w=power_w[rows],
            seeds=seeds,
            chunk_size=chunk_size,
            checkpoint=None if checkpoint is None else Path(checkpoint),
            checkpoint_key={
                "traces": digest(power_w[rows], fitted.length_m, seeds),
                "region": region.fingerprint,
                "settings": repr(settings),
                "model": repr(describe_model(model))
                + digest(*map(np.asarray, jax.tree.leaves(model))),
                "chunk_size": str(chunk_size),
            },
            progress=progress,
        )
        found = fitting.run()
        found |= _loss_parts(region, fitted, power_w[rows], found)
        status[rows] = _judge(region, found)
    elif progress is not None:
        progress(len(power_w), len(power_w))
    return fit_tree(region, traces, profiles, found, rows, status, model, settings)


def _checked_settings(method: str, settings: EncodeSettings | None) -> EncodeSettings:
    """The settings of a method, given one, the other or both alike."""
    if settings is None:
        return EncodeSettings(method=method)
    if method not in (Method.MAP, settings.method):
        raise ValueError(
            f"Expected the same method in both places; got method={str(method)!r} and settings of "
            f"{str(settings.method)!r}. Leave one out."
        )
    return settings


def _checked_model(region: Region, model: TripModel | None, settings: EncodeSettings) -> TripModel:
    """The model; by default the published likelihood with the vehicle summed out or relaxed."""
    if model is None:
        relaxed = settings.method == Method.SVI
        return TripModel.of(region, choice="gumbel" if relaxed else "marginal")
    n_vehicles = model.pool.idle_power_w.shape[0]
    if model.constants != region.constants or n_vehicles != len(region.vehicles):
        raise RegionMismatchError(
            f"Expected a model of region {region.name!r} with {len(region.vehicles)} vehicles; "
            f"got one of other constants or with {n_vehicles} vehicles. "
            "Make it by TripModel.of(region)."
        )
    return model


def _check_memory(region: Region, settings: EncodeSettings, chunk_size: int) -> None:
    """Refuse chains that the machine cannot hold, before an hour is spent on them."""
    work = getattr(settings.work, "hmc", settings.work)
    if settings.method not in (Method.HMC, Method.NUTS):
        return
    # Every draw keeps a weight for each vehicle until the vehicle is drawn.
    n_bytes = 4 * work.n_chains * work.n_draws * (len(region.vehicles) + 8)
    n_bytes *= chunk_size if settings.method == Method.HMC else 1
    limit = 0.25 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if n_bytes > limit:
        raise ValueError(
            f"Expected chains of a chunk within {limit / 2**30:.1f} GiB, a quarter of the memory; "
            f"got {work.n_chains} chains x {work.n_draws} draws, {n_bytes / 2**30:.1f} GiB. "
            "Take fewer of them, or a smaller chunk."
        )


def _checked_power(region: Region, traces: xr.Dataset) -> np.ndarray:
    """Power as float32 ``(trip, time)``, or a clear error."""
    needed = ("power_w", "start_lat", "start_lon", "end_lat", "end_lon")
    missing = [name for name in needed if name not in traces]
    if missing:
        raise InputDataError(
            f"Expected traces with the variables {', '.join(needed)}; got none named {missing}. "
            "Make them with prisma_sbi.telemetry.import_trips."
        )
    fingerprint = traces.attrs.get("region_fingerprint", "")
    if fingerprint:
        region.require_same(fingerprint, what="traces")
    power_w = traces["power_w"].transpose("trip", "time").values.astype(np.float32)
    if power_w.shape[0] == 0:
        raise InputDataError(
            "Expected at least one trip; got none. See the table of trips that were set aside."
        )
    constants = region.constants
    step = traces.attrs.get("time_step_s", constants.time_step_s)
    if power_w.shape[1] != constants.n_times or step != constants.time_step_s:
        raise InputDataError(
            f"Expected {constants.n_times} samples every {constants.time_step_s} s; got "
            f"{power_w.shape[1]} every {step} s. Import the trips with the horizon of the region."
        )
    return power_w


def _loss_parts(region: Region, profiles: RoadProfiles, power_w, found) -> dict[str, np.ndarray]:
    """The published loss at the best point, its three parts, and the misfits behind them."""
    constants = region.constants
    best = found["best"].astype(np.float64)
    simulated = simulate_trips(region, profiles, best[:, 0], best[:, 1], found["best_vehicle"])
    residuals = np.asarray(
        jax.jit(
            jax.vmap(
                lambda p, q: summary_residuals(
                    summarize(q, constants), summarize(p, constants), constants
                )
            )
        )(power_w, simulated)
    )
    return {
        "loss": 0.5 * np.sum(residuals**2, axis=1),
        "loss_energy": 0.5 * residuals[:, 0] ** 2,
        "loss_duration": 0.5 * residuals[:, 1] ** 2,
        "loss_shape": 0.5 * np.sum(residuals[:, 2:] ** 2, axis=1),
        "energy_misfit": residuals[:, 0] * constants.energy_scale,
        "duration_misfit": residuals[:, 1] * constants.duration_scale,
    }


def _judge(region: Region, found: dict[str, np.ndarray]) -> np.ndarray:
    """Status of fitted trips, a poor fit before a bound; adds the same to their flags."""
    poor = (np.abs(found["energy_misfit"]) > _POOR_MISFIT) | (
        np.abs(found["duration_misfit"]) > _POOR_MISFIT
    )
    box = parameter_box(region.constants)
    lower, upper = np.asarray(box.lower), np.asarray(box.upper)
    margin = _EDGE * (upper - lower)
    best = found["best"]
    bound = ((best <= lower + margin) | (best >= upper - margin)).any(axis=1)
    found["flags"][poor] |= FitFlag.POOR_FIT
    found["flags"][bound] |= FitFlag.AT_BOUND
    return np.where(poor, FitStatus.POOR_FIT, np.where(bound, FitStatus.AT_BOUND, FitStatus.OK))
