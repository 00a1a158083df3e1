"""`prisma evaluate`: scores, figures, and the private and the released page."""

import json
import shutil

import pytest

from prisma_sbi.telemetry import load_traces, save_traces
from tests.cli.conftest import prisma, prisma_json, refusal


@pytest.fixture(scope="session")
def results(releases, city_folder, tmp_path_factory):
    """A folder as a run leaves it: releases and decoded traces side by side."""
    folder = tmp_path_factory.mktemp("results")
    for name, mechanism in (("a", "independent"), ("none", "none")):
        shutil.copytree(releases[mechanism], folder / f"release-{name}")
        found = prisma_json(
            *("decode", folder / f"release-{name}", "--region", city_folder, "-n", 24),
            *("-o", folder / f"synthetic-{name}.zarr", "--seed", 1, "--allow-unprotected"),
        )
        assert found["n_traces"] == 24
    return folder


@pytest.fixture(scope="session")
def synthetic_path(results, tmp_path_factory):
    """The protected set under a plain name, apart from its release."""
    path = tmp_path_factory.mktemp("decoded") / "synthetic.zarr"
    shutil.copytree(results / "synthetic-a.zarr", path)
    return path


def test_evaluate_compares_and_keeps_scores(traces_path, synthetic_path, tmp_path):
    out = tmp_path / "scores"
    arguments = ["evaluate", traces_path, synthetic_path, traces_path, "-o", out, "--splits", 3]
    found = prisma_json(*arguments)
    assert list(found["modes"]) == ["synthetic", "traces"]
    same = found["modes"]["traces"]
    assert same["acf_x_floor"] == pytest.approx(0.0, abs=1e-6)
    assert same["precision_raw"] == same["recall_raw"] == 1.0
    assert found["modes"]["synthetic"]["acf_x_floor"] > 0.0
    assert json.loads((out / "metrics.json").read_text()) == found

    assert "--force" in refusal(*arguments)
    shown = prisma(*arguments, "--force")
    assert shown.exit_code == 0, shown.stderr
    assert "synthetic" in shown.stdout
    assert f"wrote {out}" in shown.stderr


def test_evaluate_draws_on_request(traces_path, synthetic_path, city_folder, tmp_path):
    out = tmp_path / "scores"
    arguments = ["evaluate", traces_path, synthetic_path, "-o", out, "--splits", 2]
    prisma_json(*arguments, "--figures", "--region", city_folder)
    assert (out / "figures" / "mean_acf.png").is_file()
    assert (out / "figures" / "places-synthetic.png").is_file()


def test_evaluate_refuses(traces_path, synthetic_path, fleet, tmp_path):
    assert "--region" in refusal("evaluate", traces_path, synthetic_path, "--figures")
    assert "more than once" in refusal("evaluate", traces_path, synthetic_path, synthetic_path)
    assert "nothing" in refusal("evaluate", traces_path, tmp_path / "missing.zarr")
    short = save_traces(fleet.isel(time=slice(0, 100)), tmp_path / "short.zarr")
    refusal("evaluate", traces_path, short)


def test_evaluate_writes_a_private_page(traces_path, results, city_folder, tmp_path):
    page = tmp_path / "out" / "report.html"
    sets = [results / "synthetic-a.zarr", results / "synthetic-none.zarr"]
    arguments = ["evaluate", traces_path, *sets, "--report", page, "--splits", 2]
    found = prisma_json(*arguments, "--region", city_folder)
    assert found["report"] == str(page)
    assert list(found["modes"]) == ["synthetic-a", "synthetic-none"]
    content = page.read_text("utf-8")
    assert content.startswith("<!doctype html>")
    assert "<title>Private: " in content
    assert "Differentially private with epsilon = 1" in content
    assert "NO GUARANTEE" in content
    assert "Fréchet distance" in content
    assert "over the roads of the region" in content
    assert "--splits 2 --seed 0" in content
    assert "--force" in refusal(*arguments)


def test_a_page_never_replaces_another_file(traces_path, synthetic_path, tmp_path):
    page = tmp_path / "thesis.html"
    page.write_text("years of work")
    arguments = ["evaluate", traces_path, synthetic_path, "--report", page, "--force"]
    assert "something else" in refusal(*arguments)
    assert page.read_text() == "years of work"


def released(results, page, *more):
    """The released page about the protected set of a results folder."""
    found = prisma_json(
        *("evaluate", "--released", results / "synthetic-a.zarr", "--report", page, *more)
    )
    assert found == {"report": str(page), "sets": ["synthetic-a"]}
    return page.read_bytes()


def test_released_page_does_not_depend_on_private_files(
    results, fleet, traces_path, city_folder, tmp_path
):
    """The same set beside other private files gives the same bytes; another set does not."""
    page = "report.html"
    first = released(results, tmp_path / "one" / page, "--region", city_folder)
    assert b"<title>Released: " in first
    assert b"one trip" in first, "the record of the release was found"

    other = tmp_path / "other"
    for name in ("release-a", "synthetic-a.zarr"):
        shutil.copytree(results / name, other / name)
    save_traces(fleet.isel(trip=slice(0, 7)), other / "real.zarr")
    shutil.copytree(traces_path, other / "train.zarr")
    (other / "fit.zarr").mkdir()
    (other / "metrics.json").write_text(json.dumps({"modes": {"synthetic-a": {"fid": 987654.5}}}))
    (other / "set_aside.csv").write_text("trip,source\n1,alice.csv\n")
    second = released(other, tmp_path / "two" / page, "--region", city_folder)
    assert second == first

    changed = load_traces(other / "synthetic-a.zarr")
    save_traces(changed.assign(power_w=changed["power_w"] * 2), other / "synthetic-a.zarr")
    assert released(other, tmp_path / "three" / page, "--region", city_folder) != first
    folders = [str(folder).encode() for folder in (tmp_path, results, city_folder)]
    assert not [folder for folder in folders if folder in first]


def test_released_page_refuses_what_is_not_protected(traces_path, results, tmp_path):
    page = tmp_path / "report.html"
    good = results / "synthetic-a.zarr"
    for bad in (traces_path, results / "synthetic-none.zarr"):
        assert "guarantee" in refusal("evaluate", "--released", good, bad, "--report", page)
    assert "--report" in refusal("evaluate", "--released", good)
    for more in (["-o", tmp_path / "out"], ["--figures"]):
        assert "need real traces" in refusal(
            "evaluate", "--released", good, "--report", page, *more
        )
    assert not page.exists()
    assert "--released" in refusal("evaluate", traces_path)


def test_help_teaches_the_two_pages():
    done = prisma("evaluate", "--help", width=120)
    assert done.exit_code == 0
    for expected in ("REAL SYNTHETIC", "--report", "--released", "private", "published"):
        assert expected in done.stdout
    assert "Example: prisma evaluate real.zarr synthetic.zarr --report" in done.stdout
