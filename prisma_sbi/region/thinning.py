"""From a public vehicle table to a pool of a given size."""

import numpy as np
import pandas as pd

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi._optional import optional_import
from prisma_sbi.region.catalogue import VEHICLE_COLUMNS
from prisma_sbi.region.pool import VehiclePool

_FEATURES = (
    "mass_kg",
    "road_load_a_n",
    "road_load_b_n_per_mps",
    "road_load_c_n_per_mps2",
    "displacement_l",
)
_RESTARTS = 4


def pool_from_table(table: pd.DataFrame) -> VehiclePool:
    """Turn a vehicle table into a pool, in the order of its rows.

    Parameters
    ----------
    table
        As :func:`~prisma_sbi.region.catalogue.read_vehicle_files` returns it.

    Returns
    -------
    pool : VehiclePool

    Raises
    ------
    InputDataError
        If a column is missing, the table is empty, or a value is not usable.
    """
    missing = [column for column in VEHICLE_COLUMNS if column not in table.columns]
    if missing:
        raise InputDataError(
            f"Expected the vehicle columns {list(VEHICLE_COLUMNS)}; got a table without {missing}. "
            "Read it with read_vehicle_files."
        )
    numbers = {column: table[column].to_numpy(dtype=np.float64) for column in _FEATURES}
    return VehiclePool(
        name=np.array(table["name"].tolist(), dtype=str),
        model_year=table["model_year"].to_numpy(dtype=np.int64),
        **numbers,
    )


def thin_pool(table: pd.DataFrame, *, size: int = 128) -> VehiclePool:
    """Thin a public vehicle table to representative vehicles.

    Parameters
    ----------
    table
        As :func:`~prisma_sbi.region.catalogue.read_vehicle_files` returns it.
    size
        Number of vehicles wanted.

    Returns
    -------
    pool : VehiclePool
        Vehicles of the table, sorted by mass; fewer than ``size`` only where the table has
        fewer distinct ones. The order of the rows of the table does not matter.

    Raises
    ------
    InputDataError
        If a column is missing or the table is empty.
    ValueError
        If ``size`` is below 1.

    Notes
    -----
    Mass, the three road-load coefficients and displacement are standardized and grouped by
    k-means, each vehicle counting once. A group is represented by its vehicle nearest the
    center, so that every entry of the pool exists. Only the public list is looked at.
    """
    _validate.at_least(1, size=size)
    pool = pool_from_table(table)
    features = np.stack([getattr(pool, column) for column in _FEATURES], axis=1)
    # Names break ties, so that the first of equal vehicles is the same for any order of rows.
    order = np.lexsort((pool.model_year, pool.name, *features.T[::-1]))
    distinct, first, count = np.unique(
        features[order], axis=0, return_index=True, return_counts=True
    )
    vehicle = order[first]
    if size < len(distinct):
        vehicle = vehicle[_medoids(distinct, count, size)]
    return pool_from_table(table.iloc[vehicle])


def _medoids(features: np.ndarray, count: np.ndarray, size: int) -> np.ndarray:
    """Rows nearest the centers of ``size`` groups, ascending."""
    cluster = optional_import("sklearn.cluster", extra="geo")
    mean = np.average(features, axis=0, weights=count)
    spread = np.sqrt(np.average((features - mean) ** 2, axis=0, weights=count))
    scaled = (features - mean) / np.where(spread > 0, spread, 1.0)
    groups = cluster.KMeans(n_clusters=size, n_init=_RESTARTS, random_state=0)
    label = groups.fit(scaled, sample_weight=count).labels_
    distance = np.linalg.norm(scaled - groups.cluster_centers_[label], axis=1)
    by_group = np.lexsort((distance, label))
    _, nearest = np.unique(label[by_group], return_index=True)
    return np.sort(by_group[nearest])
