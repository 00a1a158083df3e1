"""The road network as flat arrays: what routing needs, free of any geo library."""

from dataclasses import dataclass

import numpy as np

from prisma_sbi._errors import InputDataError


@dataclass(frozen=True, kw_only=True, eq=False)
class RoadNetwork:
    """A directed drive network.

    Attributes
    ----------
    node_id : (node,) int64
        Identifier in the source; unique.
    node_lat_deg, node_lon_deg : (node,) float64
    node_control : (node,) uint8
        0 nothing, 1 traffic signal, 2 stop sign, 3 crossing or give-way (does not slow).
    edge_from, edge_to : (edge,) int32
        Positions in the node arrays. No self-loops, no parallel edges.
    edge_length_m : (edge,) float64
        Positive and finite.
    edge_speed_mps : (edge,) float64
        Drivable speed: the tagged limit, else the default of the road class.
    edge_class : (edge,) str
        OSM ``highway`` value.
    geometry_offset : (edge + 1,) int64
        Edge ``e`` owns the shape points ``geometry_offset[e]:geometry_offset[e + 1]``.
    geometry_lat_deg, geometry_lon_deg : (shape point,) float64
        Polyline of each edge, both end nodes included.
    attribution : str
        Licence line of the source.
    """

    node_id: np.ndarray
    node_lat_deg: np.ndarray
    node_lon_deg: np.ndarray
    node_control: np.ndarray
    edge_from: np.ndarray
    edge_to: np.ndarray
    edge_length_m: np.ndarray
    edge_speed_mps: np.ndarray
    edge_class: np.ndarray
    geometry_offset: np.ndarray
    geometry_lat_deg: np.ndarray
    geometry_lon_deg: np.ndarray
    attribution: str = ""

    def __post_init__(self) -> None:
        if self.n_nodes < 2 or self.n_edges < 1:
            raise InputDataError(
                f"Expected a road network with at least 2 nodes and 1 edge; got {self.n_nodes} "
                f"nodes and {self.n_edges} edges. Check the bounding box and the road filter."
            )
        for name in ("edge_length_m", "edge_speed_mps"):
            values = getattr(self, name)
            bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
            if bad.size:
                edge = int(bad[0])
                raise InputDataError(
                    f"Expected {name} > 0 on every edge; got {values[edge]!r} on the edge from "
                    f"node {self.node_id[self.edge_from[edge]]} to node "
                    f"{self.node_id[self.edge_to[edge]]} ({bad.size} such edges). "
                    "Repair the graph, for instance with osmnx.distance.add_edge_lengths."
                )

    @property
    def n_nodes(self) -> int:
        """Number of junctions and road ends."""
        return len(self.node_id)

    @property
    def n_edges(self) -> int:
        """Number of directed edges."""
        return len(self.edge_from)
