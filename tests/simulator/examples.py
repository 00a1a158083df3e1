"""Roads and vehicles for tests."""

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from prisma_sbi.simulator.driver import Road
from prisma_sbi.simulator.drivetrain import Drivetrain
from prisma_sbi.simulator.vehicle import Vehicle

N_POINTS = 32
# Hypothesis: the domain of the descriptors; below a ten-thousandth only zero is of interest.
AGGRESSIVENESS = st.just(0.0) | st.floats(1e-4, 1.0)
DETOUR = st.floats(1.0, 2.5)


def make_road(seed, *, length_m=None, n_points=64):
    """A road with speed classes, creeping points and hills."""
    rng = np.random.default_rng(seed)
    speed = np.repeat(rng.choice([8.0, 13.0, 20.0, 28.0], n_points // 8), 8)
    speed[rng.integers(1, n_points - 1, 3)] = 3.0
    slope = 0.05 * np.sin(np.linspace(0, rng.uniform(2, 12), n_points))
    length = rng.uniform(500, 6_000) if length_m is None else length_m
    return Road(jnp.asarray(length), jnp.asarray(speed), jnp.asarray(slope))


def flat_road(*, length_m=2_000.0, speed_mps=15.0, n_points=64):
    """A level road with one limit."""
    return Road(jnp.asarray(length_m), jnp.full(n_points, speed_mps), jnp.zeros(n_points))


def make_vehicle(mass_kg=1_500.0):
    """A middling car."""
    return Vehicle(jnp.asarray([mass_kg, 0.45, 1.5, 120.0]), jnp.asarray(4_000.0))


def make_pool(constants=None):
    """A small car, a middling one, a heavy one, and an electric one.

    With constants that know drivetrains the second is a hybrid.
    """
    coefficients = [
        [1_100.0, 0.35, 0.5, 90.0],
        [1_500.0, 0.45, 1.5, 120.0],
        [2_400.0, 0.65, 3.0, 190.0],
        [1_900.0, 0.32, 0.8, 130.0],
    ]
    drivetrain = None
    if constants is not None and constants.electric_efficiency > 0.0:
        drivetrain = Drivetrain(
            efficiency=jnp.asarray([constants.tank_efficiency] * 3 + [0.85]),
            recuperation=jnp.asarray([0.0, 0.0, 0.0, constants.electric_recuperation]),
            engine_on_w=jnp.asarray([-1e9, constants.engine_on_w, -1e9, -1e9]),
        )
    idle_power_w = jnp.asarray([2_000.0, 4_000.0, 8_000.0, 0.0])
    return Vehicle(jnp.asarray(coefficients), idle_power_w, drivetrain)


def plain_roads(n_points=N_POINTS):
    """Hypothesis: length, drivable speeds and slopes of a road, as plain numbers."""
    return st.tuples(
        st.floats(30.0, 8_000.0),
        st.lists(st.floats(2.0, 35.0), min_size=n_points, max_size=n_points),
        st.lists(st.floats(-0.15, 0.15), min_size=n_points, max_size=n_points),
    )


def road_of(plain):
    """The record of a plain road, in the precision that is on."""
    length_m, speed_mps, slope_rad = plain
    return Road(jnp.asarray(length_m), jnp.asarray(speed_mps), jnp.asarray(slope_rad))


def plain_of(road):
    """Inverse of :func:`road_of`."""
    return (
        float(road.length_m),
        np.asarray(road.speed_mps).tolist(),
        np.asarray(road.slope_rad).tolist(),
    )
