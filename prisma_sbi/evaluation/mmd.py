"""Maximum mean discrepancy: a test of equal laws through a kernel."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial.distance import cdist, pdist

from prisma_sbi import _validate
from prisma_sbi.evaluation.pooled import permutation_p_value, pool
from prisma_sbi.evaluation.precision_recall import row_blocks

N_PERMUTATIONS = 499
_N_FOR_MEDIAN = 1_000
"""Points whose pairs give the median distance."""


class MmdTest(NamedTuple):
    """Unbiased squared discrepancy, its p-value, and the bandwidth of the kernel."""

    mmd2: float
    p_value: float
    bandwidth: float


def mmd_test(
    first: Float[np.ndarray, "trip_a feature"],
    second: Float[np.ndarray, "trip_b feature"],
    *,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
) -> MmdTest:
    r"""Kernel two-sample test on the normal scores of features.

    Parameters
    ----------
    first, second : (trip, feature)
        At least two rows each, for instance from :func:`~prisma_sbi.evaluation.trace_features`.
    n_permutations
        Exchanges of the labels behind the p-value; the smallest possible one is
        ``1 / (n_permutations + 1)``.
    seed
        Of the exchanges.

    Returns
    -------
    test
        ``mmd2`` is about 0 for equal laws (it may be negative) and at most 2.

    Raises
    ------
    ValueError
        If a sample has fewer than two rows, or there is no permutation.

    Notes
    -----
    Features become normal scores within the union (:func:`~prisma_sbi.evaluation.pool`). With
    :math:`k(u, v) = \exp(-\lVert u - v\rVert^2 / 2 \sigma^2)` and :math:`\sigma` the median
    distance between pairs of the union [1]_,

    .. math::
       \mathrm{MMD}^2 = \frac{1}{n (n - 1)} \sum_{i \ne j} k(x_i, x_j)
         + \frac{1}{m (m - 1)} \sum_{i \ne j} k(y_i, y_j)
         - \frac{2}{n m} \sum_{i, j} k(x_i, y_j),

    which has mean 0 for equal laws. The p-value is exact in level for any sizes. The median is
    taken over at most 1,000 points, equally spaced in the sorted union. Neither depends on the
    order of the rows. Cost grows as the square of the number of rows, memory does not.

    ======================== ==========================================
    Case                     Result
    ======================== ==========================================
    all points equal         ``mmd2`` 0, p-value 1
    most points equal        bandwidth is the mean distance
    second = copy of first   ``mmd2`` slightly below 0, p-value 1
    ======================== ==========================================

    References
    ----------
    .. [1] Gretton, Borgwardt, Rasch, Schölkopf and Smola, A kernel two-sample test, 2012.
       https://www.jmlr.org/papers/v13/gretton12a.html
    """
    _validate.at_least(1, n_permutations=n_permutations)
    _validate.at_least(2, n_first=len(first), n_second=len(second))
    scores, is_first = pool(first, second)
    bandwidth = median_distance(scores)
    labels = np.tile(is_first, (n_permutations, 1))
    permuted = np.random.default_rng(seed).permuted(labels, axis=1)
    statistics = _unbiased_mmd2(scores, np.vstack([is_first, permuted]), bandwidth)
    return MmdTest(
        mmd2=float(statistics[0]),
        p_value=permutation_p_value(float(statistics[0]), statistics[1:]),
        bandwidth=bandwidth,
    )


def median_distance(points: Float[np.ndarray, "trip feature"]) -> float:
    """Median distance between pairs; their mean where that is 0, and 1 where all are equal."""
    step = -(-len(points) // _N_FOR_MEDIAN)
    distances = pdist(points[::step]) if len(points) > 2 * step else pdist(points)
    return float(np.median(distances)) or float(distances.mean()) or 1.0


def _unbiased_mmd2(
    points: np.ndarray, labels: Bool[np.ndarray, "labeling trip"], bandwidth: float
) -> np.ndarray:
    """Statistic ``(labeling,)`` of every assignment of the points to two samples."""
    chosen = labels.T.astype(np.float64)
    within, row_sum = np.zeros(len(labels)), np.empty(len(points))
    for block in row_blocks(len(points), len(points)):
        kernel = np.exp(cdist(points[block], points, "sqeuclidean") / (-2.0 * bandwidth**2))
        kernel[np.arange(len(kernel)), np.arange(block.start, block.stop)] = 0.0
        row_sum[block] = kernel.sum(axis=1)
        within += np.einsum("ij,ij->j", chosen[block], kernel @ chosen)
    across = row_sum @ chosen - within
    rest = row_sum.sum() - within - 2.0 * across
    n = int(labels[0].sum())
    m = len(points) - n
    return within / (n * (n - 1)) + rest / (m * (m - 1)) - 2.0 * across / (n * m)
