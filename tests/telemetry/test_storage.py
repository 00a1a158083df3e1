"""Traces survive the disk, and the disk survives a failed write."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.telemetry import load_traces, save_traces
from prisma_sbi.telemetry.traces import TripTable, build_traces


def traces_of(n_trips: int, seed: int = 0) -> xr.Dataset:
    rng = np.random.default_rng(seed)

    def labels(width):
        return np.array([f"{k:0{width}d}é" for k in range(n_trips)], dtype=f"<U{width + 1}")

    numbers = {
        name: rng.normal(size=n_trips)
        for name in (
            "start_lat",
            "start_lon",
            "end_lat",
            "end_lon",
            "duration_s",
            "start_speed_mps",
            "end_speed_mps",
        )
    }
    table = TripTable(
        trip=labels(12),
        vehicle_id=labels(3),
        vehicle_type=labels(2),
        power_source=labels(5),
        power_w=rng.normal(size=(n_trips, 50)).astype(np.float32),
        distance_m=np.full(n_trips, np.nan),
        **numbers,
    )
    return build_traces([table], n_times=50, time_step_s=2.0, region_fingerprint="f00")


@pytest.mark.parametrize("name", ["t.zarr", "deep/er/t.zarr", "t.nc"])
@pytest.mark.parametrize("n_trips", [0, 1, 40])
def test_what_is_loaded_is_what_was_saved(tmp_path, name, n_trips):
    traces = traces_of(n_trips)
    assert save_traces(traces, tmp_path / name) == tmp_path / name
    loaded = load_traces(tmp_path / name)
    xr.testing.assert_identical(loaded, traces)
    for variable in traces.variables:
        assert loaded[variable].dtype.kind == traces[variable].dtype.kind
        if traces[variable].dtype.kind != "U":
            assert loaded[variable].dtype == traces[variable].dtype
    save_traces(loaded, tmp_path / "again.zarr")
    xr.testing.assert_identical(load_traces(tmp_path / "again.zarr"), traces)


@pytest.mark.parametrize("name", ["t.zarr", "t.nc"])
def test_saving_replaces_and_leaves_nothing_beside(tmp_path, name):
    save_traces(traces_of(7), tmp_path / name)
    save_traces(traces_of(3), tmp_path / name)
    assert load_traces(tmp_path / name).sizes["trip"] == 3
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["t.zarr", "t.nc"])
def test_write_that_fails_half_way_keeps_the_old_and_cleans_up(tmp_path, name, monkeypatch):
    save_traces(traces_of(7), tmp_path / name)

    def full_disk(_, path, **__):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(xr.Dataset, "to_zarr", full_disk)
    monkeypatch.setattr(xr.Dataset, "to_netcdf", full_disk)
    with pytest.raises(OSError, match="No space"):
        save_traces(traces_of(3), tmp_path / name)
    assert load_traces(tmp_path / name).sizes["trip"] == 7
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_leftovers_of_a_killed_process_do_no_harm(tmp_path):
    for name in ("t.zarr.partial", "t.zarr.replaced"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rubbish").write_text("x")
    save_traces(traces_of(2), tmp_path / "t.zarr")
    assert [path.name for path in tmp_path.iterdir()] == ["t.zarr"]


def test_wrong_kind_and_version_are_refused(tmp_path):
    traces = traces_of(2)
    with pytest.raises(InputDataError, match="kind='traces'; got 'descriptors'"):
        save_traces(traces.assign_attrs(kind="descriptors"), tmp_path / "t.zarr")
    save_traces(traces, tmp_path / "t.zarr")
    meta = tmp_path / "t.zarr" / "zarr.json"
    content = json.loads(meta.read_text())
    content["attributes"]["format_version"] = 99
    meta.write_text(json.dumps(content))
    with pytest.raises(InputDataError, match="format version 1; got 99"):
        load_traces(tmp_path / "t.zarr")


def test_absent_and_damaged_stores_are_refused(tmp_path):
    with pytest.raises(InputDataError, match="got nothing"):
        load_traces(tmp_path / "t.zarr")
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(InputDataError, match="damaged or of another kind"):
        load_traces(tmp_path / "empty.zarr")
    (tmp_path / "t.nc").write_bytes(b"not netCDF")
    with pytest.raises(InputDataError, match="damaged or of another kind"):
        load_traces(tmp_path / "t.nc")
    save_traces(traces_of(2), tmp_path / "u.zarr")
    (tmp_path / "u.zarr" / "power_w" / "zarr.json").write_text("{")
    with pytest.raises(InputDataError, match="u.zarr"):
        load_traces(tmp_path / "u.zarr")
