"""A small city, one road of it, and models whose posteriors take no time."""

from dataclasses import fields, replace
from functools import cache

import numpy as np

from prisma_sbi.inference import AlignSettings, GridSettings, PopulationSettings
from prisma_sbi.models import TraceLikelihood, TripModel
from prisma_sbi.region import Region, RoadProfiles, VehiclePool, demo_region
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.simulator import simulate_fleet
from prisma_sbi.study import GridSampler

LAW = TraceLikelihood(floor_w=3_000.0, share=0.5)
FEW_POINTS = PopulationSettings(
    first_shape=(12, 12), shares=(0.1, 0.2, 0.5, 1.0), n_points=128, n_kernels=32, heat=4.0
)
QUICK = GridSampler(
    grid=GridSettings(grid_shape=(10, 10), n_levels=4),
    align=AlignSettings(population=FEW_POINTS),
    n_draws=60,
    chunk_size=8,
)


@cache
def city() -> Region:
    return demo_region()


@cache
def thin_city(n_vehicles: int = 8) -> Region:
    """The same city with some of its vehicles."""
    pool = city().vehicles
    rows = np.linspace(0, len(pool) - 1, n_vehicles).astype(int)
    few = {field.name: getattr(pool, field.name)[rows] for field in fields(VehiclePool)}
    return replace(city(), vehicles=VehiclePool(**few))


@cache
def routes(n: int = 3) -> RoadProfiles:
    """Roads of a few trips."""
    fleet = simulate_fleet(city(), n, seed=2)
    ends = ("start_lat", "start_lon", "end_lat", "end_lon")
    return route_profiles(city(), *(fleet[name].values for name in ends))


def one_road() -> RoadProfiles:
    return routes().take(np.asarray([0]))


def model(likelihood=LAW, **parts) -> TripModel:
    return TripModel.of(city(), likelihood=likelihood, **parts)
