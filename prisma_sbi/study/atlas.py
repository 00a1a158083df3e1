"""An atlas of a city: how much a trace of each route would tell, before any is recorded."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi.models.trip_model import TripModel
from prisma_sbi.region.osm_tags import CONTROL_SIGNAL, CONTROL_STOP
from prisma_sbi.region.paths import Paths, path_edges, shortest_path_nodes
from prisma_sbi.region.profiles import RoadProfiles, RouteStatus
from prisma_sbi.region.record import Region
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.study.local import local_information
from prisma_sbi.study.samplers import Progress
from prisma_sbi.study.simulations import check_roads
from prisma_sbi.study.vehicles import vehicle_distances

DRIVER = (0.5, 1.2)
"""Aggressiveness and detour of a driver like many others."""
_ATTEMPTS = 50


def draw_routes(
    region: Region, n_routes: int, *, seed: int = 0, shortest_m: float = 400.0
) -> RoadProfiles:
    """Routes between junctions drawn at random, every junction as likely as the others.

    Parameters
    ----------
    region
        Public inputs; nothing else is read.
    n_routes
        How many.
    seed
        Same seed, same routes.
    shortest_m
        Shorter ones are drawn again, and so are pairs without a way between them.

    Returns
    -------
    RoadProfiles
        All of them routed.

    Raises
    ------
    ValueError
        If no two junctions of the region are that far apart.
    """
    _validate.at_least(1, n_routes=n_routes)
    _validate.positive(shortest_m=shortest_m)
    rng = np.random.default_rng(seed)
    roads = region.roads
    ends = np.zeros((2, n_routes), np.int64)
    missing = np.arange(n_routes)
    for _ in range(_ATTEMPTS):
        ends[:, missing] = rng.integers(roads.n_nodes, size=(2, missing.size))
        found = _routed(region, ends[:, missing])
        good = (found.status == RouteStatus.OK) & (found.length_m >= shortest_m)
        missing = missing[~good]
        if not missing.size:
            return _routed(region, ends)
    raise ValueError(
        f"Expected junctions that are {shortest_m:g} m apart by road; got too few of them in "
        f"region {region.name!r}. Use a larger region or a smaller shortest_m."
    )


def information_atlas(
    region: Region,
    profiles: RoadProfiles,
    *,
    driver: tuple[float, float] = DRIVER,
    vehicle: int | None = None,
    n_vehicles: int = 32,
    model: TripModel | None = None,
    chunk_size: int = 16,
    progress: Progress | None = None,
) -> xr.Dataset:
    r"""What a trace of each route would tell about driver, detour and vehicle.

    Parameters
    ----------
    region
        Public inputs.
    profiles
        Routes, from :func:`draw_routes` or of your own choice.
    driver
        Aggressiveness and detour, the same on every route.
    vehicle
        Position in the pool; by default the vehicle of median mass.
    n_vehicles
        Vehicles, evenly spaced by mass, among which the information about the vehicle is
        counted; their logarithm is the most it can be. 0 leaves the vehicle out.
    model
        Prior and likelihood; by default flat, and the law of the whole trace. Another
        likelihood needs ``n_vehicles=0``.
    chunk_size
        Trips per compiled call.
    progress
        Called with routes done and routes in all; twice through if vehicles are counted.

    Returns
    -------
    xarray.Dataset
        Along ``route``, with ``parameter`` and ``descriptor`` (aggressiveness, detour and,
        if counted, vehicle):

        ============================ ======================================================
        ``gain``                     (route, descriptor): expected information, in nats
        ``total_gain``               (route): their sum
        ``posterior_sd``             (route, parameter): expected standard deviation
        ``bound``                    (route, parameter): Cramér-Rao, without prior
        ``information``              (route, all parameters twice): as
                                     :func:`local_information` has it
        ``length_m``                 (route)
        ``n_stops``                  (route): signals and stop signs between the ends
        ``height_range_m``           (route): highest minus lowest point
        ``speed_limit_mps``          (route): mean along the way
        ``start_lat`` ... ``end_lon`` (route)
        ``step_route``, ``step_edge`` (step): route and road of every step of every way
        ``prior_sd``                 (parameter)
        ============================ ======================================================

    Raises
    ------
    ValueError
        If the driver is outside the domain, or the likelihood does not fit ``n_vehicles``.
    InputDataError
        If a route is not routed.

    Notes
    -----
    Information :math:`I` about aggressiveness, detour and five properties of the vehicle adds to
    that of the prior, :math:`\Lambda`; the expected posterior is taken for normal with
    covariance :math:`(I + \Lambda)^{-1}`, and the gain of a parameter is the logarithm of prior
    over posterior standard deviation. The vehicle is treated as unknown throughout. The gain
    about it is the lower bound of Kolchinsky and Tracey [1]_ on the information between a choice
    and a normal observation,
    :math:`-\sum_i p_i \log \sum_j p_j e^{-d_{ij}^2 / 8}`, with the distances of
    :func:`~prisma_sbi.study.vehicle_distances` for an unknown driver.

    Derivatives belong to one driver, so numbers of single routes are rough where the simulator
    has kinks; ranks of routes and maps over many of them are what an atlas is for.

    References
    ----------
    .. [1] Kolchinsky and Tracey, Estimating mixture entropy with pairwise distances, 2017.
       https://doi.org/10.3390/e19070361
    """
    model = model or TripModel.of(region, likelihood="trace")
    check_roads(profiles)
    chosen = vehicle_of_pool(region, vehicle)
    point = np.tile(_checked_driver(region, driver), (len(profiles), 1))
    local = local_information(
        region,
        profiles,
        point,
        np.full(len(profiles), chosen),
        model=model,
        with_vehicle=True,
        chunk_size=chunk_size,
        progress=progress,
    ).rename(trip="route")
    posterior_sd = _posterior_sd(local["information"].values, local["scale"].values)
    gain = np.log(local["scale"].values[:2] / posterior_sd)
    names = ["aggressiveness", "detour"]
    if n_vehicles:
        pool = _spread_by_mass(region, n_vehicles)
        found = vehicle_distances(
            region, profiles, point, model=_with_pool(model, pool), progress=progress
        )
        gain = np.column_stack([gain, choice_information(found["distance"].values)])
        names.append("vehicle")
    driver_only = local.isel(parameter=slice(2))
    return xr.Dataset(
        {
            "gain": (("route", "descriptor"), gain, {"units": "nat"}),
            "total_gain": ("route", gain.sum(axis=1), {"units": "nat"}),
            "posterior_sd": (("route", "parameter"), posterior_sd),
            "bound": (("route", "parameter"), driver_only["bound"].values),
            "prior_sd": ("parameter", driver_only["scale"].values),
            "information": (("route", "unknown", "other"), local["information"].values),
            **route_facts(region, profiles),
        },
        coords={
            "descriptor": names,
            "parameter": names[:2],
            "unknown": local["parameter"].values,
            "other": local["other"].values,
        },
        attrs={
            "kind": "atlas",
            "format_version": 1,
            "region_fingerprint": region.fingerprint,
            "aggressiveness": float(driver[0]),
            "detour": float(driver[1]),
            "vehicle": chosen,
            "n_vehicles": n_vehicles,
        },
    )


def choice_information(distance: np.ndarray) -> np.ndarray:
    """Least information, in nats, about a choice of equally likely options.

    Parameters
    ----------
    distance : (..., option, option)
        d' of the observations under every two options.

    Returns
    -------
    information : (...)
        0 if all distances are 0, the logarithm of the number of options if all are large.
    """
    likeness = np.exp(-0.125 * np.asarray(distance, np.float64) ** 2)
    return np.asarray(-np.mean(np.log(np.mean(likeness, axis=-1)), axis=-1))


def best_routes(atlas: xr.Dataset, n: int = 5, *, descriptor: str = "") -> np.ndarray:
    """Positions of the routes that tell most, the best first.

    Parameters
    ----------
    atlas
        From :func:`information_atlas`.
    n
        How many, or all there are.
    descriptor
        The one to identify; by default the sum over all.
    """
    gain = atlas["gain"].sel(descriptor=descriptor) if descriptor else atlas["total_gain"]
    return np.argsort(-gain.values, kind="stable")[:n]


def vehicle_of_pool(region: Region, vehicle: int | None = None) -> int:
    """A position in the pool; by default that of the vehicle of median mass."""
    n = len(region.vehicles)
    if vehicle is None:
        return int(np.argsort(region.vehicles.mass_kg, kind="stable")[n // 2])
    if not 0 <= vehicle < n:
        raise ValueError(f"Expected a vehicle in 0..{n - 1}; got {vehicle}.")
    return int(vehicle)


def _routed(region: Region, ends: np.ndarray) -> RoadProfiles:
    """Routes between junctions ``(2, route)``."""
    lat, lon = region.roads.node_lat_deg[ends], region.roads.node_lon_deg[ends]
    return route_profiles(region, lat[0], lon[0], lat[1], lon[1])


def _checked_driver(region: Region, driver: tuple[float, float]) -> np.ndarray:
    """Aggressiveness and detour inside the domain."""
    constants = region.constants
    (slow, fast), (least, most) = constants.aggressiveness_bounds, constants.detour_bounds
    if not (slow < driver[0] < fast and least <= driver[1] <= most):
        raise ValueError(
            f"Expected aggressiveness in ({slow:g}, {fast:g}) and detour in [{least:g}, {most:g}]; "
            f"got {driver[0]:g} and {driver[1]:g}."
        )
    return np.asarray(driver, np.float64)


def _posterior_sd(information: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Standard deviations of aggressiveness and detour ``(route, 2)`` with a normal prior."""
    # In units of the prior: no inverse of numbers of many sizes.
    scaled = information * scale * scale[:, None] + np.eye(len(scale))
    variance = np.diagonal(np.linalg.inv(scaled), axis1=1, axis2=2)[:, :2]
    return scale[:2] * np.sqrt(variance)


