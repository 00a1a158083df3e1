"""Account of an import: what was kept, what was set aside, and the counts."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from prisma_sbi._errors import InputDataError
from prisma_sbi.telemetry.quality import Reason
from prisma_sbi.telemetry.traces import TripTable
from prisma_sbi.telemetry.trips import RawTrips

SET_ASIDE_COLUMNS = ("trip", "source", "reason", "detail")


@dataclass(kw_only=True)
class Ledger:
    """Running account, file by file; every trip that was read ends in exactly one place.

    Attributes
    ----------
    max_trips
        Once so many are kept, further trips are only counted.
    kept
        Tables of kept trips, one per file.
    set_aside
        Rows of the set-aside table.
    """

    max_trips: int | None = None
    kept: list[TripTable] = field(default_factory=list)
    set_aside: list[tuple[str, str, str, str]] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)
    _counts: Counter[str] = field(default_factory=Counter)
    _first_failure: str = ""

    @property
    def n_kept(self) -> int:
        """Trips kept so far."""
        return sum(len(table.trip) for table in self.kept)

    @property
    def is_full(self) -> bool:
        """Whether enough trips are kept."""
        return self.max_trips is not None and self.n_kept >= self.max_trips

    def fail(self, source: str, error: Exception) -> None:
        """Enter a file that cannot be read."""
        self._first_failure = self._first_failure or str(error)
        self._counts["files_unreadable"] += 1
        self.set_aside.append(("", source, Reason.UNREADABLE_FILE.value, str(error)))

    def add(self, raw: RawTrips, table: TripTable, reason: np.ndarray, detail: np.ndarray) -> None:
        """Enter the trips of one file with their verdicts."""
        self._counts["files_read"] += 1
        self._counts["rows_read"] += raw.n_rows_read
        self._counts["rows_corrupt"] += raw.n_rows_read - int(raw.first_row[-1])
        self._counts["trips_read"] += raw.n_trips + sum(trip != "" for trip, _ in raw.lost)
        self.set_aside.extend(
            (trip, raw.source, Reason.CORRUPT_ROW.value, text) for trip, text in raw.lost
        )
        chosen: list[int] = []
        room = np.inf if self.max_trips is None else self.max_trips - self.n_kept
        for k, trip in enumerate(raw.trip.tolist()):
            if trip in self._seen:
                text = "A trip of this name came earlier; the first one counts."
                self.set_aside.append((trip, raw.source, Reason.DUPLICATE_TRIP.value, text))
            elif reason[k]:
                self.set_aside.append((trip, raw.source, str(reason[k]), str(detail[k])))
            elif len(chosen) < room:
                chosen.append(k)
            else:
                self._counts["trips_beyond_max"] += 1
            self._seen.add(trip)
        self.kept.append(table.select(np.array(chosen, dtype=np.int64)))

    def require_some_file(self, n_files: int) -> None:
        """Raise :class:`InputDataError` if no file could be read."""
        if not self._counts["files_read"]:
            raise InputDataError(
                f"Expected at least one readable file of trips; got {n_files} unreadable. "
                f"The first: {self._first_failure}"
            )

    def report(self, *, n_files: int) -> dict[str, Any]:
        """Counts of files, rows and trips, by reason and by source of power."""
        names = ("files_read", "files_unreadable", "rows_read", "rows_corrupt", "trips_read")
        counts: dict[str, Any] = {name: self._counts[name] for name in names}
        done = self._counts["files_read"] + self._counts["files_unreadable"]
        by_reason = Counter(reason for _, _, reason, _ in self.set_aside)
        by_source = Counter(source for table in self.kept for source in table.power_source.tolist())
        return counts | {
            "files_not_needed": n_files - done,
            "trips_kept": self.n_kept,
            "trips_set_aside": sum(trip != "" for trip, *_ in self.set_aside),
            "trips_beyond_max": self._counts["trips_beyond_max"],
            "set_aside_by_reason": dict(sorted(by_reason.items())),
            "kept_by_power_source": dict(sorted(by_source.items())),
        }
