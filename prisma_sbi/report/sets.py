"""Synthetic sets and what is known of the releases behind them."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

from prisma_sbi._errors import GuaranteeError
from prisma_sbi.privacy import Neighbors, PrivacyUnit
from prisma_sbi.telemetry import load_traces

_PROMISE = "Differentially private with "
_SYNTHETIC, _RELEASE = "synthetic", "release"


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticSet:
    """Synthetic traces, their statement, and the record of their release where it is at hand.

    Attributes
    ----------
    name
        Shown in tables and figures.
    traces
        As the decoder, or another generator, made them.
    release
        Content of ``release.json``, or empty.
    """

    name: str
    traces: xr.Dataset
    release: dict[str, Any] = field(default_factory=dict)

    @property
    def statement(self) -> str:
        """The guarantee in words, or its absence; empty where the set says nothing."""
        return str(self.traces.attrs.get("guarantee", ""))

    @property
    def is_private(self) -> bool:
        """Whether the set, and its release if that is at hand, state a guarantee."""
        recorded = bool(self.release.get("is_private", True))
        return recorded and self.statement.startswith(_PROMISE)

    @property
    def warnings(self) -> list[str]:
        """What a reader of this set must know."""
        found = [f"{self.name}: {sentence}" for sentence in self.release.get("warnings", [])]
        if not self.release and "Warning: " in self.statement:
            found += [f"{self.name}: {part}" for part in self.statement.split("Warning: ")[1:]]
        if not self.is_private:
            found.append(f"{self.name}: this set has no guarantee. Do not publish it.")
        for key, what in (
            ("n_redrawn", "rows could not be driven at first and were drawn again in their bins"),
            ("n_replaced", "rows could not be driven at all; others stand in for them"),
        ):
            count = int(self.traces.attrs.get(key, 0))
            if count:
                found.append(f"{self.name}: {count:,} {what}.")
        return found

    def require_private(self) -> None:
        """Raise :class:`GuaranteeError` unless a guarantee is stated."""
        if not self.is_private:
            said = self.statement or "It states none."
            raise GuaranteeError(
                f"Expected synthetic sets with a guarantee on a page to be released; got "
                f"{self.name!r} without one: {said} Leave it out, or make a private page."
            )


def read_set(path: Path | str, *, name: str = "") -> SyntheticSet:
    """Read synthetic traces, and the release beside them if there is one.

    Parameters
    ----------
    path
        Traces from the decoder. The release of ``synthetic-NAME.zarr`` is looked for in
        ``release-NAME`` beside it, and is believed only if its statement is that of the traces.
    name
        By default that of the file without its ending.

    Returns
    -------
    set

    Raises
    ------
    InputDataError
        If the traces cannot be read.
    """
    path = Path(path)
    traces = load_traces(path)
    stem = set_name(path)
    record: dict[str, Any] = {}
    if stem.startswith(_SYNTHETIC):
        folder = path.resolve().with_name(_RELEASE + stem.removeprefix(_SYNTHETIC))
        record = _release_record(folder, str(traces.attrs.get("guarantee", "")))
    return SyntheticSet(name=name or stem, traces=traces, release=record)


def set_name(path: Path) -> str:
    """Name of a set of traces: that of its file without the ending."""
    return path.resolve().name.removesuffix(".zarr").removesuffix(".nc")


def _release_record(folder: Path, statement: str) -> dict[str, Any]:
    """Record of a release that made traces with this statement, or nothing."""
    try:
        record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(record, dict) or record.get("kind") != _RELEASE:
        return {}
    return record if statement and record.get("statement") == statement else {}


def guarantee_facts(release: dict[str, Any]) -> dict[str, str]:
    """The promise of a release, name by name; empty without one."""
    found = release.get("guarantee")
    if not found:
        return {}
    unit = PrivacyUnit(found["unit"])
    settings = release["settings"]
    facts = {
        "epsilon": f"{found['epsilon']:g}",
        "delta": f"{found['delta']:g}",
        "zCDP": f"{found['rho']:.6g}",
        "unit": f"one {unit}" + ("" if unit == PrivacyUnit.TRIP else " with all of its trips"),
        "neighbors": Neighbors(found["neighbors"]).text,
        "rows": f"{found['n_rows']:,}, "
        + ("public" if found.get("n_rows_stddev") is None else "measured with noise"),
        "mechanism": str(settings["mechanism"]),
        "table": str(settings["table"]),
    }
    if unit == PrivacyUnit.VEHICLE:
        facts["trips of a vehicle"] = f"at most {found['max_trips']}"
    return facts


def not_covered(release: dict[str, Any]) -> list[str]:
    """What the promise of a release leaves out, in sentences; without a record what any does."""
    found = release.get("guarantee") or {}
    sentences = []
    if found.get("unit", PrivacyUnit.TRIP) == PrivacyUnit.TRIP:
        sentences.append(
            "A person with several trips is protected for each of them, not for all together."
        )
    else:
        sentences.append(
            "If the table was cut to a fixed number of trips, which trips one vehicle put out of "
            "it is not protected."
        )
    if found.get("n_rows_stddev") is None:
        sentences.append("The number of rows counts as public and is not protected.")
    return [
        *sentences,
        "Every other release from the same trips adds its own cost.",
        "Region, bins and settings count as public: the promise holds if nobody chose them by "
        "looking at the trips.",
        "What is true of drivers in general may still be learned; only the part of a single "
        f"{found.get('unit', 'record')} is hidden.",
    ]
