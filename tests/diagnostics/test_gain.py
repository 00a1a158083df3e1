"""Information in nats: closed forms, no gain from the prior itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi.diagnostics import choice_gain, marginal_gain


@settings(deadline=None, max_examples=20)
@given(st.integers(8, 600), st.integers(0, 2**31))
def test_draws_from_the_prior_gain_nothing_on_average(n_draws, seed):
    gain, error = marginal_gain(np.random.default_rng(seed).uniform(size=(400, n_draws)))
    assert abs(gain.mean()) < 5.0 * gain.std() / np.sqrt(400)
    assert gain.std() == pytest.approx(error[0], rel=0.35)


@pytest.mark.parametrize("width", [0.5, 0.01, 1e-5])
def test_a_narrow_flat_posterior_gains_the_log_of_its_width(width):
    unit = 0.3 + width * np.random.default_rng(0).uniform(size=(200, 400))
    gain, _ = marginal_gain(unit)
    # Blurred at the two ends by a block of twenty draws.
    assert gain.mean() == pytest.approx(-np.log(width), abs=0.12)


def test_a_normal_posterior_gains_its_missing_entropy():
    sd = 0.01
    unit = 0.5 + sd * np.random.default_rng(0).normal(size=(200, 800))
    expected = -0.5 * np.log(2.0 * np.pi * np.e * sd**2)
    assert marginal_gain(unit)[0].mean() == pytest.approx(expected, abs=0.1)


def test_draws_that_repeat_gain_no_more_than_the_law_they_stand_for():
    """Weighted points of a normal law, taken by their weights: most come several times."""
    sd, rng = 0.02, np.random.default_rng(0)
    points = rng.uniform(0.3, 0.7, size=(100, 1_500))
    weight = np.exp(-0.5 * ((points - 0.5) / sd) ** 2)
    ticket = (np.arange(800) + rng.uniform(size=(100, 1))) / 800
    taken = np.stack(
        [
            row[np.searchsorted(np.cumsum(w) / w.sum(), t)]
            for row, w, t in zip(points, weight, ticket, strict=True)
        ]
    )
    assert max(len(np.unique(row)) for row in taken) < 400
    expected = -0.5 * np.log(2.0 * np.pi * np.e * sd**2)
    assert marginal_gain(taken)[0].mean() == pytest.approx(expected, abs=0.1)
    # Draws from the prior, each one four times, gain nothing.
    four = np.repeat(rng.uniform(size=(400, 150)), 4, axis=1)
    gain, error = marginal_gain(four)
    assert abs(gain.mean()) < 5.0 * gain.std() / np.sqrt(400)
    assert gain.std() == pytest.approx(error.mean(), rel=0.35)


def test_choices_by_hand():
    prior = np.asarray([0.5, 0.25, 0.25])
    found = choice_gain(np.asarray([prior, [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]), prior)
    np.testing.assert_allclose(found, [0.0, np.log(2.0), np.log(2.0)])


@pytest.mark.parametrize("bad", [np.full(7, 0.5), np.full(20, 1.5), np.full(20, np.nan)])
def test_wrong_input_is_refused(bad):
    with pytest.raises(ValueError, match="Expected eight or more"):
        marginal_gain(bad)
