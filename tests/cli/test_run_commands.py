"""`prisma demo` and `prisma run`."""

import json

import pytest

from tests.cli.conftest import prisma, prisma_json, refusal

CONFIG = """
[telemetry]
simulated_trips = 20
[split]
n_train = 16
n_holdout = 4
[synthesize]
epsilons = [2.0]
mechanism = "independent"
[evaluate]
n_splits = 2
figures = false
"""


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[split]\nn_trian = 3\n", "n_trian"),
        ("[split]\nn_train = 'many'\n", "split.n_train"),
        ("[synthesize]\nepsilons = [0.0]\nmechanism = 'magic'\n", "mechanism"),
        ("not toml", "TOML"),
    ],
)
def test_run_refuses_a_bad_configuration(text, part, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(text)
    assert part in refusal("run", config, "-o", tmp_path / "out")
    assert not (tmp_path / "out" / "metrics.json").exists()


def test_run_names_missing_trips(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text("[telemetry]\ntrips = ['missing/*.csv']\n")
    done = prisma("run", config, "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("error: Expected files at")
    assert "missing" in done.stderr


def test_run_refuses_a_missing_configuration(tmp_path):
    assert "missing.toml" in refusal("run", tmp_path / "missing.toml", "-o", tmp_path / "out")


@pytest.mark.slow
def test_demo_json_is_what_was_written(demo_run):
    folder, found = demo_run
    written = json.loads((folder / "metrics.json").read_text())
    assert found["modes"] == written["modes"]
    assert list(found["modes"]) == ["none", "epsilon=1"]
    assert found["recovery"]["rows"]
    assert not any(stage["reused"] for stage in found["stages"])
    assert found["folder"] == str(folder)


@pytest.mark.slow
def test_demo_again_reuses_and_shows_both_tables_and_the_files(demo_run):
    folder, _ = demo_run
    done = prisma("demo", "-o", folder, "--trips", 16)
    assert done.exit_code == 0, done.stderr
    assert "Synthetic against real traces" in done.stdout
    assert "Recovery of the known descriptors" in done.stdout
    assert done.stdout.index("Synthetic against") < done.stdout.index("Recovery of")
    assert max(map(len, done.stdout.splitlines())) <= 80
    stages = [line for line in done.stderr.splitlines() if line.startswith("[")]
    assert len(stages) == 8
    assert all(" reused " in line for line in stages)
    assert f"wrote {folder}" in done.stderr
    assert str(folder / "figures" / "recovery.png") in done.stderr


@pytest.mark.slow
def test_run_makes_what_the_configuration_says(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(CONFIG)
    out = tmp_path / "out"
    found = prisma_json("run", config, "-o", out)
    assert list(found["modes"]) == ["none", "epsilon=2"]
    assert not (out / "figures").exists()
    config.write_text(CONFIG.replace("n_splits = 2", "n_splits = 3"))
    again = prisma_json("run", config, "-o", out)
    changed = [stage["name"] for stage in again["stages"] if not stage["reused"]]
    assert changed == ["evaluate"]
