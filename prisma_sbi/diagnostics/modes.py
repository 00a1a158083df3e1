"""Two modes in a sample of one number, for many samples at once."""

import numpy as np
from scipy.ndimage import gaussian_filter1d

from prisma_sbi import _validate


def has_two_modes(
    draws: np.ndarray, *, n_bins: int = 32, valley: float = 0.5, least_mass: float = 0.1
) -> np.ndarray:
    """Whether samples fall into two heaps with a clear valley between them.

    Parameters
    ----------
    draws : (sample, draw)
        One sample a row; NaN rows have no modes.
    n_bins
        Bins of the histogram over the range of a sample.
    valley
        The valley must be lower than this share of the lower of the two peaks.
    least_mass
        Each heap must hold at least this share of the draws.

    Returns
    -------
    two : (sample,) bool

    Notes
    -----
    A histogram is smoothed over a bin and a half and cut at every bin in turn. It is a screen,
    not a test: with a few hundred draws two heaps closer than three standard deviations look
    like one.
    """
    _validate.at_least(4, n_bins=n_bins)
    low = np.min(draws, axis=1, keepdims=True)
    span = np.max(draws, axis=1, keepdims=True) - low
    usable = np.isfinite(span[:, 0]) & (span[:, 0] > 0)
    with np.errstate(invalid="ignore"):
        share = np.where(usable[:, None], (draws - low) / np.where(span > 0, span, 1.0), 0.0)
    bins = np.clip((share * n_bins).astype(int), 0, n_bins - 1)
    counts = np.zeros((len(draws), n_bins))
    np.add.at(counts, (np.arange(len(draws))[:, None], bins), 1.0)
    smooth = gaussian_filter1d(counts, 1.5, axis=1, mode="constant")
    mass = np.cumsum(counts, axis=1) / draws.shape[1]
    left = np.maximum.accumulate(smooth, axis=1)
    right = np.maximum.accumulate(smooth[:, ::-1], axis=1)[:, ::-1]
    deep = smooth < valley * np.minimum(left, right)
    balanced = (mass >= least_mass) & (mass <= 1.0 - least_mass)
    return usable & np.any(deep & balanced, axis=1)
