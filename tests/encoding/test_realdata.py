"""Recorded trips: the exact methods agree where nothing is as the simulator has it."""

import numpy as np
import pytest
import xarray as xr

from prisma_sbi.encoding import EncodeSettings, FitStatus, HmcFit, encode
from prisma_sbi.region import build_region
from prisma_sbi.telemetry import import_trips

N_TRIPS, N_TREES = 24, 10


@pytest.fixture(scope="module")
def recorded(reference_data):
    region = build_region(
        name="Ann Arbor",
        roads=reference_data / "ann-arbor" / "roads.graphml",
        elevation=reference_data / "ann-arbor" / "elevation.tif",
        vehicles=sorted((reference_data / "epa").glob("1[0-6]tstcar.csv")),
    )
    weeks = sorted((reference_data / "ved" / "weeks").glob("*.parquet"))
    imported = import_trips(
        weeks[7:8],
        bounds=region.bounds,
        vehicle_tables=sorted((reference_data / "ved" / "raw").glob("VED_Static_Data_*.xlsx")),
        max_trips=N_TRIPS,
        region_fingerprint=region.fingerprint,
    )
    return region, imported.traces


def moments(fit, name, rows):
    draws = fit["posterior"].dataset[name].transpose("trip", "chain", "draw").values[rows]
    flat = draws.reshape(len(rows), -1)
    return flat.mean(axis=1), flat.std(axis=1)


def assert_same(left, right, left_ess, right_ess, rows):
    """Means and widths agree within Monte-Carlo error, probabilities of vehicles within 0.02."""
    for name in ("aggressiveness", "detour"):
        left_mean, left_sd = moments(left, name, rows)
        right_mean, right_sd = moments(right, name, rows)
        error = np.sqrt(left_sd**2 / left_ess + right_sd**2 / right_ess)
        # Beside chance the grid may be off by a twentieth of the width.
        gap = np.abs(left_mean - right_mean)
        assert np.mean(gap < 3.0 * error + 0.05 * right_sd) >= 0.9
        assert np.median(np.abs(np.log(left_sd / right_sd))) < 0.05
    probability = [
        fit["sample_stats"].dataset["vehicle_probability"].values[rows] for fit in (left, right)
    ]
    assert np.quantile(np.abs(probability[0] - probability[1]).max(axis=1), 0.9) < 0.02


def converged(fit):
    """Positions of trips that may be compared, nearly all of them, and effective draws of all."""
    stats = fit["sample_stats"].dataset
    fitted = stats["status"].values <= FitStatus.POOR_FIT
    good = fitted & (stats["r_hat"].values <= 1.01) & (stats["ess_bulk"].values >= 400)
    assert good.sum() >= 0.85 * fitted.sum()
    return np.flatnonzero(good), stats["ess_bulk"].values


@pytest.mark.realdata
@pytest.mark.slow
def test_quadrature_chains_and_trees_agree_on_recorded_trips(recorded):
    region, traces = recorded
    grid = encode(region, traces, method="quadrature")
    chains = encode(region, traces, method="hmc")
    rows, ess = converged(chains)
    assert_same(grid, chains, 1_000.0, ess[rows], rows)
    # Another sampler of the same density, from another library.
    some = traces.isel(trip=slice(0, N_TREES))
    settings = EncodeSettings(method="hmc", work=HmcFit(all_nuts=True))
    trees = encode(region, some, settings=settings)
    rows, ess = converged(trees)
    assert_same(grid.isel(trip=slice(0, N_TREES)), trees, 1_000.0, ess[rows], rows)


@pytest.mark.realdata
@pytest.mark.slow
def test_a_narrower_posterior_is_told_from_the_right_one(recorded):
    region, traces = recorded
    some = traces.isel(trip=slice(0, N_TREES))
    grid = encode(region, some, method="quadrature")
    tight = grid.copy()
    draws = tight["posterior"].dataset
    middle = draws.mean(("chain", "draw"))
    tight["posterior"] = xr.DataTree(middle + 0.8 * (draws - middle))
    rows = np.flatnonzero(grid["sample_stats"].dataset["status"].values <= FitStatus.POOR_FIT)
    with pytest.raises(AssertionError):
        assert_same(tight, grid, 1_000.0, 1_000.0, rows)
