"""What all releases from the same data have cost together, across runs and processes."""

import fcntl
import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from prisma_sbi._errors import BudgetError, InputDataError
from prisma_sbi.privacy import (
    Neighbors,
    PrivacyUnit,
    SynthesisSettings,
    epsilon_from_rho_delta,
    rho_from_epsilon_delta,
)

BOOK_NAME = "privacy-ledger.jsonl"
"""File of a results folder that no run ever deletes or rewrites."""


@dataclass(frozen=True, kw_only=True)
class BookEntry:
    """One release, written down before its mechanism ran.

    Attributes
    ----------
    time
        When, in UTC.
    release
        Key of the release; one that is made again has the same key and a second entry.
    mode
        Name of the release, for people.
    sources
        Digests of the private inputs. Two releases that share one are from the same data.
    epsilon, delta, rho
        The whole budget of the release, whether or not it came to an end.
    n_rows
        Rows, as the settings have them: a public number, None if it was left to the size of the
        table, or the word for a private one.
    unit, neighbors
        What counts as one record, and which two tables are compared.
    """

    time: str
    release: str
    mode: str
    sources: tuple[str, ...]
    epsilon: float
    delta: float
    rho: float
    n_rows: int | str | None = None
    unit: str = PrivacyUnit.TRIP
    neighbors: str = Neighbors.ADD_REMOVE


