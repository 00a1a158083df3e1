"""How much a posterior knows beyond its prior, in nats, from draws."""

import numpy as np
from scipy.special import digamma, polygamma

_TINY = 1e-12


def marginal_gain(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Kullback-Leibler divergence of a posterior of one number from its prior.

    Parameters
    ----------
    unit : (..., draw)
        Prior distribution function at the draws: where they lie in the prior, in [0, 1]. Draws
        may repeat each other, as those taken from weighted points do, or from a chain that
        stood still.

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

    A place where :math:`c` draws stand counts once as a place and :math:`c` times as mass:
    spacings are those between distinct places, each with half the mass of either end, and
    :math:`n` is :math:`(\sum c)^2 / \sum c^2`. Without that, repeated draws would pass for a
    posterior of zero width.

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
    found = np.asarray([_gain(np.sort(row)) for row in unit.reshape(-1, n)])
    return found[:, 0].reshape(unit.shape[:-1]), found[:, 1].reshape(unit.shape[:-1])


def _gain(ordered: np.ndarray) -> tuple[float, float]:
    """Gain and its standard error from the rising draws of one posterior."""
    place, repeats = np.unique(ordered, return_counts=True)
    n = repeats.sum() ** 2 / np.sum(repeats**2)
    # One unit of mass lies beyond the draws, half of it on either side.
    mass = np.convolve(np.concatenate([[1.0], repeats, [1.0]]), [0.5, 0.5], mode="valid")
    share = mass / mass.sum()
    n_blocks = max(1, int((n - 1) / round(np.sqrt(n + 1))))
    # The two outermost spacings on their own: beyond the draws there may be nothing for long.
    reached = np.cumsum(share)[:-1]
    wanted = np.linspace(reached[0], reached[-1], n_blocks + 1)
    inner = np.unique(np.abs(reached[:, None] - wanted).argmin(axis=0)) + 1
    cuts = np.concatenate([[0], inner])
    share = np.add.reduceat(share, cuts)
    edges = np.concatenate([[0.0], place, [1.0]])
    lengths = np.maximum(np.diff(edges[np.append(cuts, len(edges) - 1)]), _TINY)
    count = share * (n + 1)
    gain = np.sum(share * (digamma(count) - digamma(n + 1) - np.log(lengths)))
    # Lengths of the blocks of a flat law are Dirichlet, so their logs lean against each other.
    error = np.sqrt(max(np.sum(share**2 * polygamma(1, count)) - polygamma(1, n + 1), 0.0))
    return float(gain), float(error)


def choice_gain(probability: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Divergence of probabilities ``(..., option)`` from those before ``(option,)``, in nats."""
    probability = np.asarray(probability, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = probability * np.log(probability / prior)
    return np.sum(np.where(probability > 0.0, terms, 0.0), axis=-1)
