"""Routing: from two coordinates to a road profile, for thousands of trips at once."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from prisma_sbi import _validate
from prisma_sbi.region.edge_heights import concatenate_heights
from prisma_sbi.region.paths import (
    Paths,
    iter_paths,
    network_distances,
    path_edges,
    shortest_path_nodes,
    snap_to_nodes,
)
from prisma_sbi.region.profiles import RoadProfiles, RouteStatus
from prisma_sbi.region.record import Region

__all__ = ["network_distances", "route_profiles", "shortest_path_nodes", "snap_to_nodes"]

_SLOWING_CONTROLS = (1, 2)  # traffic signal, stop sign
_GAP_M = 1.0  # between the roads of two trips on their common axis


def route_profiles(
    region: Region,
    start_lat: np.ndarray,
    start_lon: np.ndarray,
    end_lat: np.ndarray,
    end_lon: np.ndarray,
    *,
    chunk_size: int = 2048,
    progress: Callable[[int, int], None] | None = None,
) -> RoadProfiles:
    r"""Snap, route and unfold trips.

    A trip that cannot be routed keeps its row: its status says why, and its road is flat, 1 m
    long and harmless.

    Parameters
    ----------
    region
        Network, heights, bounds and constants.
    start_lat, start_lon, end_lat, end_lon : (trip,)
        End points in degrees; NaN marks a missing coordinate.
    chunk_size
        Trips unfolded at once; bounds the memory.
    progress
        Called with (trips done, trips in all) after each chunk.

    Returns
    -------
    profiles : RoadProfiles
        One row a trip, in the order given.

    Raises
    ------
    ValueError
        If the four arrays differ in length or ``chunk_size`` is below 1.

    Notes
    -----
    Both ends are snapped to the nearest junction and joined by the shortest path by length.
    With :math:`L` its length, point :math:`i` of :math:`S` lies at :math:`s_i = L i / (S-1)`.

    The drivable speed is that of the edge under the point (of the next edge, at a junction). A
    signal or stop sign strictly inside the route lowers it to the creep speed at every point
    within half the creep length, and in any case at the nearest point, so that none is missed
    by the sampling.

    Heights :math:`h` are averaged over a window :math:`W` of arc length and then
    differentiated, which has the closed form

    .. math:: \frac{d}{ds} \frac1W \int_{s-W/2}^{s+W/2} h \, ds'
        = \frac{h(s + W/2) - h(s - W/2)}{W}.

    At either end of the road the window is moved inwards; on a road shorter than :math:`W` it
    is the whole road. Grades beyond ``max_grade`` are clipped.

    =========================== ===================
    Case                        Status
    =========================== ===================
    a coordinate is not finite  ``BAD_COORDINATE``
    an end lies outside bounds  ``OUT_OF_REGION``
    both ends snap to one node  ``SAME_PLACE``
    no path in driving sense    ``UNREACHABLE``
    =========================== ===================
    """
    _validate.at_least(1, chunk_size=chunk_size)
    start_lat, start_lon, end_lat, end_lon = _checked_coordinates(
        start_lat=start_lat, start_lon=start_lon, end_lat=end_lat, end_lon=end_lon
    )
    status, start_node, end_node = _snap_trips(region, start_lat, start_lon, end_lat, end_lon)
    profiles = _empty_profiles(region, status, start_node, end_node)
    wanted = np.flatnonzero(status == RouteStatus.OK)
    done = len(status) - len(wanted)
    batches = iter_paths(region, start_node[wanted], end_node[wanted], chunk_size=chunk_size)
    for part, paths in batches:
        trip = wanted[part]
        reached = np.diff(paths.offset) > 0
        status[trip[~reached]] = RouteStatus.UNREACHABLE
        if reached.any():
            _fill(profiles, trip[reached], _unfold(region, _keep_reached(paths)))
        done += len(trip)
        if progress is not None:
            progress(done, len(status))
    return profiles


class _Roads(NamedTuple):
    """The roads of a chunk of trips on one common axis, a gap between each two."""

    path: Paths
    edge: Paths
    edge_start_m: np.ndarray
    base_m: np.ndarray
    length_m: np.ndarray


class _Unfolded(NamedTuple):
    """Profiles of a chunk of trips."""

    length_m: np.ndarray
    speed_mps: np.ndarray
    grade: np.ndarray


def _checked_coordinates(**values: np.ndarray) -> tuple[np.ndarray, ...]:
    """Coordinates as flat float64 arrays of one length."""
    arrays = {name: np.atleast_1d(np.asarray(v, dtype=np.float64)) for name, v in values.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) != 1 or next(iter(arrays.values())).ndim != 1:
        raise ValueError(f"Expected one coordinate of each kind for every trip; got {shapes}.")
    return tuple(arrays.values())


def _snap_trips(
    region: Region,
    start_lat: np.ndarray,
    start_lon: np.ndarray,
    end_lat: np.ndarray,
    end_lon: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Status so far and the junctions of both ends."""
    known = np.isfinite(start_lat + start_lon + end_lat + end_lon)
    inside = region.bounds.contains(start_lat, start_lon)
    inside &= region.bounds.contains(end_lat, end_lon)
    status = np.full(len(known), RouteStatus.OK, dtype=np.uint8)
    status[~inside] = RouteStatus.OUT_OF_REGION
    status[~known] = RouteStatus.BAD_COORDINATE
    usable = status == RouteStatus.OK
    start_node = np.full(len(known), -1, dtype=np.int32)
    end_node = np.full(len(known), -1, dtype=np.int32)
    start_node[usable] = snap_to_nodes(region, start_lat[usable], start_lon[usable])
    end_node[usable] = snap_to_nodes(region, end_lat[usable], end_lon[usable])
    status[usable & (start_node == end_node)] = RouteStatus.SAME_PLACE
    return status, start_node, end_node


