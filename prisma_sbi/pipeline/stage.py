"""A stage that remembers: what it made, from what, and at what cost."""

import hashlib
import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from prisma_sbi._files import discard, remove, replacing

_MARKS = ".stages"


@dataclass(frozen=True, kw_only=True)
class StageRecord:
    """What a stage cost.

    Attributes
    ----------
    name
        Of the stage.
    seconds
        Wall time; that of the first run if the result was used again.
    peak_memory_mib
        Largest memory of the whole process up to the end of the stage.
    reused
        Whether an earlier result was found.
    detail
        A few words on what was done.
    """

    name: str
    seconds: float
    peak_memory_mib: float
    reused: bool
    detail: str = ""


@runtime_checkable
class Reporter(Protocol):
    """What a run tells while it goes on."""

    def stage(self, name: str, total_stages: int, index: int) -> None:
        """A stage begins."""
        ...

    def progress(self, done: int, total: int) -> None:
        """The stage has come so far."""
        ...

    def note(self, text: str) -> None:
        """Something a person should know."""
        ...

    def finished(self, record: StageRecord) -> None:
        """The stage is over."""
        ...


class Silence:
    """A reporter that says nothing."""

    def stage(self, name: str, total_stages: int, index: int) -> None:
        """Ignore."""

    def progress(self, done: int, total: int) -> None:
        """Ignore."""

    def note(self, text: str) -> None:
        """Ignore."""

    def finished(self, record: StageRecord) -> None:
        """Ignore."""


def stage_key(*parts: Any) -> str:
    """Digest of everything a stage depends on; equal for equal content."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def file_stamp(path: Path) -> list[Any]:
    """What tells one version of an input file or folder from another: name, size, time."""
    files = sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]
    return [[str(item), item.stat().st_size, item.stat().st_mtime_ns] for item in files]


def stage_file(name: str) -> str:
    """Name of a stage as its files have it."""
    return name.replace(" ", "-")


def find_stage(name: str, folder: Path, key: str) -> StageRecord | None:
    """What a finished stage with this key cost, or None if it has to be run."""
    mark = folder / _MARKS / f"{name}.json"
    if not mark.is_file():
        return None
    found = json.loads(mark.read_text())
    there = all((folder / artefact).exists() for artefact in found["artefacts"])
    if found["key"] != key or not there:
        return None
    return StageRecord(**(found["record"] | {"reused": True}))


def run_stage(
    name: str,
    folder: Path,
    key: str,
    make: Callable[[Path], str],
    *,
    force: bool = False,
) -> StageRecord:
    """Make the artefacts of a stage, or find that they are there already.

    Parameters
    ----------
    name
        Of the stage.
    folder
        Where the artefacts end up.
    key
        Digest of the inputs; artefacts with another key are made again.
    make
        Writes artefacts (files or folders) into the folder it is given, and returns a few
        words on what it did. Once it returns they are moved to ``folder`` and the stage is
        marked as done, the mark last: a run that is killed leaves finished stages as they
        were and the stage in work without a mark, to be made again.
    force
        Make it again in any case.
    """
    mark = folder / _MARKS / f"{name}.json"
    found = None if force else find_stage(name, folder, key)
    if found is not None:
        return found
    started = time.perf_counter()
    mark.parent.mkdir(parents=True, exist_ok=True)
    workshop = folder / _MARKS / f"{name}.partial"
    remove(workshop)
    try:
        # Inside, for Ctrl-C while the folder is being made shows only once it is there.
        workshop.mkdir()
        detail = make(workshop)
        mark.unlink(missing_ok=True)
        artefacts = sorted(item.name for item in workshop.iterdir())
        for artefact in artefacts:
            remove(folder / artefact)
            (workshop / artefact).rename(folder / artefact)
    except BaseException:
        discard(workshop)
        raise
    remove(workshop)
    record = StageRecord(
        name=name,
        seconds=time.perf_counter() - started,
        peak_memory_mib=peak_memory_mib(),
        reused=False,
        detail=detail,
    )
    with replacing(mark) as partial:
        state = {"key": key, "artefacts": artefacts, "record": asdict(record)}
        partial.write_text(json.dumps(state, indent=1))
    return record


def peak_memory_mib() -> float:
    """Largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
