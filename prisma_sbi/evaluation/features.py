"""The features of a trace in which precision and recall are measured."""

import numpy as np
from jaxtyping import Float

from prisma_sbi.evaluation.autocorrelation import autocorrelation, is_constant, standardize_each

N_FEATURE_LAGS = 10
N_BANDS = 4
FEATURE_NAMES = (
    "mean_w",
    "variance_w2",
    "skewness",
    *(f"autocorrelation_{lag}" for lag in range(1, N_FEATURE_LAGS + 1)),
    *(f"band_energy_{band}_w2" for band in range(1, N_BANDS + 1)),
)
"""Columns of :func:`trace_features`, in order."""


def trace_features(
    power_w: Float[np.ndarray, "trip time"],
) -> Float[np.ndarray, "trip feature"]:
    """Mean, variance, skewness, ten autocorrelations and four band energies per trace.

    Parameters
    ----------
    power_w : (trip, time)
        Finite traces with at least 3 samples.

    Returns
    -------
    features : (trip, 17)
        Columns as in :data:`FEATURE_NAMES`; plain values, no logarithm.

    Notes
    -----
    Variance and skewness divide by the number of samples. Bands: see :func:`band_energy`.

    ===================== ========================================
    Case                  Result
    ===================== ========================================
    constant trace        mean as it is, every other feature 0
    fewer than 12 samples autocorrelations beyond ``time - 2`` are 0
    ===================== ========================================
    """
    power_w = np.asarray(power_w, dtype=np.float64)
    n_trips, n_samples = power_w.shape
    constant = is_constant(power_w)
    features = np.zeros((n_trips, len(FEATURE_NAMES)))
    features[:, 0] = np.where(constant, power_w[:, 0], power_w.mean(axis=1))
    features[:, 1] = np.where(constant, 0.0, power_w.var(axis=1))
    features[:, 2] = np.mean(standardize_each(power_w) ** 3, axis=1)
    n_lags = min(N_FEATURE_LAGS, n_samples - 2)
    features[:, 3 : 3 + n_lags] = autocorrelation(power_w, n_lags=n_lags)
    features[:, 3 + N_FEATURE_LAGS :] = band_energy(power_w)
    return features


def band_energy(power_w: Float[np.ndarray, "trip time"]) -> Float[np.ndarray, "trip band"]:
    r"""Energy of the fluctuations of each trace in four frequency bands of equal width.

    Parameters
    ----------
    power_w : (trip, time)
        Finite traces.

    Returns
    -------
    energy_w2 : (trip, 4)
        Lowest band first. With one sample per second the bands end at 1/8, 1/4, 3/8 and
        1/2 Hz; a frequency on a limit belongs to the lower band.

    Notes
    -----
    With :math:`X_f` the discrete Fourier transform of the centered trace and
    :math:`w_f = 2`, or 1 at the Nyquist frequency,

    .. math:: e_b = \frac{1}{T} \sum_{f \in b} w_f \lvert X_f \rvert^2,

    so the four energies add up to the sum of the squared deviations (Parseval).
    """
    n_samples = power_w.shape[1]
    centered = power_w - power_w.mean(axis=1, keepdims=True)
    centered[is_constant(power_w)] = 0.0
    density = np.abs(np.fft.rfft(centered, axis=1)) ** 2 / n_samples
    density[:, 1:] *= 2.0
    if n_samples % 2 == 0:
        density[:, -1] /= 2.0
    # Position in units of a band: frequency f / n_samples against 1/2 in N_BANDS parts.
    index = np.arange(1, density.shape[1])
    band = np.ceil(index * 2 * N_BANDS / n_samples).astype(int) - 1
    energy_w2 = np.zeros((len(power_w), N_BANDS))
    for number in range(N_BANDS):
        energy_w2[:, number] = density[:, 1:][:, band == number].sum(axis=1)
    return energy_w2
