"""`prisma encode --method` and `prisma diagnose`."""

import numpy as np
import pandas as pd
import pytest

from prisma_sbi.encoding import EncodeSettings, QuadratureFit, encode, load_fit, save_fit
from prisma_sbi.inference import GridSettings, SearchSettings
from tests.cli.conftest import prisma, prisma_json, refusal

QUICK = SearchSettings(
    grid_shape=(6, 4), n_seeds=2, n_ranked=4, n_short=2, n_climbers=2, n_finalists=1
)


@pytest.fixture(scope="module")
def fit_path(city, fleet, tmp_path_factory):
    """A quick fit with draws, and one trip that has none."""
    some = fleet.isel(trip=slice(0, 4)).copy(deep=True)
    some["power_w"][2] = 0.0
    grid = GridSettings(grid_shape=(8, 8), n_levels=2, n_split=6)
    work = QuadratureFit(grid=grid, n_chains=2, n_draws=20)
    fit = encode(city, some, settings=EncodeSettings(method="quadrature", work=work, search=QUICK))
    return save_fit(fit, tmp_path_factory.mktemp("fits") / "fit.zarr")


def test_diagnose_prints_flags_and_writes_figures(fit_path, city_folder, tmp_path):
    out = tmp_path / "diagnosis"
    done = prisma("diagnose", fit_path, "--region", city_folder, "-o", out, "--bands", 2)
    assert done.exit_code == 0, done.stderr
    assert "Fit by quadrature" in done.stdout
    assert "bad_trace" in done.stdout
    for name in ("posterior_widths.png", "diagnostics.png", "trace_bands.png"):
        assert (out / name).stat().st_size > 10_000
    table = pd.read_csv(out / "trips.csv")
    assert len(table) == 4
    assert table["status"].tolist()[2] == "bad_trace"
    fit = load_fit(fit_path)
    draws = fit["posterior"].dataset["detour"].values[..., 0]
    assert table.loc[0, "detour_mean"] == pytest.approx(draws.mean(), rel=1e-5)
    assert table.loc[0, "detour_sd"] == pytest.approx(draws.std(), rel=1e-4)
    assert "private" in done.stderr
    line = refusal("diagnose", fit_path, "-o", out)
    assert "--force" in line


def test_diagnose_gives_facts_to_a_program(fit_path):
    facts = prisma_json("diagnose", fit_path)
    assert (facts["n_trips"], facts["n_fitted"]) == (4, 3)
    assert 0.0 < facts["vehicle_top_probability_median"] <= 1.0
    assert facts["n_effective_cells"]["median"] > 1.0


def test_diagnose_reads_a_fit_of_points(city, fleet, tmp_path):
    settings = EncodeSettings(search=QUICK)
    path = save_fit(encode(city, fleet.isel(trip=[0, 1]), settings=settings), tmp_path / "map.nc")
    done = prisma("diagnose", path)
    assert done.exit_code == 0, done.stderr
    assert "Fit by map" in done.stdout


def test_encode_refuses_an_unknown_method(city_folder, traces_path, tmp_path):
    arguments = ["encode", traces_path, "--region", city_folder, "-o", tmp_path / "x.zarr"]
    done = prisma(*arguments, "--method", "guess")
    assert done.exit_code == 2
    assert "quadrature" in done.stderr


@pytest.mark.slow
def test_encode_by_quadrature_and_its_rows_reach_synthesis(
    city_folder, traces_path, fleet, tmp_path
):
    out = tmp_path / "fit.nc"
    found = prisma_json(
        "encode", traces_path, "--region", city_folder, "-o", out, "--method", "quadrature",
        "--draws", 40, "--seed", 3,
    )  # fmt: skip
    assert sum(found["status"].values()) == fleet.sizes["trip"]
    assert not (tmp_path / "fit.nc.chunks").exists()
    fit = load_fit(out)
    assert fit.attrs["seed"] == 3
    assert fit["posterior"].sizes["draw"] == 40
    release = prisma_json(
        "synthesize", out, "--region", city_folder, "-o", tmp_path / "release",
        "--mechanism", "independent", "--rows", "posterior",
    )  # fmt: skip
    assert "weighted rows" in release["statement"]


@pytest.mark.slow
def test_encode_by_chains_flags_what_it_must(city_folder, traces_path, tmp_path):
    out = tmp_path / "fit.zarr"
    done = prisma("encode", traces_path, "--region", city_folder, "-o", out, "--method", "hmc")
    assert done.exit_code == 0, done.stderr
    stats = load_fit(out)["sample_stats"].dataset
    good = (stats["r_hat"] <= 1.01) & (stats["ess_bulk"] >= 400)
    assert np.mean(good) >= 0.8
