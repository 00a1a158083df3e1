"""A small region and random descriptor tables in it."""

import numpy as np
import xarray as xr

from prisma_sbi.descriptors import DESCRIPTORS, make_descriptor_table
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.elevation import Elevation
from prisma_sbi.region.pool import VehiclePool
from prisma_sbi.region.record import Region
from prisma_sbi.region.roads import RoadNetwork


def tiny_region(*, n_vehicles: int = 3, north_deg: float = 42.3, n_place_bins: int = 4) -> Region:
    """Two junctions, one road, flat land."""
    flat = np.zeros((2, 2), dtype=np.float32)
    ones = np.ones(n_vehicles)
    return Region(
        name="tiny",
        bounds=Bounds(south_deg=42.2, north_deg=north_deg, west_deg=-83.8, east_deg=-83.7),
        roads=RoadNetwork(
            node_id=np.array([1, 2], dtype=np.int64),
            node_lat_deg=np.array([42.21, 42.22]),
            node_lon_deg=np.array([-83.79, -83.78]),
            node_control=np.zeros(2, dtype=np.uint8),
            edge_from=np.array([0], dtype=np.int32),
            edge_to=np.array([1], dtype=np.int32),
            edge_length_m=np.array([1500.0]),
            edge_speed_mps=np.array([14.0]),
            edge_class=np.array(["residential"]),
            geometry_offset=np.array([0, 2], dtype=np.int64),
            geometry_lat_deg=np.array([42.21, 42.22]),
            geometry_lon_deg=np.array([-83.79, -83.78]),
        ),
        elevation=Elevation(
            height_m=flat, north_deg=42.3, west_deg=-83.8, lat_step_deg=0.1, lon_step_deg=0.1
        ),
        vehicles=VehiclePool(
            name=np.array([f"car {index}" for index in range(n_vehicles)]),
            mass_kg=1500.0 * ones,
            road_load_a_n=120.0 * ones,
            road_load_b_n_per_mps=2.0 * ones,
            road_load_c_n_per_mps2=0.4 * ones,
            displacement_l=2.0 * ones,
            model_year=np.full(n_vehicles, 2010),
        ),
        constants=Constants(n_place_bins=n_place_bins, n_aggressiveness_bins=3, n_detour_bins=3),
    )


def random_table(region: Region, n_trips: int, seed: int = 0) -> xr.Dataset:
    """Descriptors spread over the whole domain; the end lies where the start lies."""
    rng = np.random.default_rng(seed)
    box, constants = region.bounds, region.constants
    lat = rng.uniform(box.south_deg, box.north_deg, n_trips)
    lon = rng.uniform(box.west_deg, box.east_deg, n_trips)
    values = (
        lat,
        lon,
        lat,
        lon,
        rng.uniform(*constants.aggressiveness_bounds, n_trips),
        rng.uniform(*constants.detour_bounds, n_trips),
        rng.integers(len(region.vehicles), size=n_trips),
    )
    return make_descriptor_table(
        dict(zip(DESCRIPTORS, values, strict=True)), region_fingerprint=region.fingerprint
    )
