"""The bounds are true bounds: by closed form, by coverage, and on exact trade-offs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from prisma_sbi.audit import epsilon_bound, lower_limit, rho_bound, upper_limit
from prisma_sbi.audit.bound import best_attack

RATES = st.floats(0.001, 0.999)


def test_limits_cover_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(0)
    for truth in (0.01, 0.3, 0.97):
        hits = rng.binomial(200, truth, size=4000)
        low, high = lower_limit(hits, 200, 0.05), upper_limit(hits, 200, 0.05)
        assert np.mean(low > truth) < 0.065
        assert np.mean(high < truth) < 0.065
        assert np.mean(low > truth - 0.1) > 0.5


def test_limits_agree_with_exact_binomial_tails():
    low = float(lower_limit(np.array(7), 50, 0.025))
    high = float(upper_limit(np.array(7), 50, 0.025))
    expected = stats.binomtest(7, 50).proportion_ci(0.95, "exact")
    assert (low, high) == pytest.approx((expected.low, expected.high))
    assert float(lower_limit(np.array(0), 50, 0.025)) == 0.0
    assert float(upper_limit(np.array(50), 50, 0.025)) == 1.0


def test_randomized_response_shows_its_epsilon():
    truthful = math.exp(1.3) / (1 + math.exp(1.3))
    assert float(epsilon_bound(truthful, 1 - truthful, 0.0)) == pytest.approx(1.3)
    assert float(epsilon_bound(truthful, 1 - truthful, 0.01)) < 1.3


@settings(max_examples=50, deadline=None)
@given(RATES, RATES)
def test_rates_that_are_not_told_apart_bound_nothing(first, second):
    low, high = sorted((first, second))
    assert float(epsilon_bound(low, high, 1e-5)) == 0.0
    assert float(rho_bound(low, high)) == 0.0
    assert float(rho_bound(high, low)) >= 0.0


@settings(max_examples=50, deadline=None)
@given(RATES, RATES, st.floats(0.0, 0.5))
def test_bounds_grow_as_rates_move_apart(first, second, part):
    low, high = sorted((first, second))
    nearer = high - part * (high - low)
    assert float(rho_bound(nearer, low)) <= float(rho_bound(high, low)) + 1e-9
    assert float(epsilon_bound(nearer, low, 1e-5)) <= float(epsilon_bound(high, low, 1e-5)) + 1e-9


@pytest.mark.parametrize("shift", [0.05, 0.5, 1.0, 3.0])
def test_gaussian_shift_stays_below_its_rho_and_comes_near(shift):
    """Every threshold on N(0, 1) against N(shift, 1), which has rho = shift^2 / 2."""
    threshold = np.linspace(-3, shift + 3, 201)
    rho = rho_bound(stats.norm.sf(threshold - shift), stats.norm.sf(threshold))
    assert np.all(rho <= shift**2 / 2)
    assert rho.max() > 0.63 * shift**2 / 2


def test_small_selection_shows_all_of_its_rho():
    epsilon = 0.1
    yes = math.exp(epsilon / 2) / (math.exp(epsilon / 2) + math.exp(-epsilon / 2))
    assert float(rho_bound(yes, 0.5)) == pytest.approx(epsilon**2 / 8, rel=0.01)


@pytest.mark.parametrize("delta", [None, 1e-5])
def test_bound_lies_above_the_truth_no_more_often_than_allowed(delta):
    """Gaussian mechanism with rho = 1/2; identical worlds for epsilon = 0."""
    rng = np.random.default_rng(1)
    too_high = 0
    for _ in range(200):
        shift = 0.0 if delta else 1.0
        without = {"x": rng.normal(size=200), "y": rng.normal(size=200)}
        with_canary = {"x": rng.normal(shift, size=200), "y": rng.normal(size=200)}
        bound, _ = best_attack(without, with_canary, error=0.05, delta=delta)
        too_high += bound > (0.0 if delta else 0.5)
    assert too_high <= 18  # 10 are expected at most; 18 has probability 0.006


def test_attack_finds_the_statistic_and_the_direction():
    rng = np.random.default_rng(2)
    without = {"noise": rng.normal(size=400), "leak": rng.normal(size=400)}
    with_canary = {"noise": rng.normal(size=400), "leak": rng.normal(-3.0, size=400)}
    bound, attack = best_attack(without, with_canary, error=0.025, delta=None)
    assert attack.statistic == "leak"
    assert not attack.above
    assert attack.false_positive_rate < attack.false_positive_high
    assert attack.true_positive_rate > attack.true_positive_low
    assert 1.0 < bound < 4.5


def test_choice_and_measurement_use_different_runs():
    """What only the first fifth shows is worth nothing."""
    first = np.repeat([1.0, 0.0], [20, 80])
    bound, attack = best_attack({"x": np.zeros(100)}, {"x": first}, error=0.05, delta=None)
    assert bound == 0.0
    assert attack.true_positive_rate == 0.0


def test_too_few_runs_are_refused():
    with pytest.raises(ValueError, match="n_runs"):
        best_attack({"x": np.zeros(3)}, {"x": np.zeros(3)}, error=0.05, delta=None)
