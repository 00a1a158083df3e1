"""Continuous ranked probability score: closed form, few draws, brute force."""

import numpy as np
import pytest
from scipy.stats import norm

from prisma_sbi.diagnostics import crps

TRUTH = np.array([0.0, 0.7, -2.0])
EXPECTED = TRUTH * (2 * norm.cdf(TRUTH) - 1) + 2 * norm.pdf(TRUTH) - 1 / np.sqrt(np.pi)
"""Of a standard normal posterior."""


def test_closed_form_of_a_normal_posterior():
    draws = np.random.default_rng(0).normal(size=(3, 200_000))
    assert crps(draws, TRUTH) == pytest.approx(EXPECTED, abs=0.01)


def test_two_draws_are_right_on_average():
    draws = np.random.default_rng(1).normal(size=(40_000, 3, 2))
    assert crps(draws, TRUTH).mean(axis=0) == pytest.approx(EXPECTED, abs=0.02)


def test_all_pairs_by_brute_force():
    draws = np.random.default_rng(2).normal(size=7)
    pairs = np.abs(draws[:, None] - draws).sum() / (7 * 6)
    expected = np.abs(draws - 0.3).mean() - 0.5 * pairs
    assert crps(draws, np.array(0.3)) == pytest.approx(expected)


def test_a_point_scores_its_distance_and_one_draw_is_refused():
    assert crps(np.full(5, 2.0), np.array(3.5)) == pytest.approx(1.5)
    with pytest.raises(ValueError, match="n_draws >= 2"):
        crps(np.zeros(1), np.array(0.0))
