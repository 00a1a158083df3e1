"""Energy, duration and cumulative curve of a trace, and their guards."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi.models.summary import activity, away_from_zero, summarize, summary_residuals
from prisma_sbi.region.constants import Constants

CONSTANTS = Constants(horizon_s=60)
TRACES = st.lists(st.floats(-5e4, 2e5, width=32), min_size=60, max_size=60).map(
    lambda values: np.asarray(values, np.float32)
)


def test_summary_of_a_constant_trace_by_hand():
    found = summarize(jnp.full(60, 4_000.0), CONSTANTS)
    # The threshold is 2 % of 100 kW, so twice the threshold counts 1 - exp(-4).
    assert float(found.energy_j) == pytest.approx(240_000.0)
    assert float(found.duration_s) == pytest.approx(60 * (1 - np.exp(-4.0)), rel=1e-5)
    np.testing.assert_allclose(found.cumulative_share, np.arange(1, 61) / 60, rtol=1e-5)


def test_time_step_counts():
    fine = Constants(horizon_s=30, time_step_s=0.5)
    found = summarize(jnp.full(60, 40_000.0), fine)
    assert float(found.energy_j) == pytest.approx(1_200_000.0)
    assert float(found.duration_s) == pytest.approx(30.0)


@given(TRACES)
@settings(max_examples=50, deadline=None)
def test_summary_of_any_trace_is_finite_and_in_its_range(trace):
    found = summarize(jnp.asarray(trace), CONSTANTS)
    assert 0.0 <= float(found.duration_s) <= 60.0 + 1e-3
    assert np.all(np.isfinite(found.cumulative_share))
    if abs(float(found.energy_j)) > 2 * CONSTANTS.energy_floor_j:
        assert float(found.cumulative_share[-1]) == pytest.approx(1.0, abs=1e-3)


@given(TRACES, st.floats(1.0, 50.0))
@settings(max_examples=30, deadline=None)
def test_curve_does_not_depend_on_the_scale_of_power(trace, factor):
    trace = np.abs(trace) + 5_000.0
    one, many = (summarize(jnp.asarray(x), CONSTANTS) for x in (trace, factor * trace))
    np.testing.assert_allclose(one.cumulative_share, many.cumulative_share, atol=1e-5)
    assert float(many.energy_j) == pytest.approx(factor * float(one.energy_j), rel=1e-4)


def test_batch_equals_single_traces():
    traces = np.random.default_rng(0).uniform(0, 5e4, (3, 60)).astype(np.float32)
    batch = summarize(jnp.asarray(traces), CONSTANTS)
    for row, trace in enumerate(traces):
        alone = summarize(jnp.asarray(trace), CONSTANTS)
        np.testing.assert_allclose(batch.cumulative_share[row], alone.cumulative_share, rtol=1e-5)
        assert float(batch.energy_j[row]) == pytest.approx(float(alone.energy_j), rel=1e-6)


@pytest.mark.parametrize(
    ("value", "expected"), [(5.0, 5.0), (-5.0, -5.0), (0.3, 1.0), (-0.3, -1.0), (0.0, 1.0)]
)
def test_denominator_keeps_its_sign_and_its_distance_from_zero(value, expected):
    assert float(away_from_zero(jnp.asarray(value), 1.0)) == expected


def test_activity_rises_from_zero_to_one_and_is_even():
    power = jnp.asarray([0.0, 500.0, 2_000.0, 50_000.0])
    found = activity(power, CONSTANTS)
    assert float(found[0]) == 0.0
    assert float(found[2]) == pytest.approx(1 - np.exp(-1.0))
    assert float(found[3]) == 1.0
    assert np.all(np.diff(found) > 0)
    np.testing.assert_array_equal(found, activity(-power, CONSTANTS))


def test_residuals_vanish_for_equal_summaries_and_have_a_place_each():
    observed = summarize(jnp.full(60, 9_000.0), CONSTANTS)
    residuals = summary_residuals(observed, observed, CONSTANTS)
    np.testing.assert_array_equal(residuals, np.zeros(62))
    louder = summarize(jnp.full(60, 9_900.0), CONSTANTS)
    residuals = summary_residuals(louder, observed, CONSTANTS)
    # A tenth more energy at a scale of 5 % is two standard deviations.
    assert float(residuals[0]) == pytest.approx(2.0, rel=1e-4)
    np.testing.assert_allclose(residuals[2:], 0.0, atol=1e-5)
