"""Energy, duration, levels: by loops; Wasserstein: closed forms and SciPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from prisma_sbi.evaluation import (
    Population,
    power_levels,
    trace_durations,
    trace_energies,
    wasserstein,
)
from prisma_sbi.evaluation.distances import ALL_DISTANCES
from tests.evaluation.conftest import make_traces


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_a=st.integers(1, 30),
    n_b=st.integers(1, 30),
    on_grid=st.booleans(),
)
def test_wasserstein_agrees_with_scipy(seed, n_a, n_b, on_grid):
    generator = np.random.default_rng(seed)
    a, b = generator.normal(size=n_a), 3.0 * generator.normal(size=n_b)
    if on_grid:
        a, b = np.round(a), np.round(b)
    assert wasserstein(a, b) == pytest.approx(wasserstein_distance(a, b), rel=1e-9, abs=1e-12)
    assert wasserstein(a, b) == pytest.approx(wasserstein(b, a), rel=1e-9, abs=1e-12)
    assert wasserstein(a, np.concatenate([a, a])) == pytest.approx(0.0, abs=1e-12)


def test_wasserstein_of_equal_sizes_pairs_the_ranks():
    generator = np.random.default_rng(0)
    a, b = generator.gamma(2.0, size=500), generator.normal(size=500)
    expected = np.mean(np.abs(np.sort(a) - np.sort(b)))
    assert wasserstein(a, b) == pytest.approx(expected, rel=1e-12)


def test_durations_energies_and_levels_agree_with_loops():
    power_w = make_traces(40, seed=0)
    power_w[3] = 0.0
    power_w[4, 5:20] = 0.0  # a stop is part of the trip
    power_w[5, :] = -2.0  # recuperation is power as well
    levels = []
    for row, trace in enumerate(power_w):
        end = max((t + 1 for t, value in enumerate(trace) if value != 0.0), default=0)
        levels += list(trace[:end])
        assert trace_durations(power_w, time_step_s=0.5)[row] == 0.5 * end
        assert trace_energies(power_w, time_step_s=0.5)[row] == pytest.approx(sum(trace) / 2)
    np.testing.assert_array_equal(power_levels(power_w), np.sort(levels))


def test_levels_without_any_power():
    np.testing.assert_array_equal(power_levels(np.zeros((3, 9))), [0.0])


def test_distances_move_by_their_units():
    power_w = make_traces(60, seed=1)
    real = Population(power_w=power_w, scale_w=1.0, time_step_s=2.0)
    double = Population(power_w=2.0 * power_w, scale_w=1.0, time_step_s=2.0)
    energy_mj = 2.0 * power_w.sum(axis=1).mean() / 1e6
    assert ALL_DISTANCES["energy_w1"](real, double) == pytest.approx(energy_mj)
    level_kw = power_w[power_w > 0].mean() / 1e3
    assert ALL_DISTANCES["levels_w1"](real, double) == pytest.approx(level_kw)
    assert ALL_DISTANCES["duration_w1"](real, double) == 0.0
    longer = np.concatenate([power_w[:, :1].repeat(7, axis=1), power_w], axis=1)
    later = Population(power_w=longer, scale_w=1.0, time_step_s=2.0)
    assert ALL_DISTANCES["duration_w1"](real, later) == pytest.approx(14.0)


def test_levels_do_not_depend_on_how_long_trips_take():
    power_w = make_traces(60, seed=1)
    padded = np.concatenate([power_w, np.zeros((60, 100))], axis=1)
    pair = [Population(power_w=each, scale_w=1.0) for each in (power_w, padded)]
    assert ALL_DISTANCES["levels_w1"](*pair) == 0.0
