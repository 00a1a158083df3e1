"""Putting a road network together from edges, and taking the usable part out of it."""

import logging
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from prisma_sbi._errors import InputDataError
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.roads import RoadNetwork
from prisma_sbi.units import EARTH_RADIUS_M

_LOG = logging.getLogger(__name__)
_LARGE_LOSS = 0.1  # a tenth of the junctions unreachable is worth a warning


class RoadEdge(NamedTuple):
    """One directed edge with its polyline, end nodes included."""

    from_id: int
    to_id: int
    length_m: float
    speed_mps: float
    road_class: str
    lat_deg: np.ndarray
    lon_deg: np.ndarray


def great_circle_m(
    from_lat_deg: ArrayLike,
    from_lon_deg: ArrayLike,
    to_lat_deg: ArrayLike,
    to_lon_deg: ArrayLike,
) -> np.ndarray:
    """Distance over the sphere in metres (haversine), elementwise."""
    phi_from, phi_to = np.radians(from_lat_deg), np.radians(to_lat_deg)
    half_lat = (phi_to - phi_from) / 2.0
    half_lon = np.radians(np.subtract(to_lon_deg, from_lon_deg)) / 2.0
    chord = np.sin(half_lat) ** 2 + np.cos(phi_from) * np.cos(phi_to) * np.sin(half_lon) ** 2
    angle = 2.0 * np.arcsin(np.sqrt(np.clip(chord, 0.0, 1.0)))
    return np.asarray(EARTH_RADIUS_M * angle)


def polyline_length_m(lat_deg: np.ndarray, lon_deg: np.ndarray) -> float:
    """Length in metres of a polyline over the sphere."""
    return float(np.sum(great_circle_m(lat_deg[:-1], lon_deg[:-1], lat_deg[1:], lon_deg[1:])))


def assemble_network(
    *,
    node_id: np.ndarray,
    node_lat_deg: np.ndarray,
    node_lon_deg: np.ndarray,
    node_control: np.ndarray,
    edges: Iterable[RoadEdge],
    attribution: str,
) -> RoadNetwork:
    """Build the arrays in canonical order: nodes by identifier, edges by their two ends.

    Self-loops are dropped; of parallel edges the shortest stays, the first among equals.
    """
    order = np.argsort(node_id, kind="stable")
    position = {int(identifier): place for place, identifier in enumerate(node_id[order])}
    shortest: dict[tuple[int, int], RoadEdge] = {}
    for edge in edges:
        ends = position[edge.from_id], position[edge.to_id]
        known = shortest.get(ends)
        if ends[0] != ends[1] and (known is None or edge.length_m < known.length_m):
            shortest[ends] = edge
    ends = sorted(shortest)
    kept = [shortest[pair] for pair in ends]
    pairs = np.asarray(ends, dtype=np.int32).reshape(-1, 2)
    n_points = np.asarray([len(edge.lat_deg) for edge in kept], dtype=np.int64)
    empty = [np.empty(0)]
    return RoadNetwork(
        node_id=np.asarray(node_id, dtype=np.int64)[order],
        node_lat_deg=np.asarray(node_lat_deg, dtype=np.float64)[order],
        node_lon_deg=np.asarray(node_lon_deg, dtype=np.float64)[order],
        node_control=np.asarray(node_control, dtype=np.uint8)[order],
        edge_from=np.ascontiguousarray(pairs[:, 0]),
        edge_to=np.ascontiguousarray(pairs[:, 1]),
        edge_length_m=np.asarray([edge.length_m for edge in kept], dtype=np.float64),
        edge_speed_mps=np.asarray([edge.speed_mps for edge in kept], dtype=np.float64),
        edge_class=np.asarray([edge.road_class for edge in kept], dtype=np.str_),
        geometry_offset=np.concatenate([[0], np.cumsum(n_points)]).astype(np.int64),
        geometry_lat_deg=np.concatenate([edge.lat_deg for edge in kept] or empty),
        geometry_lon_deg=np.concatenate([edge.lon_deg for edge in kept] or empty),
        attribution=attribution,
    )


def largest_component(network: RoadNetwork) -> RoadNetwork:
    """Keep the largest set of junctions that all reach each other; log what was dropped.

    Parameters
    ----------
    network
        Any network, connected or not.

    Returns
    -------
    network : RoadNetwork
        The largest strongly connected component; the same object if that is all of it.

    Raises
    ------
    InputDataError
        If no two junctions reach each other.

    Notes
    -----
    The number of junctions dropped goes to the log ``prisma_sbi.region.assembly``, as a
    warning when it exceeds a tenth of them. Among components of equal size the one with the
    smallest junction identifier is kept.
    """
    ones = np.ones(network.n_edges, dtype=np.int8)
    shape = (network.n_nodes, network.n_nodes)
    adjacency = coo_array((ones, (network.edge_from, network.edge_to)), shape=shape).tocsr()
    n_components, label = connected_components(adjacency, directed=True, connection="strong")
    if n_components == 1:
        return network
    size = np.bincount(label)
    if size.max() < 2:
        raise InputDataError(
            "Expected junctions that reach each other; got a road network in which no two "
            "do. Check the one-way directions and the source of the graph."
        )
    largest = label[np.flatnonzero(size[label] == size.max())[0]]
    n_dropped = network.n_nodes - int(size.max())
    level = logging.WARNING if n_dropped > _LARGE_LOSS * network.n_nodes else logging.INFO
    _LOG.log(
        level,
        "kept the largest strongly connected component: %d of %d junctions (%d components)",
        size.max(),
        network.n_nodes,
        n_components,
    )
    return select_nodes(network, label == largest)


def select_nodes(network: RoadNetwork, keep: np.ndarray) -> RoadNetwork:
    """Take the part of a network on the junctions where the mask is true."""
    keep_edge = keep[network.edge_from] & keep[network.edge_to]
    position = np.cumsum(keep) - 1
    n_points = np.diff(network.geometry_offset)
    keep_point = np.repeat(keep_edge, n_points)
    return RoadNetwork(
        node_id=network.node_id[keep],
        node_lat_deg=network.node_lat_deg[keep],
        node_lon_deg=network.node_lon_deg[keep],
        node_control=network.node_control[keep],
        edge_from=position[network.edge_from[keep_edge]].astype(np.int32),
        edge_to=position[network.edge_to[keep_edge]].astype(np.int32),
        edge_length_m=network.edge_length_m[keep_edge],
        edge_speed_mps=network.edge_speed_mps[keep_edge],
        edge_class=network.edge_class[keep_edge],
        geometry_offset=np.concatenate([[0], np.cumsum(n_points[keep_edge])]).astype(np.int64),
        geometry_lat_deg=network.geometry_lat_deg[keep_point],
        geometry_lon_deg=network.geometry_lon_deg[keep_point],
        attribution=network.attribution,
    )


def network_bounds(network: RoadNetwork, *, margin_m: float = 0.0) -> Bounds:
    """Draw the smallest box around all junctions, widened on every side by ``margin_m``.

    Raises
    ------
    ValueError
        If all junctions lie on one meridian or one parallel.
    """
    south, north = float(network.node_lat_deg.min()), float(network.node_lat_deg.max())
    west, east = float(network.node_lon_deg.min()), float(network.node_lon_deg.max())
    lat_margin = math.degrees(margin_m / EARTH_RADIUS_M)
    lon_margin = lat_margin / math.cos(math.radians(0.5 * (south + north)))
    return Bounds(
        south_deg=south - lat_margin,
        north_deg=north + lat_margin,
        west_deg=west - lon_margin,
        east_deg=east + lon_margin,
    )
