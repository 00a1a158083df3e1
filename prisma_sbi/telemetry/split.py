"""A training set and a hold-out set, disjoint and repeatable."""

import numpy as np
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError


def split_trips(
    traces: xr.Dataset, *, n_train: int, n_holdout: int, seed: int
) -> tuple[xr.Dataset, xr.Dataset]:
    """Draw disjoint sets of trips without replacement.

    Parameters
    ----------
    traces
        Any dataset with a ``trip`` dimension.
    n_train, n_holdout
        Sizes of the two sets.
    seed
        Same seed, same traces: same sets.

    Returns
    -------
    train, holdout
        Trips in the order of the draw.

    Raises
    ------
    ValueError
        If a size or the seed is negative, or the training set empty.
    InputDataError
        If there are too few trips.
    """
    _validate.at_least(1, n_train=n_train)
    _validate.at_least(0, n_holdout=n_holdout, seed=seed)
    n_trips = traces.sizes["trip"]
    if n_train + n_holdout > n_trips:
        raise InputDataError(
            f"Expected at least {n_train + n_holdout} trips ({n_train} to train, {n_holdout} "
            f"held out); got {n_trips}. Import more files, or ask for fewer trips."
        )
    order = np.random.default_rng(seed).permutation(n_trips)
    train, holdout = order[:n_train], order[n_train : n_train + n_holdout]
    return traces.isel(trip=train), traces.isel(trip=holdout)
