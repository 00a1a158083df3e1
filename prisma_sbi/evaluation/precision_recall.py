"""Precision and recall of one population in the manifold of another."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

from prisma_sbi import _validate

N_NEIGHBORS = 3
BLOCK_ENTRIES = 4_000_000
"""Distances held at once (32 MB): memory does not grow with the product of the sizes."""


class PrecisionRecall(NamedTuple):
    """Shares in [0, 1]: synthetic points within the real manifold, and the reverse."""

    precision: float
    recall: float


def precision_recall(
    real: Float[np.ndarray, "trip_real feature"],
    synthetic: Float[np.ndarray, "trip_synthetic feature"],
    *,
    n_neighbors: int = N_NEIGHBORS,
) -> PrecisionRecall:
    """Improved precision and recall.

    The manifold of a set is the union of balls around its points, each reaching to the
    point's k-th nearest neighbor in the same set. Precision is the share of synthetic
    points in the real manifold, recall the share of real points in the synthetic one.

    Parameters
    ----------
    real, synthetic : (trip, feature)
        More than ``n_neighbors`` rows each.
    n_neighbors
        The k above.

    Returns
    -------
    shares
        ``precision`` and ``recall``.

    Raises
    ------
    ValueError
        If a set has no more than ``n_neighbors`` rows.

    Notes
    -----
    Method of [1]_. Balls are closed. A point is not its own neighbor, but its duplicates
    are: where a value occurs more than k times its ball has radius 0 and contains exactly
    that value. Distances are computed from differences, not from inner products, so equal
    points have distance 0 whatever the size of the features.

    References
    ----------
    .. [1] Kynkäänniemi, Karras, Laine, Lehtinen and Aila, Improved precision and recall metric
       for assessing generative models, 2019. https://doi.org/10.48550/arXiv.1904.06991
    """
    _validate.at_least(1, n_neighbors=n_neighbors)
    for name, points in (("real", real), ("synthetic", synthetic)):
        if len(points) <= n_neighbors:
            raise ValueError(
                f"Expected more than {n_neighbors} {name} traces for precision and recall; "
                f"got {len(points)}. Add traces or lower n_neighbors."
            )
    return PrecisionRecall(
        precision=_share_inside(synthetic, real, neighbor_radius(real, n_neighbors)),
        recall=_share_inside(real, synthetic, neighbor_radius(synthetic, n_neighbors)),
    )


def standardize_features(
    real: Float[np.ndarray, "trip_real feature"],
    synthetic: Float[np.ndarray, "trip_synthetic feature"],
) -> tuple[np.ndarray, np.ndarray]:
    """Both sets in units of the real one: minus its mean, over its standard deviation.

    Parameters
    ----------
    real, synthetic : (trip, feature)

    Returns
    -------
    real, synthetic : (trip, feature)
        A feature without spread in the real set is only centered, so that a synthetic
        population that differs in it is still told apart.
    """
    mean, spread = real.mean(axis=0), real.std(axis=0)
    constant = real.max(axis=0) == real.min(axis=0)
    mean = np.where(constant, real[0], mean)
    spread = np.where(constant, 1.0, spread)
    return (real - mean) / spread, (synthetic - mean) / spread


def neighbor_radius(points: Float[np.ndarray, "trip feature"], n_neighbors: int) -> np.ndarray:
    """Distance ``(trip,)`` of each point to its k-th nearest other point."""
    radius = np.empty(len(points))
    for block in row_blocks(len(points), len(points)):
        # The point itself is among the smallest k + 1 at distance 0, so rank k skips it.
        distance = cdist(points[block], points)
        radius[block] = np.partition(distance, n_neighbors, axis=1)[:, n_neighbors]
    return radius


def _share_inside(points: np.ndarray, centers: np.ndarray, radius: np.ndarray) -> float:
    """Share of points within at least one closed ball."""
    inside = np.zeros(len(points), dtype=bool)
    for block in row_blocks(len(points), len(centers)):
        inside[block] = np.any(cdist(points[block], centers) <= radius, axis=1)
    return float(inside.mean())


def row_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Slices of rows, each with at most ``BLOCK_ENTRIES`` distances."""
    size = max(1, BLOCK_ENTRIES // max(n_columns, 1))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
