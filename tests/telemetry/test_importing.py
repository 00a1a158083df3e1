"""Imports of many files: order, account, ends, and what happens to bad files."""

import numpy as np
import pandas as pd
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.telemetry import import_trips, require_traces
from tests.telemetry.tables import BOUNDS, plain_trip, ved_trip, write

TABLE = pd.DataFrame(
    {
        "vehicle_type": ["ICE", "EV", "ICE"],
        "displacement_l": [2.0, np.nan, 6.7],
        "is_diesel": [False, False, True],
    },
    index=pd.Index(["8", "10", "119"], name="vehicle_id"),
)


def test_traces_have_the_agreed_form(tmp_path):
    imported = import_trips(
        write(plain_trip(), tmp_path / "t.csv"), bounds=BOUNDS, region_fingerprint="abc"
    )
    traces = imported.traces
    require_traces(traces)
    assert traces["power_w"].dims == ("trip", "time")
    assert traces["power_w"].dtype == np.float32
    assert traces.sizes == {"trip": 1, "time": 500}
    np.testing.assert_array_equal(traces["time"], np.arange(500.0))
    assert traces["time"].attrs["units"] == "s"
    assert traces.attrs == {
        "kind": "traces",
        "format_version": 1,
        "horizon_s": 500.0,
        "time_step_s": 1.0,
        "region_fingerprint": "abc",
    }
    np.testing.assert_array_equal(traces["power_w"][0], np.where(np.arange(500) < 120, 1e4, 0.0))
    trip = traces.isel(trip=0)
    assert (float(trip["start_lat"]), float(trip["start_lon"])) == (42.3, -83.7)
    assert float(trip["end_lat"]) == plain_trip()["lat"].iloc[-1]
    assert float(trip["duration_s"]) == 120.0
    assert float(trip["distance_m"]) == pytest.approx(1200.0)
    assert float(trip["start_speed_mps"]) == float(trip["end_speed_mps"]) == 10.0
    assert str(trip["power_source"].values) == "given"
    assert str(trip["vehicle_type"].values) == "unknown"


def test_end_is_the_position_at_the_horizon_of_a_longer_trip(tmp_path):
    path = write(plain_trip(n_rows=301), tmp_path / "t.csv")
    traces = import_trips(path, bounds=BOUNDS, horizon_s=200, time_step_s=2.0).traces
    assert traces.sizes["time"] == 100
    assert float(traces["end_lat"][0]) == plain_trip(n_rows=301)["lat"].iloc[200]
    assert float(traces["duration_s"][0]) == 200.0
    assert float(traces["distance_m"][0]) == pytest.approx(2000.0)
    np.testing.assert_array_equal(traces["power_w"][0], np.float32(1e4))


def test_energy_of_irregular_samples_is_kept(tmp_path):
    rng = np.random.default_rng(0)
    frame = plain_trip(n_rows=200)
    frame["power_w"] = rng.uniform(0, 5e4, 200)
    frame = frame[(rng.random(200) < 0.7) | (frame["time_s"] == 0)]
    traces = import_trips(write(frame, tmp_path / "t.csv"), bounds=BOUNDS).traces
    joules = (frame["power_w"].to_numpy()[:-1] * np.diff(frame["time_s"])).sum()
    assert float(traces["power_w"].sum()) == pytest.approx(joules, rel=1e-5)


def test_order_is_that_of_files_then_trips_and_the_account_adds_up(tmp_path):
    write(pd.concat([plain_trip("d"), plain_trip("c")]), tmp_path / "2.csv")
    write(pd.concat([plain_trip("b"), plain_trip("x", n_rows=20)]), tmp_path / "10.csv")
    (tmp_path / "notes.txt").write_text("not a trip")
    imported = import_trips(tmp_path, bounds=BOUNDS)
    assert imported.traces["trip"].values.tolist() == ["b", "c", "d"]
    report = imported.report
    assert (report["files_read"], report["trips_read"], report["rows_read"]) == (2, 4, 383)
    assert report["trips_kept"] + report["trips_set_aside"] == report["trips_read"]
    assert report["set_aside_by_reason"] == {"too_short": 1}
    assert report["kept_by_power_source"] == {"given": 3}
    turned = import_trips([tmp_path / "2.csv", tmp_path / "10.csv"], bounds=BOUNDS)
    assert turned.traces["trip"].values.tolist() == ["c", "d", "b"]


def test_unreadable_file_becomes_a_row_and_the_others_are_read(tmp_path):
    (tmp_path / "bad.csv").write_bytes(b"")
    good = write(plain_trip(), tmp_path / "good.csv")
    incomplete = write(plain_trip().drop(columns="lat"), tmp_path / "incomplete.csv")
    imported = import_trips([tmp_path / "bad.csv", good, incomplete], bounds=BOUNDS)
    assert imported.traces.sizes["trip"] == 1
    assert imported.set_aside[["trip", "source", "reason"]].values.tolist() == [
        ["", "bad.csv", "unreadable_file"],
        ["", "incomplete.csv", "unreadable_file"],
    ]
    assert "missing: lat" in imported.set_aside["detail"].iloc[1]
    assert imported.report["files_unreadable"] == 2


