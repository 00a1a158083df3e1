"""`prisma study misfit`: simulated trips pass, recorded ones are private, fits are taken."""

import pandas as pd
import pytest
import xarray as xr

from prisma_sbi.encoding import encode, save_fit
from prisma_sbi.study.discrepancies import DISCREPANCIES
from prisma_sbi.telemetry import load_traces
from tests.cli.conftest import prisma, prisma_json, refusal


@pytest.fixture(scope="module")
def fit_path(city, traces_path, tmp_path_factory):
    fit = encode(city, load_traces(traces_path).isel(trip=slice(0, 12)))
    return save_fit(fit, tmp_path_factory.mktemp("fit") / "fit.zarr")


def test_help_teaches():
    done = prisma("study", "misfit", "--help")
    assert done.exit_code == 0
    assert "Example: prisma study misfit " in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_fit_is_checked_in_private(tmp_path, traces_path, city_folder, fit_path):
    out = tmp_path / "misfit"
    options = (
        "study", "misfit", traces_path, "--region", city_folder, "--fit", fit_path,
        "--trips", 6, "--replicates", 40, "-o", out,
    )  # fmt: skip
    done = prisma(*options)
    assert done.exit_code == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    said = " ".join(done.stderr.split())
    assert "is private" in said
    assert "one point a trip" in said
    for name in ("p_values.png", "worst.png"):
        assert (out / name).stat().st_size > 10_000
    kept = xr.open_zarr(out / "misfit.zarr", consolidated=False)
    table = pd.read_csv(out / "discrepancies.csv", index_col="discrepancy")
    assert list(table.index) == list(DISCREPANCIES)
    trips = pd.read_csv(out / "trips.csv")
    assert len(trips) == kept.sizes["trip"] == 6
    assert trips["score"].is_monotonic_decreasing
    assert "--force" in refusal(*options)
    found = prisma_json(*options, "--force", "--worst", 2)
    assert found["private"]
    assert [row["trip"] for row in found["worst"]] == trips["trip"].tolist()[:2]
    assert found["n_trips"] == 6


@pytest.mark.slow
def test_simulated_trips_pass(tmp_path):
    out = tmp_path / "misfit"
    options = ("study", "misfit", "--trips", 24, "--replicates", 60)
    found = prisma_json(*options, "-o", out)
    assert not found["private"]
    assert found["share_unexplained"] < 0.2
    assert (out / "worst.png").stat().st_size > 10_000
    done = prisma(*options)
    assert "may be shown to anybody" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("some.zarr",), "--region"),
        (("--fit", "fit.zarr"), "name the traces"),
        (("--replicates", 5), "20"),
        (("--method", "map", "--trips", 1), "gives draws"),
    ],
)
def test_wrong_requests_are_refused(arguments, message):
    done = prisma("study", "misfit", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr.lower()
