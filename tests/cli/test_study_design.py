"""`prisma study design`: data, tables and figures in a folder, and refusals."""

import pandas as pd
import pytest
import xarray as xr

from tests.cli.conftest import prisma, prisma_json, refusal

SMALL = (
    "study", "design", "--routes", 3, "--truths", 1, "--horizons", "60,120",
    "--periods", "1,10", "--noise", "1,2", "--memory", "0,0.6",
)  # fmt: skip


def test_help_teaches():
    done = prisma("study", "design", "--help")
    assert done.exit_code == 0
    assert "Example: prisma study design " in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_design_writes_data_tables_and_figures(tmp_path, city):
    out = tmp_path / "design"
    options = (*SMALL, "-o", out)
    done = prisma(*options)
    assert done.exit_code == 0, done.stderr
    assert "Best spending of samples" in done.stdout
    assert "may be shown to anybody" in " ".join(done.stderr.split())
    assert max(map(len, done.stdout.splitlines())) <= 80
    for name in ("design.png", "routes.png"):
        assert (out / name).stat().st_size > 10_000
    assert not (out / "constants.png").exists()
    kept = xr.open_zarr(out / "design.zarr", consolidated=False)
    assert kept.attrs["region_fingerprint"] == city.fingerprint
    table = pd.read_csv(out / "designs.csv")
    assert len(table) == 2 * 2 * 2 * 2
    row = table.iloc[5]
    where = {name: row[name] for name in ("constants", "memory", "noise", "horizon", "period")}
    mean = kept["total_gain"].sel(where).mean()
    assert row["total"] == pytest.approx(float(mean))
    assert "--force" in refusal(*options)
    found = prisma_json(*options, "--force")
    assert len(found["designs"]) == len(table)
    assert {each["budget"] for each in found["budgets"]} == {10, 50, 100, 500}


@pytest.mark.slow
def test_realistic_constants_are_drawn_beside(tmp_path):
    out = tmp_path / "both"
    done = prisma(*SMALL, "--realistic", "-o", out)
    assert done.exit_code == 0, done.stderr
    assert (out / "constants.png").stat().st_size > 10_000
    budgets = pd.read_csv(out / "budgets.csv")
    assert set(budgets["constants"]) == {"region", "realistic"}


def test_wrong_numbers_are_refused():
    assert "--periods" in refusal("study", "design", "--periods", "1;2")
    assert "whole seconds" in refusal("study", "design", "--horizons", "60.5")
    assert "rise" in refusal("study", "design", "--periods", "10,1")
    assert "noise > 0" in refusal("study", "design", "--noise", "0")
