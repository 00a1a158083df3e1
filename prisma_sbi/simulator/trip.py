"""The whole simulator: descriptors and roads in, power traces out."""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from prisma_sbi.region.constants import Constants
from prisma_sbi.region.profiles import RoadProfiles
from prisma_sbi.region.record import Region
from prisma_sbi.simulator.driver import Road, drive, roads_from_profiles
from prisma_sbi.simulator.vehicle import Vehicle, power_trace, vehicles_from_pool


def simulate_power(
    aggressiveness: Float[Array, ""],
    detour: Float[Array, ""],
    vehicle: Vehicle,
    road: Road,
    constants: Constants,
) -> Float[Array, " time"]:
    """Power trace of one trip in W ``(time,)``; pure, differentiable, ready for ``vmap``.

    Parameters
    ----------
    aggressiveness, detour
        The two continuous descriptors.
    vehicle
        One vehicle; a mixture from :meth:`Vehicle.mix` gives the relaxed simulator.
    road
        Profile of the trip.
    constants
        Public constants of the region.
    """
    return power_trace(vehicle, drive(aggressiveness, detour, road, constants), constants)


@partial(jax.jit, static_argnames="constants")
def _simulate_chunk(aggressiveness, detour, vehicle, road, constants: Constants):
    return jax.vmap(simulate_power, in_axes=(0, 0, 0, 0, None))(
        aggressiveness, detour, vehicle, road, constants
    )


def simulate_trips(
    region: Region,
    profiles: RoadProfiles,
    aggressiveness: np.ndarray,
    detour: np.ndarray,
    vehicle: np.ndarray,
    *,
    chunk_size: int = 512,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Power traces of many trips.

    Parameters
    ----------
    region
        Public inputs; gives the pool and the constants.
    profiles
        One road a trip.
    aggressiveness, detour : (trip,)
        Continuous descriptors.
    vehicle : (trip,) int
        Positions in the pool.
    chunk_size
        Trips per compiled call; the last chunk is padded, so one compilation serves all.
    progress
        Called with trips done and trips in all after each chunk.

    Returns
    -------
    power_w : (trip, time) float32

    Raises
    ------
    ValueError
        If the lengths disagree or a vehicle is not in the pool.
    """
    n = len(profiles)
    columns = (aggressiveness, detour, vehicle)
    if any(np.shape(column) != (n,) for column in columns):
        raise ValueError(
            f"Expected {n} values of each descriptor, one a road; "
            f"got {[np.shape(column) for column in columns]}."
        )
    pool_size = len(region.vehicles)
    if n and not (np.min(vehicle) >= 0 and np.max(vehicle) < pool_size):
        raise ValueError(
            f"Expected vehicle in 0..{pool_size - 1}; got {np.min(vehicle)}..{np.max(vehicle)}."
        )
    constants = region.constants
    pool = vehicles_from_pool(region.vehicles, constants)
    roads = roads_from_profiles(profiles)
    power_w = np.empty((n, constants.n_times), np.float32)
    for start in range(0, n, chunk_size):
        rows = np.minimum(np.arange(start, start + chunk_size), n - 1)
        power = _simulate_chunk(
            jnp.asarray(aggressiveness[rows], jnp.float32),
            jnp.asarray(detour[rows], jnp.float32),
            pool[jnp.asarray(vehicle[rows])],
            eqx.filter(jax.tree.map(lambda leaf, rows=rows: leaf[rows], roads), eqx.is_array),
            constants,
        )
        stop = min(start + chunk_size, n)
        power_w[start:stop] = np.asarray(power)[: stop - start]
        if progress is not None:
            progress(stop, n)
    return power_w