def test_import_of_nothing_but_unreadable_files_raises(tmp_path):
    (tmp_path / "bad.csv").write_bytes(b"")
    with pytest.raises(InputDataError, match="1 unreadable. The first: .*empty file"):
        import_trips(tmp_path / "bad.csv", bounds=BOUNDS)
    with pytest.raises(InputDataError, match="got none"):
        import_trips([], bounds=BOUNDS)


def test_second_trip_of_the_same_name_is_a_duplicate(tmp_path):
    paths = [write(plain_trip(), tmp_path / name) for name in ("1.csv", "2.csv")]
    imported = import_trips(paths, bounds=BOUNDS)
    assert imported.traces.sizes["trip"] == 1
    assert imported.set_aside[["source", "reason"]].values.tolist() == [["2.csv", "duplicate_trip"]]


def test_corrupt_rows_are_counted_and_the_trip_is_kept(tmp_path):
    frame = plain_trip()
    frame["power_w"] = frame["power_w"].astype(object)
    frame.loc[7, "power_w"] = "??"
    imported = import_trips(write(frame, tmp_path / "t.csv"), bounds=BOUNDS)
    assert imported.report["rows_corrupt"] == 1
    assert imported.traces.sizes["trip"] == 1
    np.testing.assert_array_equal(imported.traces["power_w"][0, :120], np.float32(1e4))


def test_max_trips_stops_early_and_says_what_was_left(tmp_path):
    for name in ("1.csv", "2.csv", "3.csv"):
        write(pd.concat([plain_trip(f"{name}{k}") for k in range(3)]), tmp_path / name)
    calls = []
    imported = import_trips(
        tmp_path, bounds=BOUNDS, max_trips=4, progress=lambda *done: calls.append(done)
    )
    assert imported.traces.sizes["trip"] == 4
    assert imported.report["trips_beyond_max"] == 2
    assert imported.report["files_not_needed"] == 1
    assert calls == [(1, 3, 3), (2, 3, 4)]


def test_vehicle_table_gives_type_displacement_and_fuel(tmp_path):
    frame = pd.concat(
        [
            ved_trip(8, 1, load=40.0, rpm=1200.0),
            ved_trip(10, 1, voltage=300.0, current=-10.0),
            ved_trip(119, 1, maf=5.0),
            ved_trip(77, 1, maf=5.0),
        ]
    )
    path = write(frame, tmp_path / "VED_171101_week.csv")
    imported = import_trips(path, bounds=BOUNDS, vehicle_tables=TABLE)
    assert imported.traces["trip"].values.tolist() == ["171101/8/1", "171101/77/1"]
    assert imported.traces["vehicle_type"].values.tolist() == ["ICE", "unknown"]
    expected = 0.4 * 1.184 * 2.0 * 10 * 1e-3 * 43.4e6 / 14.7
    assert float(imported.traces["power_w"][0, 0]) == pytest.approx(expected, rel=1e-6)
    assert dict(zip(imported.set_aside["trip"], imported.set_aside["reason"], strict=True)) == {
        "171101/10/1": "vehicle_type",
        "171101/119/1": "no_power_signal",
    }
    everything = import_trips(path, bounds=BOUNDS, vehicle_tables=TABLE, vehicle_types=None)
    assert everything.report["kept_by_power_source"] == {
        "absolute_load": 1,
        "battery": 1,
        "maf": 1,
    }
    assert float(everything.traces["power_w"].sel(trip="171101/10/1")[0]) == 3000.0


def test_import_without_a_single_good_trip_is_empty_with_an_account(tmp_path):
    path = write(plain_trip(n_rows=10), tmp_path / "t.csv")
    imported = import_trips(path, bounds=BOUNDS)
    assert imported.traces.sizes == {"trip": 0, "time": 500}
    assert imported.report["set_aside_by_reason"] == {"too_short": 1}
    nothing_left = write(plain_trip().assign(lat=1e3), tmp_path / "u.csv")
    imported = import_trips(nothing_left, bounds=BOUNDS)
    assert imported.set_aside[["trip", "reason"]].values.tolist() == [["a", "corrupt_row"]]
    assert imported.traces.sizes["trip"] == 0


@pytest.mark.parametrize("option", ["horizon_s", "time_step_s", "max_trips"])
def test_settings_out_of_range_raise(tmp_path, option):
    path = write(plain_trip(), tmp_path / "t.csv")
    with pytest.raises(ValueError, match=option):
        import_trips(path, bounds=BOUNDS, **{option: 0})
