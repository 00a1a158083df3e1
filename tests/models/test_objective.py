"""The published loss: by the formula, by residuals and by running sums."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from prisma_sbi.models import SummaryObjective, summarize, summary_residuals
from prisma_sbi.region.constants import Constants
from prisma_sbi.simulator import Vehicle, simulate_power
from tests.gradients import compare_with_differences
from tests.models.published import published_loss
from tests.simulator.examples import make_pool, make_road

N_VEHICLES = 12
CONSTANTS = Constants(horizon_s=300, energy_scale=0.1, duration_scale=0.2, shape_scale=0.3)
POINTS = [(0.08, 1.0), (0.4, 1.2), (0.6, 1.5), (0.95, 2.4)]
power_of = jax.jit(simulate_power, static_argnames="constants")


def wide_pool():
    """Vehicles from small to large."""
    size = jnp.linspace(1.0, 2.5, N_VEHICLES)
    coefficients = jnp.stack([1_000 * size, 0.3 * size, 1.0 * size, 80 * size], axis=-1)
    return Vehicle(coefficients, 2_000.0 * size)


def truth_and_objective(seed, constants=CONSTANTS):
    """A noisy trace of vehicle 3 and the objective it makes."""
    road, pool = make_road(seed), wide_pool()
    clean = power_of(jnp.asarray(0.4), jnp.asarray(1.2), pool[3], road, constants)
    observed = clean * np.random.default_rng(seed).uniform(0.7, 1.3, constants.n_times)
    return observed, SummaryObjective(road, summarize(observed, constants), pool, constants)


@eqx.filter_jit
def losses(objective, point, vehicles, *, stride=1):
    return objective.losses(point, vehicles, stride=stride)


@eqx.filter_jit
def half_square(objective, point):
    """Half the squared residuals for every vehicle."""
    residuals = jax.vmap(lambda v: objective.residuals(point, v))(jnp.arange(N_VEHICLES))
    return 0.5 * jnp.sum(residuals**2, axis=-1)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("recuperation", [0.0, 0.7])
def test_running_sums_residuals_and_published_formula_agree(seed, recuperation):
    constants = Constants(
        horizon_s=300,
        energy_scale=0.1,
        duration_scale=0.2,
        shape_scale=0.3,
        recuperation=recuperation,
    )
    observed, objective = truth_and_objective(seed, constants)
    for point in POINTS:
        at = jnp.asarray(point)
        found = losses(objective, at, jnp.arange(N_VEHICLES))
        np.testing.assert_allclose(found, half_square(objective, at), rtol=1e-9)
        for vehicle in range(N_VEHICLES):
            simulated = power_of(at[0], at[1], objective.pool[vehicle], objective.road, constants)
            expected = published_loss(simulated, observed, constants)
            assert float(found[vehicle]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_running_sums_hold_in_single_precision(seed):
    _, objective = truth_and_objective(seed, Constants(horizon_s=500))
    for point in POINTS:
        at = jnp.asarray(point)
        found = losses(objective, at, jnp.arange(N_VEHICLES))
        np.testing.assert_allclose(found, half_square(objective, at), rtol=2e-3, atol=2e-3)


def test_loss_is_zero_at_the_truth_and_nowhere_else():
    road, pool, at = make_road(5), wide_pool(), jnp.asarray([0.4, 1.2])
    power = power_of(at[0], at[1], pool[3], road, CONSTANTS)
    objective = SummaryObjective(road, summarize(power, CONSTANTS), pool, CONSTANTS)
    there = np.asarray(losses(objective, at, jnp.arange(N_VEHICLES)))
    assert there.argmin() == 3
    assert there[3] < 1e-4 < np.delete(there, 3).min()
    assert float(losses(objective, at + 0.05, jnp.asarray([3]))[0]) > 1e-3


def test_a_subset_of_vehicles_has_the_losses_of_the_whole():
    _, objective = truth_and_objective(0)
    at, some = jnp.asarray([0.5, 1.3]), jnp.asarray([7, 2, 2])
    whole = losses(objective, at, jnp.arange(N_VEHICLES))
    np.testing.assert_allclose(losses(objective, at, some), whole[some], rtol=1e-4)


def over_grid(f):
    """Values of a function of the point on a grid over the domain."""
    axes = jnp.meshgrid(jnp.linspace(0.1, 1.0, 10), jnp.linspace(1.0, 2.5, 6))
    return np.asarray(jax.vmap(f)(jnp.stack([m.ravel() for m in axes], axis=-1)))


def rank_correlation(left, right):
    """Spearman's correlation."""
    return np.corrcoef(rankdata(left), rankdata(right))[0, 1]


@pytest.mark.parametrize("seed", range(2))
def test_stride_ranks_like_the_loss(seed):
    _, objective = truth_and_objective(seed, Constants(horizon_s=500))
    everyone = jnp.arange(N_VEHICLES)
    exact = over_grid(lambda point: losses(objective, point, everyone))
    cheap = over_grid(lambda point: losses(objective, point, everyone, stride=5))
    assert rank_correlation(exact, cheap) > 0.9
    # The best by the approximation is nearly the best; a bad one would be an order off.
    assert exact.ravel()[cheap.argmin()] <= np.quantile(exact, 0.03)
    assert not np.array_equal(exact, cheap)


