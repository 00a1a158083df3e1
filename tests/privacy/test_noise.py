"""Noise has its law, and the tests here would notice another one."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from prisma_sbi._errors import BudgetError
from prisma_sbi.privacy import SeededNoise, SystemNoise, ZeroNoise
from prisma_sbi.privacy.ledger import gaussian_rho, selection_rho

P_MIN = 1e-6
"""System noise has no seed: a test may fail by chance this often."""


def variance_test(noise: np.ndarray, stddev: float) -> float:
    """P value of the variance being that of the stated scale."""
    statistic = float(np.sum(noise.astype(float) ** 2)) / stddev**2
    return 2 * min(stats.chi2.cdf(statistic, len(noise)), stats.chi2.sf(statistic, len(noise)))


def law_test(noise: np.ndarray, stddev: float) -> float:
    """P value of the discrete Gaussian law, by chi-square over single integers."""
    reach = int(3 * stddev)
    support = np.arange(-100 * reach, 100 * reach + 1)
    weights = np.exp(-(support**2) / (2 * stddev**2))
    probabilities = weights / weights.sum()
    edges = np.arange(-reach, reach + 1)
    inside = probabilities[np.abs(support) <= reach]
    observed = np.array([np.sum(noise == value) for value in edges])
    expected = len(noise) * np.append(inside, 1 - inside.sum())
    observed = np.append(observed, len(noise) - observed.sum())
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("source", [SystemNoise(), SeededNoise(3)], ids=["system", "seeded"])
def test_gaussian_has_its_scale_and_another_scale_is_noticed(source):
    noise = source.gaussian(np.zeros(20_000, np.int64), stddev=7.5, rho=gaussian_rho(7.5))
    assert variance_test(noise, 7.5) > P_MIN
    assert variance_test(noise, 7.5 * 1.05) < P_MIN
    assert variance_test(noise, 7.5 / 1.05) < P_MIN
    assert abs(noise.mean()) < 5 * 7.5 / np.sqrt(len(noise))


def test_system_noise_is_the_discrete_gaussian():
    noise = SystemNoise().gaussian(np.zeros(20_000, np.int64), stddev=2.0, rho=gaussian_rho(2.0))
    assert law_test(noise, 2.0) > P_MIN
    assert law_test(noise, 2.1) < P_MIN
    assert law_test(2 * noise, 4.0) < P_MIN  # right scale, wrong lattice


def test_noise_is_added_to_integers_and_differs_every_time():
    counts = np.arange(50) * 1000
    source = SystemNoise()
    first = source.gaussian(counts, stddev=3.0, rho=gaussian_rho(3.0))
    second = source.gaussian(counts, stddev=3.0, rho=gaussian_rho(3.0))
    assert first.dtype == np.int64
    assert np.all(np.abs(first - counts) < 60)
    assert np.any(first != second)


def test_noise_does_not_follow_the_seed_of_numpy():
    draws = []
    state = np.random.get_state()  # noqa: NPY002
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        draws.append(SystemNoise().gaussian(np.zeros(50, np.int64), stddev=9.0, rho=Fraction(1)))
    np.random.set_state(state)  # noqa: NPY002
    assert np.any(draws[0] != draws[1])


@pytest.mark.parametrize("source", [SystemNoise(), SeededNoise(3)], ids=["system", "seeded"])
def test_selection_follows_the_exponential_mechanism(source):
    scores, sensitivity, epsilon = np.array([0, 1024, 2048]), 1024, 1.4

    def law(eps: float) -> np.ndarray:
        weights = np.exp(eps * scores / (2 * sensitivity))
        return weights / weights.sum()

    picks = [
        source.select(scores, sensitivity=sensitivity, epsilon=epsilon, rho=selection_rho(epsilon))
        for _ in range(4000)
    ]
    observed = np.bincount(picks, minlength=3)
    assert stats.chisquare(observed, 4000 * law(epsilon)).pvalue > P_MIN
    assert stats.chisquare(observed, 4000 * law(2 * epsilon)).pvalue < P_MIN
    assert stats.chisquare(observed, 4000 * law(epsilon / 2)).pvalue < P_MIN


def test_unpaid_calls_are_refused_by_the_map_of_opendp():
    source = SystemNoise()
    with pytest.raises(BudgetError, match="Nothing was released"):
        source.gaussian(np.zeros(3, np.int64), stddev=2.0, rho=gaussian_rho(2.001))
    with pytest.raises(BudgetError, match="Nothing was released"):
        source.select(np.array([1, 2]), sensitivity=1, epsilon=1.0, rho=selection_rho(0.999))


@pytest.mark.parametrize("epsilon", [1e-3, 0.037, 0.5, 3.3, 40.0])
@pytest.mark.parametrize("sensitivity", [1, 12 * 1024, 30 * 1024])
def test_paid_selections_are_granted_at_any_scale(epsilon, sensitivity):
    index = SystemNoise().select(
        np.array([0, 5]), sensitivity=sensitivity, epsilon=epsilon, rho=selection_rho(epsilon)
    )
    assert index in (0, 1)


@pytest.mark.parametrize("stddev", [0.3, 7.7, 85.5, 1.2345e7])
def test_paid_noise_is_granted_at_any_scale(stddev):
    noisy = SystemNoise().gaussian(np.zeros(2, np.int64), stddev=stddev, rho=gaussian_rho(stddev))
    assert noisy.shape == (2,)


@pytest.mark.parametrize("source", [SystemNoise(), SeededNoise(3), ZeroNoise()])
def test_floats_and_empty_scores_are_refused(source):
    with pytest.raises(TypeError, match="leaks"):
        source.gaussian(np.zeros(3), stddev=2.0, rho=gaussian_rho(2.0))
    with pytest.raises(TypeError, match="integers"):
        source.select(np.zeros(3), sensitivity=1, epsilon=1.0, rho=selection_rho(1.0))
    with pytest.raises(ValueError, match="at least one candidate"):
        source.select(np.zeros(0, np.int64), sensitivity=1, epsilon=1.0, rho=selection_rho(1.0))


def test_zero_noise_is_exact():
    source = ZeroNoise()
    counts = np.array([3, 0, 5])
    np.testing.assert_array_equal(source.gaussian(counts, stddev=2.0, rho=Fraction(1)), counts)
    assert source.select(counts, sensitivity=1, epsilon=1.0, rho=Fraction(1)) == 2


def test_seeded_noise_repeats():
    draws = [
        SeededNoise(4).gaussian(np.zeros(9, np.int64), stddev=5.0, rho=Fraction(1))
        for _ in range(2)
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
