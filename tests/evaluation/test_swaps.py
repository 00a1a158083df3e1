"""Swaps of features: what must move, what must stay, and what a trip with itself gives."""

import numpy as np
import pytest

from prisma_sbi.evaluation.marginals import trace_durations
from prisma_sbi.evaluation.swaps import QUIET_W, SWAPS, is_quiet, ranks, stretched, swap
from tests.evaluation.conftest import make_traces


@pytest.fixture(scope="module")
def decoded_w():
    return make_traces(12, seed=3, n_samples=200)


@pytest.fixture(scope="module")
def recorded_w():
    return make_traces(12, seed=4, n_samples=200)


def whole(seed):
    """Trips without an end, so that lengths agree on both sides."""
    generator = np.random.default_rng(seed)
    return generator.uniform(2e3, 60e3, size=(6, 128))


@pytest.mark.parametrize("name", SWAPS)
def test_a_trip_has_all_features_of_itself(name, decoded_w):
    np.testing.assert_allclose(swap(name, decoded_w, decoded_w), decoded_w, atol=1e-6)


@pytest.mark.parametrize("name", SWAPS)
def test_every_swap_takes_something_and_neither_side_is_touched(name, decoded_w, recorded_w):
    recorded_w = recorded_w.copy()
    recorded_w[:, 5:9] = 0.0  # an engine that is off for a while
    before = decoded_w.copy(), recorded_w.copy()
    assert not np.allclose(swap(name, decoded_w, recorded_w), decoded_w)
    np.testing.assert_array_equal(decoded_w, before[0])
    np.testing.assert_array_equal(recorded_w, before[1])


def test_everything_is_a_copy(decoded_w, recorded_w):
    np.testing.assert_array_equal(swap("everything", decoded_w, recorded_w), recorded_w)


def test_minutes_lie_at_the_two_ends(decoded_w, recorded_w):
    ends = trace_durations(decoded_w).astype(int), trace_durations(recorded_w).astype(int)
    first, last = (swap(name, decoded_w, recorded_w) for name in ("first minute", "last minute"))
    for row, (own, other) in enumerate(zip(*ends, strict=True)):
        np.testing.assert_array_equal(first[row, :60], recorded_w[row, :60])
        np.testing.assert_array_equal(first[row, 60:], decoded_w[row, 60:])
        np.testing.assert_array_equal(
            last[row, own - 60 : own], recorded_w[row, other - 60 : other]
        )
        np.testing.assert_array_equal(last[row, : own - 60], decoded_w[row, : own - 60])


def test_duration_moves_the_end_and_keeps_the_mean(decoded_w, recorded_w):
    moved = swap("duration", decoded_w, recorded_w)
    ends = trace_durations(recorded_w)
    np.testing.assert_array_equal(trace_durations(moved), ends)
    means = moved.sum(axis=1) / ends
    np.testing.assert_allclose(means, decoded_w.sum(axis=1) / trace_durations(decoded_w), rtol=0.05)


def test_levels_move_and_their_order_stays():
    decoded_w, recorded_w = whole(0), whole(1)
    moved = swap("levels", decoded_w, recorded_w)
    np.testing.assert_allclose(np.sort(moved, axis=1), np.sort(recorded_w, axis=1))
    for own, new in zip(decoded_w, moved, strict=True):
        np.testing.assert_array_equal(ranks(own), ranks(new))
    low = swap("low levels", decoded_w, recorded_w)
    for own, new in zip(decoded_w, low, strict=True):
        np.testing.assert_array_equal(own[ranks(own) >= 39], new[ranks(own) >= 39])
        assert np.all(own[ranks(own) < 38] != new[ranks(own) < 38])


def test_order_moves_and_levels_stay():
    decoded_w, recorded_w = whole(0), whole(1)
    moved = swap("order", decoded_w, recorded_w)
    np.testing.assert_array_equal(np.sort(moved, axis=1), np.sort(decoded_w, axis=1))
    for other, new in zip(recorded_w, moved, strict=True):
        np.testing.assert_array_equal(ranks(other), ranks(new))


def test_quiet_times_and_driving_are_two_parts_of_a_trip():
    decoded_w, recorded_w = whole(0), whole(1)
    quiet = swap("quiet times", decoded_w, recorded_w)
    np.testing.assert_array_equal(is_quiet(quiet), is_quiet(recorded_w))
    np.testing.assert_array_equal(quiet[is_quiet(quiet)], recorded_w[is_quiet(recorded_w)])
    # The decoded trip with the driving of the other is the other with the quiet times of it.
    driving = swap("driving", decoded_w, recorded_w)
    np.testing.assert_array_equal(driving, swap("quiet times", recorded_w, decoded_w))
    assert np.all(quiet[~is_quiet(quiet)] > QUIET_W)


def test_zeros_of_the_other_trip_are_added():
    decoded_w, recorded_w = whole(0), whole(1)
    recorded_w[:, 40:50] = 0.0
    moved = swap("zeros", decoded_w, recorded_w)
    np.testing.assert_array_equal(moved == 0.0, recorded_w == 0.0)
    np.testing.assert_array_equal(moved[:, 50:], decoded_w[:, 50:])


def test_bands_take_their_amplitudes_and_leave_the_rest():
    decoded_w, recorded_w = whole(0), whole(1)
    frequency = np.fft.rfftfreq(128)
    edges = {"slow band": (0, 1 / 32), "pulse band": (1 / 32, 1 / 8), "fast band": (1 / 8, 0.5)}
    own, other = (np.fft.rfft(side, axis=1) for side in (decoded_w, recorded_w))
    for name, (low, high) in edges.items():
        moved = np.fft.rfft(swap(name, decoded_w, recorded_w), axis=1)
        inside = (frequency > low) & (frequency <= high)
        np.testing.assert_allclose(np.abs(moved[:, inside]), np.abs(other[:, inside]))
        np.testing.assert_allclose(moved[:, ~inside], own[:, ~inside], atol=1e-6)
        assert np.all(np.cos(np.angle(moved[:, inside]) - np.angle(own[:, inside])) > 0.99)


def test_trips_without_a_course_stay():
    decoded_w, recorded_w = whole(0), whole(1)
    decoded_w[0, 2:] = 0.0
    recorded_w[1] = 0.0
    moved = swap("everything", decoded_w, recorded_w)
    np.testing.assert_array_equal(moved[:2], decoded_w[:2])
    np.testing.assert_array_equal(moved[2:], recorded_w[2:])


def test_stretching_is_linear_and_keeps_a_line_in_place():
    line = np.arange(10.0)
    np.testing.assert_allclose(stretched(line, 5), [0.5, 2.5, 4.5, 6.5, 8.5])
    np.testing.assert_array_equal(stretched(line, 10), line)


def test_refusals(decoded_w):
    with pytest.raises(ValueError, match="one of"):
        swap("smell", decoded_w, decoded_w)
    with pytest.raises(ValueError, match="as many trips"):
        swap("order", decoded_w, decoded_w[:-1])
