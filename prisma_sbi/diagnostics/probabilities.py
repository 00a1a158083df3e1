"""Whether probabilities of a discrete quantity are what they claim: reliability, scores, a test."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import binom, norm

from prisma_sbi import _validate


@dataclass(frozen=True, kw_only=True)
class BrierScore:
    r"""Mean squared distance between probabilities and what came, and what it is made of.

    Attributes
    ----------
    score
        :math:`\frac1n \sum_i \sum_k (p_{ik} - o_{ik})^2`; 0 at best, 2 at worst.
    reliability
        Squared distance between claimed and observed frequencies; 0 if calibrated.
    resolution
        How much observed frequencies differ from bin to bin; the more the better.
    uncertainty
        The score of forecasts that know the overall frequency and nothing else.
    within
        What bins hide: variance of the probabilities within bins minus twice their
        covariance with what came.

    Notes
    -----
    ``score = reliability - resolution + uncertainty + within``, exactly [1]_, over all pairs of
    a case and an option.

    References
    ----------
    .. [1] Stephenson, Coelho and Jolliffe, Two extra components in the Brier score
       decomposition, 2008. https://doi.org/10.1175/2007WAF2006116.1
    """

    score: float
    reliability: float
    resolution: float
    uncertainty: float
    within: float


@dataclass(frozen=True, kw_only=True)
class ProbabilityTest:
    """Whether truths look drawn from the probabilities; z-scores are standard normal if so.

    Attributes
    ----------
    brier_z, brier_p
        From the Brier score: above 0 if probabilities are too bold, below if too timid.
    log_z, log_p
        The same from the log score.
    """

    brier_z: float
    brier_p: float
    log_z: float
    log_p: float


def brier_score(
    probability: np.ndarray, truth: np.ndarray, *, edges: np.ndarray | None = None
) -> BrierScore:
    """Brier score of probabilities over several options, decomposed.

    Parameters
    ----------
    probability : (case, option)
        Summing to one over the options.
    truth : (case,) int
        The option that was true.
    edges : (edge,)
        Rising edges of the bins of the decomposition, from 0 to 1; by default those of
        :func:`reliability_table`.

    Returns
    -------
    BrierScore

    Raises
    ------
    ValueError
        If the probabilities do not sum to one, or a truth is no option.
    """
    probability, truth = _checked(probability, truth)
    came = _came(probability, truth)
    claimed, seen = probability.ravel(), came.ravel()
    bins = _bins(claimed, edges)
    n_bins = bins.max() + 1
    count = np.maximum(np.bincount(bins, minlength=n_bins), 1)
    mean_claimed = np.bincount(bins, claimed, n_bins) / count
    mean_seen = np.bincount(bins, seen, n_bins) / count
    overall = seen.mean()
    spread, off = claimed - mean_claimed[bins], seen - mean_seen[bins]
    n_options = probability.shape[1]
    return BrierScore(
        score=float(n_options * np.mean((claimed - seen) ** 2)),
        reliability=float(n_options * np.mean((mean_claimed - mean_seen)[bins] ** 2)),
        resolution=float(n_options * np.mean((mean_seen[bins] - overall) ** 2)),
        uncertainty=float(n_options * overall * (1.0 - overall)),
        within=float(n_options * np.mean(spread**2 - 2.0 * spread * off)),
    )


def log_scores(probability: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Log probability of the truth in nats ``(case,)``; minus infinity where it was excluded."""
    probability, truth = _checked(probability, truth)
    with np.errstate(divide="ignore"):
        return np.log(probability[np.arange(len(truth)), truth])


def reliability_table(
    probability: np.ndarray,
    truth: np.ndarray,
    *,
    edges: np.ndarray | None = None,
    confidence: float = 0.99,
) -> pd.DataFrame:
    """How often options came true that were given a certain probability.

    Parameters
    ----------
    probability : (case, option)
        Summing to one over the options.
    truth : (case,) int
        The option that was true.
    edges : (edge,)
        Rising edges of the bins, from 0 to 1; by default a third of a decade apart
        from 0.001 to 0.2, then 0.1, since with many options most probabilities are small.
    confidence
        Of the binomial bounds.

    Returns
    -------
    pandas.DataFrame
        One row a bin that is not empty: ``low_edge``, ``high_edge``, ``n`` (pairs of case and
        option), ``claimed`` (mean probability), ``observed`` (share that came true), ``low``
        and ``high`` (bounds of the share if the claim were true), ``ok``.
    """
    _validate.in_range(0.0, 1.0, confidence=confidence)
    probability, truth = _checked(probability, truth)
    claimed, seen = probability.ravel(), _came(probability, truth).ravel()
    places = _edges(edges)
    bins = _bins(claimed, edges)
    rows = []
    for index in np.unique(bins):
        here = bins == index
        n, mean, share = int(here.sum()), float(claimed[here].mean()), float(seen[here].mean())
        low, high = binom.interval(confidence, n, mean)
        rows.append(
            {
                "low_edge": places[index],
                "high_edge": places[index + 1],
                "n": n,
                "claimed": mean,
                "observed": share,
                "low": low / n,
                "high": high / n,
                "ok": bool(low <= round(share * n) <= high),
            }
        )
    return pd.DataFrame(rows)


