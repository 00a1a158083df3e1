"""Derivatives of the simulator: against finite differences, by both modes, never NaN."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from prisma_sbi.region.constants import Constants
from prisma_sbi.simulator.trip import simulate_power
from tests.gradients import compare_with_differences
from tests.simulator.examples import make_pool, make_road

CONSTANTS = Constants(horizon_s=300, recuperation=0.3)


@partial(jax.jit, static_argnames="constants")
def energy_mj(variables, road, constants):
    """Energy as a function of aggressiveness, detour and the weights of four vehicles."""
    vehicle = make_pool().mix(variables[2:])
    power = simulate_power(variables[0], variables[1], vehicle, road, constants)
    return 1e-6 * constants.time_step_s * jnp.sum(power)


@partial(jax.jit, static_argnames="mode")
def jacobian(at, road, *, mode):
    """Derivative of the energy, compiled once for all cases."""
    return mode(partial(energy_mj, road=road, constants=CONSTANTS))(at)


def draw_variables(seed):
    """A point away from the bounds."""
    rng = np.random.default_rng(seed)
    descriptors = rng.uniform([0.1, 1.05], [0.95, 2.4])
    return jnp.asarray(np.concatenate([descriptors, rng.dirichlet(np.ones(4))]))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("start", [0.0, 0.8])
def test_derivatives_of_energy_equal_finite_differences(start):
    constants = Constants(horizon_s=300, recuperation=0.3, start_speed_share=start)
    qualified = [
        compare_with_differences(
            partial(energy_mj, road=make_road(seed), constants=constants), draw_variables(seed)
        )
        for seed in range(20)
    ]
    assert np.mean(qualified) > 0.9
    assert np.min(np.mean(qualified, axis=0)) > 0.7


@pytest.mark.usefixtures("x64")
def test_derivative_along_a_direction_is_the_jacobian_times_it():
    f = partial(energy_mj, road=make_road(3), constants=CONSTANTS)
    at, along = draw_variables(3), draw_variables(4)
    _, found = jax.jvp(f, (at,), (along,))
    assert float(found) == pytest.approx(float(jax.jacfwd(f)(at) @ along), rel=1e-10)


EDGES = [
    pytest.param(a, k, length, id=f"a={a}-k={k}-{length}m")
    for a in (0.0, 1e-6, 0.02, 1.0)
    for k in (1.0, 2.5)
    for length in (0.5, 400.0, 5_000.0)
]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("aggressiveness", "detour", "length_m"), EDGES)
def test_derivatives_are_finite_at_the_bounds_and_equal_by_both_modes(
    aggressiveness, detour, length_m
):
    # 0.5 m lies inside the arrival tolerance, 400 m ends within the horizon, 5 km does not.
    at = jnp.asarray([aggressiveness, detour, 0.25, 0.25, 0.25, 0.25])
    road = make_road(3, length_m=length_m)
    forward, backward = (jacobian(at, road, mode=mode) for mode in (jax.jacfwd, jax.jacrev))
    assert np.all(np.isfinite(forward))
    np.testing.assert_allclose(forward, backward, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("aggressiveness", [0.0, 0.3, 1.0])
def test_derivatives_are_finite_in_single_precision(aggressiveness):
    at = jnp.asarray([aggressiveness, 1.0, 1.0, 0.0, 0.0, 0.0])
    # Long after the arrival the speed has decayed to where its square underflows.
    for length_m in (600.0, 2_000.0):
        assert np.all(np.isfinite(jacobian(at, make_road(3, length_m=length_m), mode=jax.jacfwd)))


@pytest.mark.usefixtures("x64")
def test_energy_is_continuous_where_the_arrival_crosses_a_time_step():
    # Without a partial last step the energy would jump by the power of a whole second. Zooming
    # in on the steepest place must flatten it.
    road, weights = make_road(2, length_m=600.0), jnp.asarray([0.0, 1.0, 0.0, 0.0])
    energies = jax.vmap(
        lambda k: energy_mj(jnp.concatenate([jnp.stack([0.5, k]), weights]), road, CONSTANTS)
    )
    low, high = jnp.asarray(1.0), jnp.asarray(1.1)
    for _ in range(3):
        detours = jnp.linspace(low, high, 400)
        steepest = jnp.argmax(jnp.abs(jnp.diff(energies(detours))))
        low, high = detours[steepest], detours[steepest + 1]
    before, after = energies(jnp.stack([low, high]))
    assert float(after) == pytest.approx(float(before), rel=1e-6)
