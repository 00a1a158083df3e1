"""Recorded trips: the exact methods agree where nothing is as the simulator has it."""

import numpy as np
import pytest

from prisma_sbi.encoding import FitStatus, encode
from prisma_sbi.region import build_region
from prisma_sbi.telemetry import import_trips

N_TRIPS = 24


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


@pytest.mark.realdata
@pytest.mark.slow
def test_quadrature_and_chains_agree_on_recorded_trips(recorded):
    region, traces = recorded
    grid = encode(region, traces, method="quadrature")
    chains = encode(region, traces, method="hmc")
    stats = chains["sample_stats"].dataset
    fitted = stats["status"].values <= FitStatus.POOR_FIT
    good = fitted & (stats["r_hat"].values <= 1.01) & (stats["ess_bulk"].values >= 400)
    assert good.sum() >= 0.85 * fitted.sum()
    rows = np.flatnonzero(good)
    for name in ("aggressiveness", "detour"):
        left_mean, left_sd = moments(grid, name, rows)
        right_mean, right_sd = moments(chains, name, rows)
        error = np.sqrt(left_sd**2 / 1000 + right_sd**2 / stats["ess_bulk"].values[rows])
        # Beside chance the grid may be off by a twentieth of the width.
        gap = np.abs(left_mean - right_mean)
        assert np.mean(gap < 3.0 * error + 0.05 * right_sd) >= 0.9
        assert np.median(np.abs(np.log(left_sd / right_sd))) < 0.05
    probability = [
        fit["sample_stats"].dataset["vehicle_probability"].values[rows] for fit in (grid, chains)
    ]
    assert np.quantile(np.abs(probability[0] - probability[1]).max(axis=1), 0.9) < 0.02