def probability_test(probability: np.ndarray, truth: np.ndarray) -> ProbabilityTest:
    r"""Test whether truths look drawn from the probabilities that were given for them.

    Parameters
    ----------
    probability : (case, option)
        Summing to one over the options.
    truth : (case,) int
        The option that was true.

    Returns
    -------
    ProbabilityTest

    Notes
    -----
    After Spiegelhalter [1]_, for any number of options. If case :math:`i` comes from its own
    probabilities, a score :math:`s(p_i, y_i)` has mean :math:`\sum_k p_{ik} s(p_i, k)` and a
    variance alike, so the sum of scores minus their means, over the root of the summed
    variances, is standard normal in the limit.

    References
    ----------
    .. [1] Spiegelhalter, Probabilistic prediction in patient management and clinical trials,
       1986. https://doi.org/10.1002/sim.4780050506
    """
    probability, truth = _checked(probability, truth)
    squares = np.sum(probability**2, axis=1, keepdims=True)
    tiny = np.finfo(np.float64).tiny
    brier_z = _score_z(probability, truth, 1.0 + squares - 2.0 * probability)
    log_z = _score_z(probability, truth, -np.log(np.maximum(probability, tiny)))
    return ProbabilityTest(
        brier_z=brier_z,
        brier_p=float(2.0 * norm.sf(abs(brier_z))),
        log_z=log_z,
        log_p=float(2.0 * norm.sf(abs(log_z))),
    )


def discrete_pit(probability: np.ndarray, truth: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """Share of the probability below the truth ``(case,)``, its own part cut at random.

    Uniform if the probabilities are calibrated, whatever the order of the options.
    """
    probability, truth = _checked(probability, truth)
    rows = np.arange(len(truth))
    own = probability[rows, truth]
    below = np.cumsum(probability, axis=1)[rows, truth] - own
    place = np.random.default_rng(seed).uniform(size=len(truth))
    return np.clip(below + place * own, 0.0, 1.0)


def _score_z(probability: np.ndarray, truth: np.ndarray, score: np.ndarray) -> float:
    """Standardized excess of the scores over what the probabilities promise."""
    mean = np.sum(probability * score, axis=1)
    variance = np.sum(np.sum(probability * score**2, axis=1) - mean**2)
    excess = np.sum(score[np.arange(len(truth)), truth] - mean)
    return float(excess / np.sqrt(variance)) if variance > 0.0 else 0.0


def _checked(probability: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities in double precision, normed, and truths as positions, or a clear error."""
    probability, truth = np.asarray(probability, np.float64), np.asarray(truth)
    if probability.ndim != 2 or truth.shape != probability.shape[:1] or not truth.size:
        raise ValueError(
            "Expected probability (case, option) and truth (case,), not empty; got "
            f"{probability.shape} and {truth.shape}."
        )
    total = probability.sum(axis=1, keepdims=True)
    if not (np.all(probability >= 0.0) and np.all(np.abs(total - 1.0) < 1e-3)):
        raise ValueError("Expected probabilities that sum to one; got others.")
    if not (truth.min() >= 0 and truth.max() < probability.shape[1]):
        raise ValueError(
            f"Expected truth in 0..{probability.shape[1] - 1}; got {truth.min()}..{truth.max()}."
        )
    return probability / total, truth.astype(np.int64)


def _came(probability: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """One where an option was true, else zero."""
    came = np.zeros_like(probability)
    came[np.arange(len(truth)), truth] = 1.0
    return came


def _edges(edges: np.ndarray | None) -> np.ndarray:
    """Edges of bins of probabilities."""
    if edges is None:
        small = np.asarray([0.0, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2])
        return np.concatenate([small, np.arange(3, 11) / 10.0])
    edges = np.asarray(edges, np.float64)
    if edges.ndim != 1 or edges[0] != 0.0 or edges[-1] != 1.0 or not np.all(np.diff(edges) > 0.0):
        raise ValueError(f"Expected edges that rise from 0 to 1; got {edges}.")
    return edges


def _bins(claimed: np.ndarray, edges: np.ndarray | None) -> np.ndarray:
    """The bin of each probability."""
    places = _edges(edges)
    return np.clip(np.searchsorted(places, claimed, side="right") - 1, 0, len(places) - 2)
