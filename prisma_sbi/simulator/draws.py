"""Traces as draws: typical drivers on roads with traffic, with a restless foot."""

from collections.abc import Callable

import numpy as np

from prisma_sbi.region.profiles import RoadProfiles
from prisma_sbi.region.record import Region
from prisma_sbi.simulator.restlessness import restless_power
from prisma_sbi.simulator.shrinkage import shrunk_aggressiveness
from prisma_sbi.simulator.traffic import road_with_traffic
from prisma_sbi.simulator.trip import simulate_trips


def draw_traces(
    region: Region,
    profiles: RoadProfiles,
    aggressiveness: np.ndarray,
    detour: np.ndarray,
    vehicle: np.ndarray,
    rng: np.random.Generator,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Power traces of many trips, each with what chance adds to the simulator.

    Parameters
    ----------
    region
        Public inputs; its constants say how much chance there is. With the published ones
        there is none, and the result is that of
        :func:`~prisma_sbi.simulator.simulate_trips`.
    profiles
        One road a trip.
    aggressiveness, detour, vehicle : (trip,)
        Descriptors.
    rng
        Of traffic and restlessness; descriptors, public inputs and its state decide everything.
    progress
        Called with trips done and trips in all.

    Returns
    -------
    power_w : (trip, time) float32
    """
    constants = region.constants
    roads = road_with_traffic(profiles, constants, rng)
    driver = shrunk_aggressiveness(aggressiveness, constants)
    power_w = simulate_trips(region, roads, driver, detour, vehicle, progress=progress)
    return restless_power(power_w, constants, rng)
