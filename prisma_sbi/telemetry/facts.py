"""What one needs to know about each raw trip to judge it and to describe it."""

from dataclasses import dataclass

import numpy as np

from prisma_sbi.region.assembly import great_circle_m
from prisma_sbi.telemetry.trips import (
    RawTrips,
    first_row_where,
    last_row_where,
    max_by_trip,
    sum_by_trip,
)

STANDING_SPEED_MPS = 0.5
"""Slower counts as standing; speed is logged in steps of 1 km/h."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TripFacts:
    """Per trip, each of shape (n_trips,); "within the horizon" unless said otherwise.

    Attributes
    ----------
    first_time_s
        Time stamp of the first row, before times are counted from it.
    duration_s
        From the first to the last row, at most the horizon.
    longest_gap_s, longest_stop_s
        Longest stretch without a sample of power, begun within the horizon: on the move, and
        while the vehicle stands (speed zero at the sample before and at the one after).
        Loggers that write on change are silent in front of a red light.
    start_lat_deg, start_lon_deg, end_lat_deg, end_lon_deg
        First and last known position; NaN if it is too old or too late.
    displacement_m
        Great-circle distance between the two.
    gps_distance_m, speed_distance_m
        Length of the path by positions, and by speed (NaN without speed).
    frozen_m
        Longest distance driven, by speed, while the position stood still.
    start_speed_mps, end_speed_mps
        Speed at the first sample and at the last.
    row_share_corrupt
        Dropped rows over all rows of the whole trip.
    """

    first_time_s: np.ndarray
    duration_s: np.ndarray
    longest_gap_s: np.ndarray
    longest_stop_s: np.ndarray
    start_lat_deg: np.ndarray
    start_lon_deg: np.ndarray
    end_lat_deg: np.ndarray
    end_lon_deg: np.ndarray
    displacement_m: np.ndarray
    gps_distance_m: np.ndarray
    speed_distance_m: np.ndarray
    frozen_m: np.ndarray
    start_speed_mps: np.ndarray
    end_speed_mps: np.ndarray
    row_share_corrupt: np.ndarray


def trip_facts(
    raw: RawTrips, power_w: np.ndarray, *, horizon_s: float, max_gap_s: float
) -> TripFacts:
    """Gather the facts of all trips of a file in one pass over its rows.

    Parameters
    ----------
    raw
        Trips of one file.
    power_w : (n_rows,)
        Power at each row, NaN where unknown.
    horizon_s
        Rows later than this do not count.
    max_gap_s
        The first (last) position may lie this far from the first (last) row in the horizon.

    Returns
    -------
    facts
        One value per trip and fact.
    """
    first_row, row = raw.first_row, raw.trip_of_row
    time_s = raw.channels["time_s"] - raw.channels["time_s"][first_row[:-1]][row]
    inside = time_s <= horizon_s
    duration_s = np.minimum(max_by_trip(first_row, time_s), horizon_s)
    lat_deg, lon_deg = raw.channels["lat_deg"], raw.channels["lon_deg"]
    placed = inside & np.isfinite(lat_deg) & np.isfinite(lon_deg)
    start, end = first_row_where(first_row, placed), last_row_where(first_row, placed)
    start_ok = (start >= 0) & (time_s[start] <= max_gap_s)
    end_ok = (end >= 0) & (max_by_trip(first_row, time_s * inside) - time_s[end] <= max_gap_s)
    start_lat, start_lon = _pick(lat_deg, start, start_ok), _pick(lon_deg, start, start_ok)
    end_lat, end_lon = _pick(lat_deg, end, end_ok), _pick(lon_deg, end, end_ok)
    speed = raw.channel("speed_mps")
    speed_mps = np.full(len(row), np.nan) if speed is None else speed
    rolled_m = _distance_by_speed(first_row, time_s, speed_mps, horizon_s)
    moving = inside & np.isfinite(speed_mps)
    n_inside = sum_by_trip(first_row, inside)
    known_speed = sum_by_trip(first_row, moving) >= 0.9 * n_inside
    gps_m, frozen_m = _along_positions(raw, placed, rolled_m)
    fastest = (first_row_where(first_row, moving), last_row_where(first_row, moving))
    n_rows = np.diff(first_row)
    gap_s, stop_s = _longest_gaps(raw, time_s, power_w, speed_mps, horizon_s)
    return TripFacts(
        first_time_s=raw.channels["time_s"][first_row[:-1]],
        duration_s=duration_s,
        longest_gap_s=gap_s,
        longest_stop_s=stop_s,
        start_lat_deg=start_lat,
        start_lon_deg=start_lon,
        end_lat_deg=end_lat,
        end_lon_deg=end_lon,
        displacement_m=great_circle_m(start_lat, start_lon, end_lat, end_lon),
        gps_distance_m=gps_m,
        speed_distance_m=np.where(known_speed, sum_by_trip(first_row, rolled_m), np.nan),
        frozen_m=np.where(known_speed, frozen_m, 0.0),
        start_speed_mps=_pick(speed_mps, fastest[0], fastest[0] >= 0),
        end_speed_mps=_pick(speed_mps, fastest[1], fastest[1] >= 0),
        row_share_corrupt=raw.corrupt_rows / (raw.corrupt_rows + n_rows),
    )


def _pick(values: np.ndarray, rows: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Values at given rows, NaN where the row is not valid."""
    return np.where(valid, values[rows], np.nan)


