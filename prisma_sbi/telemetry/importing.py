"""Files in, traces out, with an account of everything that was set aside."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.telemetry.facts import trip_facts
from prisma_sbi.telemetry.ledger import SET_ASIDE_COLUMNS, Ledger
from prisma_sbi.telemetry.power import VehicleFacts, trip_power
from prisma_sbi.telemetry.quality import QualityRules, judge_trips
from prisma_sbi.telemetry.reading import read_trips
from prisma_sbi.telemetry.resample import fill_forward, resample_mean
from prisma_sbi.telemetry.traces import TripTable, build_traces
from prisma_sbi.telemetry.trips import RawTrips
from prisma_sbi.telemetry.vehicles import read_vehicle_tables

_SUFFIXES = (".csv", ".parquet")
AnyPath = str | PathLike[str]


@dataclass(frozen=True, kw_only=True, eq=False)
class Imported:
    """Traces of the trips that were kept, and an account of the others.

    Attributes
    ----------
    traces
        Dims ``(trip, time)``: ``power_w`` and, per trip, ends, vehicle, source of power,
        duration, distance and speeds at the ends.
    set_aside
        Columns ``trip``, ``source`` (file), ``reason`` (a :class:`Reason`), ``detail``. An
        empty ``trip`` stands for rows or files that could not be told apart into trips.
    report
        Counts: files, rows and trips read, kept and set aside, by reason and power source.
    """

    traces: xr.Dataset
    set_aside: pd.DataFrame
    report: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class _Settings:
    """What stays the same from file to file."""

    bounds: Bounds
    n_times: int
    time_step_s: float
    vehicles: pd.DataFrame | None
    vehicle_types: tuple[str, ...] | None
    rules: QualityRules


def import_trips(
    paths: AnyPath | Sequence[AnyPath],
    *,
    bounds: Bounds,
    horizon_s: float = 500.0,
    time_step_s: float = 1.0,
    vehicle_tables: pd.DataFrame | Sequence[AnyPath] | None = None,
    vehicle_types: Sequence[str] | None = ("ICE", "HEV"),
    rules: QualityRules | None = None,
    max_trips: int | None = None,
    progress: Callable[[int, int, int], None] | None = None,
    region_fingerprint: str = "",
    file_format: str = "auto",
    column_names: Mapping[str, str] | None = None,
) -> Imported:
    """Read trips, derive their power, resample it, and set aside what cannot be used.

    Files are read one after the other, so memory holds one file and the traces.

    Parameters
    ----------
    paths
        Files, or folders of ``.csv`` and ``.parquet`` files (taken in order of name).
    bounds
        Trips that start or end outside are set aside.
    horizon_s, time_step_s
        Length and interval of the traces.
    vehicle_tables
        Result of :func:`read_vehicle_tables`, or the files to read it from. Without it,
        power from absolute load is not available and the type of VED's vehicles unknown.
    vehicle_types
        Types to keep, None for all. Trips of unknown type are kept.
    rules
        Thresholds; the default ones if None.
    max_trips
        Stop when so many trips are kept; later ones in the same file are only counted.
    progress
        Called after each file with files done, files in all, trips kept so far.
    region_fingerprint
        Stored with the traces to tie them to a region.
    file_format, column_names
        See :func:`read_trips`.

    Returns
    -------
    imported
        Trips in the order of the files, then of their identifiers.

    Raises
    ------
    InputDataError
        If there is no file, or none of them can be read.
    ValueError
        If a setting is out of range.

    Notes
    -----
    The start is the first known position, the end the last one before the earlier of trip
    end and horizon. Power is 0 after the end.
    """
    _validate.positive(horizon_s=horizon_s, time_step_s=time_step_s)
    n_times = round(horizon_s / time_step_s)
    _validate.at_least(1, n_times=n_times)
    if max_trips is not None:
        _validate.at_least(1, max_trips=max_trips)
    tables = vehicle_tables
    if tables is not None and not isinstance(tables, pd.DataFrame):
        tables = read_vehicle_tables(tables)
    settings = _Settings(
        bounds=bounds,
        n_times=n_times,
        time_step_s=time_step_s,
        vehicles=tables,
        vehicle_types=None if vehicle_types is None else tuple(vehicle_types),
        rules=rules or QualityRules(),
    )
    files = list_files(paths)
    ledger = Ledger(max_trips=max_trips)
    for n_done, file in enumerate(files, start=1):
        try:
            raw = read_trips(file, file_format=file_format, column_names=column_names)
        except InputDataError as error:
            ledger.fail(file.name, error)
        else:
            ledger.add(raw, *_use(raw, settings))
        if progress is not None:
            progress(n_done, len(files), ledger.n_kept)
        if ledger.is_full:
            break
    ledger.require_some_file(len(files))
    return Imported(
        traces=build_traces(
            ledger.kept,
            n_times=n_times,
            time_step_s=time_step_s,
            region_fingerprint=region_fingerprint,
        ),
        set_aside=pd.DataFrame(ledger.set_aside, columns=list(SET_ASIDE_COLUMNS), dtype=str),
        report=ledger.report(n_files=len(files)),
    )


def list_files(paths: AnyPath | Sequence[AnyPath]) -> list[Path]:
    """Files of trips in a fixed order; folders stand for the files in them."""
    listed = [paths] if isinstance(paths, str | PathLike) else list(paths)
    files: list[Path] = []
    for path in map(Path, listed):
        if path.is_dir():
            files.extend(sorted(f for f in path.iterdir() if f.suffix.lower() in _SUFFIXES))
        else:
            files.append(path)
    if not files:
        raise InputDataError(
            f"Expected CSV or Parquet files of trips; got none in {[str(p) for p in listed]}. "
            "Name the files or the folder that holds them."
        )
    return files


def _use(raw: RawTrips, settings: _Settings) -> tuple[TripTable, np.ndarray, np.ndarray]:
    """Everything about the trips of one file: their table, and the verdict on each."""
    vehicles = _vehicle_facts(raw, settings.vehicles)
    row_power_w, power_source = trip_power(raw, vehicles)
    horizon_s = settings.n_times * settings.time_step_s
    facts = trip_facts(raw, row_power_w, horizon_s=horizon_s, max_gap_s=settings.rules.max_gap_s)
    time_s = raw.channels["time_s"]
    power_w = resample_mean(
        time_s - time_s[raw.first_row[:-1]][raw.trip_of_row],
        np.nan_to_num(fill_forward(row_power_w, raw.first_row), posinf=0.0, neginf=0.0),
        raw.first_row,
        n_times=settings.n_times,
        time_step_s=settings.time_step_s,
    )
    verdicts = judge_trips(
        facts,
        power_w,
        power_source=power_source,
        vehicle_type=vehicles.vehicle_type,
        vehicle_types=settings.vehicle_types,
        bounds=settings.bounds,
        rules=settings.rules,
    )
    table = TripTable(
        trip=raw.trip,
        vehicle_id=raw.vehicle_id,
        vehicle_type=vehicles.vehicle_type,
        power_source=power_source,
        power_w=power_w.astype(np.float32),
        start_lat=facts.start_lat_deg,
        start_lon=facts.start_lon_deg,
        end_lat=facts.end_lat_deg,
        end_lon=facts.end_lon_deg,
        duration_s=facts.duration_s,
        distance_m=facts.speed_distance_m,
        start_speed_mps=facts.start_speed_mps,
        end_speed_mps=facts.end_speed_mps,
    )
    return table, verdicts.reason, verdicts.detail


def _vehicle_facts(raw: RawTrips, vehicles: pd.DataFrame | None) -> VehicleFacts:
    """Facts of the vehicle of each trip; the file's own word on the type comes first."""
    if vehicles is None:
        return VehicleFacts(
            vehicle_type=raw.vehicle_type,
            displacement_l=np.full(raw.n_trips, np.nan),
            is_diesel=np.zeros(raw.n_trips, dtype=bool),
        )
    rows = vehicles.reindex(pd.Index(raw.vehicle_id))
    from_table = rows["vehicle_type"].fillna("unknown").to_numpy(dtype=str)
    return VehicleFacts(
        vehicle_type=np.where(raw.vehicle_type == "unknown", from_table, raw.vehicle_type),
        displacement_l=rows["displacement_l"].to_numpy(dtype=np.float64),
        is_diesel=rows["is_diesel"].eq(True).to_numpy(dtype=bool),  # noqa: FBT003
    )
