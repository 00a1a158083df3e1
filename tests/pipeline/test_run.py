"""The whole road on a small simulated fleet, and what happens when things go wrong."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prisma_sbi._errors import GuaranteeError, InputDataError, RegionMismatchError
from prisma_sbi.decoding import decode
from prisma_sbi.encoding import descriptor_table, encode, load_fit, save_fit, status_counts
from prisma_sbi.pipeline import demo_config, load_config, run_pipeline
from prisma_sbi.pipeline.config import EncodeConfig
from prisma_sbi.pipeline.stage import run_stage
from prisma_sbi.privacy import SynthesisSettings, load_release, synthesize
from prisma_sbi.region import Constants, demo_region, load_region
from prisma_sbi.simulator.fleet import simulate_fleet
from prisma_sbi.telemetry import load_traces


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of 96 trips."""
    folder = tmp_path_factory.mktemp("run")
    return run_pipeline(demo_config(n_trips=96), folder), demo_config(n_trips=96)


def test_run_leaves_what_it_promises(run):
    result, _ = run
    there = {item.name for item in result.folder.iterdir()}
    assert {"metrics.json", "real.zarr", "synthetic-none.zarr", "synthetic-epsilon=1.zarr"} <= there
    assert {"release-none", "release-epsilon=1", "descriptors.parquet"} <= there
    assert {"set_aside.csv", "figures", "log.json", "recovery.json"} <= there
    keys = {"acf_x_floor", "fid_x_floor", "precision_raw", "recall_raw"}
    for scores in result.metrics["modes"].values():
        assert keys | {"precision_standardized", "recall_standardized"} <= set(scores)
    trips = result.metrics["trips"]["modes"]
    assert set(trips) == set(result.metrics["modes"])
    for name in ("length", "energy", "origin_destination"):
        assert 0 < trips["none"][f"{name}_x_floor"] < 5
    assert list(result.metrics["workload"]) == ["epsilon=1"]
    workload = result.metrics["workload"]["epsilon=1"]
    assert workload["private"] is True
    assert 0 < workload["bootstrap"] < workload["error"] < 1
    synthetic = load_traces(result.folder / "synthetic-epsilon=1.zarr")
    assert synthetic["power_w"].dims == ("trip", "time")
    assert synthetic.sizes == {"trip": 24, "time": 500}
    log = json.loads((result.folder / "log.json").read_text())
    assert all(stage["seconds"] > 0 and stage["peak_memory_mib"] > 0 for stage in log["stages"])


def test_known_descriptors_come_back(run):
    result, _ = run
    assert result.recovery["detour"]["correlation"] > 0.8
    assert result.recovery["aggressiveness"]["median_abs_error"] < 0.15


def test_finished_stages_are_reused_and_a_lost_one_is_redone(run):
    result, config = run
    before = load_traces(result.folder / "synthetic-epsilon=1.zarr")
    again = run_pipeline(config, result.folder)
    assert all(record.reused for record in again.stages)
    shutil.rmtree(result.folder / "synthetic-epsilon=1.zarr")
    again = run_pipeline(config, result.folder)
    redone = [record.name for record in again.stages if not record.reused]
    assert redone == ["decode-epsilon=1"]
    assert before.identical(load_traces(result.folder / "synthetic-epsilon=1.zarr"))


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_stage_that_dies_leaves_nothing_half_written(tmp_path, fault):
    def good(out):
        (out / "a.txt").write_text("whole")
        return "done"

    def dies(out):
        (out / "a.txt").write_text("ha")
        raise fault

    run_stage("one", tmp_path, "key", good)
    with pytest.raises(type(fault)):
        run_stage("one", tmp_path, "other key", dies)
    assert (tmp_path / "a.txt").read_text() == "whole"
    assert run_stage("one", tmp_path, "key", dies).reused
    assert not run_stage("one", tmp_path, "other key", good).reused


def test_a_stage_interrupted_while_its_folder_is_made_leaves_none(tmp_path, monkeypatch):
    make = Path.mkdir

    def interrupted(folder, *args, **kwargs):
        make(folder, *args, **kwargs)
        if folder.suffix == ".partial":
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_stage("one", tmp_path, "key", lambda out: "done")
    assert not list(tmp_path.rglob("*.partial"))


def test_the_error_of_a_stage_is_seen_though_its_leftovers_stay(tmp_path, monkeypatch):
    def busy(folder):
        raise OSError(39, "Directory not empty", str(folder))

    def dies(out):
        monkeypatch.setattr(shutil, "rmtree", busy)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stage("one", tmp_path, "key", dies)
    monkeypatch.undo()
    assert not run_stage("one", tmp_path, "key", lambda out: "done").reused
    assert not list(tmp_path.rglob("*.partial"))


def test_release_that_is_not_private_is_refused(run):
    region = load_region(run[0].folder / "region")
    release = load_release(run[0].folder / "release-none", region)
    with pytest.raises(GuaranteeError, match="without"):
        decode(release, region)
    with pytest.raises(ValueError, match="n_traces"):
        decode(release, region, n_traces=0, allow_unprotected=True)
    traces = decode(release, region, n_traces=150, allow_unprotected=True)
    assert traces.sizes["trip"] == 150
    assert traces.attrs["guarantee"].startswith("NO GUARANTEE")


