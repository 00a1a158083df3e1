"""A few rows that stand for many: farthest point first."""

import numpy as np

from prisma_sbi import _validate
from prisma_sbi.region.pool import VehiclePool


def spread_out(features: np.ndarray, size: int) -> np.ndarray:
    """Rows that span a table, ascending: farthest from those taken, from the average on.

    Features are scaled to unit spread; a constant one does not count.
    """
    spread = features.std(axis=0)
    scaled = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    taken = [int(np.argmin(np.linalg.norm(scaled, axis=1)))]
    distance = np.full(len(scaled), np.inf)
    while len(taken) < min(size, len(scaled)):
        distance = np.minimum(distance, np.linalg.norm(scaled - scaled[taken[-1]], axis=1))
        taken.append(int(np.argmax(distance)))
    return np.unique(taken)


def representative_vehicles(pool: VehiclePool, n_representatives: int) -> np.ndarray:
    """Positions of vehicles that cover the pool.

    Parameters
    ----------
    pool
        Candidate vehicles.
    n_representatives
        How many to pick; all of them if the pool is smaller.

    Returns
    -------
    positions : (representative,) int
        Rising. The first pick is the vehicle nearest the mean, then always the one farthest
        from all picks, in coefficients and displacement; this covers the pool within twice
        the best possible radius [1]_.

    References
    ----------
    .. [1] Gonzalez, Clustering to minimize the maximum intercluster distance, 1985.
       https://doi.org/10.1016/0304-3975(85)90224-5
    """
    _validate.at_least(1, n_representatives=n_representatives)
    return spread_out(np.column_stack([pool.coefficients, pool.displacement_l]), n_representatives)