def _empty_profiles(
    region: Region, status: np.ndarray, start_node: np.ndarray, end_node: np.ndarray
) -> RoadProfiles:
    """Flat roads of 1 m, to be overwritten where a route exists."""
    shape = (len(status), region.constants.n_route_points)
    return RoadProfiles(
        length_m=np.ones(len(status), dtype=np.float32),
        speed_mps=np.ones(shape, dtype=np.float32),
        grade=np.zeros(shape, dtype=np.float32),
        start_node=start_node,
        end_node=end_node,
        status=status,
    )


def _fill(profiles: RoadProfiles, trip: np.ndarray, unfolded: _Unfolded) -> None:
    """Write a chunk into the rows of its trips."""
    profiles.length_m[trip] = unfolded.length_m
    profiles.speed_mps[trip] = unfolded.speed_mps
    profiles.grade[trip] = unfolded.grade


def _keep_reached(paths: Paths) -> Paths:
    """Paths without the empty ones; they own no nodes, so only boundaries go."""
    return Paths(paths.node, np.unique(paths.offset))


def _unfold(region: Region, path: Paths) -> _Unfolded:
    """Unfold non-empty paths of at least one edge to points at equal spacing."""
    roads = _lay_out(region, path)
    n_points = region.constants.n_route_points
    share = np.linspace(0.0, 1.0, n_points)
    # point_m[trip, point] is the arc length within the trip's own road.
    point_m = roads.length_m[:, None] * share
    speed = _edge_speeds(region, roads, point_m)
    slow = _controlled_points(region, roads, n_points)
    speed = np.where(slow, np.minimum(speed, region.constants.creep_speed_mps), speed)
    return _Unfolded(roads.length_m, speed, _grades(region, roads, point_m))


def _lay_out(region: Region, path: Paths) -> _Roads:
    """Put the edges of all trips one after the other on a common axis."""
    edge = path_edges(region, path)
    length = region.roads.edge_length_m[edge.node]
    trip = np.repeat(np.arange(len(edge.offset) - 1), np.diff(edge.offset))
    before = np.cumsum(length) - length
    edge_start = before + trip * _GAP_M
    base = edge_start[edge.offset[:-1]]
    last = edge.offset[1:] - 1
    return _Roads(path, edge, edge_start, base, edge_start[last] + length[last] - base)


def _edge_speeds(region: Region, roads: _Roads, point_m: np.ndarray) -> np.ndarray:
    """Speed of the edge under each point ``(trip, point)``."""
    first, last = roads.edge.offset[:-1, None], roads.edge.offset[1:, None] - 1
    wanted = (roads.base_m[:, None] + point_m).ravel()
    position = np.searchsorted(roads.edge_start_m, wanted, side="right") - 1
    position = np.clip(position.reshape(point_m.shape), first, last)
    return region.roads.edge_speed_mps[roads.edge.node[position]]


def _controlled_points(region: Region, roads: _Roads, n_points: int) -> np.ndarray:
    """Points that a signal or stop sign inside the route slows down ``(trip, point)``."""
    # The node at which edge j of a trip begins; the first of them is the start of the trip.
    count = np.diff(roads.edge.offset)
    trip = np.repeat(np.arange(len(count)), count)
    inner = np.ones(len(trip), dtype=bool)
    inner[roads.edge.offset[:-1]] = False
    control = region.roads.node_control[region.roads.edge_from[roads.edge.node]]
    found = np.flatnonzero(inner & np.isin(control, _SLOWING_CONTROLS))
    trip = trip[found]
    spacing = roads.length_m[trip] / (n_points - 1)
    position = (roads.edge_start_m[found] - roads.base_m[trip]) / spacing
    reach = region.constants.creep_length_m / 2 / spacing
    nearest = np.rint(position)
    low = np.clip(np.minimum(np.ceil(position - reach), nearest), 0, n_points - 1)
    high = np.clip(np.maximum(np.floor(position + reach), nearest), 0, n_points - 1)
    # Count intervals by their ends: +1 where one opens, -1 behind its last point.
    change = np.zeros((len(count), n_points + 1), dtype=np.int32)
    np.add.at(change, (trip, low.astype(np.int64)), 1)
    np.add.at(change, (trip, high.astype(np.int64) + 1), -1)
    return np.cumsum(change, axis=1)[:, :-1] > 0


def _grades(region: Region, roads: _Roads, point_m: np.ndarray) -> np.ndarray:
    """Slope of the averaged heights at each point ``(trip, point)``."""
    knot, height = concatenate_heights(region, roads.edge.node, roads.edge_start_m)
    length = roads.length_m[:, None]
    window = np.minimum(region.constants.elevation_smoothing_m, length)
    behind = np.clip(point_m - window / 2, 0.0, length - window)
    base = roads.base_m[:, None]
    rise = np.interp(base + behind + window, knot, height)
    rise -= np.interp(base + behind, knot, height)
    limit = region.constants.max_grade
    return np.clip(rise / window, -limit, limit)
