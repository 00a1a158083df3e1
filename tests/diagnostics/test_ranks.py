"""Uniformity of ranks: exact envelope against brute force, tests that reject what is wrong."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, kstest, norm

from prisma_sbi.diagnostics import (
    chi_square,
    coverage_table,
    ecdf_envelope,
    rank_pit,
    tarp,
    uniformity,
)


def stays(envelope, pit):
    """Whether the ECDF of each row stays inside."""
    ecdf = np.mean(pit[:, :, None] <= envelope.point, axis=1)
    return np.all((ecdf >= envelope.lower - 1e-9) & (ecdf <= envelope.upper + 1e-9), axis=1)


def test_envelope_holds_what_it_promises():
    envelope = ecdf_envelope(200, level=0.9, n_points=40)
    pit = np.random.default_rng(0).uniform(size=(4_000, 200))
    low, high = binom.interval(0.9999, 4_000, 0.9)
    # Counts are whole, so the level is met from above, and not by much.
    assert low / 4_000 <= stays(envelope, pit).mean() <= high / 4_000 + 0.01


def test_envelope_is_the_largest_by_enumeration():
    """Four numbers at three points: all ways to fall into four bins."""
    envelope = ecdf_envelope(4, level=0.7, n_points=4)
    inside = 0.0
    for bins in itertools.product(range(4), repeat=4):
        counts = np.cumsum(np.bincount(bins, minlength=4))[:3] / 4.0
        inside += np.all((counts >= envelope.lower) & (counts <= envelope.upper)) / 4**4
    assert inside >= 0.7
    # Each bound is a binomial quantile at one gamma.
    np.testing.assert_allclose(envelope.point, [0.25, 0.5, 0.75])
    assert np.all(envelope.lower + envelope.upper[::-1] == 1.0)


def test_p_value_is_exact_by_enumeration():
    pit = np.asarray([0.01, 0.02, 0.03, 0.3])
    found = uniformity(pit, n_points=4, n_bins=2)
    point = np.asarray([0.25, 0.5, 0.75])

    def extremity(counts):
        return min(
            min(binom.cdf(c, 4, z), binom.sf(c - 1, 4, z))
            for c, z in zip(counts, point, strict=True)
        )

    observed = extremity([3, 4, 4])
    chance = 0.0
    for bins in itertools.product(range(4), repeat=4):
        counts = np.cumsum(np.bincount(bins, minlength=4))[:3]
        chance += (extremity(counts) <= observed * (1 + 1e-9)) / 4**4
    assert found.ecdf_p == pytest.approx(chance, rel=1e-6)


def test_p_value_and_envelope_agree():
    rng = np.random.default_rng(3)
    envelope = ecdf_envelope(150, level=0.8)
    pit = rng.uniform(size=(200, 150))
    by_p = np.asarray([uniformity(row).inside(0.8) for row in pit])
    assert np.mean(by_p == stays(envelope, pit)) >= 0.99
    assert 0.7 < by_p.mean() < 0.9


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: norm.cdf(norm.ppf(x) / 0.8),  # intervals too narrow
        lambda x: norm.cdf(norm.ppf(x) * 0.8),  # too wide
        lambda x: norm.cdf(norm.ppf(x) + 0.2),  # shifted
    ],
)
def test_what_is_not_uniform_is_rejected(wrong):
    pit = np.random.default_rng(1).uniform(size=1_000)
    fine, found = uniformity(pit), uniformity(wrong(pit))
    assert fine.inside(0.95)
    assert fine.chi_square_p > 0.01
    assert found.ecdf_p < 1e-4
    assert not found.inside(0.999)


def test_variance_says_which_way_intervals_are_wrong():
    x = np.random.default_rng(1).uniform(size=1_000)
    assert uniformity(norm.cdf(norm.ppf(x) / 0.8)).variance > 0.1
    assert uniformity(norm.cdf(norm.ppf(x) * 0.8)).variance < 0.07


def test_chi_square_by_hand():
    statistic, p = chi_square(np.asarray([0.1, 0.2, 0.3, 0.9]), n_bins=2)
    assert statistic == pytest.approx((3 - 2) ** 2 / 2 + (1 - 2) ** 2 / 2)
    assert p == pytest.approx(math.erfc(math.sqrt(statistic / 2)))
    assert chi_square(np.asarray([0.0, 1.0]), n_bins=2)[0] == 0.0


def test_coverage_counts_central_intervals():
    pit = (np.arange(1_000) + 0.5) / 1_000
    table = coverage_table(pit, levels=(0.5, 0.9))
    assert table["covered"].tolist() == [500, 900]
    assert table["ok"].all()
    narrow = coverage_table(norm.cdf(norm.ppf(pit) / 0.8), levels=(0.5, 0.9))
    assert not narrow["ok"].any()
    assert np.all(narrow["coverage"] < narrow["low"])


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 30), st.integers(0, 2**31))
def test_uniform_ranks_make_uniform_numbers(n_draws, seed):
    rank = np.random.default_rng(seed).integers(0, n_draws + 1, 2_000)
    pit = rank_pit(rank, n_draws, seed=seed)
    assert np.all(np.floor(pit * (n_draws + 1)) == rank)
    assert kstest(pit, "uniform").pvalue > 1e-6


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match=r"ranks in 0\.\.4"):
        rank_pit(np.asarray([5]), 4)
    for bad in ([], [[0.5]], [np.nan], [1.2]):
        with pytest.raises(ValueError, match=r"numbers in \[0, 1\]"):
            uniformity(np.asarray(bad))


def correlated(rng, n, correlation):
    """Truths and exact draws of correlated pairs."""
    root = np.linalg.cholesky([[1.0, correlation], [correlation, 1.0]])
    center = rng.normal(size=(n, 2))
    truth = center + rng.normal(size=(n, 2)) @ root.T
    return center, truth, root


def test_tarp_passes_what_is_exact_and_sees_a_wrong_correlation():
    rng = np.random.default_rng(0)
    center, truth, root = correlated(rng, 1_000, 0.9)
    exact = center[:, None] + rng.normal(size=(1_000, 100, 2)) @ root.T
    wrong = center[:, None] + rng.normal(size=(1_000, 100, 2))
    assert uniformity(tarp(exact, truth)).inside(0.99)
    found = uniformity(tarp(wrong, truth))
    assert found.ecdf_p < 0.005
    assert found.chi_square_p < 1e-5
    # Single parameters are calibrated all the same, so ranks cannot see it.
    for axis in (0, 1):
        rank = np.sum(wrong[..., axis] < truth[:, None, axis], axis=1)
        assert uniformity(rank_pit(rank, 100)).inside(0.99)


def test_tarp_of_one_draw_and_one_dimension_by_hand():
    """Each pit lies in the half that says whether the draw is nearer than the truth."""
    draws, truth = np.asarray([[[0.4]], [[0.9]]]), np.asarray([[0.5], [0.1]])
    rng = np.random.default_rng(7)
    reference = rng.uniform(0.1, 0.5, (2, 1))
    nearer = np.abs(draws[:, 0] - reference) < np.abs(truth - reference)
    pit = tarp(draws, truth, seed=7)
    np.testing.assert_array_equal(pit >= 0.5, nearer[:, 0])
    with pytest.raises(ValueError, match="Expected draws"):
        tarp(draws, truth[:1])
