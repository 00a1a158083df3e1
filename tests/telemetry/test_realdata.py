"""Published VED files."""

import time

import numpy as np
import pytest

from prisma_sbi.region.bounds import Bounds
from prisma_sbi.telemetry import import_trips, load_traces, save_traces

pytestmark = pytest.mark.realdata

ANN_ARBOR = Bounds(south_deg=42.226, north_deg=42.327, west_deg=-83.804, east_deg=-83.672)


def test_csv_and_parquet_of_the_same_week_agree(reference_data):
    ved = reference_data / "ved"
    options = {
        "bounds": ANN_ARBOR,
        "vehicle_tables": sorted((ved / "raw").glob("*.xlsx")),
        "vehicle_types": None,
    }
    csv = import_trips(ved / "raw" / "VED_171101_week.csv", **options)
    parquet = import_trips(ved / "weeks" / "VED_171101_week.parquet", **options)
    assert csv.report["trips_read"] == 60
    kept = csv.traces["trip"].values
    assert len(kept) > 30
    assert set(kept) <= set(parquet.traces["trip"].values)
    both = parquet.traces.sel(trip=kept)
    for name in ("vehicle_type", "vehicle_id", "power_source"):
        assert both[name].values.tolist() == csv.traces[name].values.tolist()
    np.testing.assert_allclose(both["power_w"], csv.traces["power_w"], rtol=1e-4, atol=1.0)
    for name in ("start_lat", "start_lon", "end_lat", "end_lon"):
        np.testing.assert_allclose(both[name], csv.traces[name], atol=1.1e-6)
    np.testing.assert_allclose(both["distance_m"], csv.traces["distance_m"], rtol=1e-5)
    mine = csv.set_aside.set_index("trip")["reason"]
    theirs = parquet.set_aside.set_index("trip")["reason"]
    assert theirs.loc[mine.index].tolist() == mine.tolist()


def test_three_weeks_are_read_in_ten_seconds_and_look_like_driving(reference_data, tmp_path):
    weeks = sorted((reference_data / "ved" / "weeks").glob("*.parquet"))[:3]
    tables = sorted((reference_data / "ved" / "raw").glob("*.xlsx"))
    begin = time.perf_counter()
    imported = import_trips(weeks, bounds=ANN_ARBOR, vehicle_tables=tables)
    assert time.perf_counter() - begin < 10.0  # 36 weeks in two minutes
    report, traces = imported.report, imported.traces
    assert report["trips_kept"] + report["trips_set_aside"] == report["trips_read"]
    assert report["trips_kept"] > 0.75 * report["trips_read"]
    assert set(report["kept_by_power_source"]) <= {"maf", "absolute_load", "fuel_rate"}
    assert set(traces["vehicle_type"].values) == {"ICE", "HEV"}
    power_w = traces["power_w"].values
    assert np.isfinite(power_w).all()
    assert power_w.min() == 0.0
    assert 15e3 < np.median(power_w[power_w > 0]) < 30e3
    after = np.arange(500) >= np.ceil(traces["duration_s"].values)[:, None]
    assert (power_w[after] == 0.0).all()
    save_traces(traces, tmp_path / "t.zarr")
    assert load_traces(tmp_path / "t.zarr").identical(traces)
