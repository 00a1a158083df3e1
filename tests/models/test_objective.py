"""The published loss: by the formula, by residuals and by running sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from prisma_sbi.models.objective import SummaryObjective
from prisma_sbi.models.summary import summarize, summary_residuals
from prisma_sbi.region.constants import Constants
from prisma_sbi.simulator.trip import simulate_power
from prisma_sbi.simulator.vehicle import Vehicle
from tests.simulator.conftest import make_road

CONSTANTS = Constants(horizon_s=300, energy_scale=0.1, duration_scale=0.2, shape_scale=0.3)
POOL = Vehicle(
    jnp.asarray([[1_000.0 + 100 * i, 0.4, 1.0, 100.0 + i] for i in range(12)]),
    jnp.asarray([2_000.0 + 500 * i for i in range(12)]),
)


def make_objective(seed, power=None):
    road = make_road(seed)
    if power is None:
        power = simulate_power(jnp.asarray(0.4), jnp.asarray(1.2), POOL[3], road, CONSTANTS)
        power = power * np.random.default_rng(seed).uniform(0.7, 1.3, CONSTANTS.n_times)
    return SummaryObjective(road, summarize(jnp.asarray(power), CONSTANTS), POOL, CONSTANTS)


def published_loss(simulated, observed, c):
    """Section 4 of the method, in plain numpy."""
    p, q = np.asarray(observed, float), np.asarray(simulated, float)
    width = c.activity_threshold * c.power_span_w
    energy = [x.sum() for x in (p, q)]
    duration = [(1 - np.exp(-((x / width) ** 2))).sum() for x in (p, q)]
    share = [x.cumsum() / x.sum() for x in (p, q)]
    terms = [
        ((energy[1] - energy[0]) / energy[0]) ** 2 / (2 * c.energy_scale**2),
        ((duration[1] - duration[0]) / duration[0]) ** 2 / (2 * c.duration_scale**2),
        ((share[1] - share[0]) ** 2).mean() / (2 * c.shape_scale**2),
    ]
    return sum(terms)


@pytest.mark.parametrize("seed", range(4))
def test_running_sums_residuals_and_formula_agree(seed):
    with jax.enable_x64():
        objective = make_objective(seed)
        observed = simulate_power(
            jnp.asarray(0.4), jnp.asarray(1.2), POOL[3], objective.road, CONSTANTS
        ) * np.random.default_rng(seed).uniform(0.7, 1.3, CONSTANTS.n_times)
        point = jnp.asarray([0.6, 1.5])
        losses = objective.losses(point, jnp.arange(12))
        for vehicle in range(12):
            residuals = objective.residuals(point, jnp.asarray(vehicle))
            simulated = simulate_power(point[0], point[1], POOL[vehicle], objective.road, CONSTANTS)
            expected = published_loss(simulated, observed, CONSTANTS)
            assert float(0.5 * residuals @ residuals) == pytest.approx(expected, rel=1e-6)
            assert float(losses[vehicle]) == pytest.approx(expected, rel=1e-5)


def test_stride_ranks_like_the_loss():
    objective = make_objective(1)
    point = jnp.asarray([0.5, 1.3])
    exact = np.asarray(objective.losses(point, jnp.arange(12)))
    cheap = np.asarray(objective.losses(point, jnp.arange(12), stride=5))
    assert np.corrcoef(np.argsort(np.argsort(exact)), np.argsort(np.argsort(cheap)))[0, 1] > 0.8


def test_loss_is_zero_at_the_truth():
    road = make_road(5)
    power = simulate_power(jnp.asarray(0.4), jnp.asarray(1.2), POOL[3], road, CONSTANTS)
    objective = SummaryObjective(road, summarize(power, CONSTANTS), POOL, CONSTANTS)
    losses = np.asarray(objective.losses(jnp.asarray([0.4, 1.2]), jnp.arange(12)))
    assert losses.argmin() == 3
    assert losses[3] < 1e-4 < losses[2]


@pytest.mark.parametrize("power", [0.0, -5_000.0, 1e-3])
def test_guards_keep_everything_finite(power):
    trace = np.full(CONSTANTS.n_times, power)
    objective = make_objective(0, trace)
    assert np.all(np.isfinite(objective.losses(jnp.asarray([0.5, 1.2]), jnp.arange(12))))
    observed = summarize(jnp.asarray(trace), CONSTANTS)
    assert np.all(np.isfinite(summary_residuals(observed, observed, CONSTANTS)))
