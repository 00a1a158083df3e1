"""Distance between two sets of points in any number of dimensions, without cells."""

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

from prisma_sbi.evaluation.precision_recall import row_blocks


def energy_statistic(
    first: Float[np.ndarray, "a dimension"], second: Float[np.ndarray, "b dimension"]
) -> float:
    r"""Root of the energy statistic between two sets of points.

    Parameters
    ----------
    first, second : (a, dimension), (b, dimension)
        At least one point each.

    Returns
    -------
    distance
        In the square root of the unit of the points; symmetric; 0 for equal sets.

    Notes
    -----
    The statistic [1]_ of the points :math:`x, y`,

    .. math:: \sqrt{2 E\lVert x - y\rVert - E\lVert x - x'\rVert - E\lVert y - y'\rVert},

    is zero for equal laws only.

    References
    ----------
    .. [1] Székely and Rizzo, Energy statistics: A class of statistics based on distances, 2013.
       https://doi.org/10.1016/j.jspi.2013.03.018
    """
    across = _mean_distance(first, second)
    within = [_mean_distance(each, each) for each in (first, second)]
    return float(np.sqrt(max(2.0 * across - sum(within), 0.0)))


def _mean_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Mean Euclidean distance over all pairs of points, in blocks."""
    sums = [cdist(first[block], second).sum() for block in row_blocks(len(first), len(second))]
    return float(sum(sums)) / (len(first) * len(second))
