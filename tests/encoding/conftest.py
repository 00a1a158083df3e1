"""A simulated fleet with known truth, and fits of it, made once."""

import numpy as np
import pytest
import xarray as xr

from prisma_sbi.encoding import EncodeSettings, HmcFit, LaplaceFit, QuadratureFit, encode
from prisma_sbi.inference import GridSettings, HmcSettings, SearchSettings
from prisma_sbi.region import Region, demo_region
from prisma_sbi.simulator.fleet import simulate_fleet

SMALL_SEARCH = SearchSettings(
    grid_shape=(6, 4), n_seeds=2, n_ranked=4, n_short=2, n_climbers=2, n_finalists=1
)
SMALL_GRID = GridSettings(grid_shape=(8, 8), n_levels=3, n_split=6)
SMALL = {
    "map": None,
    "laplace": LaplaceFit(n_chains=2, n_draws=20),
    "quadrature": QuadratureFit(grid=SMALL_GRID, n_chains=2, n_draws=20),
    "hmc": HmcFit(
        grid=SMALL_GRID, hmc=HmcSettings(n_chains=2, n_warmup=5, n_draws=20), second_pass=False
    ),
}


def small(method: str) -> EncodeSettings:
    """Settings with which a method takes no time, and whose answers are rough."""
    return EncodeSettings(method=method, work=SMALL[method], search=SMALL_SEARCH)


@pytest.fixture(scope="session")
def city() -> Region:
    return demo_region()


@pytest.fixture(scope="session")
def fleet(city: Region) -> xr.Dataset:
    return simulate_fleet(city, 5, seed=2, noise_scale=0.05)


@pytest.fixture(scope="session")
def mixed(city: Region, fleet: xr.Dataset) -> xr.Dataset:
    """Good trips, then one with a gap, one that is silent, and one that returns energy."""
    bad = fleet.isel(trip=[0, 1, 2]).copy(deep=True)
    bad["power_w"][0, 7] = np.nan
    bad["power_w"][1] = 0.0
    bad["power_w"][2] = -bad["power_w"][2]
    return xr.concat([fleet, bad.assign_coords(trip=["gap", "silent", "electric"])], "trip")


@pytest.fixture(scope="session")
def fits(city: Region, fleet: xr.Dataset) -> dict[str, xr.DataTree]:
    return {name: encode(city, fleet, settings=small(name), chunk_size=4) for name in SMALL}
