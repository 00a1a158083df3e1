"""Raw trips of one file, and reductions over the rows of each trip."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True, eq=False)
class RawTrips:
    """All trips of one file at their native samples, row after row.

    Rows of one trip are contiguous and sorted by time. The rows of trip ``k`` are
    ``first_row[k]`` to ``first_row[k + 1] - 1``; every trip has at least one.

    Attributes
    ----------
    source
        Name of the file.
    trip : (n_trips,) str
        Identifiers.
    vehicle_id, vehicle_type : (n_trips,) str
        ``"unknown"`` where the file does not say.
    first_row : (n_trips + 1,) int64
        Where each trip begins; the last entry is the number of rows.
    channels
        Arrays of one value per row (float64, NaN for missing), by name with unit. ``time_s``,
        ``lat_deg`` and ``lon_deg`` are always there.
    corrupt_rows : (n_trips,) int64
        Rows of the trip that could not be used and were dropped.
    lost
        Trips (or ``""``) of which no row is left, each with a sentence.
    n_rows_read
        Rows in the file, dropped ones included.
    """

    source: str
    trip: np.ndarray
    vehicle_id: np.ndarray
    vehicle_type: np.ndarray
    first_row: np.ndarray
    channels: Mapping[str, np.ndarray]
    corrupt_rows: np.ndarray
    lost: tuple[tuple[str, str], ...] = ()
    n_rows_read: int = 0

    @property
    def n_trips(self) -> int:
        """Trips with at least one usable row."""
        return len(self.trip)

    @property
    def trip_of_row(self) -> np.ndarray:
        """Index of the trip that each row belongs to."""
        return np.repeat(np.arange(self.n_trips), np.diff(self.first_row))

    def channel(self, name: str) -> np.ndarray | None:
        """One channel, or nothing if the file lacks it."""
        return self.channels.get(name)


def sum_by_trip(first_row: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sum over the rows of each trip."""
    if len(first_row) == 1:
        return np.zeros(0)
    return np.add.reduceat(values.astype(np.float64), first_row[:-1])


def max_by_trip(first_row: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Largest value of each trip; NaN counts as absent, and remains where all are NaN."""
    if len(first_row) == 1:
        return values[:0]
    return np.fmax.reduceat(values, first_row[:-1])


def min_by_trip(first_row: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Smallest value of each trip; NaN counts as absent, and remains where all are NaN."""
    if len(first_row) == 1:
        return values[:0]
    return np.fmin.reduceat(values, first_row[:-1])


def first_row_where(first_row: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Index of the first row of each trip with ``mask``; -1 where there is none."""
    n_rows = len(mask)
    found = min_by_trip(first_row, np.where(mask, np.arange(n_rows), n_rows))
    return np.where(found < n_rows, found, -1)


def last_row_where(first_row: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Index of the last row of each trip with ``mask``; -1 where there is none."""
    return max_by_trip(first_row, np.where(mask, np.arange(len(mask)), -1))
