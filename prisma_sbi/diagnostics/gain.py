"""How much a posterior knows beyond its prior, in nats, from draws."""

import numpy as np
from scipy.special import digamma, polygamma

_TINY = 1e-12


def marginal_gain(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Kullback-Leibler divergence of a posterior of one number from its prior.

    Parameters
    ----------
    unit : (..., draw)
        Prior distribution function at the draws: where they lie in the prior, in [0, 1].

    Returns
    -------
    gain : (...)
        In nats; may fall a little below zero by chance.
    error : (...)
        Its standard error where draws are independent and the posterior is flat over the
        width of a block.

    Raises
    ------
    ValueError
        If there are fewer than eight draws, or one is out of range.

    Notes
    -----
    In these units the prior is flat, and the gain is minus the entropy of the posterior. Sorted
    draws are cut into blocks of :math:`m \approx \sqrt{n}` spacings, the two outermost spacings
    apart; with the lengths :math:`L_b` of the blocks the gain is the mean of
    :math:`\psi(m) - \psi(n + 1) - \log L_b`, each block by its share, after Vasicek [1]_. It is
    right on average for draws from the prior whatever their number. Blocks adapt to narrow
    posteriors, as bins of equal width do not.

    References
    ----------
    .. [1] Vasicek, A test for normality based on sample entropy, 1976.
       https://doi.org/10.1111/j.2517-6161.1976.tb01566.x
    """
    unit = np.asarray(unit, np.float64)
    n = unit.shape[-1]
    if n < 8 or not np.all((unit >= 0.0) & (unit <= 1.0)):
        raise ValueError(
            f"Expected eight or more draws in [0, 1]; got {n} of which "
            f"{int(np.sum(~((unit >= 0.0) & (unit <= 1.0))))} are outside."
        )
    ends = np.zeros((*unit.shape[:-1], 1))
    places = np.concatenate([ends, np.sort(unit, axis=-1), ends + 1.0], axis=-1)
    size = round(np.sqrt(n + 1))
    # The two outermost spacings on their own: beyond the draws there may be nothing for long.
    inner = np.linspace(1, n, max(1, (n - 1) // size) + 1).round().astype(int)
    cuts = np.concatenate([[0], inner, [n + 1]])
    counts = np.diff(cuts)
    lengths = np.maximum(np.diff(places[..., cuts], axis=-1), _TINY)
    share = counts / (n + 1)
    gain = np.sum(share * (digamma(counts) - digamma(n + 1) - np.log(lengths)), axis=-1)
    # Lengths of the blocks of a flat law are Dirichlet, so their logs lean against each other.
    error = np.sqrt(np.sum(share**2 * polygamma(1, counts)) - polygamma(1, n + 1))
    return gain, np.full(gain.shape, error)


def choice_gain(probability: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Divergence of probabilities ``(..., option)`` from those before ``(option,)``, in nats."""
    probability = np.asarray(probability, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = probability * np.log(probability / prior)
    return np.sum(np.where(probability > 0.0, terms, 0.0), axis=-1)