@dataclass(frozen=True, kw_only=True)
class BudgetTotal:
    r"""Cost of several releases from the same data, all published.

    Attributes
    ----------
    n_releases
        How many.
    rho
        Sum of their :math:`\rho`: the composition of zCDP.
    epsilon, delta
        What follows from ``rho`` for the largest delta among them.
    summed_epsilon, summed_delta
        Plain sums, the basic composition; a larger epsilon, and no assumption on the noise.
    unit, neighbors
        What is protected. Releases that differ in this are counted against the replacement of
        one trip; see :class:`BudgetBook`.
    """

    n_releases: int
    rho: float
    epsilon: float
    delta: float
    summed_epsilon: float
    summed_delta: float
    unit: str = PrivacyUnit.TRIP
    neighbors: str = Neighbors.ADD_REMOVE

    @property
    def text(self) -> str:
        """The total in words."""
        releases = "1 release was" if self.n_releases == 1 else f"{self.n_releases} releases were"
        return (
            f"{releases} made from these trips, earlier runs included. Published together they "
            f"cost each {self.unit} ({Neighbors(self.neighbors).text}) epsilon = "
            f"{self.epsilon:.4g} at delta = {self.delta:g} (zCDP, rho = {self.rho:.4g}); by plain "
            f"sums epsilon = {self.summed_epsilon:.4g}, delta = {self.summed_delta:g}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


class BudgetBook:
    r"""An append-only file that makes the releases from one data set add up.

    *Guarantee.* The total of the book is an upper bound on what the releases in it reveal
    about one record together, if every release from the data was written into this book
    and each is :math:`\rho`-zCDP with the :math:`\rho` of its entry. zCDP composes by
    addition, adaptively. An entry is on disk before :meth:`spend` returns, so a process that
    dies after it has spent, whatever came of it.

    =============================== ====================================================
    Case                            Result
    =============================== ====================================================
    no file                         an empty book; the first entry makes it
    a line that cannot be read      ``InputDataError`` naming it; nothing is written
    two processes at once           a lock: one of them sees the entry of the other
    the disk is full                the file is as before, and the error is raised
    a limit that would be exceeded  ``BudgetError``; nothing is written
    =============================== ====================================================

    Parameters
    ----------
    path
        A file of JSON lines. It names no trip, but stays with the private results: the
        digests tell which files were used.

    Notes
    -----
    Releases of one unit and one relation add up in these. If they differ, the total is for
    replacing one trip. Seen from a release, that changes :math:`m` records: 1 of single trips
    under replacement, 2 of trips added or removed or of vehicles under replacement, 4 of
    vehicles added or removed. It costs :math:`m^2\rho` by the group privacy of zCDP, or
    :math:`m\epsilon` with :math:`m e^{(m-1)\epsilon}\delta` in plain sums.

    To keep the book of single commands, make one beside the fit, and spend from it before
    ``synthesize`` is called::

        book = BudgetBook("out/privacy-ledger.jsonl")
        book.spend(settings, release=key, mode="epsilon=0.5", sources=path_sources([fit]))

    Whether two inputs are the same data is decided by their sources. Give all of them: a
    copy with other contents under another name is not recognized.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def entries(self, sources: Sequence[str] | None = None) -> tuple[BookEntry, ...]:
        """Entries in order, by default all of them.

        Parameters
        ----------
        sources
            Only entries that share one of these digests.

        Returns
        -------
        entries

        Raises
        ------
        InputDataError
            If a line cannot be read.
        """
        if not self.path.is_file():
            return ()
        text = self.path.read_text(encoding="utf-8")
        if text and not text.endswith("\n"):
            raise InputDataError(
                f"Expected whole lines in {self.path}; got a last one without an end. A process "
                "died while it wrote it, before its release began. Complete or remove that line."
            )
        found = [self._entry(line, row) for row, line in enumerate(text.splitlines(), 1)]
        return tuple(
            entry for entry in found if sources is None or set(sources) & set(entry.sources)
        )

    def has(self, release: str) -> bool:
        """Whether a release with this key was written down."""
        return any(entry.release == release for entry in self.entries())

    def total(self, sources: Sequence[str] | None = None) -> BudgetTotal | None:
        """Cost of all releases that share a source, or of all; None if there is none."""
        found = self.entries(sources)
        return _total(found) if found else None

    def require(
        self,
        releases: Sequence[SynthesisSettings],
        *,
        sources: Sequence[str],
        total_epsilon: float,
    ) -> None:
        """Raise unless these releases still fit; nothing is written.

        Parameters
        ----------
        releases
            Settings of the releases to come.
        sources
            Digests of the data they would come from.
        total_epsilon
            Limit for all releases from that data, at the smallest delta among them.

        Raises
        ------
        BudgetError
            If the sum of rho would exceed what the limit grants.
        """
        earlier = self.entries(sources)
        planned = [_new_entry(each, release="", mode="", sources=sources) for each in releases]
        together = (*earlier, *planned)
        if not together:
            return
        granted = rho_from_epsilon_delta(total_epsilon, min(entry.delta for entry in together))
        asked = _rho(together)
        if asked > Fraction(granted):
            raise BudgetError(
                f"Expected at most total_epsilon = {total_epsilon:g} for all releases from the "
                f"same trips (rho = {granted:.6g}); got {len(earlier)} earlier releases in "
                f"{self.path} and {len(planned)} more, with rho = {float(asked):.6g} together. "
                "Nothing was released. Use the releases that are there, or lower epsilon."
            )

    def spend(
        self,
        settings: SynthesisSettings,
        *,
        release: str,
        mode: str,
        sources: Sequence[str],
        total_epsilon: float | None = None,
    ) -> BookEntry:
        """Write a release down, before its mechanism runs.

        Parameters
        ----------
        settings
            How it will be made; its whole budget is entered.
        release, mode
            Key and name of the release.
        sources
            Digests of the private input; see :func:`path_sources`.
        total_epsilon
            Limit for all releases from the same data; None for none.

        Returns
        -------
        entry
            As it stands on disk.

        Raises
        ------
        BudgetError
            If a budget is impossible, or the limit would be exceeded.
        InputDataError
            If the book cannot be read.
        """
        entry = _new_entry(settings, release=release, mode=mode, sources=sources)
        with self._locked() as descriptor:
            if total_epsilon is None:
                self.entries()  # a book that cannot be read is not written to
            else:
                self.require([settings], sources=sources, total_epsilon=total_epsilon)
            _append(descriptor, json.dumps(asdict(entry)) + "\n")
        return entry

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file, open for appending, while no other process writes to it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)

    def _entry(self, line: str, row: int) -> BookEntry:
        """One line as an entry."""
        try:
            values = json.loads(line)
            entry = BookEntry(**(values | {"sources": tuple(values["sources"])}))
            rho_from_epsilon_delta(entry.epsilon, entry.delta)
            epsilon_from_rho_delta(entry.rho, entry.delta)
            _n_changed(entry)
        except (ValueError, TypeError, KeyError) as error:
            names = ", ".join(field.name for field in fields(BookEntry))
            raise InputDataError(
                f"Expected an entry with {names} in line {row} of {self.path}; got {error}. "
                "Nothing is released until the book is right: restore it from a copy."
            ) from error
        return entry


def _new_entry(
    settings: SynthesisSettings, *, release: str, mode: str, sources: Sequence[str]
) -> BookEntry:
    """The entry of a release to come."""
    return BookEntry(
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        release=release,
        mode=mode,
        sources=tuple(sources),
        epsilon=settings.epsilon,
        delta=settings.delta,
        rho=rho_from_epsilon_delta(settings.epsilon, settings.delta),
        n_rows=settings.n_rows,
        unit=str(settings.unit),
        neighbors=str(settings.neighbors),
    )


def _kind(entries: Sequence[BookEntry]) -> tuple[str, str]:
    """Unit and relation in which entries are added up."""
    kinds = {(entry.unit, entry.neighbors) for entry in entries}
    return kinds.pop() if len(kinds) == 1 else (str(PrivacyUnit.TRIP), str(Neighbors.REPLACE))


def _n_changed(entry: BookEntry) -> int:
    """Records of a release that change if one trip is replaced by another."""
    n_vehicles = 2 if PrivacyUnit(entry.unit) == PrivacyUnit.VEHICLE else 1
    return n_vehicles * (1 if Neighbors(entry.neighbors) == Neighbors.REPLACE else 2)


def _factors(entries: Sequence[BookEntry]) -> list[int]:
    """Records that change in each release, in the common unit and relation."""
    kind = _kind(entries)
    return [1 if (each.unit, each.neighbors) == kind else _n_changed(each) for each in entries]


def _rho(entries: Sequence[BookEntry]) -> Fraction:
    """Exact sum, in the common unit and relation."""
    factors = _factors(entries)
    return sum(
        (factor**2 * Fraction(each.rho) for factor, each in zip(factors, entries, strict=True)),
        start=Fraction(0),
    )


def _total(entries: Sequence[BookEntry]) -> BudgetTotal:
    """Cost of some releases, at least one."""
    factors = _factors(entries)
    rho, delta = float(_rho(entries)), max(entry.delta for entry in entries)
    unit, neighbors = _kind(entries)
    pairs = list(zip(factors, entries, strict=True))
    return BudgetTotal(
        n_releases=len(entries),
        rho=rho,
        epsilon=epsilon_from_rho_delta(rho, delta),
        delta=delta,
        summed_epsilon=sum(factor * each.epsilon for factor, each in pairs),
        summed_delta=sum(
            factor * math.exp((factor - 1) * each.epsilon) * each.delta for factor, each in pairs
        ),
        unit=unit,
        neighbors=neighbors,
    )


def path_sources(paths: Sequence[str | Path]) -> tuple[str, ...]:
    """Digests by which private files are known again: of each name, and of each content.

    Parameters
    ----------
    paths
        Files or folders, in any order.

    Returns
    -------
    sources
        Two short digests a path. A file that was moved still has its content, one that was
        written anew still has its name; either makes two inputs the same data.
    """
    found = []
    for path in paths:
        place = Path(path).resolve()
        found.append(_digest(b"name", str(place).encode()))
        files = sorted(item for item in place.rglob("*") if item.is_file())
        parts = [part for item in files for part in (item.name.encode(), item.read_bytes())]
        found.append(_digest(b"content", *(parts if place.is_dir() else [place.read_bytes()])))
    return tuple(dict.fromkeys(found))


def _digest(*parts: bytes) -> str:
    """Short digest of some bytes, each part told apart from the next."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.hexdigest()[:16]


def _append(descriptor: int, line: str) -> None:
    """Write a line and wait until it is on disk; a line that fails leaves nothing behind."""
    before = os.fstat(descriptor).st_size
    content = line.encode()
    try:
        if os.write(descriptor, content) != len(content):
            raise OSError(28, "No space left on device")
        os.fsync(descriptor)
    except BaseException:
        os.ftruncate(descriptor, before)
        raise
