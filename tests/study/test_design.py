"""Design of recordings: covariance of means by brute force, laws of information, budgets."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi.models import TraceLikelihood, TripModel
from prisma_sbi.region import RoadProfiles, demo_region
from prisma_sbi.simulator import roads_from_profiles, simulate_power
from prisma_sbi.simulator.vehicle import Vehicle
from prisma_sbi.study import draw_routes, local_information
from prisma_sbi.study.averages import averaged_information
from prisma_sbi.study.design import (
    DesignSettings,
    best_designs,
    information_design,
)
from tests.study.examples import city, model

SETTINGS = DesignSettings(
    horizon_s=(60, 120), period_s=(1, 2, 10), noise=(1.0, 2.0), memory=(0.0, 0.6), n_truths=2
)
FLOOR_W, SHARE = 2_000.0, 0.3
PRIOR_SD = np.asarray([0.98 / 12**0.5, 1.5 / 12**0.5, *[0.3] * 5])


def law(factor: float = 1.0) -> TraceLikelihood:
    """Arrays in it, so that another factor needs no other program."""
    return TraceLikelihood(floor_w=jnp.asarray(factor * FLOOR_W), share=jnp.asarray(factor * SHARE))


@pytest.fixture(scope="module")
def routes() -> RoadProfiles:
    return draw_routes(city(), 3, seed=4)


@pytest.fixture(scope="module")
def design(routes) -> xr.Dataset:
    return information_design(city(), routes, model=model(law()), settings=SETTINGS, chunk_size=6)


def example(seed: int, n_times: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of three parameters, and scales that differ."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_times, 3)), np.exp(rng.normal(size=n_times))


def least_eigenvalue(matrix: np.ndarray) -> float:
    """In units of the size of the matrix."""
    return float(np.linalg.eigvalsh(matrix).min() / np.abs(matrix).max())


@pytest.mark.parametrize("memory", [0.0, 0.6, -0.4])
@pytest.mark.parametrize("n_block", [1, 2, 5])
def test_information_of_means_is_that_of_their_covariance(memory, n_block):
    slope, scale = example(1)
    step = np.arange(24)
    whole = scale * scale[:, None] * memory ** np.abs(step - step[:, None])
    for end in (24, 13):
        n = end // n_block
        average = np.kron(np.eye(n), np.full(n_block, 1.0 / n_block))
        average = np.pad(average, ((0, 0), (0, 24 - n * n_block)))
        means = average @ slope
        expected = means.T @ np.linalg.inv(average @ whole @ average.T) @ means
        found = averaged_information(slope, scale, memory=memory, n_block=n_block, ends=(end,))
        np.testing.assert_allclose(found[0], expected, rtol=1e-9)


def test_noise_with_memory_does_not_average_out_as_white_noise_does():
    constant, memory, n = np.ones((10, 1)), 0.6, 10
    white = averaged_information(constant, np.ones(n), n_block=n)
    assert white.item() == pytest.approx(10.0)
    kept = averaged_information(constant, np.ones(n), memory=memory, n_block=n)
    lag = np.arange(1, n)
    assert 1.0 / kept.item() == pytest.approx(1 / n + 2 / n**2 * np.sum((n - lag) * memory**lag))
    long = averaged_information(np.ones((10_000, 1)), np.ones(10_000), memory=memory, n_block=1_000)
    assert long.item() / 10_000 == pytest.approx((1 - memory) / (1 + memory), rel=0.01)


@given(st.integers(0, 10_000), st.floats(-0.8, 0.95))
@settings(max_examples=40, deadline=None)
def test_means_never_tell_more_than_what_they_are_means_of(seed, memory):
    slope, scale = example(seed)
    found = {
        n: averaged_information(slope, scale, memory=memory, n_block=n, ends=(12, 24))
        for n in (1, 2, 3, 6, 12)
    }
    for fine, coarse in ((1, 2), (1, 3), (2, 6), (3, 6), (6, 12)):
        assert least_eigenvalue(found[fine][1] - found[coarse][1]) > -1e-9
    for each in found.values():
        assert least_eigenvalue(each[1] - each[0]) > -1e-9


def test_a_rule_that_averages_memory_away_breaks_the_law():
    """Variance over n, whatever the memory: means would tell more than the trace."""
    constant, scale = np.ones((24, 1)), np.ones(24)
    trace = averaged_information(constant, scale, memory=0.6)
    wrong = averaged_information(constant, scale, memory=0.0, n_block=6)
    right = averaged_information(constant, scale, memory=0.6, n_block=6)
    assert right.item() <= trace.item() < wrong.item()


def test_one_number_by_finite_differences(routes, design):
    """Expected spread at ten seconds, noise with memory: slopes by differences of runs."""
    row, sds, total = 1, [], []
    with jax.enable_x64(True):
        double = jax.tree.map(
            lambda leaf: jnp.asarray(leaf, jnp.float64), (roads_from_profiles(routes), model().pool)
        )
        road, pool = jax.tree.map(lambda leaf: leaf[row], double[0]), double[1]
        constants = replace(city().constants, horizon_s=120)

        @jax.jit
        def power(parameters, vehicle):
            factor = jnp.exp(parameters[2:])
            changed = Vehicle(vehicle.coefficients * factor[:4], vehicle.idle_power_w * factor[4])
            return simulate_power(parameters[0], parameters[1], changed, road, constants)

        for driver in design["truth"].values:
            vehicle, at = pool[int(driver[2])], np.concatenate([driver[:2], np.zeros(5)])
            shifts = 1e-6 * np.eye(7)
            slope = np.stack(
                [(power(at + s, vehicle) - power(at - s, vehicle)) / 2e-6 for s in shifts], axis=-1
            )
            scale = (FLOOR_W + SHARE * np.abs(np.asarray(power(at, vehicle)))) * np.sqrt(5.0 / 3.0)
            average = np.kron(np.eye(12), np.full(10, 0.1))
            step = np.arange(120)
            noise = scale * scale[:, None] * 0.6 ** np.abs(step - step[:, None])
            means = average @ slope
            precision = means.T @ np.linalg.inv(average @ noise @ average.T) @ means
            covariance = np.linalg.inv(precision + np.diag(PRIOR_SD**-2.0))
            sds.append(np.sqrt(np.diag(covariance)))
            total.append(-0.5 * np.linalg.slogdet(covariance / np.outer(PRIOR_SD, PRIOR_SD))[1])
    found = design.sel(constants="region", memory=0.6, noise=1.0, horizon=120, period=10)
    found = found.isel(route=row)
    np.testing.assert_allclose(found["posterior_sd"], np.exp(np.mean(np.log(sds), 0)), rtol=0.01)
    assert found["total_gain"].item() == pytest.approx(np.mean(total), abs=0.01)


def test_less_data_never_tells_more(design):
    gain = design["gain"]
    for name in ("horizon", "noise", "period"):
        change = gain.diff(name) * (1.0 if name == "horizon" else -1.0)
        assert float(change.min()) > -1e-6
        assert float(change.max()) > 0.05
    assert float(gain.min()) >= -1e-9


def test_twice_the_noise_is_a_quarter_of_the_information(routes, design):
    ratio = design["bound"].sel(noise=2.0) / design["bound"].sel(noise=1.0)
    finite = np.isfinite(design["bound"].sel(noise=2.0))
    np.testing.assert_allclose(ratio.values[finite.values], 2.0, rtol=1e-6)
    louder = information_design(
        city(), routes, model=model(law(2.0)), settings=SETTINGS, chunk_size=6
    )
    np.testing.assert_allclose(
        louder["gain"].sel(noise=1.0), design["gain"].sel(noise=2.0), rtol=1e-3, atol=1e-4
    )


def test_the_whole_law_tells_no_less_than_its_covariance(design):
    """At a sample a second and the memory of the law."""
    linear = design["gain"].sel(memory=0.6, noise=1.0, period=1)
    whole = design["claimed_gain"].sel(likelihood="trace")
    assert float((whole - linear).min()) > 0.0
    assert float((whole - linear).max()) < 1.5


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["summary", "trace"])
def test_claims_are_those_of_local_information(routes, likelihood):
    """At both horizons: a region whose horizon it is, and the longer one cut."""
    made = DesignSettings(horizon_s=(60, 120), period_s=(60,), noise=(1.0,), memory=(0.6,))
    found = information_design(city(), routes, model=model(law()), settings=made, chunk_size=6)
    for horizon in made.horizon_s:
        short = demo_region(constants=replace(city().constants, horizon_s=horizon))
        used = TripModel.of(short, likelihood=law() if likelihood == "trace" else likelihood)
        gains = []
        for driver in found["truth"].values:
            local = local_information(
                short,
                routes,
                np.tile(driver[:2], (3, 1)),
                np.full(3, int(driver[2])),
                model=used,
                with_vehicle=True,
                chunk_size=3,
            )
            unit = local["scale"].values
            scaled = local["information"].values * unit * unit[:, None] + np.eye(7)
            variance = np.diagonal(np.linalg.inv(scaled), axis1=1, axis2=2)[:, :2]
            gains.append(-0.5 * np.log(variance))
        one = found["claimed_gain"].sel(likelihood=likelihood, horizon=horizon)
        np.testing.assert_allclose(one.isel(constants=0)[:, :2], np.mean(gains, 0), atol=0.01)


@pytest.mark.slow
def test_constants_of_a_preset_are_those_of_a_region_that_has_it(routes):
    made = replace(SETTINGS, constants=("region", "realistic"))
    both = information_design(city(), routes, model=model(law()), settings=made, chunk_size=6)
    preset = type(city().constants).preset("realistic")
    there = information_design(
        demo_region(constants=preset), routes, model=model(law()), settings=SETTINGS, chunk_size=6
    )
    np.testing.assert_allclose(both["gain"].sel(constants="realistic"), there["gain"][0], rtol=1e-5)
    assert not np.allclose(both["gain"].sel(constants="region"), there["gain"][0], rtol=0.01)


def test_best_designs_spend_a_budget_on_what_tells_most(design):
    table = best_designs(design, (1, 12, 60))
    assert set(table["budget"]) == {12, 60}  # none of them takes a single sample
    mean = design["total_gain"].mean("route")
    for row in table.to_dict("records"):
        here = mean.sel({name: row[name] for name in ("constants", "memory", "noise")})
        allowed = here.where(design["n_samples"] <= row["budget"])
        assert row["total_gain"] == pytest.approx(float(allowed.max()))
        assert row["n_samples"] == row["horizon_s"] // row["period_s"] <= row["budget"]
    assert np.isnan(table["shortest_gain"][table["budget"] == 12]).all()
    rich = table["budget"] == 60
    assert np.all(table["shortest_gain"][rich] <= table["total_gain"][rich])


def test_wrong_requests_are_refused(routes):
    several: tuple[dict[str, Any], ...] = (
        {"period_s": (10, 2)},
        {"noise": (0.0,)},
        {"memory": (1.0,)},
        {"horizon_s": ()},
    )
    for wrong in several:
        with pytest.raises(ValueError, match="Expected"):
            DesignSettings(**wrong)
    with pytest.raises(ValueError, match="'region'"):
        DesignSettings(constants=("sporty",))
    with pytest.raises(ValueError, match="likelihood='trace'"):
        information_design(city(), routes, model=TripModel.of(city()))
    slow = demo_region(constants=replace(city().constants, time_step_s=2.0))
    with pytest.raises(ValueError, match="multiples of the time step"):
        information_design(slow, routes)
    with pytest.raises(ValueError, match="ends that rise"):
        averaged_information(*example(0), ends=(30,))
    with pytest.raises(ValueError, match="positive scale"):
        averaged_information(example(0)[0], np.zeros(24))
