"""`prisma reproduce`: what it prints, what it lists, and what it refuses."""

import pytest

from tests.cli.conftest import prisma, prisma_json, refusal

CONFIG = """
[region.constants]
horizon_s = 150
n_route_points = 64
[telemetry]
simulated_trips = 50
[split]
n_train = 30
n_holdout = 16
[synthesize]
mechanism = "independent"
[evaluate]
n_splits = 2
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "run.toml"
    path.write_text(CONFIG)
    return path


def test_reproduce_runs_lists_and_draws(config, tmp_path):
    out = tmp_path / "out"
    one = ("-o", out, "--config", config, "--seeds", 1, "--rows", "none-map, none-unfitted")
    planned = prisma_json("reproduce", "table2", *one, "--dry-run")["stages"]
    assert not any(step["done"] for step in planned)
    assert not out.exists()

    done = prisma("reproduce", "table2", *one)
    assert done.exit_code == 0, done.stderr
    assert "none-unfitted" in done.stdout
    assert "Not part of this package: B0, TimeGAN, GRU" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert f"wrote {out / 'table2.md'}" in done.stderr
    assert "not complete: independent-published-map-eps0.5" in done.stderr

    planned = prisma_json("reproduce", "table2", *one, "--dry-run")["stages"]
    assert all(step["done"] for step in planned)
    listed = prisma("reproduce", "table2", *one, "--n-train", 20, "--dry-run")
    assert "missing" in listed.stdout
    assert "3 of 8 stages are there" in listed.stdout  # region, trips and their fit

    found = prisma_json("reproduce", "fig1", *one[:-2], "--draw-only")
    seeds = {row["name"]: row["seeds"] for row in found["rows"] if row["name"]}
    assert seeds["none-map"] == seeds["none-unfitted"] == "1"
    assert seeds["none-posterior"] == "not run"
    assert found["spent"] is None
    assert (out / "figures" / "fig1.pdf").is_file()


def test_reproduce_says_what_was_spent(config, tmp_path):
    one = ("-o", tmp_path, "--config", config, "--seeds", 2, "--rows", "*-route-unfitted-*")
    done = prisma("reproduce", "table2", *one, "--epsilon", "0.5,2")
    assert done.exit_code == 0, done.stderr
    assert "4 releases were made" in done.stderr
    assert "publish none" in done.stderr


def test_reproduce_refuses(config, tmp_path):
    always = ("-o", tmp_path / "out", "--config", config)
    assert "'table2', 'fig1', 'fig4'" in refusal("reproduce", "table3", *always)
    assert "none-posterior" in refusal("reproduce", "table2", *always, "--rows", "gru")
    assert "0.5,1" in refusal("reproduce", "table2", *always, "--epsilon", "half")
    assert "epsilon" in refusal("reproduce", "table2", *always, "--epsilon", "-1")
    assert "n_seeds" in refusal("reproduce", "table2", *always, "--seeds", 0)
    missing = ("-o", tmp_path / "out", "--config", tmp_path / "no.toml")
    assert "no.toml" in refusal("reproduce", "table2", *missing)


def test_too_few_trips_are_found_before_they_are_fitted(config, tmp_path):
    one = ("--config", config, "--n-train", 42, "--rows", "none-map")
    done = prisma("reproduce", "table2", "-o", tmp_path, *one)
    assert done.exit_code == 2
    assert "at least 58 trips" in done.stderr.splitlines()[-1]
    assert (tmp_path / "trips.zarr").exists()
    assert not (tmp_path / "fit-map.zarr").exists()


def test_reproduce_teaches():
    shown = prisma("reproduce", "--help", width=100)
    assert shown.exit_code == 0
    for word in ("table2", "ablations", "--dry-run", "--draw-only", "measuring", "--rows"):
        assert word in shown.stdout


def test_misfit_needs_finished_runs_and_others_take_none(tmp_path):
    assert "without region" in refusal("reproduce", "misfit", tmp_path, "-o", tmp_path / "out")
    assert "got none" in refusal("reproduce", "misfit", "-o", tmp_path / "out")
    assert "after misfit only" in refusal("reproduce", "table2", tmp_path, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()
