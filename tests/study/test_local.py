"""Local information of trips: derivatives of the simulator, and laws of information."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from prisma_sbi.models import TraceLikelihood
from prisma_sbi.simulator import roads_from_profiles, simulate_power
from prisma_sbi.study import local_information, spread_over_bound
from tests.study.examples import city, model, routes

POINT = np.asarray([[0.35, 1.2], [0.6, 1.6], [0.8, 1.1]])
VEHICLE = np.asarray([3, 20, 50])


@pytest.fixture(scope="module")
def plain():
    return local_information(city(), routes(), POINT, VEHICLE, model=model())


def test_information_is_that_of_finite_differences():
    """White normal noise: the sum of squared slopes, slopes by differences of the simulator."""
    law = TraceLikelihood(floor_w=2_000.0, share=0.0, memory=0.0, degrees_of_freedom=1e9)
    found = local_information(city(), routes(), POINT, VEHICLE, model=model(law))
    roads, pool = roads_from_profiles(routes()), model(law).pool

    with jax.enable_x64(True):
        exact = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), (roads, pool))
        simulate = jax.jit(simulate_power, static_argnames="constants")

        def power(row, point):
            road, vehicle = jax.tree.map(lambda leaf: leaf[row], exact[0]), exact[1][VEHICLE[row]]
            return np.asarray(simulate(point[0], point[1], vehicle, road, city().constants))

        step = 1e-7
        for row in range(3):
            slopes = []
            for axis in np.eye(2) * step:
                up = power(row, jnp.asarray(POINT[row] + axis))
                down = power(row, jnp.asarray(POINT[row] - axis))
                slopes.append((up - down) / (2.0 * step))
            slopes = np.asarray(slopes)
            expected = slopes @ slopes.T / 2_000.0**2
            np.testing.assert_allclose(
                found["information"].values[row],
                expected,
                rtol=0.02,
                atol=0.002 * np.max(expected),
            )


def test_twice_the_noise_is_twice_the_bound(plain):
    doubled = local_information(
        city(), routes(), POINT, VEHICLE, model=model(TraceLikelihood(floor_w=6_000.0, share=0.0))
    )
    single = local_information(
        city(), routes(), POINT, VEHICLE, model=model(TraceLikelihood(floor_w=3_000.0, share=0.0))
    )
    np.testing.assert_allclose(doubled["bound"], 2.0 * single["bound"], rtol=1e-4)
    assert np.all(plain["eigenvalue"].diff("mode") <= 0.0)


def test_an_unknown_vehicle_costs_information(plain):
    wide = local_information(city(), routes(), POINT, VEHICLE, model=model(), with_vehicle=True)
    assert wide["information"].shape == (3, 7, 7)
    np.testing.assert_allclose(
        wide["information"].values[:, :2, :2], plain["information"].values, rtol=1e-4
    )
    two = wide["bound"].sel(parameter=["aggressiveness", "detour"])
    assert np.all(two.values >= plain["bound"].values * (1.0 - 1e-6))
    assert np.any(two.values > 1.05 * plain["bound"].values)


@pytest.mark.slow
def test_summaries_say_less_than_traces_of_little_noise():
    fine = TraceLikelihood(floor_w=300.0, share=0.05)
    trace = local_information(city(), routes(), POINT, VEHICLE, model=model(fine))
    summary = local_information(city(), routes(), POINT, VEHICLE, model=model("summary"))
    assert np.all(trace["bound"].values < summary["bound"].values)
    assert np.all(np.isfinite(summary["bound"]))


def test_spread_over_bound_compares_each_posterior_with_the_bound_at_its_truth(plain):
    """Posteriors made as wide as twice their bounds."""
    coords = {"simulation": [0, 1, 2], "parameter": ["aggressiveness", "detour"]}
    order = np.asarray([2, 0, 1])
    calibration = xr.Dataset(
        {
            "road": ("simulation", order),
            "truth": (("simulation", "parameter"), POINT[order]),
            "true_vehicle": ("simulation", VEHICLE[order]),
            "sd": (("simulation", "parameter"), 2.0 * plain["bound"].values[order]),
        },
        coords=coords,
    )
    ratio = spread_over_bound(city(), routes(), calibration, model=model())
    assert ratio.dims == ("simulation", "parameter")
    np.testing.assert_allclose(ratio, 2.0, rtol=1e-4)
    # On other roads the bounds are others.
    swapped = calibration.assign(road=("simulation", order[::-1]))
    wrong = spread_over_bound(city(), routes(), swapped, model=model())
    assert np.max(np.abs(np.log(wrong.isel(simulation=[0, 2]) / 2.0))) > 0.05


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="one a road"):
        local_information(city(), routes(), POINT[:2], VEHICLE)
    with pytest.raises(ValueError, match="'trace' or 'summary'"):
        local_information(city(), routes(), POINT, VEHICLE, model=model("texture"))
