"""From a descriptor table to rows whose contribution per record is bounded."""

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.descriptors.layout import TableLayout
from prisma_sbi.descriptors.weighted import OWNER, SOURCE, WEIGHT, is_weighted
from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.contribution import Contribution
from prisma_sbi.privacy.settings import PrivacyUnit, SynthesisSettings


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
    contribution = Contribution.of(settings, weight_total=records.weight_total)
    coded = CodedTable(
        shape=grid.shape, codes=codes, weights=records.weights, contribution=contribution
    )
    if contribution.unit == PrivacyUnit.TRIP:
        return coded, records.n_trips
    kept = bound_trips(trip_owners(table, records), records.names, limit=contribution.trips)
    rows = kept[records.trip]
    weights = None if records.weights is None else records.weights[rows]
    return replace(coded, codes=codes[rows], weights=weights), int(kept.sum())


def trip_owners(table: xr.Dataset, records: Records) -> np.ndarray:
    """Owner ``(trip,)`` of every trip, as a number.

    Raises
    ------
    InputDataError
        If the table has no ``owner``, one is missing, or the rows of a trip differ in it.
    """
    if OWNER not in table.data_vars or table[OWNER].dims != ("trip",):
        raise InputDataError(
            f"Expected the variable {OWNER!r} over 'trip' for the unit 'vehicle': the recorded "
            f"vehicle or person of each row; got {sorted(map(str, table.data_vars))}. "
            "Add it, or protect single trips with unit='trip'."
        )
    names = table[OWNER].values
    missing = np.flatnonzero([not _is_name(item) for item in names])
    if len(missing):
        row = int(missing[0])
        trip = str(records.names[records.trip[row]])
        raise InputDataError(
            f"Expected a name as {OWNER} of row {row} (trip {trip!r}); got {names[row]!r}. "
            "A trip that belongs to nobody cannot be bounded: leave it out."
        )
    _, code = np.unique(names.astype(np.str_), return_inverse=True)
    owner = np.empty(records.n_trips, dtype=np.int64)
    owner[records.trip] = code
    apart = np.flatnonzero(owner[records.trip] != code)
    if len(apart):
        row = int(apart[0])
        trip = str(records.names[records.trip[row]])
        raise InputDataError(
            f"Expected one {OWNER} for all rows of trip {trip!r}; got another in row {row}. "
            "Split the trip or correct the owner."
        )
    return owner


def bound_trips(owner: np.ndarray, names: np.ndarray, *, limit: int) -> np.ndarray:
    """Which trips enter: of every owner the first few by a digest of their names.

    Whether a trip enters depends on the trips of its own owner alone, so one owner more or
    less changes nothing for the others, and the digest favors no hour or place.

    Parameters
    ----------
    owner : (trip,) int
    names : (trip,) str
    limit
        Most trips of an owner that enter.

    Returns
    -------
    kept : (trip,) bool
    """
    digest = np.array(
        [hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in names], dtype="S8"
    )
    # As numbers: strings of bytes would lose their trailing zeros.
    order = np.lexsort((digest.view(">u8"), owner))
    ranked = owner[order]
    starts = np.flatnonzero(np.diff(ranked, prepend=-1))
    position = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    kept = np.zeros(len(order), dtype=bool)
    kept[order[position < limit]] = True
    return kept


def _is_name(item: object) -> bool:
    """Whether an entry names something: a number, or a string that is not empty."""
    return str(item) not in ("", "nan", "None", "NaT")
