"""Readers: one file in, its raw trips out."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.telemetry.columns import (
    EVED_CHANNELS,
    TABLE_CHANNELS,
    TABLE_LABELS,
    TABLE_OPTIONAL,
    TABLE_REQUIRED,
    TRIP_COLUMN,
    VED_CHANNELS,
    VED_REQUIRED,
    VEHICLE_COLUMN,
    TripFormat,
    detect_format,
    require_columns,
)
from prisma_sbi.telemetry.loading import column_names_of, load_columns
from prisma_sbi.telemetry.trips import RawTrips
from prisma_sbi.units import MPS_PER_KMH

_COLUMNS: Mapping[TripFormat, frozenset[str]] = {
    TripFormat.TABLE: frozenset((*TABLE_REQUIRED, *TABLE_OPTIONAL)),
    TripFormat.VED: frozenset((VEHICLE_COLUMN, TRIP_COLUMN, *VED_CHANNELS)),
    TripFormat.EVED: frozenset((VEHICLE_COLUMN, TRIP_COLUMN, *VED_CHANNELS, *EVED_CHANNELS)),
}
_VEHICLE_TYPES = ("ICE", "HEV", "PHEV", "EV")
_WEEK = re.compile(r"(?<!\d)(\d{6})(?!\d)")
_CONVERSIONS = {
    "time_ms": ("time_s", 1e-3),
    "speed_kmh": ("speed_mps", MPS_PER_KMH),
    "speed_limit_kmh": ("speed_limit_mps", MPS_PER_KMH),
}
"""Channels that change unit on the way in: new name and factor."""


def read_trips(
    path: str | PathLike[str],
    *,
    file_format: str = "auto",
    column_names: Mapping[str, str] | None = None,
) -> RawTrips:
    """Read all trips of one file of VED, eVED or a plain table, as CSV or Parquet.

    Parameters
    ----------
    path
        File ending in ``.parquet``, ``.csv`` or ``.txt``.
    file_format
        ``"ved"``, ``"eved"``, ``"table"``, or ``"auto"``: told from the column names.
    column_names
        Our name to yours, for instance ``{"trip": "journey", "power_w": "P"}``.

    Returns
    -------
    trips
        Rows sorted by vehicle, trip and time, in SI.

    Raises
    ------
    InputDataError
        If the file cannot be read, lacks a column or has no row.

    Notes
    -----
    A row whose trip or time is not a number, whose coordinates are off the globe, or which
    holds text where a number belongs, is dropped and counted on its trip. A row without
    coordinates is kept: loggers write positions less often than power.

    VED trips are called ``<yymmdd>/<VehId>/<Trip>``, the week taken from the file name. In
    eVED the matched coordinates take the place of the raw ones where there are any.

    ========================  =====================================================
    Plain table               column
    ========================  =====================================================
    required                  ``trip``, ``time_s``, ``lat``, ``lon``, ``power_w``
    optional                  ``speed_mps``, ``vehicle_id``, ``vehicle_type``
    ========================  =====================================================
    """
    _validate.one_of(("auto", *TripFormat), file_format=file_format)
    file = Path(path)
    present = column_names_of(file)
    renames = {theirs: ours for ours, theirs in (column_names or {}).items()}
    require_columns(present, list(renames), source=file.name)
    names = [renames.get(name, name) for name in present]
    kind = (
        detect_format(names, source=file.name) if file_format == "auto" else TripFormat(file_format)
    )
    require_columns(
        names, TABLE_REQUIRED if kind is TripFormat.TABLE else VED_REQUIRED, source=file.name
    )
    wanted = {
        theirs: ours for theirs, ours in zip(present, names, strict=True) if ours in _COLUMNS[kind]
    }
    columns, malformed = load_columns(file, list(wanted))
    frame = {ours: columns[theirs] for theirs, ours in wanted.items()}
    if not len(frame["lat" if kind is TripFormat.TABLE else TRIP_COLUMN]) and not malformed:
        raise InputDataError(f"Expected trips in {file.name}; got a file without rows. Remove it.")
    if kind is TripFormat.TABLE:
        return _from_table(file, frame, malformed)
    return _from_ved(file, frame, malformed)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rows:
    """Rows in the order of the file.

    ``keys`` has the columns that tell trips apart; ``name`` gives trip, vehicle and vehicle
    type of a row.
    """

    keys: pd.DataFrame
    channels: dict[str, np.ndarray]
    nameless: np.ndarray
    corrupt: np.ndarray
    name: Callable[[int], tuple[str, str, str]]
    malformed: list[str]


def _number(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Values as float64, and where there was something that is no number."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan), np.zeros(len(column), bool)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise InputDataError(
            f"Expected numbers in the column {column.name!r}; got dates, the first "
            f"{column.iloc[0]}. Convert them to seconds."
        )
    values = pd.Series(pd.to_numeric(column.astype("string"), errors="coerce"))
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers, np.isnan(numbers) & column.notna().to_numpy(dtype=bool)


def _text(column: pd.Series) -> pd.Series:
    """Labels as text, whole numbers without a decimal point, missing ones empty."""
    if pd.api.types.is_float_dtype(column.dtype):
        present = column.dropna()
        if (present == present.round()).all():
            column = column.astype("Int64")
    return column.astype("string").str.strip().fillna("").astype(object)


def _channels(
    frame: Mapping[str, pd.Series], names: Mapping[str, str]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Numeric channels in SI, and which rows are corrupt."""
    channels: dict[str, np.ndarray] = {}
    corrupt = np.zeros(len(next(iter(frame.values()))), dtype=bool)
    for column, channel in names.items():
        if column not in frame:
            continue
        values, is_text = _number(frame[column])
        corrupt |= is_text
        name, factor = _CONVERSIONS.get(channel, (channel, 1.0))
        channels[name] = values * factor if factor != 1.0 else values
    corrupt |= ~np.isfinite(channels["time_s"])
    corrupt |= (np.abs(channels["lat_deg"]) > 90) | (np.abs(channels["lon_deg"]) > 180)
    if {"matched_lat_deg", "matched_lon_deg"} <= set(channels):
        lat_deg, lon_deg = channels.pop("matched_lat_deg"), channels.pop("matched_lon_deg")
        matched = (np.abs(lat_deg) <= 90) & (np.abs(lon_deg) <= 180)
        channels["lat_deg"] = np.where(matched, lat_deg, channels["lat_deg"])
        channels["lon_deg"] = np.where(matched, lon_deg, channels["lon_deg"])
    return channels, corrupt