def _distance_by_speed(
    first_row: np.ndarray, time_s: np.ndarray, speed_mps: np.ndarray, horizon_s: float
) -> np.ndarray:
    """Distance rolled from each row to the next, up to the horizon; 0 from the last row."""
    clipped = np.minimum(time_s, horizon_s)
    step_s = np.diff(clipped, append=0.0)
    step_s[first_row[1:] - 1] = 0.0
    return np.nan_to_num(speed_mps) * step_s


def _along_positions(
    raw: RawTrips, placed: np.ndarray, rolled_m: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Path length by positions, and the longest distance rolled on one position."""
    rows = np.flatnonzero(placed)
    gps_m, frozen_m = np.zeros(raw.n_trips), np.zeros(raw.n_trips)
    if not len(rows):
        return gps_m, frozen_m
    trip = raw.trip_of_row[rows]
    lat_deg, lon_deg = raw.channels["lat_deg"][rows], raw.channels["lon_deg"][rows]
    same = trip[1:] == trip[:-1]
    step_m = great_circle_m(lat_deg[:-1], lon_deg[:-1], lat_deg[1:], lon_deg[1:])
    gps_m = np.bincount(trip[1:], weights=np.where(same, step_m, 0.0), minlength=raw.n_trips)
    odometer_m = (np.cumsum(rolled_m) - rolled_m)[rows]
    new_place = np.append(True, ~same | (step_m > 0))
    since = np.maximum.accumulate(np.where(new_place, np.arange(len(rows)), 0))
    rolled_here_m = odometer_m - odometer_m[since]
    np.maximum.at(frozen_m, trip, rolled_here_m)
    return gps_m, frozen_m


def _longest_gaps(
    raw: RawTrips,
    time_s: np.ndarray,
    power_w: np.ndarray,
    speed_mps: np.ndarray,
    horizon_s: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Longest wait for power on the move and at a stand, ends of the trip included."""
    first_row, row = raw.first_row, raw.trip_of_row
    last_row = first_row[1:] - 1
    known = np.isfinite(power_w)
    points = known.copy()
    points[first_row[:-1]] = points[last_row] = True
    rows = np.flatnonzero(points)
    trip, times, standing = row[rows], time_s[rows], speed_mps[rows] <= STANDING_SPEED_MPS
    same = trip[1:] == trip[:-1]
    waits = np.where(same & (times[:-1] < horizon_s), np.diff(times), 0.0)
    at_stand = standing[:-1] & standing[1:]
    gap_s, stop_s = np.zeros(raw.n_trips), np.zeros(raw.n_trips)
    np.maximum.at(gap_s, trip[:-1], np.where(at_stand, 0.0, waits))
    np.maximum.at(stop_s, trip[:-1], np.where(at_stand, waits, 0.0))
    return gap_s, stop_s
