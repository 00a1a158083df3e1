"""Public inputs of the method: bounding box, roads, heights, vehicles and constants.

Everything here may be known to everybody before any trip is read, so none of it costs
privacy. Importing this package needs none of the optional dependencies; reading and
downloading roads and rasters needs the extra ``geo``.
"""

from prisma_sbi.region.assembly import largest_component, network_bounds
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.build import build_region
from prisma_sbi.region.builtin_vehicles import builtin_pool
from prisma_sbi.region.catalogue import VehicleIssue, read_vehicle_files
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.demo import demo_elevation, demo_region, demo_roads
from prisma_sbi.region.download import DownloadError, fetch
from prisma_sbi.region.elevation import Elevation
from prisma_sbi.region.elevation_files import fetch_terrain_tiles, read_elevation
from prisma_sbi.region.osm import read_roads
from prisma_sbi.region.osm_download import download_roads
from prisma_sbi.region.osm_graph import road_network_from_graph
from prisma_sbi.region.pool import VehiclePool
from prisma_sbi.region.profiles import RoadProfiles, RouteStatus
from prisma_sbi.region.record import Region
from prisma_sbi.region.roads import RoadNetwork
from prisma_sbi.region.routing import (
    network_distances,
    route_profiles,
    shortest_path_nodes,
    snap_to_nodes,
)
from prisma_sbi.region.storage import load_region, save_region
from prisma_sbi.region.thinning import pool_from_table, thin_pool

__all__ = [
    "Bounds",
    "Constants",
    "DownloadError",
    "Elevation",
    "Region",
    "RoadNetwork",
    "RoadProfiles",
    "RouteStatus",
    "VehicleIssue",
    "VehiclePool",
    "build_region",
    "builtin_pool",
    "demo_elevation",
    "demo_region",
    "demo_roads",
    "download_roads",
    "fetch",
    "fetch_terrain_tiles",
    "largest_component",
    "load_region",
    "network_bounds",
    "network_distances",
    "pool_from_table",
    "read_elevation",
    "read_roads",
    "read_vehicle_files",
    "road_network_from_graph",
    "route_profiles",
    "save_region",
    "shortest_path_nodes",
    "snap_to_nodes",
    "thin_pool",
]
