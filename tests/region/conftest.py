"""Small regions built by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.elevation import Elevation
from prisma_sbi.region.pool import VehiclePool
from prisma_sbi.region.record import Region
from prisma_sbi.region.roads import RoadNetwork
from prisma_sbi.units import EARTH_RADIUS_M

DEG_PER_M = 180.0 / np.pi / EARTH_RADIUS_M
"""Degrees of latitude in a metre; of longitude too, beside the equator."""


def make_pool() -> VehiclePool:
    """Two vehicles."""
    return VehiclePool(
        name=np.array(["small", "large"]),
        mass_kg=np.array([1200.0, 2500.0]),
        road_load_a_n=np.array([100.0, 200.0]),
        road_load_b_n_per_mps=np.array([1.0, 2.0]),
        road_load_c_n_per_mps2=np.array([0.35, 0.7]),
        displacement_l=np.array([1.4, 5.0]),
        model_year=np.array([2010, 2012]),
    )


def make_network(
    xy_m: Sequence[tuple[float, float]],
    edges: Sequence[tuple[int, int, float, float]],
    *,
    control: dict[int, int] | None = None,
) -> RoadNetwork:
    """Nodes at metres east and north of (0, 0); edges (from, to, length in m, speed in m/s)."""
    x, y = np.array(xy_m, dtype=np.float64).T
    lat, lon = y * DEG_PER_M, x * DEG_PER_M
    tail = np.array([edge[0] for edge in edges], dtype=np.int32)
    head = np.array([edge[1] for edge in edges], dtype=np.int32)
    node_control = np.zeros(len(x), dtype=np.uint8)
    for node, kind in (control or {}).items():
        node_control[node] = kind
    ends = np.stack([tail, head], axis=1).ravel()
    return RoadNetwork(
        node_id=np.arange(100, 100 + len(x), dtype=np.int64),
        node_lat_deg=lat,
        node_lon_deg=lon,
        node_control=node_control,
        edge_from=tail,
        edge_to=head,
        edge_length_m=np.array([edge[2] for edge in edges], dtype=np.float64),
        edge_speed_mps=np.array([edge[3] for edge in edges], dtype=np.float64),
        edge_class=np.array(["residential"] * len(edges)),
        geometry_offset=np.arange(0, 2 * len(edges) + 1, 2, dtype=np.int64),
        geometry_lat_deg=lat[ends],
        geometry_lon_deg=lon[ends],
    )


def make_elevation(rise_east: float = 0.0, rise_north: float = 0.0) -> Elevation:
    """A plane that covers 12 km around (0, 0)."""
    step_m = 60.0
    axis_m = np.arange(-200, 201) * step_m
    height = 250.0 + rise_east * axis_m[None, :] + rise_north * axis_m[::-1, None]
    return Elevation(
        height_m=height.astype(np.float32),
        north_deg=float(axis_m[-1] * DEG_PER_M),
        west_deg=float(axis_m[0] * DEG_PER_M),
        lat_step_deg=step_m * DEG_PER_M,
        lon_step_deg=step_m * DEG_PER_M,
    )


def make_region(
    roads: RoadNetwork,
    *,
    elevation: Elevation | None = None,
    constants: Constants | None = None,
) -> Region:
    """Region around (0, 0) with the network given."""
    return Region(
        name="test",
        bounds=Bounds(south_deg=-0.1, north_deg=0.1, west_deg=-0.1, east_deg=0.1),
        roads=roads,
        elevation=elevation if elevation is not None else make_elevation(),
        vehicles=make_pool(),
        constants=constants if constants is not None else Constants(),
    )


def both_ways(*edges: tuple[int, int, float, float]) -> list[tuple[int, int, float, float]]:
    """Each edge and its reverse."""
    return [*edges, *((head, tail, length, speed) for tail, head, length, speed in edges)]


@pytest.fixture(scope="session")
def three_edge_region() -> Region:
    """A straight road to the east: 400 m at 10, 200 m at 20, 400 m at 15 m/s, rising by 4 %."""
    nodes = [(0.0, 0.0), (400.0, 0.0), (600.0, 0.0), (1000.0, 0.0)]
    edges = both_ways((0, 1, 400.0, 10.0), (1, 2, 200.0, 20.0), (2, 3, 400.0, 15.0))
    return make_region(make_network(nodes, edges), elevation=make_elevation(rise_east=0.04))
