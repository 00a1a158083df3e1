"""Probabilities of a discrete quantity: scores by hand, the decomposition, bold ones rejected."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi.diagnostics import (
    brier_score,
    discrete_pit,
    log_scores,
    probability_test,
    reliability_table,
    uniformity,
)


def claims(rng, n, n_options=8, sharpness=2.0):
    """Probabilities of many cases."""
    logits = sharpness * rng.normal(size=(n, n_options))
    weight = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


def truths(rng, probability):
    """One option a case, by its probability."""
    ticket = rng.uniform(size=(len(probability), 1))
    return np.minimum(
        np.sum(np.cumsum(probability, axis=1) < ticket, axis=1), probability.shape[1] - 1
    )


def sharpened(probability, power):
    """Too bold for a power above one, too timid below."""
    weight = probability**power
    return weight / weight.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def calibrated():
    rng = np.random.default_rng(5)
    probability = claims(rng, 3_000)
    return probability, truths(rng, probability)


def test_scores_by_hand():
    probability, truth = np.asarray([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]), np.asarray([1, 0])
    expected = ((0.25 + 0.5625 + 0.0625) + 0.0) / 2.0
    assert brier_score(probability, truth).score == pytest.approx(expected)
    np.testing.assert_allclose(log_scores(probability, truth), [np.log(0.25), 0.0])
    assert log_scores(probability, np.asarray([1, 2]))[1] == -np.inf


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(2, 6), st.floats(0.1, 4.0))
def test_parts_of_the_brier_score_add_up(seed, n, n_options, sharpness):
    rng = np.random.default_rng(seed)
    probability = claims(rng, n, n_options, sharpness)
    truth = rng.integers(0, n_options, n)
    found = brier_score(probability, truth)
    parts = found.reliability - found.resolution + found.uncertainty + found.within
    assert found.score == pytest.approx(parts, abs=1e-12)


def test_calibrated_probabilities_pass(calibrated):
    found = probability_test(*calibrated)
    assert min(found.brier_p, found.log_p) > 0.01
    table = reliability_table(*calibrated)
    assert table["ok"].all()
    assert table["n"].sum() == calibrated[0].size
    assert uniformity(discrete_pit(*calibrated)).inside(0.99)


@pytest.mark.parametrize(("power", "sign"), [(1.4, 1.0), (0.7, -1.0)])
def test_bold_and_timid_probabilities_are_rejected(calibrated, power, sign):
    wrong, truth = sharpened(calibrated[0], power), calibrated[1]
    found = probability_test(wrong, truth)
    assert sign * found.brier_z > 4.0
    assert sign * found.log_z > 4.0
    assert not reliability_table(wrong, truth)["ok"].all()
    assert brier_score(wrong, truth).score > brier_score(*calibrated).score
    assert brier_score(wrong, truth).reliability > 2.0 * brier_score(*calibrated).reliability


def test_pit_sees_options_that_are_favored(calibrated):
    probability, truth = calibrated
    favored = probability * np.linspace(1.0, 2.0, probability.shape[1])
    favored /= favored.sum(axis=1, keepdims=True)
    assert uniformity(discrete_pit(favored, truth)).ecdf_p < 1e-4


def test_certainty_that_is_right_has_no_excess():
    found = probability_test(np.eye(3), np.arange(3))
    assert (found.brier_z, found.log_z) == (0.0, 0.0)
    assert brier_score(np.eye(3), np.arange(3)).score == 0.0


@pytest.mark.parametrize(
    ("probability", "truth", "message"),
    [
        ([[0.5, 0.6]], [0], "sum to one"),
        ([[1.5, -0.5]], [0], "sum to one"),
        ([[0.5, 0.5]], [2], r"truth in 0\.\.1"),
        ([[0.5, 0.5]], [0, 1], "case, option"),
    ],
)
def test_wrong_input_is_refused(probability, truth, message):
    with pytest.raises(ValueError, match=message):
        brier_score(np.asarray(probability), np.asarray(truth))


def test_edges_must_span_all_probabilities(calibrated):
    with pytest.raises(ValueError, match="rise from 0 to 1"):
        reliability_table(*calibrated, edges=np.asarray([0.0, 0.5]))
    table = reliability_table(*calibrated, edges=np.asarray([0.0, 0.5, 1.0]))
    assert len(table) == 2
