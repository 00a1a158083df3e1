"""Spectral density and its distance: SciPy, Parseval, closed forms."""

import numpy as np
import pytest
from scipy import signal

from prisma_sbi.evaluation import log_spectral_distance, periodogram
from tests.evaluation.conftest import make_traces


@pytest.mark.parametrize("n_samples", [3, 4, 60, 61])
def test_periodogram_agrees_with_scipy(n_samples):
    power_w = make_traces(20, seed=0, n_samples=n_samples)
    _, density = signal.periodogram(power_w, fs=2.0, detrend="constant", axis=1)
    expected = density[:, 1 : (n_samples + 1) // 2]
    np.testing.assert_allclose(periodogram(power_w, time_step_s=0.5), expected, rtol=1e-9)


def test_periodogram_adds_up_to_the_variance():
    power_w = make_traces(20, seed=0, n_samples=61)
    width_hz = 1.0 / 61
    total = periodogram(power_w).sum(axis=1) * width_hz
    np.testing.assert_allclose(total, power_w.var(axis=1), rtol=1e-10)


@pytest.mark.parametrize("factor", [2.0, 10.0])
def test_distance_of_a_gain_is_that_gain_in_db(factor):
    density = periodogram(make_traces(20, seed=0))
    expected = 10.0 * np.log10(factor)
    assert log_spectral_distance(density, factor * density) == pytest.approx(expected)
    assert log_spectral_distance(factor * density, density) == pytest.approx(expected)


def test_distance_is_the_root_mean_square_over_frequencies():
    first, second = np.array([[1.0, 1.0, 4.0]]), np.array([[10.0, 1.0, 0.4], [10.0, 1.0, 0.4]])
    assert log_spectral_distance(first, second) == pytest.approx(np.sqrt((100 + 0 + 100) / 3))


def test_distance_of_noise_with_known_spectrum():
    # AR(1) against white noise of equal variance: the closed-form densities, without bias.
    phi, n_samples = 0.6, 400
    generator = np.random.default_rng(0)
    white = generator.normal(size=(1500, n_samples))
    colored = np.asarray(signal.lfilter([np.sqrt(1 - phi**2)], [1.0, -phi], white, axis=1))
    colored = colored[:, 100:]
    angle = 2 * np.pi * np.arange(1, 150) / 300
    ratio = (1 - phi**2) / (1 - 2 * phi * np.cos(angle) + phi**2)
    expected = np.sqrt(np.mean((10 * np.log10(ratio)) ** 2))
    found = log_spectral_distance(periodogram(colored), periodogram(white[:, :300]))
    assert found == pytest.approx(expected, rel=0.02)


def test_distance_without_fluctuations_is_defined():
    constant, moving = periodogram(np.full((5, 40), 1e9 / 3)), periodogram(make_traces(5, seed=0))
    assert log_spectral_distance(constant, periodogram(np.full((3, 40), 0.1))) == 0.0
    assert 50.0 < log_spectral_distance(np.zeros_like(moving), moving) < 120.0
