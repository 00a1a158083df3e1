r"""Lower bounds on privacy parameters from how often an attack guesses right."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta

from prisma_sbi import _validate

_N_THRESHOLDS = 256
_CHOOSING_SHARE = 0.2
"""Share of the runs that an attack is chosen on; the others measure it."""
_CAUTION = 0.01
"""Factor on the error while choosing, so that luck at rare thresholds is not chosen."""
_LOG_EXCESS = np.linspace(math.log(1e-4), math.log(1e4), 81)
"""Rényi orders alpha at which zCDP is tested, as log(alpha - 1)."""

Scores = Mapping[str, np.ndarray]
"""Name of a statistic -> its value ``(run,)``."""


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A guess from one number, and how often it was right on runs it was not chosen on.

    Attributes
    ----------
    statistic
        The number looked at.
    threshold, above
        "The canary is in" is guessed if the number is at least (``above``) or at most the
        threshold.
    true_positive_rate, false_positive_rate
        Share of that guess with and without the canary.
    true_positive_low, false_positive_high
        Confidence limits of the two.
    """

    statistic: str
    threshold: float
    above: bool
    true_positive_rate: float
    false_positive_rate: float
    true_positive_low: float
    false_positive_high: float


def epsilon_bound(true_positive: ArrayLike, false_positive: ArrayLike, delta: float) -> np.ndarray:
    r"""Smallest :math:`\epsilon` that allows two rates of a guess.

    Parameters
    ----------
    true_positive, false_positive
        Probability of the guess with and without the canary; arrays of one shape.
    delta
        At least 0.

    Returns
    -------
    epsilon
        Zero where the rates are not told apart.

    Notes
    -----
    :math:`(\epsilon, \delta)`-DP bounds the guess and its opposite [1]_, [2]_:

    .. math:: \epsilon \ge \max\left\{\log\frac{t - \delta}{f},
        \log\frac{1 - f - \delta}{1 - t}\right\}.

    References
    ----------
    .. [1] Jagielski, Ullman and Oprea, Auditing Differentially Private Machine Learning, 2020.
       https://doi.org/10.48550/arXiv.2006.07709
    .. [2] Nasr, Hayes, Steinke, Balle, Tramèr, Jagielski, Carlini and Terzis, Tight Auditing of
       Differentially Private Machine Learning, 2023. https://doi.org/10.48550/arXiv.2302.07956
    """
    yes, wrong = np.broadcast_arrays(true_positive, false_positive)
    with np.errstate(divide="ignore", invalid="ignore"):
        guess = np.log(np.maximum(yes - delta, 0.0)) - np.log(wrong)
        opposite = np.log(np.maximum(1.0 - wrong - delta, 0.0)) - np.log(1.0 - yes)
    found = np.where(yes > wrong, np.maximum(guess, opposite), 0.0)
    return np.asarray(np.maximum(found, 0.0))


def rho_bound(true_positive: ArrayLike, false_positive: ArrayLike) -> np.ndarray:
    r"""Smallest :math:`\rho` of zCDP that allows two rates of a guess.

    Parameters
    ----------
    true_positive, false_positive
        Probability of the guess with and without the canary, strictly between 0 and 1 unless
        they are equal.

    Returns
    -------
    rho
        Zero where the rates are not told apart.

    Notes
    -----
    A :math:`\rho`-zCDP release has Rényi divergences :math:`D_\alpha \le \rho\alpha` for all
    :math:`\alpha > 1`, in both directions [1]_, and what is computed from it cannot have larger
    ones. So the two-point laws of the guess must satisfy

    .. math:: \rho \ge \sup_{\alpha > 1} \frac{1}{\alpha} \max\{
        D_\alpha(\mathrm{B}_t \Vert \mathrm{B}_f), D_\alpha(\mathrm{B}_f \Vert \mathrm{B}_t)\}.

    For small Gaussian shifts the best threshold shows the share :math:`2/\pi` of
    :math:`\rho`.

    References
    ----------
    .. [1] Bun and Steinke, Concentrated Differential Privacy: Simplifications, Extensions, and
       Lower Bounds, 2016. https://doi.org/10.1007/978-3-662-53641-4_24
    """
    positive, negative = np.broadcast_arrays(true_positive, false_positive)
    apart = positive > negative
    high = np.where(apart, positive, 0.5)[..., None]
    low = np.where(apart, negative, 0.5)[..., None]
    order = 1.0 + np.exp(_LOG_EXCESS)
    best = np.maximum(_renyi(high, low, order), _renyi(low, high, order)) / order
    return np.asarray(np.where(apart, np.maximum(best.max(axis=-1), 0.0), 0.0))


