"""Rate of routing: ``python benchmarks/routing.py [roads.graphml elevation.tif]``.

Without arguments a street grid of 60 x 60 junctions made here; with them a real city. The yardstick
is one Dijkstra search per distinct start, without any unfolding.
"""

import argparse
import resource
import sys
import time

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.builtin_vehicles import builtin_pool
from prisma_sbi.region.elevation import Elevation
from prisma_sbi.region.elevation_files import read_elevation
from prisma_sbi.region.osm_graph import road_network_from_graph
from prisma_sbi.region.record import Region
from prisma_sbi.region.roads import RoadNetwork
from prisma_sbi.region.routing import route_profiles


def grid_region(side: int = 60, block_m: float = 150.0) -> Region:
    """Make a flat grid of two-way streets beside the equator."""
    step_deg = block_m / 111_195.0
    node = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [
            np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1),
            np.stack([node[:-1].ravel(), node[1:].ravel()], axis=1),
        ]
    )
    pairs = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int32)
    lat, lon = (axis.ravel() * step_deg for axis in np.divmod(node, side))
    roads = RoadNetwork(
        node_id=node.ravel().astype(np.int64),
        node_lat_deg=lat,
        node_lon_deg=lon,
        node_control=(node.ravel() % 7 == 0).astype(np.uint8),
        edge_from=pairs[:, 0],
        edge_to=pairs[:, 1],
        edge_length_m=np.full(len(pairs), block_m),
        edge_speed_mps=np.full(len(pairs), 12.0),
        edge_class=np.full(len(pairs), "residential"),
        geometry_offset=np.arange(0, 2 * len(pairs) + 1, 2, dtype=np.int64),
        geometry_lat_deg=lat[pairs.ravel()],
        geometry_lon_deg=lon[pairs.ravel()],
    )
    elevation = Elevation(
        height_m=np.zeros((2, 2), dtype=np.float32),
        north_deg=1.0,
        west_deg=-1.0,
        lat_step_deg=2.0,
        lon_step_deg=2.0,
    )
    return _region("grid", roads, elevation)


def file_region(roads_path: str, elevation_path: str) -> Region:
    """Read a city from files."""
    import osmnx

    roads = road_network_from_graph(osmnx.load_graphml(roads_path))
    return _region(roads_path, roads, read_elevation(elevation_path))


def _region(name: str, roads: RoadNetwork, elevation: Elevation) -> Region:
    bounds = Bounds(
        south_deg=float(roads.node_lat_deg.min()) - 1e-3,
        north_deg=float(roads.node_lat_deg.max()) + 1e-3,
        west_deg=float(roads.node_lon_deg.min()) - 1e-3,
        east_deg=float(roads.node_lon_deg.max()) + 1e-3,
    )
    return Region(
        name=name, bounds=bounds, roads=roads, elevation=elevation, vehicles=builtin_pool()
    )


def main() -> None:
    """Print seconds and trips per second, and the search alone beside them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--trips", type=int, default=12_000)
    options = parser.parse_args()
    region = file_region(*options.files) if options.files else grid_region()
    roads = region.roads
    rng = np.random.default_rng(0)
    start, end = rng.integers(0, roads.n_nodes, (2, options.trips))
    coordinates = (
        roads.node_lat_deg[start],
        roads.node_lon_deg[start],
        roads.node_lat_deg[end],
        roads.node_lon_deg[end],
    )
    for label in ("first", "again"):
        began = time.perf_counter()
        profiles = route_profiles(region, *coordinates)
        seconds = time.perf_counter() - began
        print(f"{label}: {seconds:6.2f} s  {options.trips / seconds:8.0f} trips/s")
    graph = csr_array(
        (roads.edge_length_m, (roads.edge_from, roads.edge_to)), shape=(roads.n_nodes,) * 2
    )
    began = time.perf_counter()
    distinct = np.unique(start)
    for low in range(0, len(distinct), 1024):
        dijkstra(graph, indices=distinct[low : low + 1024], return_predecessors=True)
    print(f"search alone: {time.perf_counter() - began:6.2f} s  {len(distinct)} starts")
    print(f"routed {int((profiles.status == 0).sum())}, mean {profiles.length_m.mean():.0f} m")
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak_mib:.0f} MiB, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
