"""Power against the transcription, physics and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from prisma_sbi.region.constants import Constants
from prisma_sbi.simulator.driver import drive
from prisma_sbi.simulator.trip import simulate_power
from prisma_sbi.simulator.vehicle import Vehicle, traction_features
from tests.simulator import reference
from tests.simulator.conftest import flat_road, make_road, make_vehicle


def energy(aggressiveness, detour, vehicle, road, constants):
    return constants.time_step_s * jnp.sum(
        simulate_power(aggressiveness, detour, vehicle, road, constants)
    )


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("seed", range(5))
def test_power_equals_plain_transcription(seed, constants):
    road, vehicle = make_road(seed), make_vehicle()
    found = simulate_power(jnp.asarray(0.6), jnp.asarray(1.3), vehicle, road, constants)
    motion = reference.drive(
        0.6,
        1.3,
        float(road.length_m),
        np.asarray(road.speed_mps).tolist(),
        np.asarray(road.slope_rad).tolist(),
        constants,
    )
    expected = reference.power(
        motion, np.asarray(vehicle.coefficients).tolist(), 4_000.0, constants
    )
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-3)


@pytest.mark.usefixtures("x64")
def test_forward_derivatives_equal_finite_differences(constants):
    # The simulator has kinks; where two step sizes agree it is smooth, and there the
    # derivative has to agree as well. Most points must be smooth for this to mean anything.
    checked = 0
    for seed in range(12):
        road, vehicle = make_road(seed), make_vehicle()

        def f(point, road=road, vehicle=vehicle):
            return energy(point[0], point[1], vehicle, road, constants)

        point = jnp.asarray(np.random.default_rng(seed).uniform([0.3, 1.1], [0.9, 2.0]))
        exact = jax.jacfwd(f)(point)
        for axis in range(2):
            step = jnp.zeros(2).at[axis].set(1.0)
            coarse, fine = (
                (f(point + h * step) - f(point - h * step)) / (2 * h) for h in (1e-6, 2.5e-7)
            )
            if abs(coarse - fine) < 1e-4 * abs(fine):
                checked += 1
                assert float(exact[axis]) == pytest.approx(float(fine), rel=1e-3)
    assert checked >= 16


@pytest.mark.usefixtures("x64")
def test_forward_equals_reverse_and_nothing_is_nan(constants):
    for point in ([0.5, 1.2], [1.0, 1.0], [0.02, 2.5], [0.0, 1.0]):
        at = jnp.asarray(point)

        def f(p):
            return energy(p[0], p[1], make_vehicle(), make_road(3), constants)

        forward, backward = jax.jacfwd(f)(at), jax.jacrev(f)(at)
        assert np.all(np.isfinite(forward))
        np.testing.assert_allclose(forward, backward, rtol=1e-8, atol=1e-6)


def test_one_hot_mixture_equals_the_vehicle(constants):
    pool = Vehicle(
        jnp.asarray([[1_200.0, 0.4, 1.0, 100.0], [2_000.0, 0.6, 2.0, 160.0]]),
        jnp.asarray([3_000.0, 6_000.0]),
    )
    road, one = make_road(1), jnp.asarray(1.0)
    hard = simulate_power(0.5 * one, one, pool[1], road, constants)
    soft = simulate_power(0.5 * one, one, pool.mix(jnp.asarray([0.0, 1.0])), road, constants)
    np.testing.assert_allclose(hard, soft, rtol=1e-6)


def test_heavier_is_thirstier_on_flat_road(constants):
    energies = [
        float(energy(jnp.asarray(0.5), jnp.asarray(1.0), make_vehicle(m), flat_road(), constants))
        for m in (1_000.0, 1_500.0, 2_500.0)
    ]
    assert energies[0] < energies[1] < energies[2]


@pytest.mark.usefixtures("x64")
def test_energy_at_the_wheels_balances(constants):
    # From rest to rest kinetic energy cancels: the wheels pay for resistance and height only,
    # up to the error of the time step, which has to shrink with it.
    errors = []
    for dt in (1.0, 0.25):
        fine = Constants(horizon_s=400, time_step_s=dt)
        road, vehicle = make_road(7, length_m=2_000.0), make_vehicle()
        motion = drive(jnp.asarray(0.5), jnp.asarray(1.0), road, fine)
        features = traction_features(motion.speed_mps, motion.acceleration_mps2, motion.slope_rad)
        work = float(dt * jnp.sum(features @ vehicle.coefficients))
        v = motion.speed_mps
        height = float(dt * jnp.sum(v * jnp.sin(motion.slope_rad)))
        resistance = float(dt * jnp.sum(0.45 * v**3 + 1.5 * v**2 + 120.0 * v))
        errors.append(abs(work - resistance - 1_500.0 * 9.80665 * height) / resistance)
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.1


def test_recuperation_never_exceeds_braking_energy():
    constants = Constants(horizon_s=300, recuperation=0.6)
    plain = Constants(horizon_s=300)
    road, vehicle = make_road(2), make_vehicle()
    at = (jnp.asarray(0.7), jnp.asarray(1.0))
    motion = drive(*at, road, plain)
    wheel = (
        traction_features(motion.speed_mps, motion.acceleration_mps2, motion.slope_rad)
        @ vehicle.coefficients
    )
    braking = -float(jnp.sum(jnp.minimum(wheel, 0.0) * motion.engaged))
    saved = float(energy(*at, vehicle, road, plain) - energy(*at, vehicle, road, constants))
    assert 0 < saved <= braking * 1.0001
    assert saved == pytest.approx(0.6 * braking, rel=1e-3)


def test_one_compilation_serves_many_calls(constants):
    run = jax.jit(lambda a, road: simulate_power(a, jnp.ones(()), make_vehicle(), road, constants))
    for seed in range(5):
        compiled = run(jnp.asarray(0.4), make_road(seed, length_m=900.0))
    assert run._cache_size() == 1
    plain = simulate_power(
        jnp.asarray(0.4), jnp.ones(()), make_vehicle(), make_road(4, length_m=900.0), constants
    )
    np.testing.assert_allclose(compiled, plain, rtol=2e-3, atol=50.0)
