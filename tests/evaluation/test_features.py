"""Features: against scipy, Parseval, pure tones, defined edge cases."""

import numpy as np
import pytest
from scipy import stats

from prisma_sbi.evaluation import FEATURE_NAMES, autocorrelation, band_energy, trace_features
from tests.evaluation.conftest import make_traces


def test_features_agree_with_scipy():
    values = make_traces(20, seed=0)
    found = trace_features(values)
    assert found.shape == (20, 17) == (20, len(FEATURE_NAMES))
    np.testing.assert_allclose(found[:, 0], values.mean(axis=1))
    np.testing.assert_allclose(found[:, 1], values.var(axis=1))
    np.testing.assert_allclose(found[:, 2], stats.skew(values, axis=1))
    np.testing.assert_allclose(found[:, 3:13], autocorrelation(values)[:, :10])
    np.testing.assert_allclose(found[:, 13:], band_energy(values))


@pytest.mark.parametrize("n_samples", [3, 4, 7, 8, 60, 61, 500])
def test_band_energy_adds_up_to_the_squared_deviations(n_samples):
    values = np.random.default_rng(n_samples).normal(size=(6, n_samples))
    np.testing.assert_allclose(
        band_energy(values).sum(axis=1), n_samples * values.var(axis=1), rtol=1e-10
    )


@pytest.mark.parametrize(
    ("frequency_hz", "band"),
    [(1 / 80, 0), (10 / 80, 0), (11 / 80, 1), (20 / 80, 1), (29 / 80, 2), (31 / 80, 3), (0.5, 3)],
)
def test_band_energy_puts_a_tone_into_its_band(frequency_hz, band):
    tone = np.cos(2 * np.pi * frequency_hz * np.arange(80.0))[None, :]
    energy = band_energy(tone)[0]
    assert energy[band] == pytest.approx(80 * tone.var(), rel=1e-9)
    assert np.delete(energy, band) == pytest.approx(0.0, abs=1e-9)


def test_features_of_a_constant_trace():
    found = trace_features(np.stack([np.zeros(30), np.full(30, 0.1)]))
    np.testing.assert_array_equal(found[:, 0], [0.0, 0.1])
    np.testing.assert_array_equal(found[:, 1:], 0.0)


def test_features_of_a_short_trace_keep_their_number():
    found = trace_features(np.random.default_rng(0).normal(size=(4, 5)))
    assert found.shape == (4, 17)
    assert np.all(np.isfinite(found))
    np.testing.assert_array_equal(found[:, 6:13], 0.0)
    assert np.all(found[:, 3:6] != 0.0)
