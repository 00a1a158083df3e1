"""Whether ranks are uniform: envelope of the ECDF, chi-square test, coverage of intervals."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy.special import gammaln
from scipy.stats import binom, chi2

from prisma_sbi import _validate

LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Of the central intervals whose coverage is counted."""


def rank_pit(rank: np.ndarray, n_draws: int, *, seed: int = 0) -> np.ndarray:
    """Ranks as numbers that are uniform on (0, 1) if the ranks are uniform.

    Parameters
    ----------
    rank : (...)
        How many of ``n_draws`` draws lie below the truth: 0 to ``n_draws``.
    n_draws
        Draws that the truth was ranked among.
    seed
        A rank stands for an interval of width ``1 / (n_draws + 1)``; the place within it is
        drawn.

    Returns
    -------
    pit : (...) float64
        Probability integral transforms.

    Raises
    ------
    ValueError
        If a rank is out of range.
    """
    _validate.at_least(1, n_draws=n_draws)
    rank = np.asarray(rank)
    if rank.size and not (rank.min() >= 0 and rank.max() <= n_draws):
        raise ValueError(f"Expected ranks in 0..{n_draws}; got {rank.min()}..{rank.max()}.")
    place = np.random.default_rng(seed).uniform(size=rank.shape)
    return (rank + place) / (n_draws + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Envelope:
    """Where the ECDF of a uniform sample stays as a whole.

    Attributes
    ----------
    level
        Probability that the ECDF stays inside at all points.
    point : (point,)
        Where it is looked at.
    lower, upper : (point,)
        Bounds of the ECDF, themselves inside.
    """

    level: float
    point: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def ecdf_envelope(n: int, *, level: float = 0.95, n_points: int = 100) -> Envelope:
    r"""Simultaneous envelope for the ECDF of ``n`` independent uniform numbers.

    Parameters
    ----------
    n
        Size of the sample.
    level
        Probability that the whole ECDF stays inside; at least that, since counts are whole.
    n_points
        The ECDF is looked at in this many places, evenly spaced from 0 to 1, ends left out;
        no more than there are numbers.

    Returns
    -------
    Envelope

    Notes
    -----
    After Säilynoja, Bürkner and Vehtari [1]_: at every point :math:`z_i` the count of numbers
    up to there is binomial, and the bounds are its quantiles at
    :math:`\gamma / 2` and :math:`1 - \gamma / 2` with one :math:`\gamma` for all points, the
    largest for which the counts stay within all bounds with the probability asked for. That
    probability is exact: given the count :math:`x_i`, the next has
    :math:`x_{i+1} - x_i \sim \mathrm{Bin}(n - x_i, (z_{i+1} - z_i) / (1 - z_i))`.

    References
    ----------
    .. [1] Säilynoja, Bürkner and Vehtari, Graphical test for discrete uniformity and its
       applications in goodness-of-fit evaluation and multiple sample comparison, 2022.
       https://doi.org/10.1007/s11222-022-10090-6
    """
    _validate.at_least(1, n=n)
    _validate.at_least(2, n_points=n_points)
    _validate.in_range(0.0, 1.0, level=level)
    point = _points(min(n, n_points - 1))
    lower, upper = _bounds(n, len(point), _gamma(n, len(point), level))
    return Envelope(level=level, point=point, lower=lower / n, upper=upper / n)


@dataclass(frozen=True, kw_only=True)
class Uniformity:
    """Whether numbers are uniform on (0, 1).

    Attributes
    ----------
    n
        How many there are.
    ecdf_p
        Probability that the ECDF of uniform numbers strays at least as far at some point.
    chi_square, chi_square_p
        Statistic and probability of the test of equal counts in bins.
    mean, variance
        0.5 and 1/12 if uniform. A low variance means that intervals are too wide, a high one
        that they are too narrow.
    """

    n: int
    ecdf_p: float
    chi_square: float
    chi_square_p: float
    mean: float
    variance: float

    def inside(self, level: float = 0.95) -> bool:
        """Whether the ECDF stays in its envelope."""
        return self.ecdf_p >= 1.0 - level


def uniformity(pit: np.ndarray, *, n_points: int = 100, n_bins: int = 20) -> Uniformity:
    """Test numbers for uniformity in two ways.

    Parameters
    ----------
    pit : (n,)
        Numbers in [0, 1].
    n_points
        Where the ECDF is looked at; see :func:`ecdf_envelope`.
    n_bins
        Of the chi-square test.

    Returns
    -------
    Uniformity

    Raises
    ------
    ValueError
        If a number is not in [0, 1].
    """
    pit = _checked_pit(pit)
    n = len(pit)
    point = _points(min(n, n_points - 1))
    count = np.searchsorted(np.sort(pit), point, side="right")
    # The narrowest envelope that the ECDF leaves, and how often chance leaves it too.
    tail = np.minimum(binom.cdf(count, n, point), binom.sf(count - 1, n, point))
    gamma = float(np.min(2.0 * tail))
    statistic, p = chi_square(pit, n_bins=n_bins)
    return Uniformity(
        n=n,
        ecdf_p=1.0 - _stays_inside(n, len(point), min(gamma * (1.0 + 1e-9), 1.0)),
        chi_square=statistic,
        chi_square_p=p,
        mean=float(pit.mean()),
        variance=float(pit.var()),
    )


def chi_square(pit: np.ndarray, *, n_bins: int = 20) -> tuple[float, float]:
    """Statistic and p-value of Pearson's test that all bins are equally likely.

    Parameters
    ----------
    pit : (n,)
        Numbers in [0, 1].
    n_bins
        Bins of equal width.
    """
    _validate.at_least(2, n_bins=n_bins)
    pit = _checked_pit(pit)
    counts = np.bincount(np.minimum((pit * n_bins).astype(int), n_bins - 1), minlength=n_bins)
    expected = len(pit) / n_bins
    statistic = float(np.sum((counts - expected) ** 2) / expected)
    return statistic, float(chi2.sf(statistic, n_bins - 1))


def coverage_table(
    pit: np.ndarray, *, levels: tuple[float, ...] = LEVELS, confidence: float = 0.99
) -> pd.DataFrame:
    """How often central intervals hold the truth, and what chance allows.

    Parameters
    ----------
    pit : (n,)
        Numbers in [0, 1]: share of the posterior below the truth.
    levels
        Nominal coverages.
    confidence
        Of the binomial bounds, each level on its own.

    Returns
    -------
    pandas.DataFrame
        Columns ``level``, ``n``, ``covered`` (count), ``coverage``, ``low`` and ``high``
        (bounds of the coverage if the level were true), ``ok``.
    """
    _validate.in_range(0.0, 1.0, confidence=confidence)
    pit = _checked_pit(pit)
    n, rows = len(pit), []
    for level in levels:
        _validate.in_range(0.0, 1.0, level=level)
        covered = int(np.sum(np.abs(pit - 0.5) < 0.5 * level))
        low, high = binom.interval(confidence, n, level)
        rows.append(
            {
                "level": level,
                "n": n,
                "covered": covered,
                "coverage": covered / n,
                "low": low / n,
                "high": high / n,
                "ok": bool(low <= covered <= high),
            }
        )
    return pd.DataFrame(rows)


def _checked_pit(pit: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1], at least one, or a clear error."""
    pit = np.asarray(pit, np.float64)
    if pit.ndim != 1 or not pit.size or not np.all((pit >= 0.0) & (pit <= 1.0)):
        raise ValueError(
            "Expected one or more numbers in [0, 1], along one axis; got an array of shape "
            f"{pit.shape} with {int(np.sum(~((pit >= 0.0) & (pit <= 1.0))))} outside. "
            "Leave out simulations without draws."
        )
    return pit


def _points(n_points: int) -> np.ndarray:
    """Evenly spaced, ends left out: there every ECDF agrees with every other."""
    return np.arange(1, n_points + 1) / (n_points + 1)


def _bounds(n: int, n_points: int, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Counts within which each point keeps with probability about 1 - gamma."""
    point = _points(n_points)
    lower = np.maximum(binom.ppf(0.5 * gamma, n, point), 0.0)
    return lower, binom.isf(0.5 * gamma, n, point)


@lru_cache(maxsize=64)
def _gamma(n: int, n_points: int, level: float) -> float:
    """The largest tail probability per point that keeps the level over all points."""
    low, high = 0.0, 1.0
    for _ in range(22):
        middle = 0.5 * (low + high)
        if _stays_inside(n, n_points, middle) >= level:
            low = middle
        else:
            high = middle
    return low


def _stays_inside(n: int, n_points: int, gamma: float) -> float:
    """Probability that the counts of uniform numbers stay within the bounds at all points."""
    lower, upper = (bound.astype(int) for bound in _bounds(n, n_points, gamma))
    if np.any(lower > upper):
        return 0.0
    log_factorial = gammaln(np.arange(n + 1) + 1.0)
    point = np.concatenate([[0.0], _points(n_points)])
    count, mass = np.zeros(1, int), np.ones(1)
    for step in range(n_points):
        share = (point[step + 1] - point[step]) / (1.0 - point[step])
        following = np.arange(lower[step], upper[step] + 1)
        rise, left = following[:, None] - count, n - count
        possible = rise >= 0
        rise = np.where(possible, rise, 0)
        log_mass = (
            log_factorial[left]
            - log_factorial[rise]
            - log_factorial[left - rise]
            + rise * np.log(share)
            + (left - rise) * np.log1p(-share)
        )
        mass = np.where(possible, np.exp(log_mass), 0.0) @ mass
        count = following
    return float(min(mass.sum(), 1.0))