def test_promise_is_at_most_the_loss_and_equals_it_for_one_vehicle():
    _, objective = truth_and_objective(2)
    few = jnp.asarray([0, 4, 8, 11])
    promise = eqx.filter_jit(lambda point, vehicles: objective.promise(point, vehicles))
    for point in POINTS:
        at = jnp.asarray(point)
        alone = float(losses(objective, at, few[:1])[0])
        assert float(promise(at, few[:1])) == pytest.approx(alone, rel=1e-4)
        assert 0.0 <= float(promise(at, few)) <= float(jnp.min(losses(objective, at, few)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_promise_of_two_vehicles_ranks_points_better_than_their_loss(seed):
    _, objective = truth_and_objective(seed)
    few = jnp.asarray([0, N_VEHICLES - 1])
    best = over_grid(lambda point: jnp.min(losses(objective, point, jnp.arange(N_VEHICLES))))
    bare = over_grid(lambda point: jnp.min(losses(objective, point, few)))
    promise = over_grid(lambda point: objective.promise(point, few))
    assert rank_correlation(promise, best) > rank_correlation(bare, best)


def test_objectives_of_many_trips_are_mapped_along_the_trip_axis():
    many = [truth_and_objective(seed)[1] for seed in range(3)]
    axes = many[0].trip_axes()
    stacked = SummaryObjective(
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *(one.road for one in many)),
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *(one.observed for one in many)),
        many[0].pool,
        CONSTANTS,
    )
    at, vehicles = jnp.asarray([0.5, 1.4]), jnp.arange(N_VEHICLES)
    mapped = jax.vmap(lambda one: one.losses(at, vehicles), in_axes=(axes,))(stacked)
    for row, one in enumerate(many):
        np.testing.assert_allclose(mapped[row], losses(one, at, vehicles), rtol=2e-3)


GUARDED = {
    "no power at all": np.zeros(300),
    "more recuperated than spent": np.full(300, -5_000.0),
    "energy near zero": np.concatenate([np.full(150, 20_000.0), np.full(150, -20_000.0)]),
    "one joule": np.eye(1, 300)[0],
    "absurdly much": np.full(300, 1e7),
}


@eqx.filter_jit
def jacobian(objective, point):
    """Derivative of the residuals of vehicle 3."""
    return jax.jacfwd(objective.residuals)(point, jnp.asarray(3))


@pytest.mark.slow
@pytest.mark.parametrize("trace", GUARDED.values(), ids=GUARDED)
def test_guards_keep_losses_and_derivatives_finite(trace):
    constants = Constants(horizon_s=300, recuperation=1.0)
    objective = SummaryObjective(
        make_road(0), summarize(jnp.asarray(trace), constants), make_pool(), constants
    )
    for point in ((0.0, 1.0), (0.02, 1.0), (1.0, 2.5)):
        at = jnp.asarray(point)
        for stride in (1, 5):
            assert np.all(np.isfinite(losses(objective, at, jnp.arange(4), stride=stride)))
        assert np.all(np.isfinite(jacobian(objective, at)))


@given(st.lists(st.floats(-3e4, 1e5, width=32), min_size=300, max_size=300))
@settings(max_examples=30, deadline=None)
def test_any_observed_trace_has_finite_losses(trace):
    objective = SummaryObjective(
        make_road(0), summarize(jnp.asarray(trace), CONSTANTS), make_pool(), CONSTANTS
    )
    found = losses(objective, jnp.asarray([0.5, 1.2]), jnp.arange(4))
    assert np.all(np.isfinite(found))
    assert np.all(np.asarray(found) >= 0)


@jax.jit
def residuals_of_mixture(variables, objective):
    """Residuals in aggressiveness, detour and the weights of all vehicles."""
    vehicle = objective.pool.mix(variables[2:])
    power = simulate_power(variables[0], variables[1], vehicle, objective.road, CONSTANTS)
    return summary_residuals(summarize(power, CONSTANTS), objective.observed, CONSTANTS)


def draw_variables(seed):
    """A point away from the bounds."""
    rng = np.random.default_rng(seed)
    descriptors = rng.uniform([0.1, 1.05], [0.95, 2.4])
    return jnp.asarray(np.concatenate([descriptors, rng.dirichlet(np.ones(N_VEHICLES))]))


@pytest.mark.usefixtures("x64")
def test_derivatives_of_residuals_equal_finite_differences():
    qualified = [
        compare_with_differences(
            partial(residuals_of_mixture, objective=truth_and_objective(seed)[1]),
            draw_variables(seed),
        )
        for seed in range(16)
    ]
    assert np.mean(qualified) > 0.9
    assert np.min(np.mean(qualified, axis=0)) > 0.7


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_forward_mode_equals_reverse_mode():
    _, objective = truth_and_objective(1)
    f = partial(residuals_of_mixture, objective=objective)
    by_forward, by_reverse = jax.jit(jax.jacfwd(f)), jax.jit(jax.jacrev(f))
    for at in (draw_variables(1), draw_variables(2).at[:2].set(jnp.asarray([0.0, 1.0]))):
        forward, backward = by_forward(at), by_reverse(at)
        np.testing.assert_allclose(forward, backward, rtol=1e-8, atol=1e-9)


@pytest.mark.usefixtures("x64")
def test_residuals_of_one_vehicle_are_those_of_a_mixture_with_all_weight_on_it():
    _, objective = truth_and_objective(1)
    one_hot = jnp.concatenate([jnp.asarray([0.5, 1.3]), jnp.eye(N_VEHICLES)[7]])
    soft = residuals_of_mixture(one_hot, objective)
    hard = objective.residuals(jnp.asarray([0.5, 1.3]), jnp.asarray(7))
    np.testing.assert_allclose(soft, hard, rtol=1e-9, atol=1e-9)
