"""A release on disk: one folder with JSON for people and Parquet for rows."""

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.descriptors.layout import TableLayout
from prisma_sbi.descriptors.registry import layout_from_dict
from prisma_sbi.descriptors.table import DESCRIPTORS, make_descriptor_table
from prisma_sbi.privacy.ledger import Ledger
from prisma_sbi.privacy.release import Guarantee, MeasuredMarginal, Release
from prisma_sbi.privacy.settings import Neighbors, PrivacyUnit, SynthesisSettings
from prisma_sbi.region.record import Region

_KIND = "release"
_FORMAT_VERSION = 1
_RECORD = "release.json"
_ROWS = "rows.parquet"


def save_release(release: Release, folder: str | Path) -> Path:
    """Write a release as a folder, all or nothing.

    Parameters
    ----------
    release
        What to write.
    folder
        Target; a release that is already there is replaced once the new one is complete.

    Returns
    -------
    folder

    Raises
    ------
    OSError
        If the disk is full or the target cannot be written; what was there stays.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.partial-{os.getpid()}")
    old = folder.with_name(f".{folder.name}.old-{os.getpid()}")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        _rows_frame(release).to_parquet(partial / _ROWS, index=False)
        text = json.dumps(_record(release), indent=1, allow_nan=False)
        (partial / _RECORD).write_text(text + "\n", encoding="utf-8")
        if folder.exists():
            folder.replace(old)
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if old.exists() and not folder.exists():
            old.replace(folder)
        shutil.rmtree(old, ignore_errors=True)
    return folder


def load_release(folder: str | Path, region: Region | None = None) -> Release:
    """Read a release written by :func:`save_release`.

    Parameters
    ----------
    folder
        Folder of the release.
    region
        Public inputs that it was made with. A release of the route table cannot be read
        without them; any other is checked against them if they are given.

    Returns
    -------
    release

    Raises
    ------
    InputDataError
        If the folder holds no release, a part is missing or of another version, or the rows
        do not fit the record.
    BudgetError
        If the ledger spends more than its budget.
    """
    folder = Path(folder)
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        rows = pd.read_parquet(folder / _ROWS)
    except (OSError, ValueError) as error:
        raise InputDataError(
            f"Expected a release in {folder}; got {error}. Synthesize again, or check the path."
        ) from error
    kind, version = record.get("kind"), record.get("format_version")
    if kind != _KIND or version != _FORMAT_VERSION:
        raise InputDataError(
            f"Expected a release of version {_FORMAT_VERSION} in {folder}; got {kind!r}, "
            f"version {version!r}. Use the version of prisma_sbi that wrote it."
        )
    if len(rows) != record["n_rows"]:
        raise InputDataError(
            f"Expected {record['n_rows']} rows in {folder / _ROWS}; got {len(rows)}. "
            "The file was changed after it was written: synthesize again."
        )
    layout = layout_from_dict(record["layout"], region)
    binned = record["binned"]
    return Release(
        layout=layout,
        settings=SynthesisSettings.from_dict(record["settings"]),
        codes=_codes(rows, layout, folder) if binned else None,
        exact=None if binned else _exact(rows, layout),
        guarantee=_guarantee(record["guarantee"]),
        no_guarantee=record["no_guarantee"],
        ledger=None if record["ledger"] is None else Ledger.from_dict(record["ledger"]),
        measured=tuple(
            MeasuredMarginal(**item | {"columns": tuple(item["columns"])})
            for item in record["measured"]
        ),
        warnings=tuple(record["warnings"]),
        seed=record["seed"],
        versions=record["versions"],
    )


def _record(release: Release) -> dict[str, Any]:
    """Everything but the rows, as plain values."""
    return {
        "kind": _KIND,
        "format_version": _FORMAT_VERSION,
        "statement": release.guarantee_text(),
        "is_private": release.is_private,
        "n_rows": release.n_rows,
        "binned": release.codes is not None,
        "region_fingerprint": release.region_fingerprint,
        "settings": release.settings.to_dict(),
        "guarantee": None if release.guarantee is None else asdict(release.guarantee),
        "no_guarantee": release.no_guarantee,
        "warnings": list(release.warnings),
        "measured": [asdict(item) for item in release.measured],
        "ledger": None if release.ledger is None else release.ledger.to_dict(),
        "layout": release.layout.to_dict(),
        "seed": release.seed,
        "versions": dict(release.versions),
    }


def _rows_frame(release: Release) -> pd.DataFrame:
    """Arrange the rows: bins by column name, or exact values with the names of the trips."""
    if release.codes is not None:
        names = release.layout.names
        return pd.DataFrame({name: release.codes[:, index] for index, name in enumerate(names)})
    assert release.exact is not None
    values = {name: release.exact[name].values for name in DESCRIPTORS}
    return pd.DataFrame({"trip": release.exact["trip"].values.astype(object)} | values)


def _codes(rows: pd.DataFrame, layout: TableLayout, folder: Path) -> np.ndarray:
    """Bins in the order of the layout."""
    missing = [name for name in layout.names if name not in rows]
    if missing:
        raise InputDataError(
            f"Expected the columns {layout.names} in {folder / _ROWS}; "
            f"got none of {missing}. Synthesize again."
        )
    return rows[list(layout.names)].to_numpy(dtype=np.int32)


def _exact(rows: pd.DataFrame, layout: TableLayout) -> xr.Dataset:
    """Exact descriptors as a table."""
    return make_descriptor_table(
        {name: rows[name].to_numpy() for name in DESCRIPTORS},
        trip=rows["trip"].tolist(),
        region_fingerprint=layout.region_fingerprint,
    )


def _guarantee(values: dict[str, Any] | None) -> Guarantee | None:
    """Read the guarantee of a record."""
    if values is None:
        return None
    enums = {"unit": PrivacyUnit(values["unit"]), "neighbors": Neighbors(values["neighbors"])}
    return Guarantee(**values | enums)
