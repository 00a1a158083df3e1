"""The adaptive grid against closed forms and brute force."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from prisma_sbi.inference import Box, GridSettings, Target, integrate
from tests.inference.targets import LOWER, UPPER, Bells, Decay, bells, make_box, truth_of

integrate_one = eqx.filter_jit(integrate)
moments_of = eqx.filter_jit(lambda grid: grid.moments())
sample = eqx.filter_jit(lambda grid, key, n: grid.sample(key, n))

TARGETS = {
    "correlated, five choices": (
        lambda: bells(
            [[0.45, 1.6], [0.5, 1.7], [0.55, 1.8], [0.4, 1.5], [0.48, 1.65]],
            [0.06, 0.12],
            correlation=0.8,
            weights=[1.0, 3.0, 0.5, 2.0, 1e-3],
        ),
        [0.48, 1.65],
    ),
    "cut off at a bound": (lambda: bells([[-0.03, 1.7]], [0.08, 0.1]), [0.01, 1.7]),
    "cut off at a corner": (lambda: bells([[1.02, 0.95]], [0.1, 0.2]), [1.0, 1.0]),
    "narrow": (lambda: bells([[0.731, 1.234]], [0.004, 0.006], correlation=0.5), [0.73, 1.23]),
    "two modes": (
        lambda: bells([[0.2, 1.3], [0.8, 2.2]], [0.03, 0.05], weights=[0.3, 0.7]),
        [0.2, 1.3],
    ),
    "decay from an edge": (lambda: Decay(jnp.asarray([40.0, 10.0])), [0.0, 1.0]),
    "flat": (lambda: Decay(jnp.zeros(2)), [0.3, 2.0]),
}


def solve(name, **settings):
    build, start = TARGETS[name]
    target = build()
    grid = integrate_one(target, make_box(), jnp.asarray(start), GridSettings(**settings))
    return target, grid


def errors_of(target, grid):
    """Distances from the truth: in standard deviations, relative, in logs, in probability."""
    truth, (mean, covariance) = truth_of(target), moments_of(grid)
    scale = np.sqrt(np.diag(truth.covariance))
    return {
        "mean": np.max(np.abs(mean - truth.mean) / scale),
        "spread": np.max(np.abs(np.sqrt(np.diag(covariance)) / scale - 1.0)),
        "correlation": abs(covariance[0, 1] - truth.covariance[0, 1]) / np.prod(scale),
        "evidence": abs(float(grid.log_evidence) - truth.log_evidence),
        "choice": np.max(np.abs(np.asarray(grid.choice_probability) - truth.choice)),
    }


TOLERANCE = {"mean": 0.005, "spread": 0.01, "correlation": 0.006, "evidence": 0.01, "choice": 0.002}
FINE = {"mean": 1e-3, "spread": 1e-3, "correlation": 1e-3, "evidence": 2e-3, "choice": 5e-4}


def test_toys_are_targets():
    assert isinstance(Decay(jnp.ones(2)), Target)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", TARGETS)
def test_moments_evidence_and_choices_are_those_of_brute_force(name):
    target, grid = solve(name)
    found = errors_of(target, grid)
    assert {key: found[key] for key in found if found[key] > TOLERANCE[key]} == {}


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", TARGETS)
def test_more_work_brings_it_closer(name):
    target, grid = solve(name, grid_shape=(48, 48), n_levels=10, n_split=64)
    found = errors_of(target, grid)
    assert {key: found[key] for key in found if found[key] > FINE[key]} == {}
    _, coarse = solve(name)
    assert sum(found.values()) < 0.5 * sum(errors_of(target, coarse).values())


@pytest.mark.usefixtures("x64")
def test_closed_forms():
    # Uncut Gaussian: evidence 2 pi sqrt(det), truncation beyond eight standard deviations.
    _, narrow = solve("narrow")
    log_evidence = np.log(2 * np.pi * 0.004 * 0.006 * np.sqrt(1 - 0.25))
    assert float(narrow.log_evidence) == pytest.approx(log_evidence, abs=0.01)
    mean, covariance = moments_of(narrow)
    np.testing.assert_allclose(mean, [0.731, 1.234], atol=2e-4)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), [0.004, 0.006], rtol=0.01)
    # Half-normal, cut 3/8 of a standard deviation above its center.
    _, cut = solve("cut off at a bound")
    law = stats.truncnorm(0.03 / 0.08, np.inf, -0.03, 0.08)
    mean, covariance = moments_of(cut)
    assert float(mean[0]) == pytest.approx(law.mean(), rel=0.01)
    assert float(jnp.sqrt(covariance[0, 0])) == pytest.approx(law.std(), rel=0.01)
    # Exponential: mean one over the rate.
    _, decay = solve("decay from an edge")
    mean, _ = moments_of(decay)
    np.testing.assert_allclose(mean - LOWER, [1 / 40, 1 / 10], rtol=0.01)
    np.testing.assert_allclose(decay.choice_probability, [2 / 3, 1 / 3], rtol=1e-6)
    # Flat: the area of the box, exactly but for the unfolding.
    _, flat = solve("flat")
    assert float(flat.log_evidence) == pytest.approx(np.log(1.5), abs=5e-3)
    mean, covariance = moments_of(flat)
    np.testing.assert_allclose(mean, 0.5 * (LOWER + UPPER), rtol=1e-3)
    np.testing.assert_allclose(np.diag(covariance), (UPPER - LOWER) ** 2 / 12, rtol=0.01)


class Shrunk(Box):
    """A box that forgets how its unfolding stretches areas."""

    def log_unfold_jacobian(self, unit):
        return jnp.zeros(unit.shape[:-1], unit.dtype) + 0.0 * unit[..., 0]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["cut off at a corner", "flat"])
def test_without_the_jacobian_the_checks_fail(name):
    build, start = TARGETS[name]
    wrong = Shrunk(jnp.asarray(LOWER.tolist()), jnp.asarray(UPPER.tolist()))
    grid = integrate_one(build(), wrong, jnp.asarray(start), GridSettings())
    found = errors_of(build(), grid)
    for key in ("evidence", "spread"):
        assert found[key] > 5 * TOLERANCE[key], key


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_draws_follow_the_posterior(name):
    target, grid = solve(name)
    truth = truth_of(target)
    n = 50_000
    point, choice = map(np.asarray, sample(grid, jax.random.key(3), n))
    assert np.all((point >= LOWER) & (point <= UPPER))
    for axis in range(2):
        # A hundredth is what the cells may be off by, the rest is chance.
        assert stats.kstest(point[:, axis], truth.cdf(axis)).statistic < 0.01 + 2 / np.sqrt(n)
    frequency = np.bincount(choice, minlength=len(truth.choice)) / len(choice)
    noise = np.sqrt(truth.choice * (1 - truth.choice) / len(choice))
    assert np.all(np.abs(frequency - truth.choice) < 4 * noise + 0.002)
    covariance = np.cov(point.T)
    scale = np.sqrt(np.diag(truth.covariance))
    correlation = truth.covariance[0, 1] / np.prod(scale)
    assert covariance[0, 1] / np.prod(scale) == pytest.approx(correlation, abs=0.03)


def test_choice_is_drawn_given_the_point():
    _, grid = solve("two modes")
    point, choice = map(np.asarray, sample(grid, jax.random.key(0), 500))
    np.testing.assert_array_equal(choice, (point[:, 0] > 0.5).astype(int))
    again, _ = sample(grid, jax.random.key(0), 500)
    np.testing.assert_array_equal(point, again)


@pytest.mark.parametrize("name", TARGETS)
def test_cells_tile_the_square_and_masses_are_probabilities(name):
    _, grid = solve(name)
    center, half = np.asarray(grid.center, float), np.asarray(grid.half_width, float)
    assert np.sum(4 * half[:, 0] * half[:, 1]) == pytest.approx(1.0, abs=1e-5)
    # A point that is no edge lies in one cell, and one alone.
    for unit in np.random.default_rng(0).uniform(size=(200, 2)):
        assert np.sum(np.all(np.abs(unit - center) < half, axis=1)) == 1
    mass = np.asarray(grid.mass, float)
    assert mass.min() >= 0.0
    assert mass.sum() == pytest.approx(1.0, abs=1e-5)
    assert float(grid.n_effective) == pytest.approx(1.0 / np.sum(mass**2), rel=1e-4)
    inner = np.asarray(logsumexp(np.asarray(grid.log_choice, float), axis=1))
    np.testing.assert_allclose(inner[mass > 1e-12], 0.0, atol=1e-5)
    assert float(jnp.sum(grid.choice_probability)) == pytest.approx(1.0, abs=1e-5)


def test_a_needle_is_found_if_the_start_points_at_it():
    target, start = bells([[0.7312, 1.2345]], [3e-4, 5e-4]), jnp.asarray([0.7312, 1.2345])
    grid = integrate_one(target, make_box(), start, GridSettings())
    mean, _ = moments_of(grid)
    np.testing.assert_allclose(mean, start, atol=5e-4)
    truth = np.log(2 * np.pi * 3e-4 * 5e-4)
    assert float(grid.log_evidence) == pytest.approx(truth, abs=0.15)


class Broken(eqx.Module):
    """Not a number on the right half, a normal on the left."""

    whole: Bells

    def log_weights(self, point, *, stride=1):
        weights = self.whole.log_weights(point)
        return jnp.where(point[0] > 0.5, jnp.nan, weights)


def test_not_a_number_is_no_mass():
    target = Broken(bells([[0.5, 1.7]], [0.1, 0.1]))
    grid = integrate_one(target, make_box(), jnp.asarray([0.45, 1.7]), GridSettings())
    mean, _ = moments_of(grid)
    assert np.isfinite(float(grid.log_evidence))
    assert float(mean[0]) == pytest.approx(0.5 - 0.1 * np.sqrt(2 / np.pi), abs=0.01)


@pytest.mark.slow
def test_many_at_once_are_each_as_alone():
    targets = [bells([[c, 1.5]], [0.05, 0.1]) for c in (0.2, 0.5, 0.9)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *targets)
    start = jnp.asarray([[0.2, 1.5], [0.5, 1.5], [0.9, 1.5]])
    many = eqx.filter_jit(
        jax.vmap(lambda target, at: integrate(target, make_box(), at, GridSettings()))
    )(stacked, start)
    for row, target in enumerate(targets):
        alone = integrate_one(target, make_box(), start[row], GridSettings())
        assert float(many.log_evidence[row]) == pytest.approx(float(alone.log_evidence), abs=1e-3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"grid_shape": (1, 5)}, "a grid of 2 x 2"),
        ({"n_levels": -1}, "n_levels >= 0"),
        ({"n_split": 0}, "n_split >= 1"),
        ({"heat": 0.5}, "heat >= 1"),
        ({"heat": float("nan")}, "heat >= 1"),
    ],
)
def test_impossible_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=f"Expected {message}"):
        GridSettings(**wrong)
