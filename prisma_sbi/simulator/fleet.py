"""A simulated fleet with known descriptors: for demos, tests and the choice of constants."""

import numpy as np
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi.region.profiles import RouteStatus
from prisma_sbi.region.record import Region
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.simulator.restlessness import multiplied_by_noise
from prisma_sbi.simulator.trip import simulate_trips

_MIN_ROUTE_M = 400.0
_MEMORY = 0.8


def simulate_fleet(
    region: Region, n_trips: int, *, seed: int = 0, noise_scale: float = 0.05
) -> xr.Dataset:
    """Traces of trips whose descriptors are known.

    Parameters
    ----------
    region
        Public inputs.
    n_trips
        How many trips.
    seed
        Same seed, same fleet.
    noise_scale
        Standard deviation of the multiplicative measurement noise, a first-order
        autoregression in time with a memory of some seconds; 0 for exact traces.

    Returns
    -------
    xarray.Dataset
        Traces as the telemetry readers make them, with the true ``aggressiveness``,
        ``detour`` and ``vehicle`` per trip beside the endpoints.

    Raises
    ------
    ValueError
        If no two junctions of the region are far enough apart to drive between.

    Notes
    -----
    Trips begin near a few centers and end within some kilometers, drivers and detours
    follow smooth unimodal laws, a fifth of the pool makes most of the trips. Nothing in this
    is fitted to anybody's data.
    """
    _validate.at_least(1, n_trips=n_trips)
    _validate.in_range(0.0, 1.0, noise_scale=noise_scale)
    rng = np.random.default_rng(seed)
    start, end = _draw_ends(region, n_trips, rng)
    roads = region.roads
    profiles = route_profiles(
        region,
        roads.node_lat_deg[start],
        roads.node_lon_deg[start],
        roads.node_lat_deg[end],
        roads.node_lon_deg[end],
    )
    low, high = region.constants.detour_bounds
    truth = {
        "aggressiveness": np.clip(rng.beta(2.5, 3.0, n_trips), 0.1, 0.95),
        "detour": low + (high - low) * rng.beta(1.3, 6.0, n_trips),
        "vehicle": _draw_vehicles(len(region.vehicles), n_trips, rng),
    }
    power_w = simulate_trips(region, profiles, **truth)
    if noise_scale > 0.0:
        power_w = multiplied_by_noise(power_w, noise_scale, _MEMORY, rng)
    return fleet_dataset(region, start, end, truth, power_w)


def _draw_ends(region: Region, n_trips: int, rng: np.random.Generator):
    """Start and end junctions, far enough apart and connected."""
    roads = region.roads
    scale = np.array([111_000.0, 111_000.0 * np.cos(np.radians(roads.node_lat_deg.mean()))])
    place = np.column_stack([roads.node_lat_deg, roads.node_lon_deg]) * scale
    centers = place[rng.choice(roads.n_nodes, size=min(6, roads.n_nodes), replace=False)]
    nearest = np.min(np.linalg.norm(place[:, None] - centers, axis=2), axis=1)
    weight = np.exp(-nearest / 1_500.0) + 0.05
    weight /= weight.sum()
    start, end = np.zeros(n_trips, np.int32), np.zeros(n_trips, np.int32)
    missing = np.arange(n_trips)
    for _ in range(50):
        start[missing] = rng.choice(roads.n_nodes, size=missing.size, p=weight)
        distance = np.linalg.norm(place - place[start[missing]][:, None], axis=2)
        appeal = weight * np.exp(-distance / 2_500.0)
        cumulative = np.cumsum(appeal, axis=1)
        ticket = rng.uniform(size=(missing.size, 1)) * cumulative[:, -1:]
        end[missing] = np.argmax(cumulative >= ticket, axis=1)
        found = route_profiles(
            region,
            roads.node_lat_deg[start[missing]],
            roads.node_lon_deg[start[missing]],
            roads.node_lat_deg[end[missing]],
            roads.node_lon_deg[end[missing]],
        )
        good = (found.status == RouteStatus.OK) & (found.length_m >= _MIN_ROUTE_M)
        missing = missing[~good]
        if not missing.size:
            return start, end
    raise ValueError(
        f"Expected junctions that are at least {_MIN_ROUTE_M:g} m apart by road; got too few of "
        f"them in region {region.name!r}. Use a larger region."
    )


def _draw_vehicles(n_vehicles: int, n_trips: int, rng: np.random.Generator) -> np.ndarray:
    """Vehicles with unequal shares, as in any real fleet."""
    share = 1.0 / (1.0 + np.arange(n_vehicles))
    rng.shuffle(share)
    return rng.choice(n_vehicles, size=n_trips, p=share / share.sum()).astype(np.int32)


def fleet_dataset(
    region: Region,
    start: np.ndarray,
    end: np.ndarray,
    truth: dict[str, np.ndarray],
    power_w: np.ndarray,
) -> xr.Dataset:
    """Traces ``(trip, time)`` between junctions, with what is known of each trip."""
    constants, roads = region.constants, region.roads
    seconds = np.arange(constants.n_times) * constants.time_step_s
    duration_s = np.sum(power_w > 0, axis=1) * constants.time_step_s
    return xr.Dataset(
        {
            "power_w": (("trip", "time"), power_w, {"units": "W"}),
            "start_lat": ("trip", roads.node_lat_deg[start], {"units": "degrees_north"}),
            "start_lon": ("trip", roads.node_lon_deg[start], {"units": "degrees_east"}),
            "end_lat": ("trip", roads.node_lat_deg[end], {"units": "degrees_north"}),
            "end_lon": ("trip", roads.node_lon_deg[end], {"units": "degrees_east"}),
            "duration_s": ("trip", duration_s, {"units": "s"}),
            **{name: ("trip", values) for name, values in truth.items()},
        },
        coords={
            "trip": [f"simulated/{row}" for row in range(len(power_w))],
            "time": ("time", seconds, {"units": "s"}),
        },
        attrs={
            "kind": "traces",
            "format_version": 1,
            "horizon_s": float(constants.horizon_s),
            "time_step_s": float(constants.time_step_s),
            "region_fingerprint": region.fingerprint,
        },
    )
