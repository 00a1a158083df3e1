"""Vehicle tables of VED: type and displacement of each car."""

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from prisma_sbi._errors import InputDataError
from prisma_sbi._optional import optional_import

_TYPE_COLUMNS = ("Vehicle Type", "EngineType")
_ENGINE_COLUMN = "Engine Configuration & Displacement"
_LITERS = re.compile(r"(\d+(?:\.\d+)?)\s*L(?![A-Z])", re.IGNORECASE)
_DIESEL = re.compile(r"\b(?:DSL|DIESEL|TDI)\b", re.IGNORECASE)


def read_vehicle_tables(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
) -> pd.DataFrame:
    """Read the static vehicle tables that VED publishes beside its trips.

    Parameters
    ----------
    paths
        One or more books (``.xlsx``) or tables (``.csv``); the column of the vehicle type
        may be called ``Vehicle Type`` or ``EngineType``.

    Returns
    -------
    vehicles
        Indexed by ``vehicle_id`` (str), with ``vehicle_type`` (ICE, HEV, PHEV, EV),
        ``displacement_l`` (NaN if the engine text has none) and ``is_diesel``.

    Raises
    ------
    InputDataError
        If a table cannot be read, lacks a column, or names a vehicle twice with different
        facts.
    ImportError
        If a book is given and ``openpyxl`` is not installed.

    Notes
    -----
    The displacement is the number before an ``L`` in texts such as ``4-FI 2.4L``,
    ``4-GAS/ELECTRIC 1.8L`` or ``H-4 2.0 L/122``.
    """
    listed = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if not listed:
        raise InputDataError("Expected at least one vehicle table; got none. Name its file.")
    table = pd.concat([_read_one(Path(path)) for path in listed])
    repeated = table.reset_index().duplicated().to_numpy(dtype=bool)
    table = table.loc[~repeated]
    twice = table.index[table.index.duplicated()]
    if len(twice):
        raise InputDataError(
            f"Expected each vehicle once in the vehicle tables; got {sorted(set(twice))} with "
            "different facts. Remove the wrong rows."
        )
    return table


def parse_displacement_l(engine: str) -> float:
    """Displacement in liters from the text that describes an engine; NaN if it has none."""
    found = _LITERS.search(engine)
    return float(found.group(1)) if found else float("nan")


def _read_one(path: Path) -> pd.DataFrame:
    """One table, in the form that the public function returns."""
    if path.suffix.lower() == ".xlsx":
        optional_import("openpyxl", extra="geo")
    try:
        raw = pd.read_csv(path) if path.suffix.lower() == ".csv" else pd.read_excel(path)
    except Exception as error:
        raise InputDataError(
            f"Expected a readable vehicle table in {path}; got {error}. Check the file."
        ) from error
    kind = next((name for name in _TYPE_COLUMNS if name in raw.columns), None)
    missing = [name for name in ("VehId", _ENGINE_COLUMN) if name not in raw.columns]
    if kind is None:
        missing.append(" or ".join(_TYPE_COLUMNS))
    if missing or kind is None:
        raise InputDataError(
            f"Expected the columns VehId, {_ENGINE_COLUMN}, {' or '.join(_TYPE_COLUMNS)} in "
            f"{path.name}; missing: {', '.join(missing)}. Use VED's static data as published."
        )
    engine = raw[_ENGINE_COLUMN].fillna("").astype(str)
    displacement_l = np.array([parse_displacement_l(text) for text in engine], dtype=np.float64)
    return pd.DataFrame(
        {
            "vehicle_type": raw[kind].fillna("unknown").astype(str).str.strip().to_numpy(),
            "displacement_l": displacement_l,
            "is_diesel": engine.str.contains(_DIESEL).to_numpy(dtype=bool),
        },
        index=pd.Index(raw["VehId"].astype(int).astype(str).to_numpy(), name="vehicle_id"),
    )
