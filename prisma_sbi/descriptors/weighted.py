"""Tables in which several weighted rows stand for one trip, and the owners of trips."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.descriptors.table import make_descriptor_table, require_descriptor_table

WEIGHT, SOURCE, OWNER = "weight", "source", "owner"
"""Names of the variables beside the seven descriptors."""
LARGEST_WEIGHT_TOTAL = 2**20
"""Weights are kept this small so that sums over any table fit into 64 bits."""
DEFAULT_WEIGHT_TOTAL = 64
"""Total weight of a trip unless another one is given."""


def make_weighted_table(
    columns: Mapping[str, np.ndarray],
    *,
    source: Sequence[str] | np.ndarray,
    weight: Sequence[float] | np.ndarray,
    weight_total: int = DEFAULT_WEIGHT_TOTAL,
    owner: Sequence[str] | np.ndarray | None = None,
    region_fingerprint: str,
) -> xr.Dataset:
    r"""Build a table in which each trip is a set of weighted rows, posterior draws for instance.

    Parameters
    ----------
    columns
        The seven descriptors, each (row,), as for
        :func:`~prisma_sbi.descriptors.make_descriptor_table`.
    source : (row,)
        Name or number of the trip that each row belongs to; rows of a trip need not be
        neighbors.
    weight : (row,)
        Not negative, on any scale: each trip is scaled on its own.
    weight_total
        Sum :math:`W` of the integer weights of every trip; a public number.
    owner : (row,)
        Recorded vehicle or person of each row, needed for the unit ``vehicle``.
    region_fingerprint
        Fingerprint of the region that the descriptors belong to.

    Returns
    -------
    table
        A descriptor table, one row per entry, named by trip and position within it, with the
        integer variable ``weight``, the variable ``source``, ``owner`` if it was given, and
        the attribute ``weight_total``.

    Raises
    ------
    InputDataError
        If a column does not fit, a weight is negative or not finite, or the weights of a trip
        sum to zero; the message names the row or the trip.

    Notes
    -----
    Weights :math:`w_i` of a trip become integers by largest remainder: each gets
    :math:`\lfloor W w_i / \sum_j w_j \rfloor`, and what is missing to :math:`W` goes, one
    each, to the largest fractional parts, earlier rows first. The integers of a trip depend on
    its own rows alone.

    Examples
    --------
    >>> half = np.full(3, 0.5)
    >>> names = ("start_lat", "start_lon", "end_lat", "end_lon", "aggressiveness", "detour")
    >>> table = make_weighted_table(
    ...     {name: half for name in names} | {"vehicle": np.zeros(3)},
    ...     source=["a", "a", "b"],
    ...     weight=[1.0, 2.0, 0.1],
    ...     weight_total=4,
    ...     region_fingerprint="",
    ... )
    >>> table["weight"].values.tolist()
    [1, 3, 4]
    """
    _require_weight_total(weight_total)
    n_rows = len(columns.get("vehicle", ()))
    names = _names(SOURCE, source, n_rows)
    weights = np.asarray(weight)
    if weights.shape != (n_rows,) or (weights.dtype.kind not in "iuf" and n_rows):
        raise InputDataError(
            f"Expected {n_rows} numbers as weights; got {weights.dtype} of shape {weights.shape}. "
            "Give one weight per row."
        )
    weights = weights.astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        row = int(bad[0])
        raise InputDataError(
            f"Expected a finite weight >= 0 in row {row} (trip {str(names[row])!r}); "
            f"got {float(weights[row])!r}. Leave the row out."
        )
    trips, group = np.unique(names, return_inverse=True)
    order = np.argsort(group, kind="stable")
    position = _position_in_group(group[order])
    rank = np.empty(n_rows, dtype=np.int64)
    rank[order] = position
    table = make_descriptor_table(
        columns,
        trip=[f"{name}#{index}" for name, index in zip(names, rank, strict=True)],
        region_fingerprint=region_fingerprint,
    )
    table[WEIGHT] = ("trip", _largest_remainder(weights, group, trips, weight_total))
    table[SOURCE] = ("trip", names)
    if owner is not None:
        table[OWNER] = ("trip", _names(OWNER, owner, n_rows))
    return table.assign_attrs(weight_total=weight_total)


def table_from_draws(
    draws: xr.Dataset,
    ends: xr.Dataset,
    *,
    weight: xr.DataArray | None = None,
    weight_total: int = DEFAULT_WEIGHT_TOTAL,
    owner: Sequence[str] | np.ndarray | None = None,
    region_fingerprint: str,
) -> xr.Dataset:
    """Weighted table of the posterior draws of many trips.

    Parameters
    ----------
    draws
        ``aggressiveness``, ``detour`` and ``vehicle`` over ``(chain, draw, trip)``.
    ends
        ``start_lat``, ``start_lon``, ``end_lat``, ``end_lon`` over ``trip``, same trips.
    weight
        Weight of each draw over ``(chain, draw, trip)``; by default all are equal.
    weight_total, region_fingerprint
        As for :func:`make_weighted_table`.
    owner : (trip,)
        Recorded vehicle or person of each trip.

    Returns
    -------
    table
        The draws of a trip follow each other.

    Raises
    ------
    InputDataError
        If there is only one draw per trip, or a weight is not usable.
    """
    stacked = draws.stack(entry=("chain", "draw"), create_index=False)
    n_draws = stacked.sizes["entry"]
    if n_draws < 2:
        raise InputDataError(
            f"Expected several posterior draws per trip; got {n_draws}. Encode the trips with "
            "posterior draws, or use one row per trip."
        )
    n_trips = draws.sizes["trip"]
    columns = {
        name: stacked[name].transpose("trip", "entry").values.ravel()
        for name in ("aggressiveness", "detour", "vehicle")
    }
    for name in ("start_lat", "start_lon", "end_lat", "end_lon"):
        columns[name] = np.repeat(ends[name].values, n_draws)
    if weight is None:
        weights = np.ones(n_trips * n_draws)
    else:
        flat = weight.stack(entry=("chain", "draw"), create_index=False)
        weights = flat.transpose("trip", "entry").values.ravel()
    return make_weighted_table(
        columns,
        source=np.repeat(draws["trip"].values.astype(np.str_), n_draws),
        weight=weights,
        weight_total=weight_total,
        owner=None if owner is None else np.repeat(np.asarray(owner), n_draws),
        region_fingerprint=region_fingerprint,
    )


def is_weighted(table: xr.Dataset) -> bool:
    """Whether rows carry weights; checks that the parts of a weighted table come together.

    Raises
    ------
    InputDataError
        If only some of ``weight``, ``source`` and the attribute ``weight_total`` are there, or
        one is of another form.
    """
    parts = {
        f"the variable {WEIGHT!r}": WEIGHT in table.data_vars,
        f"the variable {SOURCE!r}": SOURCE in table.data_vars,
        "the attribute 'weight_total'": "weight_total" in table.attrs,
    }
    if not any(parts.values()):
        return False
    missing = [name for name, found in parts.items() if not found]
    if missing:
        raise InputDataError(
            f"Expected {', '.join(parts)} in a weighted table; got none of {', '.join(missing)}. "
            "Build it with make_weighted_table."
        )
    _require_weight_total(table.attrs["weight_total"])
    for name, kinds in ((WEIGHT, "iu"), (SOURCE, "UTOiu")):
        variable = table[name]
        if variable.dims != ("trip",) or variable.dtype.kind not in kinds:
            raise InputDataError(
                f"Expected {'integers' if name == WEIGHT else 'names'} over 'trip' in the variable "
                f"{name!r}; got {variable.dtype} over {variable.dims}. "
                "Build the table with make_weighted_table."
            )
    return True


def pick_one_row(table: xr.Dataset, rng: np.random.Generator) -> xr.Dataset:
    """One row per trip, drawn by weight, as a plain table; a plain table stays as it is.

    Parameters
    ----------
    table
        A descriptor table, weighted or not, of positive weight per trip.
    rng
        Source of the draws.

    Returns
    -------
    table
        A plain table of the trips in order of first appearance; ``owner`` is kept.
    """
    require_descriptor_table(table)
    if not is_weighted(table):
        return table
    names = table[SOURCE].values.astype(np.str_)
    weights = table[WEIGHT].values.astype(np.float64)
    _, first, group = np.unique(names, return_index=True, return_inverse=True)
    # The smallest of exponential times with these rates: each row wins in proportion to its weight.
    times = np.full(len(names), np.inf)
    times[weights > 0] = rng.exponential(size=int(np.sum(weights > 0))) / weights[weights > 0]
    order = np.lexsort((times, group))
    winner = order[np.flatnonzero(np.diff(group[order], prepend=-1))]
    rows = winner[np.argsort(first)]
    plain = table.isel(trip=rows).drop_vars([WEIGHT, SOURCE]).assign_coords(trip=names[rows])
    plain.attrs.pop("weight_total")
    return plain


def _largest_remainder(
    weights: np.ndarray, group: np.ndarray, trips: np.ndarray, weight_total: int
) -> np.ndarray:
    """Integers per row whose sum over each group is exactly the total."""
    largest = np.zeros(len(trips))
    np.maximum.at(largest, group, weights)
    empty = np.flatnonzero(largest == 0)
    if len(empty):
        raise InputDataError(
            f"Expected weights with a positive sum for every trip; got none for trip "
            f"{str(trips[empty[0]])!r}. Leave the trip out."
        )
    # By the largest weight first, so that a sum of huge weights stays finite.
    share = weights / largest[group]
    share = share / np.bincount(group, weights=share, minlength=len(trips))[group]
    scaled = share * weight_total
    floors = np.floor(scaled).astype(np.int64)
    missing = weight_total - np.bincount(group, weights=floors, minlength=len(trips))
    order = np.lexsort((floors - scaled, group))  # stable: earlier rows first among equals
    extra = np.zeros(len(weights), dtype=np.int64)
    extra[order] = _position_in_group(group[order]) < missing[group[order]]
    return floors + extra


def _position_in_group(sorted_group: np.ndarray) -> np.ndarray:
    """0, 1, ... within each run of equal numbers."""
    if len(sorted_group) == 0:
        return np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.diff(sorted_group, prepend=sorted_group[0] - 1))
    lengths = np.diff(starts, append=len(sorted_group))
    return np.arange(len(sorted_group)) - np.repeat(starts, lengths)


def _names(what: str, values: Sequence[str] | np.ndarray, n_rows: int) -> np.ndarray:
    """Names as strings, one per row, none empty."""
    names = np.array([str(item) for item in values], dtype=np.str_)
    if len(names) != n_rows:
        raise InputDataError(f"Expected {n_rows} values of {what}; got {len(names)}.")
    empty = np.flatnonzero(names == "")
    if len(empty):
        raise InputDataError(
            f"Expected a name as {what} of row {int(empty[0])}; got an empty one. "
            "Leave the row out or name it."
        )
    return names


def _require_weight_total(weight_total: Any) -> None:
    """Raise unless the total is a whole number in its range."""
    is_whole = isinstance(weight_total, int | np.integer) and not isinstance(weight_total, bool)
    if not is_whole or not 1 <= int(weight_total) <= LARGEST_WEIGHT_TOTAL:
        raise InputDataError(
            f"Expected a whole number from 1 to {LARGEST_WEIGHT_TOTAL} as weight_total; "
            f"got {weight_total!r}. 64 is fine enough for most posteriors."
        )
