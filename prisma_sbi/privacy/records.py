"""From a descriptor table to rows whose contribution per record is bounded."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.descriptors.layout import TableLayout
from prisma_sbi.descriptors.weighted import SOURCE, WEIGHT, is_weighted
from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.contribution import Contribution
from prisma_sbi.privacy.settings import Neighbors, SynthesisSettings


@dataclass(frozen=True, kw_only=True, eq=False)
class Records:
    """Which rows belong to which trip. Private.

    Attributes
    ----------
    trip : (row,) int
        Number of the trip of each row.
    names : (trip,) str
        Name of each trip.
    weights : (row,) int64 or None
        Units of weight per row; None if every row is a trip of weight one.
    weight_total
        Units of weight that a trip may have.
    """

    trip: np.ndarray
    names: np.ndarray
    weights: np.ndarray | None
    weight_total: int

    @property
    def n_trips(self) -> int:
        """Number of trips."""
        return len(self.names)


def read_records(table: xr.Dataset) -> Records:
    """Read the trips of a table, and enforce the bound on their weights.

    Parameters
    ----------
    table
        A descriptor table, plain or weighted.

    Returns
    -------
    records

    Raises
    ------
    InputDataError
        If a weight is negative, or a trip weighs nothing or more than ``weight_total``; the
        message names the trip. Nothing has been spent then.
    """
    if not is_weighted(table):
        n_rows = table.sizes["trip"]
        found = table["trip"].values if "trip" in table.coords else np.arange(n_rows)
        return Records(
            trip=np.arange(n_rows), names=found.astype(np.str_), weights=None, weight_total=1
        )
    weight_total = int(table.attrs["weight_total"])
    names, trip = np.unique(table[SOURCE].values.astype(np.str_), return_inverse=True)
    weights = table[WEIGHT].values
    # Bounds first: sums of unbounded integers may wrap around and look small.
    bad = np.flatnonzero((weights < 0) | (weights > weight_total))
    if len(bad):
        row = int(bad[0])
        raise InputDataError(
            f"Expected a weight from 0 to {weight_total} in row {row} (trip "
            f"{str(names[trip[row]])!r}); got {int(weights[row])}. Nothing was spent. "
            "Build the table with make_weighted_table."
        )
    weights = weights.astype(np.int64)
    totals = np.bincount(trip, weights=weights, minlength=len(names))
    bad = np.flatnonzero((totals < 1) | (totals > weight_total))
    if len(bad):
        raise InputDataError(
            f"Expected weights that sum to 1 to {weight_total} for trip {str(names[bad[0]])!r}; "
            f"got {int(totals[bad[0]])}. A trip that weighs more would be protected less; nothing "
            "was spent. Build the table with make_weighted_table."
        )
    return Records(trip=trip, names=names, weights=weights, weight_total=weight_total)


def bounded_table(
    table: xr.Dataset, grid: TableLayout, settings: SynthesisSettings
) -> tuple[CodedTable, int]:
    """Rows of codes whose contribution per record is bounded, and the number of trips.

    Parameters
    ----------
    table
        A descriptor table, plain or weighted; private.
    grid
        Its layout.
    settings
        Unit of privacy and neighboring relation.

    Returns
    -------
    coded
        The rows that enter, with the bound.
    n_trips
        Trips among them; private, too.

    Raises
    ------
    InputDataError
        If a value or a weight is not usable.
    """
    records = read_records(table)
    codes = grid.discretize(table)
    contribution = Contribution(
        weight_total=records.weight_total, neighbors=Neighbors(settings.neighbors)
    )
    coded = CodedTable(
        shape=grid.shape, codes=codes, weights=records.weights, contribution=contribution
    )
    return coded, records.n_trips
