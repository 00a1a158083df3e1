"""Shortest paths for many trips at once: one search per distinct start."""

from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import KDTree

from prisma_sbi import _validate
from prisma_sbi.region.record import Region

_NO_PREDECESSOR = -9999  # scipy's mark for "this node is the start, or cannot be reached"
_MATRIX_CELLS = 1 << 24  # starts times nodes held at once: 200 MB of distances and predecessors


class Paths(NamedTuple):
    """Node sequences of many trips, one after the other.

    Attributes
    ----------
    node : (step,) int32
        Positions in the node arrays of the network, in the direction of travel.
    offset : (trip + 1,) int64
        Trip ``t`` owns ``node[offset[t]:offset[t + 1]]``. The stretch is empty where the end
        cannot be reached, and one node where start and end are the same.
    """

    node: np.ndarray
    offset: np.ndarray


class _SearchIndex(NamedTuple):
    """What the searches need of a network, built once."""

    graph: csr_array
    tree: KDTree
    sorted_key: np.ndarray
    sorted_edge: np.ndarray


# Derived from the immutable record it is keyed by and dropped together with it.
_INDEXES: WeakKeyDictionary[Region, _SearchIndex] = WeakKeyDictionary()


def snap_to_nodes(region: Region, lat_deg: np.ndarray, lon_deg: np.ndarray) -> np.ndarray:
    """Nearest junction of each point, by great-circle distance.

    Parameters
    ----------
    region
        Region with the road network.
    lat_deg, lon_deg : (trip,)
        Coordinates in degrees.

    Returns
    -------
    node : (trip,) int32
        Positions in the node arrays; -1 where a coordinate is not finite.

    Notes
    -----
    On the unit sphere the chord grows with the great circle, so the nearest neighbour in
    three dimensions is the nearest on the globe, at any latitude.
    """
    lat = np.atleast_1d(np.asarray(lat_deg, dtype=np.float64))
    lon = np.atleast_1d(np.asarray(lon_deg, dtype=np.float64))
    node = np.full(lat.shape, -1, dtype=np.int32)
    known = np.isfinite(lat) & np.isfinite(lon)
    if known.any():
        node[known] = _search_index(region).tree.query(_on_sphere(lat[known], lon[known]))[1]
    return node


def shortest_path_nodes(region: Region, start_node: np.ndarray, end_node: np.ndarray) -> Paths:
    """Shortest path by length of every trip.

    Parameters
    ----------
    region
        Region with the road network.
    start_node, end_node : (trip,)
        Positions in the node arrays, as :func:`snap_to_nodes` returns them.

    Returns
    -------
    paths : Paths
        Node sequences in the order of the trips; empty where the end cannot be reached.

    Raises
    ------
    ValueError
        If the arrays differ in length or a position is not a node.
    """
    start, end = _checked_nodes(region, start_node), _checked_nodes(region, end_node)
    if start.shape != end.shape:
        raise ValueError(
            f"Expected as many ends as starts; got {len(start)} starts and {len(end)} ends."
        )
    batches = list(iter_paths(region, start, end, chunk_size=4096))
    if not batches:
        return Paths(np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64))
    trip = np.concatenate([trips for trips, _ in batches])
    count = np.concatenate([np.diff(paths.offset) for _, paths in batches])
    node = np.concatenate([paths.node for _, paths in batches])
    place = np.argsort(trip, kind="stable")
    flat = ragged_index((np.cumsum(count) - count)[place], count[place])
    return Paths(node[flat], _offsets(count[place]))


def network_distances(region: Region, start_node: np.ndarray) -> np.ndarray:
    """Length of the shortest path from each start to every node.

    Parameters
    ----------
    region
        Region with the road network.
    start_node : (start,)
        Positions in the node arrays.

    Returns
    -------
    distance_m : (start, node) float32
        Infinite where no drivable path leads from the start to the node.

    Raises
    ------
    ValueError
        If a position is not a node.
    """
    start = _checked_nodes(region, start_node)
    distinct, inverse = np.unique(start, return_inverse=True)
    graph = _search_index(region).graph
    rows = np.empty((len(distinct), region.roads.n_nodes), dtype=np.float32)
    step = _starts_at_once(region)
    for first in range(0, len(distinct), step):
        rows[first : first + step] = dijkstra(graph, indices=distinct[first : first + step])
    return rows if np.array_equal(distinct, start) else rows[inverse]


