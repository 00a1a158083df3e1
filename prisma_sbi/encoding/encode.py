"""Encoding: from observed traces to a descriptor per trip, with its fit."""

import importlib.metadata
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.descriptors.table import make_descriptor_table
from prisma_sbi.encoding.status import FitStatus
from prisma_sbi.inference.batch import minimize_trips
from prisma_sbi.inference.search import Minimum, SearchSettings
from prisma_sbi.models.objective import SummaryObjective
from prisma_sbi.models.summary import summarize, summary_residuals
from prisma_sbi.region.profiles import RoadProfiles, RouteStatus
from prisma_sbi.region.record import Region
from prisma_sbi.region.representatives import representative_vehicles
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.simulator.driver import Road, roads_from_profiles
from prisma_sbi.simulator.trip import simulate_trips
from prisma_sbi.simulator.vehicle import vehicles_from_pool

LOWEST_AGGRESSIVENESS = 0.02
"""The search starts here: at zero the car never moves."""
_N_REPRESENTATIVES = 32
_FORMAT_VERSION = 1
_POOR_MISFIT = 0.2


def encode(
    region: Region,
    traces: xr.Dataset,
    *,
    settings: SearchSettings | None = None,
    chunk_size: int = 16,
    progress: Callable[[int, int], None] | None = None,
) -> xr.DataTree:
    """Find the descriptors whose simulated trace is closest to each observed one.

    Parameters
    ----------
    region
        Public inputs.
    traces
        Dataset with ``power_w (trip, time)`` and ``start_lat``, ``start_lon``, ``end_lat``,
        ``end_lon`` per trip, as the telemetry readers make it.
    settings
        Work per trip.
    chunk_size
        Trips per compiled call.
    progress
        Called with trips done and trips in all.

    Returns
    -------
    xarray.DataTree
        ``posterior`` (``aggressiveness``, ``detour``, ``vehicle`` with dimensions
        ``chain, draw, trip``, of size one here), ``sample_stats`` (loss, its three parts,
        status), ``observed_data`` (the traces) and ``constant_data`` (endpoints, route
        length). Every trip stays, in order; what failed says so in ``status`` and holds NaN.

    Raises
    ------
    InputDataError
        If the traces lack a variable or have another length or step than the region.
    RegionMismatchError
        If the traces were imported for another region.

    Notes
    -----
    Under a flat prior this is the maximum a posteriori of the Gaussian likelihood on the
    three residuals [1]_. Endpoints are read from the trace and held fixed.

    References
    ----------
    .. [1] Zeiseweis et al., PRISMA, 2026. https://doi.org/10.48550/arXiv.2610.35521
    """
    power_w = _checked_power(region, traces)
    profiles = route_profiles(
        region,
        *(traces[name].values for name in ("start_lat", "start_lon", "end_lat", "end_lon")),
    )
    finite = np.isfinite(power_w).all(axis=1)
    good = finite & np.any(np.where(np.isfinite(power_w), power_w, 0.0) != 0.0, axis=1)
    rows = np.flatnonzero(good & (profiles.status == RouteStatus.OK))
    status = np.where(good, FitStatus.NOT_ROUTED, FitStatus.BAD_TRACE).astype(np.int8)
    fit = _empty_fit(len(power_w))
    if rows.size:
        fitted = profiles.take(rows)
        minimum = _search(region, fitted, power_w[rows], settings, chunk_size, progress)
        parts = _loss_parts(region, fitted, power_w[rows], minimum)
        for name, values in {**_columns(minimum), **parts}.items():
            fit[name][rows] = values
        status[rows] = _judge(minimum, parts)
    elif progress is not None:
        progress(len(power_w), len(power_w))
    return _tree(region, traces, profiles, fit, status)


