"""Autocorrelation: AR(1) truth, a plain loop, invariances, defined edge cases."""

import numpy as np
import pytest

from prisma_sbi.evaluation import autocorrelation, autocorrelation_distance


def test_autocorrelation_of_ar1_falls_geometrically():
    generator = np.random.default_rng(0)
    phi, n_samples = 0.7, 20_000
    noise = generator.normal(size=(8, n_samples))
    values = np.empty_like(noise)
    values[:, 0] = noise[:, 0] / np.sqrt(1 - phi**2)
    for t in range(1, n_samples):
        values[:, t] = phi * values[:, t - 1] + noise[:, t]
    curve = autocorrelation(values).mean(axis=0)
    np.testing.assert_allclose(curve, phi ** np.arange(1, 33), atol=0.02)


def test_autocorrelation_agrees_with_a_plain_loop():
    values = np.random.default_rng(1).normal(size=(3, 17))
    found = autocorrelation(values)
    assert found.shape == (3, 15)
    for trace, curve in zip(values, found, strict=True):
        z = (trace - trace.mean()) / trace.std()
        expected = [sum(z[t] * z[t + k] for t in range(17 - k)) / 17 for k in range(1, 16)]
        np.testing.assert_allclose(curve, expected, atol=1e-12)


@pytest.mark.parametrize(("n_samples", "n_lags"), [(3, 1), (10, 8), (34, 32), (500, 32)])
def test_autocorrelation_number_of_lags(n_samples, n_lags):
    values = np.random.default_rng(1).normal(size=(2, n_samples))
    assert autocorrelation(values).shape == (2, n_lags)


def test_autocorrelation_invariant_under_shift_and_scale():
    values = np.random.default_rng(2).normal(size=(5, 40))
    moved = autocorrelation(3e4 * values + 1e5)
    np.testing.assert_allclose(moved, autocorrelation(values), atol=1e-9)
    tiny = autocorrelation(1e-200 * values)
    np.testing.assert_allclose(tiny, autocorrelation(values), atol=1e-12)


def test_autocorrelation_bounded():
    values = np.random.default_rng(3).standard_cauchy(size=(50, 30))
    assert np.abs(autocorrelation(values)).max() <= 1.0


def test_autocorrelation_constant_trace_is_a_zero_curve():
    values = np.stack([np.full(20, 0.1), np.zeros(20), np.full(20, 1e9 / 3)])
    np.testing.assert_array_equal(autocorrelation(values), 0.0)


def test_autocorrelation_rejects_impossible_lags():
    with pytest.raises(ValueError, match="n_lags"):
        autocorrelation(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="n_lags"):
        autocorrelation(np.zeros((1, 5)), n_lags=5)


def test_autocorrelation_distance_is_the_mean_absolute_difference_of_mean_curves():
    a = np.array([[0.5, 0.1], [0.7, 0.3]])
    b = np.array([[0.2, 0.6]])
    assert autocorrelation_distance(a, b) == pytest.approx((0.4 + 0.4) / 2)
    assert autocorrelation_distance(b, a) == autocorrelation_distance(a, b)
    assert autocorrelation_distance(a, a[::-1]) == 0.0