def iter_paths(
    region: Region, start: np.ndarray, end: np.ndarray, *, chunk_size: int
) -> Iterator[tuple[np.ndarray, Paths]]:
    """Yield ``(trip positions, paths)`` in batches that hold at most ``chunk_size`` trips.

    Trips come ordered by their start, so each distinct start is searched from once.
    """
    _validate.at_least(1, chunk_size=chunk_size)
    graph = _search_index(region).graph
    order = np.argsort(start, kind="stable")
    distinct, first_trip = np.unique(start[order], return_index=True)
    bound = np.append(first_trip, len(order))
    step = min(chunk_size, _starts_at_once(region))
    for first in range(0, len(distinct), step):
        last = min(first + step, len(distinct))
        _, predecessor = dijkstra(graph, indices=distinct[first:last], return_predecessors=True)
        trips = order[bound[first] : bound[last]]
        for low in range(0, len(trips), chunk_size):
            part = trips[low : low + chunk_size]
            row = np.searchsorted(distinct, start[part]) - first
            yield part, _walk_back(predecessor, row, start[part], end[part])


def path_edges(region: Region, paths: Paths) -> Paths:
    """Edge sequences of node sequences; ``node`` of the result holds edge positions."""
    index = _search_index(region)
    count = np.maximum(np.diff(paths.offset) - 1, 0)
    tail = ragged_index(paths.offset[:-1], count)
    key = _edge_key(paths.node[tail], paths.node[tail + 1], region.roads.n_nodes)
    edge = index.sorted_edge[np.searchsorted(index.sorted_key, key)]
    return Paths(edge.astype(np.int32), _offsets(count))


def ragged_index(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Positions ``first[0] .. first[0] + count[0] - 1, first[1], ...`` as one flat array."""
    before = np.cumsum(count) - count
    return np.repeat(first - before, count) + np.arange(int(count.sum()))


def _walk_back(
    predecessor: np.ndarray, row: np.ndarray, start: np.ndarray, end: np.ndarray
) -> Paths:
    """Follow the predecessors of all trips in step, from the ends to the starts."""
    reachable = (predecessor[row, end] != _NO_PREDECESSOR) | (start == end)
    active = np.flatnonzero(reachable)
    current = end[active]
    owners, nodes = [active], [current]
    while active.size:
        moving = current != start[active]
        active, current = active[moving], current[moving]
        current = predecessor[row[active], current]
        owners.append(active)
        nodes.append(current)
    # A stable sort by trip keeps the steps of a trip in the order walked, from its end;
    # reading everything backwards turns the steps round, and the trips too.
    owner, node = np.concatenate(owners), np.concatenate(nodes)
    backwards = np.argsort(-owner, kind="stable")[::-1]
    count = np.bincount(owner, minlength=len(end))
    return Paths(node[backwards].astype(np.int32), _offsets(count))


def _search_index(region: Region) -> _SearchIndex:
    """Return the search index of a region, building it on first use."""
    index = _INDEXES.get(region)
    if index is None:
        index = _INDEXES[region] = _build_index(region)
    return index


def _build_index(region: Region) -> _SearchIndex:
    """Sparse graph, tree of junctions, and edges sorted by their pair of ends."""
    roads, n_nodes = region.roads, region.roads.n_nodes
    # Lengths as keys within equal pairs: the first of a group is the shortest parallel edge.
    key = _edge_key(roads.edge_from, roads.edge_to, n_nodes)
    order = np.lexsort((roads.edge_length_m, key))
    sorted_key, first = np.unique(key[order], return_index=True)
    edge = order[first]
    ends = (roads.edge_from[edge], roads.edge_to[edge])
    graph = csr_array((roads.edge_length_m[edge], ends), shape=(n_nodes, n_nodes))
    tree = KDTree(_on_sphere(roads.node_lat_deg, roads.node_lon_deg))
    return _SearchIndex(graph, tree, sorted_key, edge)


def _edge_key(tail: np.ndarray, head: np.ndarray, n_nodes: int) -> np.ndarray:
    """One integer for each ordered pair of nodes."""
    return tail.astype(np.int64) * n_nodes + head


def _on_sphere(lat_deg: np.ndarray, lon_deg: np.ndarray) -> np.ndarray:
    """Points on the unit sphere ``(point, 3)``."""
    lat, lon = np.radians(lat_deg), np.radians(lon_deg)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


def _starts_at_once(region: Region) -> int:
    """Count the searches whose result matrices fit into the memory set aside."""
    return max(1, _MATRIX_CELLS // region.roads.n_nodes)


def _offsets(count: np.ndarray) -> np.ndarray:
    """Boundaries of stretches with the given lengths."""
    return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)


def _checked_nodes(region: Region, node: np.ndarray) -> np.ndarray:
    """Node positions as a flat array, each one valid."""
    checked = np.atleast_1d(np.asarray(node)).astype(np.int32)
    bad = np.flatnonzero((checked < 0) | (checked >= region.roads.n_nodes))
    if bad.size:
        raise ValueError(
            f"Expected node positions in [0, {region.roads.n_nodes - 1}]; got "
            f"{int(checked[bad[0]])} for trip {int(bad[0])}. Drop trips that were not snapped."
        )
    return checked
