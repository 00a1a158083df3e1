"""A training set and a hold-out set, disjoint and repeatable."""

import hashlib

import numpy as np
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError


def split_trips(
    traces: xr.Dataset, *, n_train: int, n_holdout: int, seed: int
) -> tuple[xr.Dataset, xr.Dataset]:
    """Draw disjoint sets of trips, each trip ranked by a digest of its own name.

    *Guarantee.* One trip more among ``traces`` changes each set by at most one trip: it enters
    and another leaves, or nothing happens. A permutation by position would not do, since one
    trip more would shuffle all of them.

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
        Trips in the order of their digests.

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
    digests = [_digest(str(name), seed) for name in traces["trip"].values]
    order = np.array(sorted(range(n_trips), key=digests.__getitem__), dtype=np.int64)
    train, holdout = order[:n_train], order[n_train : n_train + n_holdout]
    return traces.isel(trip=train), traces.isel(trip=holdout)


def _digest(name: str, seed: int) -> bytes:
    """Rank of a trip: a function of its name and the seed alone."""
    return hashlib.blake2b(name.encode(), key=str(seed).encode(), digest_size=16).digest()
