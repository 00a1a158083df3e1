"""Drivetrains against the transcription and against physics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi.region import builtin_pool
from prisma_sbi.region.constants import Constants
from prisma_sbi.simulator import (
    Drivetrain,
    Vehicle,
    drive,
    drivetrains,
    power_trace,
    tank_power,
    traction_features,
    vehicles_from_pool,
)
from prisma_sbi.simulator.drivetrain import evenly_spread
from tests.simulator import reference
from tests.simulator.examples import AGGRESSIVENESS, DETOUR, make_road, plain_roads, road_of

REALISTIC = Constants.preset("realistic", horizon_s=300)
ENGINE, HYBRID, ELECTRIC = (0.3, 0.0, -1e9), (0.3, 0.0, 2_000.0), (0.85, 0.6, -1e9)
run = jax.jit(
    lambda a, d, road, vehicle: power_trace(vehicle, drive(a, d, road, REALISTIC), REALISTIC)
)


def car(kind, idle_power_w=4_000.0):
    """A middling car with one of the drivetrains."""
    coefficients = jnp.asarray([1_500.0, 0.45, 1.5, 120.0])
    return Vehicle(coefficients, jnp.asarray(idle_power_w), Drivetrain(*map(jnp.asarray, kind)))


@given(plain_roads(), AGGRESSIVENESS, DETOUR, st.sampled_from([ENGINE, HYBRID, ELECTRIC]))
@settings(max_examples=60, deadline=None)
def test_power_equals_plain_transcription(plain, aggressiveness, detour, kind):
    with jax.enable_x64():
        vehicle = car(kind)
        found = run(jnp.asarray(aggressiveness), jnp.asarray(detour), road_of(plain), vehicle)
    motion = reference.drive(aggressiveness, detour, *plain, constants=REALISTIC)
    expected = reference.drivetrain_power(
        motion, np.asarray(vehicle.coefficients).tolist(), 4_000.0, *kind
    )
    scale = max(np.max(np.abs(expected)), 1.0)
    np.testing.assert_allclose(found, expected, atol=1e-8 * scale)


def test_engine_of_the_drivetrain_is_the_published_engine():
    wheel = jnp.linspace(-40_000.0, 60_000.0, 201)
    vehicle, plain = car(ENGINE), Vehicle(jnp.zeros(4), jnp.asarray(4_000.0))
    np.testing.assert_allclose(
        tank_power(wheel, vehicle, Constants()), tank_power(wheel, plain, Constants()), rtol=1e-6
    )


@given(st.floats(-60_000.0, 90_000.0), st.floats(0.01, 1.0))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("kind", [ENGINE, HYBRID, ELECTRIC])
def test_power_of_a_part_of_a_step_is_that_part_of_the_power(kind, wheel, engaged):
    with jax.enable_x64():
        vehicle = car(kind)
        whole = tank_power(jnp.asarray(wheel), vehicle, REALISTIC)
        part = tank_power(jnp.asarray(engaged * wheel), vehicle, REALISTIC, engaged=engaged)
        # The engine of a hybrid starts over a fixed range of wheel power, so there only limits
        # hold: a part of a step asks for less and starts it a little less.
        if kind == HYBRID and wheel < 4_000.0:
            assert 0.0 <= float(part) <= engaged * float(whole) + 1e-6
        elif kind != HYBRID or engaged * (wheel - 2_000.0) >= 2_000.0:
            assert float(part) == pytest.approx(engaged * float(whole), rel=1e-9, abs=1e-6)


def test_hybrid_burns_nothing_while_it_stands_rolls_or_brakes():
    wheel = jnp.asarray([-20_000.0, -1.0, 0.0, 1_999.0, 2_000.0, 4_000.0, 30_000.0])
    found = tank_power(wheel, car(HYBRID), REALISTIC)
    np.testing.assert_array_equal(found[:5], 0.0)
    np.testing.assert_allclose(found[5:], wheel[5:] / 0.3 + 4_000.0, rtol=1e-6)


def test_no_motion_without_power_beyond_gravity():
    """On roads that never fall, whoever moves has drawn at least the work done, divided by 1."""
    for kind in (ENGINE, HYBRID, ELECTRIC):
        vehicle = car(kind)
        road = make_road(3)
        level = type(road)(road.length_m, road.speed_mps, jnp.abs(road.slope_rad))
        motion = drive(jnp.asarray(0.7), jnp.asarray(1.0), level, REALISTIC)
        wheel = (
            traction_features(motion.speed_mps, motion.acceleration_mps2, motion.slope_rad)
            @ vehicle.coefficients
        )
        asked = np.asarray(wheel * motion.engaged)
        power = np.asarray(power_trace(vehicle, motion, REALISTIC))
        # A hybrid below its threshold drives on what braking put into the battery.
        paid = asked > 4_000.0
        assert paid.sum() > 20
        assert np.all(power[paid] >= asked[paid])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_recuperation_never_exceeds_braking_energy(seed):
    vehicle, road = car(ELECTRIC, 0.0), make_road(seed)
    motion = drive(jnp.asarray(0.9), jnp.asarray(1.1), road, REALISTIC)
    wheel = (
        traction_features(motion.speed_mps, motion.acceleration_mps2, motion.slope_rad)
        @ vehicle.coefficients
    )
    braking = -np.minimum(np.asarray(wheel * motion.engaged), 0.0)
    power = np.asarray(power_trace(vehicle, motion, REALISTIC))
    returned = -np.minimum(power, 0.0)
    assert np.all(returned <= braking + 1e-3)
    assert returned.sum() == pytest.approx(0.6 * braking.sum(), rel=1e-4)


@given(st.floats(900.0, 3_000.0), st.floats(10.0, 1_000.0))
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize("kind", [ENGINE, HYBRID, ELECTRIC])
def test_heavier_is_thirstier_on_flat_road(kind, mass_kg, extra_kg):
    road = make_road(4)
    flat = type(road)(road.length_m, road.speed_mps, jnp.zeros_like(road.slope_rad))
    light, heavy = (
        Vehicle(jnp.asarray([mass, 0.45, 1.5, 120.0]), jnp.asarray(3_000.0), car(kind).drivetrain)
        for mass in (mass_kg, mass_kg + extra_kg)
    )
    at = (jnp.asarray(0.6), jnp.asarray(1.0), flat)
    assert float(jnp.sum(run(*at, heavy))) > float(jnp.sum(run(*at, light)))


def test_pool_gets_the_drivetrains_of_the_constants():
    pool = builtin_pool()
    assert vehicles_from_pool(pool, Constants()).drivetrain is None
    found = drivetrains(pool, Constants.preset("realistic"))
    assert found is not None
    electric = pool.displacement_l == 0.0
    np.testing.assert_allclose(found.efficiency, np.where(electric, 0.85, 0.3), rtol=1e-6)
    np.testing.assert_allclose(found.recuperation, np.where(electric, 0.6, 0.0), rtol=1e-6)
    hybrid = np.asarray(found.engine_on_w) > 0.0
    assert not np.any(hybrid & electric)
    assert np.sum(hybrid) == np.sum(~electric) // 2


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.floats(0.0, 1.0))
def test_spread_takes_its_share_of_the_candidates_wherever_one_looks(candidate, share):
    mask = np.asarray(candidate)
    chosen = evenly_spread(mask, share)
    assert not np.any(chosen & ~mask)
    # At every place the number so far is the share of the candidates so far, rounded down.
    np.testing.assert_array_equal(np.cumsum(chosen), np.floor(np.cumsum(mask) * share))


def test_scaling_keeps_the_drivetrain():
    vehicle = car(ELECTRIC, 500.0)
    found = vehicle.scaled(jnp.asarray([2.0, 1.0, 3.0, 1.0, 4.0]))
    np.testing.assert_allclose(found.coefficients, [3_000.0, 0.45, 4.5, 120.0], rtol=1e-6)
    assert float(found.idle_power_w) == 2_000.0
    assert found.drivetrain is vehicle.drivetrain


def test_indexing_and_mixing_carry_the_drivetrain():
    vehicles = vehicles_from_pool(builtin_pool(), Constants.preset("realistic"))
    one = vehicles[3]
    weights = jnp.zeros(len(vehicles.idle_power_w)).at[3].set(1.0)
    mixed = vehicles.mix(weights)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(mixed), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
