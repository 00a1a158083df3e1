"""`prisma study`: tables, data and figures in a folder, refusals, and what is private."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tests.cli.conftest import prisma, prisma_json, refusal

COMMANDS = ("calibrate", "local", "profile", "vehicles", "atlas")


def test_help_lists_the_studies():
    done = prisma("study", "--help")
    assert done.exit_code == 0
    assert all(f" {name} " in done.stdout for name in COMMANDS)
    assert " study " in prisma("--help").stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches(name):
    done = prisma("study", name, "--help")
    assert done.exit_code == 0
    text = " ".join(done.stdout.split())
    assert f"Example: prisma study {name} " in text
    assert "--json" in text
    assert max(map(len, done.stdout.splitlines())) <= 80


def _open(path: Path) -> xr.Dataset:
    return xr.open_zarr(path, consolidated=False)


def test_atlas_writes_data_table_and_maps(tmp_path, city):
    out = tmp_path / "atlas"
    options = ("study", "atlas", "--routes", 10, "--pool", 4, "--best", 3, "-o", out)
    done = prisma(*options)
    assert done.exit_code == 0, done.stderr
    assert "Routes that tell most" in done.stdout
    assert "may be shown to anybody" in " ".join(done.stderr.split())
    assert max(map(len, done.stdout.splitlines())) <= 80
    for name in ("map.png", "causes.png"):
        assert (out / name).stat().st_size > 10_000
    table = pd.read_csv(out / "routes.csv")
    kept = _open(out / "atlas.zarr")
    assert kept.attrs["region_fingerprint"] == city.fingerprint
    assert table["gain_detour"].to_numpy() == pytest.approx(kept["gain"].values[:, 1])
    assert "--force" in refusal(*options)
    found = prisma_json(*options, "--force")
    assert len(found["best"]) == 3
    top = table[[name for name in table if name.startswith("gain_")]].sum(axis=1).argmax()
    assert found["best"][0]["route"] == top
    assert set(found["mean_gain"]) == {"aggressiveness", "detour", "vehicle"}


def test_local_prints_bounds_of_a_region(tmp_path, city_folder):
    out = tmp_path / "local"
    options = ("study", "local", "--region", city_folder, "--routes", 2)
    done = prisma(*options, "-o", out)
    assert done.exit_code == 0, done.stderr
    assert "Least standard deviations" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert (out / "ridge.png").stat().st_size > 10_000
    table = pd.read_csv(out / "local.csv")
    assert np.all(table["detour_bound"] >= table["detour_bound_alone"])
    assert np.all(table["n_known"].between(1, 7))
    rows = prisma_json(*options)["routes"]
    assert [row["detour_bound"] for row in rows] == pytest.approx(table["detour_bound"].tolist())


def test_vehicles_are_counted_by_class(tmp_path):
    out = tmp_path / "vehicles"
    options = ("study", "vehicles", "--routes", 1, "--draws", 2, "--threshold", 3)
    found = prisma_json(*options, "-o", out)
    table = pd.read_csv(out / "vehicles.csv")
    assert found["n_vehicles"] == len(table)
    assert found["n_classes"] == table["class"].nunique() == len(found["pool"])
    assert 1 < found["n_classes"] < found["n_vehicles"]
    assert table["stands_for_its_class"].sum() == found["n_classes"]
    assert (out / "confusion.png").stat().st_size > 10_000
    done = prisma(*options)
    assert done.exit_code == 0, done.stderr
    assert "Largest classes" in done.stdout
    assert str(found["n_classes"]) in done.stdout


@pytest.mark.slow
def test_calibrate_judges_a_sampler(tmp_path):
    out = tmp_path / "sbc"
    options = ("study", "calibrate", "--simulations", 24)
    done = prisma(*options, "-o", out)
    assert done.exit_code == 0, done.stderr
    assert "Ranks of 24 truths" in done.stdout
    for name in ("ranks.png", "coverage.png", "contraction.png"):
        assert (out / name).stat().st_size > 10_000
    table = pd.read_csv(out / "calibration.csv", index_col="quantity")
    found = prisma_json(*options)
    assert list(found["quantities"]) == ["aggressiveness", "detour", "vehicle", "joint"]
    assert found["quantities"]["joint"]["ecdf_p"] == pytest.approx(table["ecdf_p"]["joint"])
    assert _open(out / "calibration.zarr").sizes["simulation"] == 24


@pytest.mark.slow
def test_profile_of_simulated_and_of_recorded_trips(tmp_path, traces_path, city_folder):
    out = tmp_path / "profile"
    options = ("study", "profile", "--trips", 1, "--values", 11)
    done = prisma(*options, "-o", out)
    assert done.exit_code == 0, done.stderr
    assert "may be shown to anybody" in " ".join(done.stderr.split())
    for name in ("profiles.png", "ridge.png"):
        assert (out / name).stat().st_size > 10_000
    found = prisma_json(*options, traces_path, "--region", city_folder)
    assert found["private"]
    assert len(found["intervals"]) == 2
    assert all(row["low"] <= row["best"] <= row["high"] for row in found["intervals"])
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("profile", "some.zarr"), "--region"),
        (("local", "--vehicle", 9_999), "vehicle in"),
        (("atlas", "--detour", 9, "--routes", 2), "detour in"),
        (("atlas", "--region", "nowhere"), "nowhere"),
        (("calibrate", "--method", "map", "--simulations", 8), "gives draws"),
    ],
)
def test_wrong_requests_are_refused(arguments, message):
    assert message.lower() in refusal("study", *arguments).lower()