def _spread_by_mass(region: Region, n_vehicles: int) -> np.ndarray:
    """Positions of vehicles at evenly spaced ranks of mass."""
    _validate.at_least(2, n_vehicles=n_vehicles)
    order = np.argsort(region.vehicles.mass_kg, kind="stable")
    ranks = np.linspace(0, len(order) - 1, min(n_vehicles, len(order))).round().astype(int)
    return order[ranks]


def _with_pool(model: TripModel, rows: np.ndarray) -> TripModel:
    """The model with some vehicles only."""
    return eqx.tree_at(lambda m: m.pool, model, model.pool[jnp.asarray(rows)])


def route_facts(region: Region, profiles: RoadProfiles) -> dict[str, tuple]:
    """What kind of route each is, and the roads it takes."""
    roads = region.roads
    paths = shortest_path_nodes(region, profiles.start_node, profiles.end_node)
    edges = path_edges(region, paths)
    route = np.repeat(np.arange(len(profiles)), np.diff(edges.offset))
    length_m = roads.edge_length_m[edges.node].astype(np.float64)
    weighted = np.bincount(route, length_m * roads.edge_speed_mps[edges.node])
    ends = {"start": profiles.start_node, "end": profiles.end_node}
    places: dict[str, tuple] = {}
    for name, node in ends.items():
        places[f"{name}_lat"] = ("route", roads.node_lat_deg[node], {"units": "degrees_north"})
        places[f"{name}_lon"] = ("route", roads.node_lon_deg[node], {"units": "degrees_east"})
    return {
        "length_m": ("route", profiles.length_m.astype(np.float64), {"units": "m"}),
        "n_stops": ("route", _stops(region, paths)),
        "height_range_m": ("route", _height_range_m(profiles), {"units": "m"}),
        "speed_limit_mps": ("route", weighted / np.bincount(route, length_m), {"units": "m/s"}),
        **places,
        "step_route": ("step", route.astype(np.int32)),
        "step_edge": ("step", edges.node.astype(np.int32)),
    }


def _stops(region: Region, paths: Paths) -> np.ndarray:
    """Signals and stop signs strictly inside each way ``(route,)``."""
    controlled = np.isin(region.roads.node_control[paths.node], (CONTROL_SIGNAL, CONTROL_STOP))
    controlled[paths.offset[:-1]] = False
    controlled[paths.offset[1:] - 1] = False
    return np.add.reduceat(controlled.astype(np.int64), paths.offset[:-1])


def _height_range_m(profiles: RoadProfiles) -> np.ndarray:
    """Highest minus lowest point along each way, by the grades that the simulator sees."""
    grade = profiles.grade.astype(np.float64)
    step_m = profiles.length_m[:, None] / (grade.shape[1] - 1)
    rise_m = np.cumsum(0.5 * (grade[:, 1:] + grade[:, :-1]) * step_m, axis=1)
    height_m = np.concatenate([np.zeros((len(profiles), 1)), rise_m], axis=1)
    return height_m.max(axis=1) - height_m.min(axis=1)
