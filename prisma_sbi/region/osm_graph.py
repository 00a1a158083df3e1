"""From an OSMnx graph to the flat arrays of a road network."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from prisma_sbi._errors import InputDataError
from prisma_sbi._optional import optional_import
from prisma_sbi.region.assembly import (
    RoadEdge,
    assemble_network,
    polyline_length_m,
    select_nodes,
)
from prisma_sbi.region.assembly import largest_component as keep_largest
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.osm_tags import (
    CLASS_SPEEDS_KMH,
    OTHER_CLASS_SPEED_KMH,
    node_control,
    road_class,
    tag_values,
)
from prisma_sbi.region.roads import RoadNetwork
from prisma_sbi.units import MPS_PER_KMH

OSM_ATTRIBUTION = "© OpenStreetMap contributors, ODbL 1.0"
_SHORTEST_REPAIR_M = 0.1  # two nodes at one place still make an edge that one can drive


def road_network_from_graph(
    graph: Any,
    *,
    largest_component: bool = True,
    repair: bool = False,
    bounds: Bounds | None = None,
    class_speeds_kmh: Mapping[str, float] | None = None,
    attribution: str = OSM_ATTRIBUTION,
) -> RoadNetwork:
    """Turn an OSMnx drive graph into a road network.

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        As OSMnx makes it: node attributes ``x`` and ``y`` in degrees, edge attributes
        ``length`` in metres, ``highway`` and, where known, ``maxspeed`` and ``geometry``. It
        is not changed.
    largest_component
        Keep only the largest set of junctions that all reach each other. What is dropped is
        counted in the log ``prisma_sbi.region.assembly``.
    repair
        Give an edge without length the great-circle length of its polyline.
    bounds
        Drop junctions outside this box.
    class_speeds_kmh
        Speeds of road classes without a tagged limit, instead of those in
        :data:`CLASS_SPEEDS_KMH`.
    attribution
        Licence line of the source.

    Returns
    -------
    network : RoadNetwork
        Junctions sorted by identifier, edges by their ends. Self-loops are dropped; of
        parallel edges the shortest stays.

    Raises
    ------
    InputDataError
        If a junction has no coordinates, an edge has no positive length and ``repair`` is
        off, or nothing is left.
    TypeError
        If ``graph`` is no directed multigraph.

    Notes
    -----
    Limits are read by :func:`osmnx.routing.add_edge_speeds`, which knows units, several
    values per edge (their mean) and implicit limits. An edge without a readable limit gets
    the fixed default of its class, never an average over the other edges.
    """
    _require_multidigraph(graph)
    node_id, lat_deg, lon_deg = _node_arrays(graph)
    speeds = _edge_speeds_mps(graph, class_speeds_kmh or CLASS_SPEEDS_KMH)
    network = assemble_network(
        node_id=node_id,
        node_lat_deg=lat_deg,
        node_lon_deg=lon_deg,
        node_control=np.asarray([node_control(tags) for _, tags in graph.nodes(data=True)]),
        edges=_edges(graph, speeds, repair=repair),
        attribution=attribution,
    )
    if bounds is not None:
        inside = bounds.contains(network.node_lat_deg, network.node_lon_deg)
        network = network if inside.all() else select_nodes(network, inside)
    return keep_largest(network) if largest_component else network


def _require_multidigraph(graph: Any) -> None:
    """Refuse anything but a directed multigraph."""
    networkx = optional_import("networkx", extra="geo")
    if not isinstance(graph, networkx.MultiDiGraph):
        raise TypeError(
            f"Expected a networkx.MultiDiGraph as OSMnx makes it; got {type(graph).__name__}. "
            "Convert it with networkx.MultiDiGraph(graph)."
        )
    if graph.number_of_nodes() < 2 or graph.number_of_edges() < 1:
        raise InputDataError(
            f"Expected a graph with at least 2 nodes and 1 edge; got {graph.number_of_nodes()} "
            f"nodes and {graph.number_of_edges()} edges. Check the place and the road filter."
        )


def _node_arrays(graph: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Collect identifiers and coordinates of the nodes in the order of the graph."""
    identifiers, lat_deg, lon_deg = [], [], []
    for node, tags in graph.nodes(data=True):
        lat, lon = _number(tags.get("y")), _number(tags.get("x"))
        if not (abs(lat) <= 90.0 and abs(lon) <= 180.0):
            raise InputDataError(
                f"Expected x and y in degrees on every node; got x={tags.get('x')!r}, "
                f"y={tags.get('y')!r} on node {node!r}. Use an unprojected graph (EPSG:4326)."
            )
        if isinstance(node, bool) or not isinstance(node, int | np.integer):
            raise InputDataError(
                f"Expected whole numbers as node identifiers; got {node!r}. "
                "Relabel the nodes with networkx.convert_node_labels_to_integers."
            )
        identifiers.append(int(node))
        lat_deg.append(lat)
        lon_deg.append(lon)
    return np.asarray(identifiers, dtype=np.int64), np.asarray(lat_deg), np.asarray(lon_deg)