def test_two_regions_do_not_mix(run):
    folder = run[0].folder
    other = demo_region(constants=Constants(creep_speed_mps=4.0))
    fit = load_fit(folder / "fit.zarr")
    with pytest.raises(RegionMismatchError, match="fit"):
        descriptor_table(other, fit)
    with pytest.raises(RegionMismatchError, match="traces"):
        encode(other, load_traces(folder / "train.zarr"))
    with pytest.raises(RegionMismatchError, match="release"):
        load_release(folder / "release-epsilon=1", other)


def test_bad_trips_are_flagged_and_harm_no_other(run, tmp_path):
    region = load_region(run[0].folder / "region")
    good = load_traces(run[0].folder / "train.zarr").isel(trip=slice(0, 32))
    bad = good.copy(deep=True)
    bad["power_w"].values[0, 7] = np.nan
    bad["power_w"].values[1] = 0.0
    bad["start_lat"].values[2] = np.nan
    bad["end_lon"].values[3] = 10.0
    bad["end_lat"].values[4], bad["end_lon"].values[4] = (
        bad["start_lat"].values[4],
        bad["start_lon"].values[4],
    )
    fit = encode(region, bad)
    counts = status_counts(fit)
    assert (counts["bad_trace"], counts["not_routed"]) == (2, 3)
    assert descriptor_table(region, fit).sizes["trip"] == 27
    alone = encode(region, good)
    for name in ("aggressiveness", "detour", "vehicle"):
        np.testing.assert_array_equal(
            fit["posterior"][name].values[0, 0, 5:], alone["posterior"][name].values[0, 0, 5:]
        )
    save_fit(fit, tmp_path / "fit.zarr")
    assert load_fit(tmp_path / "fit.zarr").identical(fit)


def test_traces_of_another_horizon_are_refused(run):
    region = load_region(run[0].folder / "region")
    traces = load_traces(run[0].folder / "train.zarr").isel(time=slice(0, 100))
    with pytest.raises(InputDataError, match="500 samples"):
        encode(region, traces)
    with pytest.raises(InputDataError, match="power_w"):
        encode(region, traces.drop_vars("power_w"))
    with pytest.raises(InputDataError, match="at least one trip"):
        encode(region, traces.isel(trip=[]))


def test_pool_of_one_vehicle_works():

    from prisma_sbi.region import builtin_pool

    region = replace(demo_region(), vehicles=builtin_pool(1))
    fit = encode(region, simulate_fleet(region, 8))
    assert np.all(fit["posterior"]["vehicle"].values == 0)
    release = synthesize(descriptor_table(region, fit), region, SynthesisSettings(epsilon=1.0))
    assert decode(release, region, seed=0).sizes["trip"] == release.n_rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[split]\nn_trains = 3\n", "n_trains"),
        ("[split]\nn_train = 'many'\n", "split.n_train"),
        ("[synthesize]\nepsilons = [-1.0]\n", "epsilon"),
        ("[synthesize]\ndelta = 1.0\n", "delta"),
        ("[region]\npool_size = 0\n", "pool_size"),
        ("[region.constants]\ngravity = 9.0\n", "gravity"),
        ("[region.constants]\npreset = 'surreal'\n", "'published', 'realistic'"),
        ("[encode]\nlikelihood = 'odor'\n", "'summary', 'texture', 'trace'"),
        ("not toml", "TOML"),
    ],
)
def test_configuration_errors_name_the_key(tmp_path, text, message):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(InputDataError, match=message):
        load_config(tmp_path / "c.toml")


def test_a_preset_of_constants_can_be_changed_further(tmp_path):
    text = "[region.constants]\npreset = 'realistic'\nbrake_fraction = 0.9\n"
    (tmp_path / "c.toml").write_text(text)
    constants = Constants.from_dict(load_config(tmp_path / "c.toml").region.constants)
    assert constants == Constants.preset("realistic", brake_fraction=0.9)
    assert Constants.from_dict(constants.to_dict()) == constants
    assert Constants.preset("published") == Constants()


def test_a_run_sees_texture_under_the_realistic_preset(tmp_path):
    config = demo_config(n_trips=16)
    config = replace(
        config,
        region=replace(config.region, constants={"preset": "realistic"}),
        encode=EncodeConfig(likelihood="texture"),
        evaluate=replace(config.evaluate, figures=False),
    )
    result = run_pipeline(config, tmp_path)
    assert load_region(tmp_path / "region").constants == Constants.preset("realistic")
    fit = load_fit(tmp_path / "fit.zarr")
    assert json.loads(fit.attrs["model"])["likelihood"]["name"] == "texture"
    real = load_traces(tmp_path / "real.zarr")["power_w"].values
    assert np.median(real[:, 0]) > 10_000  # on the move from the first second
    assert set(result.metrics["modes"]) == {"none", "epsilon=1"}
