"""A record to add: chosen from public inputs, as far from all others as can be."""

import numpy as np
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.descriptors import TableLayout
from prisma_sbi.privacy import Neighbors

_NAME = "canary"


def choose_canary(
    layout: TableLayout, table: xr.Dataset, *, seed: int = 0, n_candidates: int = 512
) -> xr.Dataset:
    """A record that shares as few bins as possible with the rows of a table.

    Parameters
    ----------
    layout
        Columns and bins; the candidates are drawn from it, uniformly in its bins.
    table
        The rows to keep away from; an attacker knows all records but one.
    seed
        Of the candidates.
    n_candidates
        How many are drawn.

    Returns
    -------
    canary
        A descriptor table of one row. No row of the table is in its cell.

    Raises
    ------
    InputDataError
        If every candidate's cell holds a row.
    """
    _validate.at_least(1, n_candidates=n_candidates)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, np.array(layout.shape), size=(n_candidates, len(layout.shape)))
    candidates = layout.sample_within_bins(drawn, rng)
    codes = layout.discretize(candidates)  # a layout may draw a neighbor of the bin asked for
    rows = layout.discretize(table)
    shared = np.zeros(n_candidates)
    full = np.zeros(n_candidates, dtype=bool)
    for index, code in enumerate(codes):
        matches = rows == code
        shared[index] = matches.sum()
        full[index] = bool(matches.all(axis=1).any())
    if full.all():
        raise InputDataError(
            f"Expected an empty cell among {n_candidates} drawn ones; got rows in all of them. "
            "Audit with fewer rows or a finer table."
        )
    best = int(np.argmin(np.where(full, np.inf, shared)))
    return candidates.isel(trip=[best]).assign_coords(trip=[_NAME])


def neighbor_with(table: xr.Dataset, canary: xr.Dataset, neighbors: Neighbors) -> xr.Dataset:
    """A neighboring table that holds the canary.

    Parameters
    ----------
    table
        At least one row.
    canary
        From :func:`choose_canary`.
    neighbors
        Whether the canary is added, or takes the place of the last row.

    Returns
    -------
    neighbor
        The canary is its last row.
    """
    kept = table.isel(trip=slice(0, -1)) if neighbors == Neighbors.REPLACE else table
    joined = xr.concat([kept, canary], dim="trip", data_vars="minimal", coords="minimal")
    return joined.assign_attrs(table.attrs)