def descriptor_table(region: Region, fit: xr.DataTree) -> xr.Dataset:
    """The descriptors of all trips that were fitted, as the table that synthesis takes.

    Parameters
    ----------
    region
        The region of the fit.
    fit
        From :func:`encode`.

    Returns
    -------
    xarray.Dataset
        Seven variables along ``trip``; trips without descriptors are left out.

    Raises
    ------
    RegionMismatchError
        If the fit belongs to another region.
    """
    region.require_same(fit.attrs.get("region_fingerprint"), what="a fit")
    status = fit["sample_stats"].dataset["status"].values
    usable = np.flatnonzero(status <= FitStatus.POOR_FIT)
    posterior = fit["posterior"].dataset.isel(chain=0, draw=0, trip=usable)
    ends = fit["constant_data"].dataset.isel(trip=usable)
    columns = {name: ends[name].values for name in ("start_lat", "start_lon", "end_lat", "end_lon")}
    columns |= {name: posterior[name].values for name in ("aggressiveness", "detour", "vehicle")}
    return make_descriptor_table(
        columns, trip=posterior["trip"].values, region_fingerprint=region.fingerprint
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


def _search(region, profiles, power_w, settings, chunk_size, progress) -> Minimum:
    """Run the batched search on trips that have a road and a trace."""
    constants = region.constants
    roads = roads_from_profiles(profiles)
    pool = vehicles_from_pool(region.vehicles, constants)
    observe = jax.jit(lambda power: summarize(power, constants))

    def build(rows: np.ndarray) -> SummaryObjective:
        road = Road(roads.length_m[rows], roads.speed_mps[rows], roads.slope_rad[rows])
        return SummaryObjective(road, observe(jnp.asarray(power_w[rows])), pool, constants)

    low, high = constants.aggressiveness_bounds
    return minimize_trips(
        build,
        len(profiles),
        in_axes=build(np.zeros(1, np.int64)).trip_axes(),
        lower=np.array([max(low, LOWEST_AGGRESSIVENESS), constants.detour_bounds[0]]),
        upper=np.array([high, constants.detour_bounds[1]]),
        representatives=representative_vehicles(region.vehicles, _N_REPRESENTATIVES),
        n_choices=len(region.vehicles),
        settings=settings,
        chunk_size=chunk_size,
        progress=progress,
    )


def _loss_parts(region: Region, profiles: RoadProfiles, power_w, minimum: Minimum):
    """The three parts of the loss at the minimum, and the relative misfits behind them."""
    constants = region.constants
    found = _columns(minimum)
    simulated = simulate_trips(
        region, profiles, found["aggressiveness"], found["detour"], found["vehicle"]
    )
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
        "loss_energy": 0.5 * residuals[:, 0] ** 2,
        "loss_duration": 0.5 * residuals[:, 1] ** 2,
        "loss_shape": 0.5 * np.sum(residuals[:, 2:] ** 2, axis=1),
        "energy_misfit": residuals[:, 0] * constants.energy_scale,
        "duration_misfit": residuals[:, 1] * constants.duration_scale,
    }


def _columns(minimum: Minimum) -> dict[str, np.ndarray]:
    """Columns of the fit that come straight from the search."""
    point = np.asarray(minimum.point)
    return {
        "aggressiveness": point[:, 0],
        "detour": point[:, 1],
        "vehicle": np.asarray(minimum.choice),
        "loss": np.asarray(minimum.loss),
    }


def _empty_fit(n_trips: int) -> dict[str, np.ndarray]:
    """Columns of the fit, filled with what a trip without a fit holds."""
    names = ("aggressiveness", "detour", "loss", "loss_energy", "loss_duration", "loss_shape")
    misfits = ("energy_misfit", "duration_misfit")
    fit = {name: np.full(n_trips, np.nan, np.float64) for name in (*names, *misfits)}
    return fit | {"vehicle": np.full(n_trips, -1, np.int32)}


def _judge(minimum: Minimum, parts: dict[str, np.ndarray]) -> np.ndarray:
    """Status of fitted trips; a poor fit outranks a bound."""
    poor = (np.abs(parts["energy_misfit"]) > _POOR_MISFIT) | (
        np.abs(parts["duration_misfit"]) > _POOR_MISFIT
    )
    bound = np.asarray(minimum.at_bound).any(axis=1)
    return np.where(poor, FitStatus.POOR_FIT, np.where(bound, FitStatus.AT_BOUND, FitStatus.OK))


def _tree(region: Region, traces: xr.Dataset, profiles: RoadProfiles, fit, status) -> xr.DataTree:
    """Assemble the result."""
    trip = traces["trip"]
    sampled = {
        name: (("chain", "draw", "trip"), fit[name][None, None])
        for name in ("aggressiveness", "detour", "vehicle")
    }
    stats: dict[str, Any] = {name: ("trip", fit[name]) for name in fit if name not in sampled}
    flags = {
        "flag_values": [int(item) for item in FitStatus],
        "flag_meanings": " ".join(item.name.lower() for item in FitStatus),
    }
    stats["status"] = ("trip", status, flags)
    ends = ("start_lat", "start_lon", "end_lat", "end_lon")
    groups = {
        "posterior": xr.Dataset(sampled, coords={"chain": [0], "draw": [0], "trip": trip}),
        "sample_stats": xr.Dataset(stats, coords={"trip": trip}),
        "observed_data": traces[["power_w"]].reset_coords(drop=True),
        "constant_data": traces[list(ends)].assign(
            route_length_m=("trip", profiles.length_m, {"units": "m"}),
            route_status=("trip", profiles.status),
        ),
    }
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {
        "kind": "fit",
        "format_version": _FORMAT_VERSION,
        "method": "map",
        "likelihood": "summary",
        "region_fingerprint": region.fingerprint,
        "prisma_sbi": importlib.metadata.version("prisma-sbi"),
        "jax": importlib.metadata.version("jax"),
    }
    return tree
