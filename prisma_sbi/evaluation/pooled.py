"""Two samples made ready for a test by permutation: pooled, on a common scale, in a fixed order."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri
from scipy.stats import rankdata


class Pooled(NamedTuple):
    """Points of both samples together.

    Attributes
    ----------
    scores : (trip, feature)
        Normal scores.
    is_first : (trip,)
        Which rows come from the first sample.
    """

    scores: np.ndarray
    is_first: np.ndarray


def pool(
    first: Float[np.ndarray, "trip_a feature"], second: Float[np.ndarray, "trip_b feature"]
) -> Pooled:
    r"""Normal scores of two samples within their union.

    Parameters
    ----------
    first, second : (trip, feature)
        Features of traces, in any units.

    Returns
    -------
    pooled
        The rows in an order that depends on their values alone.

    Notes
    -----
    A value of rank :math:`r` among all :math:`N` (ties share their mean rank) becomes

    .. math:: z = \Phi^{-1}\Bigl(\frac{r - 1/2}{N}\Bigr).

    Neither units nor heavy tails matter then. Labels do not enter, so under the hypothesis of
    one law they can be exchanged, and a test by permutation keeps its level exactly. Because
    the rows are sorted, a result does not depend on the order in which trips are listed.
    """
    points = np.concatenate([first, second])
    is_first = np.arange(len(points)) < len(first)
    order = np.lexsort((is_first, *points.T[::-1]))
    ranks = np.asarray(rankdata(points[order], axis=0))
    return Pooled(ndtri((ranks - 0.5) / len(points)), is_first[order])


def permutation_p_value(observed: float, permuted: Float[np.ndarray, " permutation"]) -> float:
    """Share of statistics at least as large, the observed one among them; never 0.

    Parameters
    ----------
    observed
        Statistic of the samples as they are; large where they differ.
    permuted : (permutation,)
        The same after random exchange of the labels.

    Returns
    -------
    p_value
        ``(1 + #{permuted >= observed}) / (1 + n)``; at most ``a`` with probability at most ``a``
        if the laws are equal. Differences in the order of rounding count as ties.
    """
    slack = 1e-10 * max(abs(observed), float(np.abs(permuted).max(initial=0.0)), 1e-6)
    return float(1.0 + np.count_nonzero(permuted >= observed - slack)) / (1.0 + len(permuted))