def _from_ved(file: Path, frame: Mapping[str, pd.Series], malformed: list[str]) -> RawTrips:
    """Trips of a VED or eVED file."""
    channels, corrupt = _channels(frame, {**VED_CHANNELS, **EVED_CHANNELS})
    vehicle, _ = _number(frame[VEHICLE_COLUMN])
    trip, _ = _number(frame[TRIP_COLUMN])
    whole = (vehicle == np.round(vehicle)) & (trip == np.round(trip))
    vehicle = np.where(whole, vehicle, 0).astype(np.int64)
    trip = np.where(whole, trip, 0).astype(np.int64)
    week = _WEEK.search(file.stem)
    prefix = week.group(1) if week else file.stem

    def name(row: int) -> tuple[str, str, str]:
        return f"{prefix}/{vehicle[row]}/{trip[row]}", str(vehicle[row]), "unknown"

    rows = _Rows(
        keys=pd.DataFrame({"vehicle": vehicle, "trip": trip}),
        channels=channels,
        nameless=~whole,
        corrupt=corrupt,
        name=name,
        malformed=malformed,
    )
    return _assemble(file.name, rows)


def _from_table(file: Path, frame: Mapping[str, pd.Series], malformed: list[str]) -> RawTrips:
    """Trips of a plain tidy table."""
    channels, corrupt = _channels(frame, TABLE_CHANNELS)
    trip = _text(frame["trip"])
    unknown = pd.Series("unknown", index=trip.index)
    labels = {
        label: _text(frame[label]).replace("", "unknown") if label in frame else unknown
        for label in TABLE_LABELS
    }

    def name(row: int) -> tuple[str, str, str]:
        vehicle_id, vehicle_type = (str(labels[label].iloc[row]) for label in TABLE_LABELS)
        if vehicle_type.upper() in _VEHICLE_TYPES:
            vehicle_type = vehicle_type.upper()
        return str(trip.iloc[row]), vehicle_id, vehicle_type

    rows = _Rows(
        keys=pd.DataFrame({"trip": trip}),
        channels=channels,
        nameless=(trip == "").to_numpy(dtype=bool),
        corrupt=corrupt,
        name=name,
        malformed=malformed,
    )
    return _assemble(file.name, rows)


def _assemble(source: str, rows: _Rows) -> RawTrips:
    """Sort, split into trips, drop what is corrupt, and account for it."""
    codes = rows.keys.groupby(list(rows.keys.columns), sort=True).ngroup().to_numpy()
    order = np.lexsort((rows.channels["time_s"], codes))
    order = order[(~rows.nameless & ~rows.corrupt)[order]]
    n_codes = codes.max(initial=-1) + 1
    corrupt_rows = np.bincount(codes[~rows.nameless & rows.corrupt], minlength=n_codes)
    present, starts = np.unique(codes[order], return_index=True)
    named = [rows.name(int(order[start])) for start in starts]
    trip, vehicle_id, vehicle_type = (
        np.array([entry[k] for entry in named], dtype=str) for k in range(3)
    )
    return RawTrips(
        source=source,
        trip=trip,
        vehicle_id=vehicle_id,
        vehicle_type=vehicle_type,
        first_row=np.append(starts, len(order)).astype(np.int64),
        channels={name: values[order] for name, values in rows.channels.items()},
        corrupt_rows=corrupt_rows[present].astype(np.int64),
        lost=_lost(rows, codes, corrupt_rows, present),
        n_rows_read=len(codes) + len(rows.malformed),
    )


def _lost(
    rows: _Rows, codes: np.ndarray, corrupt_rows: np.ndarray, present: np.ndarray
) -> tuple[tuple[str, str], ...]:
    """Rows without a trip, and trips without a row."""
    lost = [("", f"Too few or too many fields on {text}.") for text in rows.malformed]
    n_nameless = int(rows.nameless.sum())
    if n_nameless:
        first = int(np.flatnonzero(rows.nameless)[0]) + 1
        lost.append(("", f"{n_nameless} rows name no trip, the first is data row {first}."))
    for code in np.setdiff1d(np.flatnonzero(corrupt_rows), present):
        row = int(np.flatnonzero((codes == code) & ~rows.nameless)[0])
        text = f"All {corrupt_rows[code]} rows are corrupt, the first is data row {row + 1}."
        lost.append((rows.name(row)[0], text))
    return tuple(lost)
