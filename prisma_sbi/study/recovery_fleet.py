"""A fleet with known truth: random routes, descriptors from the prior, noise by choice."""

from enum import StrEnum

import numpy as np
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi.models.trip_model import TripModel
from prisma_sbi.region.record import Region
from prisma_sbi.simulator.fleet import fleet_dataset
from prisma_sbi.simulator.restlessness import multiplied_by_noise
from prisma_sbi.simulator.trip import simulate_trips
from prisma_sbi.study.atlas import draw_routes
from prisma_sbi.study.simulations import simulate

_MILD, _MEMORY = 0.05, 0.8


class Noise(StrEnum):
    """What lies between the simulator's trace and the one that is encoded."""

    LAW = "law"
    """The law of the trace likelihood: heavy tails, also where no power is drawn."""
    MILD = "mild"
    """Power times a slow random factor of 5 %; what is zero stays zero."""
    NONE = "none"
    """The simulator's own trace."""


def known_fleet(
    region: Region, n_trips: int, *, noise: str = Noise.LAW, seed: int = 0
) -> xr.Dataset:
    """Traces of trips on random routes, with descriptors drawn from the flat prior.

    Parameters
    ----------
    region
        Public inputs; nothing else is read.
    n_trips
        How many trips, each on a route of its own.
    noise
        A :class:`Noise`.
    seed
        Of routes, descriptors and noise. Routes and descriptors do not depend on the noise.

    Returns
    -------
    xarray.Dataset
        Traces as the telemetry readers make them, with the true ``aggressiveness``,
        ``detour`` and ``vehicle`` per trip, ``route_length_m``, and ``vehicle_mass_kg`` of the
        pool.

    Raises
    ------
    ValueError
        If the noise is unknown, or no two junctions of the region are far enough apart.

    Notes
    -----
    Unlike :func:`~prisma_sbi.simulator.simulate_fleet`, whose drivers and routes are like those
    of a town, descriptors come from the prior that the encoder assumes. Only then must
    intervals hold the truth as often as they say, on average over the fleet.
    """
    _validate.one_of([item.value for item in Noise], noise=noise)
    profiles = draw_routes(region, n_trips, seed=seed)
    drawn = simulate(TripModel.of(region, likelihood="trace"), profiles, n_trips, seed=seed)
    power_w = drawn.data
    if noise != Noise.LAW:
        power_w = simulate_trips(
            region, profiles, drawn.point[:, 0], drawn.point[:, 1], drawn.vehicle
        )
    if noise == Noise.MILD:
        power_w = multiplied_by_noise(power_w, _MILD, _MEMORY, np.random.default_rng(seed))
    truth = {
        "aggressiveness": drawn.point[:, 0].astype(np.float64),
        "detour": drawn.point[:, 1].astype(np.float64),
        "vehicle": drawn.vehicle.astype(np.int32),
    }
    fleet = fleet_dataset(
        region, profiles.start_node, profiles.end_node, truth, power_w.astype(np.float32)
    )
    # Samples with power above zero are no duration where noise goes on after arrival.
    return (
        fleet.drop_vars("duration_s")
        .assign(
            route_length_m=("trip", profiles.length_m, {"units": "m"}),
            vehicle_mass_kg=("pool_vehicle", region.vehicles.mass_kg, {"units": "kg"}),
        )
        .assign_attrs(noise=str(noise), seed=seed)
    )