def _number(value: Any) -> float:
    """Float of a value, NaN where there is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _edge_speeds_mps(graph: Any, class_speeds_kmh: Mapping[str, float]) -> dict[Any, float]:
    """Drivable speed of each edge ``(u, v, key)``, limits read by OSMnx."""
    networkx = optional_import("networkx", extra="geo")
    osmnx = optional_import("osmnx", extra="geo")
    plain = networkx.MultiDiGraph(crs="epsg:4326")
    plain.add_nodes_from((node, {"x": 0.0, "y": 0.0}) for node in graph.nodes)
    classes = {}
    for u, v, key, tags in graph.edges(keys=True, data=True):
        classes[u, v, key] = road_class(tags.get("highway"))
        limits = tag_values(tags.get("maxspeed"))
        limit = limits[0] if len(limits) == 1 else (limits or None)
        plain.add_edge(u, v, key=key, highway=classes[u, v, key], maxspeed=limit)
    default = {
        name: class_speeds_kmh.get(name, OTHER_CLASS_SPEED_KMH) for name in set(classes.values())
    }
    osmnx.routing.add_edge_speeds(plain, hwy_speeds=default, fallback=OTHER_CLASS_SPEED_KMH)
    speeds = {}
    for u, v, key, speed_kmh in plain.edges(keys=True, data="speed_kph"):
        usable = speed_kmh if speed_kmh > 0 else default[classes[u, v, key]]
        speeds[u, v, key] = float(usable) * MPS_PER_KMH
    return speeds


def _edges(graph: Any, speeds: Mapping[Any, float], *, repair: bool) -> Iterator[RoadEdge]:
    """Edges that lead from one node to another, in a fixed order."""
    for u, v, key, tags in sorted(graph.edges(keys=True, data=True), key=lambda edge: edge[:3]):
        if u == v:
            continue
        lat_deg, lon_deg = _polyline(graph.nodes[u], graph.nodes[v], tags.get("geometry"))
        length_m = _number(tags.get("length"))
        if not (math.isfinite(length_m) and length_m > 0):
            if not repair:
                raise InputDataError(
                    f"Expected a positive length in metres on every edge; got "
                    f"{tags.get('length')!r} on the edge from node {u} to node {v} (key {key}). "
                    "Pass repair=True to compute it, or use osmnx.distance.add_edge_lengths."
                )
            length_m = max(polyline_length_m(lat_deg, lon_deg), _SHORTEST_REPAIR_M)
        yield RoadEdge(
            from_id=int(u),
            to_id=int(v),
            length_m=length_m,
            speed_mps=speeds[u, v, key],
            road_class=road_class(tags.get("highway")),
            lat_deg=lat_deg,
            lon_deg=lon_deg,
        )


def _polyline(
    start: Mapping[str, Any], end: Mapping[str, Any], geometry: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Latitudes and longitudes along an edge, from its start node to its end node."""
    ends = np.asarray([[start["x"], start["y"]], [end["x"], end["y"]]], dtype=np.float64)
    if geometry is None:
        points = ends
    else:
        points = np.asarray(geometry.coords, dtype=np.float64)[:, :2]
        forward = np.abs(points[[0, -1]] - ends).sum()
        if np.abs(points[[-1, 0]] - ends).sum() < forward:
            points = points[::-1]
        if not np.array_equal(points[0], ends[0]):
            points = np.concatenate([ends[:1], points])
        if not np.array_equal(points[-1], ends[1]):
            points = np.concatenate([points, ends[1:]])
    return np.ascontiguousarray(points[:, 1]), np.ascontiguousarray(points[:, 0])
