"""Continuous ranked probability score: one number for how near and how sharp draws are."""

import numpy as np

from prisma_sbi import _validate


def crps(draws: np.ndarray, truth: np.ndarray) -> np.ndarray:
    r"""Continuous ranked probability score of posteriors that are known by their draws.

    Parameters
    ----------
    draws : (..., draw)
        Two or more.
    truth : (...)
        What was true.

    Returns
    -------
    score : (...) float64
        In the units of the truth; 0 at best. A point that is off by ``e`` scores ``|e|``.

    Notes
    -----
    :math:`\mathrm{E}|X - y| - \tfrac12 \mathrm{E}|X - X'|` with :math:`X, X'` from the
    posterior [1]_. The second mean is taken over pairs of different draws, so that the score of
    few draws is right on average [2]_; it may then fall a little below zero.

    References
    ----------
    .. [1] Gneiting and Raftery, Strictly proper scoring rules, prediction, and estimation, 2007.
       https://doi.org/10.1198/016214506000001437
    .. [2] Ferro, Fair scores for ensemble forecasts, 2014. https://doi.org/10.1002/qj.2270
    """
    ordered = np.sort(np.asarray(draws, np.float64), axis=-1)
    n = ordered.shape[-1]
    _validate.at_least(2, n_draws=n)
    distance = np.abs(ordered - np.asarray(truth, np.float64)[..., None]).mean(axis=-1)
    # Of sorted draws the one in place i is larger than i others and smaller than the rest.
    weight = 2.0 * np.arange(n) - (n - 1)
    return np.asarray(distance - ordered @ weight / (n * (n - 1)))
