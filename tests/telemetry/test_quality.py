"""Every reason to set a trip aside is provoked, each by one fault in a good trip."""

import numpy as np
import pandas as pd
import pytest

from prisma_sbi.telemetry import QualityRules, Reason, import_trips
from tests.telemetry.tables import BOUNDS, plain_trip, ved_trip, write

FAULTS = {}


def fault(reason):
    """Register a fault under its reason."""

    def register(make):
        FAULTS[reason] = make
        return make

    return register


@fault(Reason.CORRUPT_ROW)
def half_the_rows_without_time(frame):
    frame.loc[::2, "time_s"] = np.nan
    return frame


@fault(Reason.VEHICLE_TYPE)
def electric_car(frame):
    return frame.assign(vehicle_type="EV")


@fault(Reason.NEGATIVE_TIME)
def clock_that_starts_below_zero(frame):
    return frame.assign(time_s=frame["time_s"] - 50.0)


@fault(Reason.TOO_SHORT)
def half_a_minute(frame):
    return frame.iloc[:31]


@fault(Reason.NO_POWER_SIGNAL)
def nothing_logged(frame):
    return frame.assign(power_w=np.nan)


@fault(Reason.GAP)
def twenty_seconds_missing_on_the_move(frame):
    return frame.drop(index=range(40, 60))


@fault(Reason.MISSING_COORDINATES)
def no_positions(frame):
    return frame.assign(lat=np.nan, lon=np.nan)


@fault(Reason.OUT_OF_REGION)
def start_in_another_city(frame):
    frame.loc[0, "lat"] = 47.0
    return frame


@fault(Reason.STUCK_GPS)
def position_stands_still_at_speed(frame):
    frame.loc[5:, ["lat", "lon"]] = 42.31, -83.7
    return frame


@fault(Reason.START_EQUALS_END)
def round_trip(frame):
    frame["lat"] = 42.3 + np.abs(frame["lat"] - frame["lat"].iloc[60])
    return frame


@fault(Reason.IMPOSSIBLE_POWER)
def milliwatts_taken_for_watts(frame):
    return frame.assign(power_w=10e6)


@fault(Reason.DISTANCE_MISMATCH)
def speed_in_other_units(frame):
    return frame.assign(speed_mps=3.0)


def run(tmp_path, frame, **options):
    return import_trips(write(frame, tmp_path / "t.parquet"), bounds=BOUNDS, **options)


def test_good_trip_is_kept(tmp_path):
    imported = run(tmp_path, plain_trip())
    assert imported.traces["trip"].values.tolist() == ["a"]
    assert imported.set_aside.empty


@pytest.mark.parametrize("reason", FAULTS, ids=str)
def test_one_fault_sets_one_trip_aside_and_keeps_the_others(tmp_path, reason):
    bad = FAULTS[reason](plain_trip("bad"))
    imported = run(tmp_path, pd.concat([plain_trip("a"), bad, plain_trip("z")]))
    assert imported.traces["trip"].values.tolist() == ["a", "z"]
    assert imported.set_aside[["trip", "source", "reason"]].values.tolist() == [
        ["bad", "t.parquet", str(reason)]
    ]
    assert imported.set_aside["detail"].iloc[0].endswith(".")


def test_every_reason_is_provoked_somewhere():
    by_files = {Reason.UNREADABLE_FILE, Reason.DUPLICATE_TRIP}  # in test_importing
    assert set(FAULTS) | by_files == set(Reason)


def test_short_burst_of_impossible_power_is_found(tmp_path):
    frame = plain_trip()
    frame.loc[50, "power_w"] = 900e3
    imported = run(tmp_path, frame)
    assert imported.set_aside["reason"].tolist() == ["impossible_power"]
    assert "900 kW" in imported.set_aside["detail"].iloc[0]


def test_silence_at_a_red_light_is_no_gap_but_a_long_one_is(tmp_path):
    def with_stop(length):
        frame = ved_trip(maf=3.0)
        frame.loc[39:, "Vehicle Speed[km/h]"] = np.where(np.arange(39, 121) < 61, 0.0, 36.0)
        frame.loc[40:, "Timestamp(ms)"] += 1000 * length
        return frame

    short = import_trips(write(with_stop(30), tmp_path / "a.csv"), bounds=BOUNDS)
    assert short.report["trips_kept"] == 1
    long = import_trips(write(with_stop(90), tmp_path / "b.csv"), bounds=BOUNDS)
    assert long.set_aside["reason"].tolist() == ["gap"]
    assert "at a stand" in long.set_aside["detail"].iloc[0]


def test_gap_beyond_the_horizon_does_not_matter(tmp_path):
    frame = plain_trip().drop(index=range(80, 100))
    assert run(tmp_path, frame).set_aside["reason"].tolist() == ["gap"]
    assert run(tmp_path, frame, horizon_s=75.0).report["trips_kept"] == 1


def test_rules_move_the_thresholds(tmp_path):
    frame = plain_trip(n_rows=31)
    rules = QualityRules(min_duration_s=20.0)
    assert run(tmp_path, frame, rules=rules).report["trips_kept"] == 1


@pytest.mark.parametrize("name", ["min_duration_s", "max_gap_s", "max_power_w"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_rules_reject_impossible_thresholds(name, value):
    with pytest.raises(ValueError, match=name):
        QualityRules(**{name: value})
