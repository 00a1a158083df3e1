"""The grid keeps energy: analytic cases, brute force, and random samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi.telemetry import resample_mean
from prisma_sbi.telemetry.resample import fill_forward


@st.composite
def sampled_trips(draw):
    """Up to four trips with irregular times, repeated ones among them."""
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    steps = [rng.choice([0.0, 0.1, 0.66, 1.0, 2.5, 7.3], size=n) for n in lengths]
    time_s = np.concatenate([np.cumsum(step) - step[0] for step in steps])
    values = rng.normal(10.0, 30.0, size=sum(lengths))
    return time_s, values, np.concatenate([[0], np.cumsum(lengths)])


def step_integral(time_s, values, until_s):
    """Integral of one trip's step function up to a time, sample by sample."""
    total = 0.0
    for k in range(len(time_s) - 1):
        total += values[k] * max(min(time_s[k + 1], until_s) - min(time_s[k], until_s), 0.0)
    return total


@given(sampled_trips(), st.sampled_from([0.5, 1.0, 3.0]), st.integers(1, 30))
@settings(deadline=None, max_examples=150)
def test_resample_integral_up_to_every_cell_edge_is_that_of_the_step_function(
    trips, time_step_s, n_times
):
    time_s, values, first_row = trips
    grid = resample_mean(time_s, values, first_row, n_times=n_times, time_step_s=time_step_s)
    assert grid.shape == (len(first_row) - 1, n_times)
    for k in range(len(grid)):
        rows = slice(first_row[k], first_row[k + 1])
        energy = np.cumsum(grid[k]) * time_step_s
        expected = [
            step_integral(time_s[rows], values[rows], (j + 1) * time_step_s) for j in range(n_times)
        ]
        np.testing.assert_allclose(energy, expected, atol=1e-8)


def test_resample_holds_a_sample_until_the_next():
    grid = resample_mean(
        np.array([0.0, 1.5, 3.0]), np.array([2.0, 4.0, 9.0]), np.array([0, 3]), n_times=5
    )
    np.testing.assert_allclose(grid, [[2.0, 3.0, 4.0, 0.0, 0.0]])


def test_resample_is_exactly_zero_after_the_end_and_never_negative_for_positive_power():
    rng = np.random.default_rng(3)
    lengths = rng.integers(2, 400, size=200)
    time_s = np.concatenate([np.cumsum(rng.uniform(0.1, 1.5, n)) for n in lengths])
    first_row = np.concatenate([[0], np.cumsum(lengths)])
    time_s -= np.repeat(time_s[first_row[:-1]], lengths)
    grid = resample_mean(time_s, rng.uniform(0, 1e5, len(time_s)), first_row, n_times=500)
    assert (grid >= 0).all()
    for k in range(len(lengths)):
        end = int(np.ceil(time_s[first_row[k + 1] - 1]))
        assert (grid[k, end:] == 0.0).all()


def test_resample_handles_no_trips_and_single_rows():
    assert resample_mean(np.zeros(0), np.zeros(0), np.array([0]), n_times=4).shape == (0, 4)
    single = resample_mean(np.zeros(1), np.ones(1), np.array([0, 1]), n_times=4)
    np.testing.assert_array_equal(single, np.zeros((1, 4)))


def test_resample_rejects_bad_grids_and_lengths():
    time_s, values, first_row = np.zeros(2), np.zeros(2), np.array([0, 2])
    with pytest.raises(ValueError, match="time_step_s"):
        resample_mean(time_s, values, first_row, n_times=3, time_step_s=0.0)
    with pytest.raises(ValueError, match="n_times"):
        resample_mean(time_s, values, first_row, n_times=0)
    with pytest.raises(ValueError, match="as many times as values"):
        resample_mean(time_s, values[:1], first_row, n_times=3)


@given(sampled_trips(), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=100)
def test_fill_forward_takes_the_nearest_earlier_value_of_the_same_trip(trips, seed):
    _, values, first_row = trips
    values = np.where(np.random.default_rng(seed).random(len(values)) < 0.5, np.nan, values)
    filled = fill_forward(values, first_row)
    for begin, end in zip(first_row[:-1], first_row[1:], strict=True):
        finite = [v for v in values[begin:end] if np.isfinite(v)]
        for k in range(begin, end):
            earlier = [v for v in values[begin : k + 1] if np.isfinite(v)]
            expected = earlier[-1] if earlier else (finite[0] if finite else np.nan)
            np.testing.assert_equal(filled[k], expected)