def _renyi(first: np.ndarray, second: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Rényi divergence of two Bernoulli laws."""
    with np.errstate(divide="ignore"):
        yes = order * np.log(first) + (1.0 - order) * np.log(second)
        no = order * np.log1p(-first) + (1.0 - order) * np.log1p(-second)
    return np.logaddexp(yes, no) / (order - 1.0)


def lower_limit(hits: ArrayLike, n_runs: int, error: float) -> np.ndarray:
    """Lower confidence limit of a probability after Clopper and Pearson.

    The limit lies above the truth with probability of at most ``error``. Clopper and Pearson,
    The Use of Confidence or Fiducial Limits, 1934, https://doi.org/10.1093/biomet/26.4.404.
    """
    hits = np.asarray(hits, dtype=np.float64)
    found = beta.ppf(error, np.maximum(hits, 1e-9), n_runs - hits + 1.0)
    return np.asarray(np.where(hits > 0, found, 0.0))


def upper_limit(hits: ArrayLike, n_runs: int, error: float) -> np.ndarray:
    """Upper confidence limit of a probability; see :func:`lower_limit`."""
    return np.asarray(1.0 - lower_limit(n_runs - np.asarray(hits), n_runs, error))


def best_attack(
    without: Scores,
    with_canary: Scores,
    *,
    error: float,
    delta: float | None,
) -> tuple[float, Attack]:
    r"""Choose an attack on the first fifth of the runs and measure it on the others.

    Parameters
    ----------
    without, with_canary
        Statistics ``(run,)`` of independent runs, the same names in both.
    error
        Probability that the bound lies above the truth.
    delta
        Bounds :math:`\epsilon` at this :math:`\delta`; :math:`\rho` of zCDP for None.

    Returns
    -------
    bound, attack

    Raises
    ------
    ValueError
        If a world has fewer than 4 runs.
    """
    n_runs = min(len(next(iter(each.values()))) for each in (without, with_canary))
    _validate.at_least(4, n_runs=n_runs)
    first = max(1, int(_CHOOSING_SHARE * n_runs))
    cautious = _CAUTION * error
    chosen = max(
        (
            _best_threshold(name, without[name][:first], with_canary[name][:first], cautious, delta)
            for name in without
        ),
        key=lambda found: found[0],
    )[1]
    name, threshold, above = chosen
    hits = [
        int(np.sum(_guess(scores[name][first:n_runs], threshold, above=above)))
        for scores in (with_canary, without)
    ]
    n_test = n_runs - first
    low = float(lower_limit(np.array(hits[0]), n_test, error / 2))
    high = float(upper_limit(np.array(hits[1]), n_test, error / 2))
    attack = Attack(
        statistic=name,
        threshold=threshold,
        above=above,
        true_positive_rate=hits[0] / n_test,
        false_positive_rate=hits[1] / n_test,
        true_positive_low=low,
        false_positive_high=high,
    )
    return float(_bound(np.array(low), np.array(high), delta)), attack


def _best_threshold(
    name: str, without: np.ndarray, with_canary: np.ndarray, error: float, delta: float | None
) -> tuple[float, tuple[str, float, bool]]:
    """The threshold of one statistic with the largest bound, and that bound."""
    values = np.unique(np.concatenate([without, with_canary]))
    if len(values) > _N_THRESHOLDS:
        values = values[np.linspace(0, len(values) - 1, _N_THRESHOLDS).astype(int)]
    found = []
    for above in (True, False):
        guesses = [
            np.sum(_guess(scores[:, None], values, above=above), axis=0)
            for scores in (with_canary, without)
        ]
        low = lower_limit(guesses[0], len(with_canary), error / 2)
        high = upper_limit(guesses[1], len(without), error / 2)
        bounds = _bound(low, high, delta)
        # Where no threshold has a bound, the one with the rates farthest apart is tried.
        rates = guesses[0] / len(with_canary) - guesses[1] / len(without)
        best = int(np.lexsort((rates, bounds))[-1])
        score = float(bounds[best]) or float(rates[best]) - 1.0
        found.append((score, (name, float(values[best]), above)))
    return max(found, key=lambda each: each[0])


def _guess(scores: np.ndarray, threshold: float | np.ndarray, *, above: bool) -> np.ndarray:
    """Whether the canary is guessed to be in."""
    return scores >= threshold if above else scores <= threshold


def _bound(low: np.ndarray, high: np.ndarray, delta: float | None) -> np.ndarray:
    """The bound that is asked for, at two confidence limits."""
    return rho_bound(low, high) if delta is None else epsilon_bound(low, high, delta)
