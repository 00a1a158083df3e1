"""Power against the transcription and against physics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi.region import builtin_pool
from prisma_sbi.region.constants import Constants
from prisma_sbi.simulator.driver import drive
from prisma_sbi.simulator.trip import simulate_power
from prisma_sbi.simulator.vehicle import (
    Vehicle,
    tank_power,
    traction_features,
    vehicles_from_pool,
)
from tests.simulator import reference
from tests.simulator.examples import (
    AGGRESSIVENESS,
    DETOUR,
    flat_road,
    make_pool,
    make_road,
    make_vehicle,
    plain_roads,
    road_of,
)

PLAIN = Constants(horizon_s=300)
RECUPERATING = Constants(horizon_s=300, recuperation=0.6)
run = jax.jit(simulate_power, static_argnames="constants")


def energy(aggressiveness, detour, vehicle, road, constants):
    """Energy of a trip in J."""
    at = (jnp.asarray(aggressiveness), jnp.asarray(detour))
    return constants.time_step_s * float(jnp.sum(run(*at, vehicle, road, constants)))


@given(
    plain_roads(),
    AGGRESSIVENESS,
    DETOUR,
    st.integers(0, 3),
    st.sampled_from([PLAIN, RECUPERATING]),
)
@settings(max_examples=80, deadline=None)
def test_power_equals_plain_transcription(plain, aggressiveness, detour, which, constants):
    with jax.enable_x64():
        vehicle = make_pool()[which]
        at = (jnp.asarray(aggressiveness), jnp.asarray(detour))
        found = run(*at, vehicle, road_of(plain), constants)
    coefficients = np.asarray(vehicle.coefficients).tolist()
    motion = reference.drive(aggressiveness, detour, *plain, constants=constants)
    expected = reference.power(motion, coefficients, float(vehicle.idle_power_w), constants)
    scale = max(np.max(np.abs(expected)), 1.0)
    np.testing.assert_allclose(found, expected, atol=1e-9 * scale)


def test_steady_speed_on_the_flat_costs_the_road_load(constants):
    vehicle, v = make_vehicle(), 15.0
    power = run(jnp.asarray(0.9), jnp.asarray(1.0), vehicle, flat_road(), constants)
    load = 0.45 * v**3 + 1.5 * v**2 + 120.0 * v
    expected = load / constants.tank_efficiency + 4_000.0
    assert float(power[60]) == pytest.approx(expected, rel=1e-4)


def test_steady_climb_costs_the_weight_lifted(constants):
    vehicle, v = make_vehicle(), 15.0
    flat = flat_road()
    uphill = type(flat)(flat.length_m, flat.speed_mps, flat.slope_rad + 0.04)
    at = (jnp.asarray(0.9), jnp.asarray(1.0))
    extra = run(*at, vehicle, uphill, constants)[60] - run(*at, vehicle, flat, constants)[60]
    expected = 1_500.0 * reference.G * np.sin(0.04) * v / constants.tank_efficiency
    assert float(extra) == pytest.approx(expected, rel=1e-3)


def test_parked_car_with_its_engine_running_draws_idle_power(constants):
    power = run(jnp.asarray(0.0), jnp.asarray(1.0), make_vehicle(), make_road(0), constants)
    np.testing.assert_allclose(power, 4_000.0)


@given(st.integers(0, 50), st.floats(0.1, 1.0), st.floats(1.0, 1.5))
@settings(max_examples=25, deadline=None)
def test_power_is_zero_after_arrival_and_not_before(seed, aggressiveness, detour):
    at = (jnp.asarray(aggressiveness), jnp.asarray(detour))
    road = make_road(seed, length_m=700.0)
    engaged = np.asarray(drive(*at, road, PLAIN).engaged)
    power = np.asarray(run(*at, make_vehicle(), road, PLAIN))
    assert np.any(engaged == 0)
    assert np.all(power[engaged == 0] == 0)
    assert np.all(power[engaged > 0] > 0)


@given(st.floats(800.0, 2_500.0), st.floats(1.0, 800.0), st.floats(0.1, 1.0))
@settings(max_examples=25, deadline=None)
def test_heavier_is_thirstier_on_flat_road(mass_kg, extra_kg, aggressiveness):
    with jax.enable_x64():
        light, heavy = (
            energy(aggressiveness, 1.0, make_vehicle(m), flat_road(), PLAIN)
            for m in (mass_kg, mass_kg + extra_kg)
        )
    assert light < heavy


@pytest.mark.usefixtures("x64")
def test_mixture_of_one_vehicle_is_that_vehicle(constants):
    pool, road = make_pool(), make_road(1)
    at = (jnp.asarray(0.5), jnp.asarray(1.2))
    for choice in range(4):
        soft = run(*at, pool.mix(jnp.eye(4)[choice]), road, constants)
        np.testing.assert_allclose(soft, run(*at, pool[choice], road, constants), rtol=1e-12)


def test_mixture_has_the_mean_coefficients():
    mixed = make_pool().mix(jnp.asarray([0.5, 0.0, 0.5, 0.0]))
    np.testing.assert_allclose(mixed.coefficients, [1_750.0, 0.5, 1.75, 140.0], rtol=1e-6)
    assert float(mixed.idle_power_w) == pytest.approx(5_000.0)


def balance_error_j(dt, vehicle, road, profile):
    """Work at the wheels less the change of kinetic and potential energy and the losses."""
    constants = Constants(horizon_s=100, time_step_s=dt)
    motion = drive(jnp.asarray(0.4), jnp.asarray(1.3), road, constants)
    mass, c, b, a = np.asarray(vehicle.coefficients)
    features = traction_features(motion.speed_mps, motion.acceleration_mps2, motion.slope_rad)
    v, work = np.asarray(motion.speed_mps), dt * float(jnp.sum(features @ vehicle.coefficients))
    # The last sample starts the last step; what happens within that step is left out of both.
    last = v[-1] + dt * float(motion.acceleration_mps2[-1])
    kinetic = 0.5 * mass * (last**2 - v[0] ** 2)
    where, height = profile
    potential = mass * reference.G * np.interp(dt * np.sum(v), where, height)
    return work - kinetic - potential - dt * np.sum(c * v**3 + b * v**2 + a * v)


@pytest.mark.usefixtures("x64")
def test_energy_at_the_wheels_balances_up_to_the_time_step():
    road, vehicle = make_road(7, length_m=2_500.0), make_vehicle()
    length = 1.3 * float(road.length_m)
    where = np.linspace(0.0, length, 200_001)
    angle = np.interp(where, np.linspace(0.0, length, 64), np.asarray(road.slope_rad) / 1.3)
    height = np.concatenate([[0.0], np.cumsum(np.sin(angle[1:] + angle[:-1]) / 2)])
    height *= where[1]
    errors = [abs(balance_error_j(dt, vehicle, road, (where, height))) for dt in (1.0, 0.25, 0.05)]
    typical = 0.5 * 1_500.0 * 20.0**2
    assert errors[0] < 0.2 * typical
    assert errors[1] < 0.4 * errors[0]
    assert errors[2] < 0.4 * errors[1]
    assert errors[2] < 0.01 * typical


def test_tank_power_has_a_slope_for_driving_and_one_for_braking():
    vehicle = Vehicle(jnp.zeros(4), jnp.asarray(500.0))
    found = tank_power(jnp.asarray([-10_000.0, 0.0, 9_000.0]), vehicle, RECUPERATING)
    np.testing.assert_allclose(found, [-5_500.0, 500.0, 30_500.0], rtol=1e-6)


def test_recuperation_returns_its_share_of_the_braking():
    road, vehicle = make_road(2), make_vehicle()
    motion = drive(jnp.asarray(0.7), jnp.asarray(1.0), road, PLAIN)
    features = traction_features(motion.speed_mps, motion.acceleration_mps2, motion.slope_rad)
    wheel = features @ vehicle.coefficients
    braking = -float(jnp.sum(jnp.minimum(wheel, 0.0) * motion.engaged))
    saved = energy(0.7, 1.0, vehicle, road, PLAIN) - energy(0.7, 1.0, vehicle, road, RECUPERATING)
    assert braking > 0
    assert saved == pytest.approx(0.6 * braking, rel=1e-3)


def test_pool_becomes_arrays_with_idle_power_by_displacement():
    pool = builtin_pool()
    vehicles = vehicles_from_pool(pool, PLAIN)
    np.testing.assert_allclose(vehicles.coefficients[:, 0], pool.mass_kg, rtol=1e-6)
    np.testing.assert_allclose(vehicles.idle_power_w, 2_000.0 * pool.displacement_l, rtol=1e-6)
    assert vehicles[jnp.asarray([3, 5])].coefficients.shape == (2, 4)
