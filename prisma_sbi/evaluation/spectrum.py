"""Spectral density of power, and the distance between two populations by it."""

import numpy as np
from jaxtyping import Float

from prisma_sbi.evaluation.autocorrelation import is_constant

_DYNAMIC_RANGE = 1e-12
"""Densities below this share of the largest are taken for it: -120 dB, rounding of a transform."""


def periodogram(
    power_w: Float[np.ndarray, "trip time"], *, time_step_s: float = 1.0
) -> Float[np.ndarray, "trip frequency"]:
    r"""One-sided spectral density of the fluctuations of each trace.

    Parameters
    ----------
    power_w : (trip, time)
        Finite traces with at least 3 samples.
    time_step_s
        Time between samples.

    Returns
    -------
    density : (trip, frequency)
        In W^2/Hz at the frequencies :math:`f / (T \Delta t)`, :math:`0 < f < T / 2`.

    Notes
    -----
    With :math:`X_f` the discrete Fourier transform of the centered trace, no window,

    .. math:: S_f = \frac{2 \Delta t}{T} \lvert X_f \rvert^2.

    The whole horizon enters, so the step at the end of a trip is part of the spectrum. A constant
    trace has density 0.
    """
    n_samples = power_w.shape[1]
    centered = power_w - power_w.mean(axis=1, keepdims=True)
    centered[is_constant(power_w)] = 0.0
    spectrum = np.abs(np.fft.rfft(centered, axis=1)[:, 1 : (n_samples + 1) // 2]) ** 2
    return 2.0 * time_step_s / n_samples * spectrum


def log_spectral_distance(
    density_a: Float[np.ndarray, "trip_a frequency"],
    density_b: Float[np.ndarray, "trip_b frequency"],
) -> float:
    r"""Root mean square difference in dB between the mean spectral densities of two populations.

    Parameters
    ----------
    density_a, density_b : (trip, frequency)
        From :func:`periodogram`, at the same frequencies.

    Returns
    -------
    distance_db
        Symmetric; 0 for identical populations; 3 where one has twice the power everywhere.

    Notes
    -----
    With :math:`\bar S_f` the mean over the traces,

    .. math::
       d = \sqrt{\frac{1}{F} \sum_f
           \left(10 \log_{10} \frac{\bar S^a_f}{\bar S^b_f}\right)^2}.

    Every frequency counts alike, however little power it carries. Densities under -120 dB of
    the largest one count as that; two populations of constant traces have distance 0.
    """
    means = np.stack([density_a.mean(axis=0), density_b.mean(axis=0)])
    largest = means.max()
    if not largest > 0:
        return 0.0
    level_db = 10.0 * np.log10(np.maximum(means / largest, _DYNAMIC_RANGE))
    return float(np.sqrt(np.mean((level_db[0] - level_db[1]) ** 2)))
