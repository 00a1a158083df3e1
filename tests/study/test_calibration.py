"""Calibration: exact posteriors pass, narrowed ones are found out, ArviZ reads the result."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.encoding import EncodeSettings, LaplaceFit
from prisma_sbi.models import FixedVehicle, TextureLikelihood, TripData, TripModel, summarize
from prisma_sbi.region import RoadProfiles
from prisma_sbi.simulator import simulate_power
from prisma_sbi.study import (
    EncodeSampler,
    calibrate,
    calibration_pit,
    calibration_table,
    sbc_tree,
    simulate,
    vehicle_test,
)
from prisma_sbi.study.simulations import TwoRecords, packed
from tests.study.examples import LAW, QUICK, city, model, one_road, routes, thin_city


@pytest.fixture(scope="module")
def small():
    return calibrate(city(), routes(), model=model(), n_simulations=24, sampler=QUICK, seed=3)


def test_data_come_from_the_model_at_the_truth():
    """Standardized residuals of simulated traces are those of the noise."""
    found = simulate(model(), routes(), 60, seed=1)
    np.testing.assert_array_equal(found.road, np.arange(60) % 3)
    assert np.all((found.point >= [0.02, 1.0]) & (found.point <= [1.0, 2.5]))
    assert len(np.unique(found.vehicle)) > 30
    roads, data = found.trips(np.arange(60))
    pool = found.model.pool

    def clean(road, point, vehicle):
        return simulate_power(point[0], point[1], pool[vehicle], road, city().constants)

    power = jax.jit(jax.vmap(clean))(roads, jnp.asarray(found.point), jnp.asarray(found.vehicle))
    z = (np.asarray(data) - np.asarray(power)) / (3_000.0 + 0.5 * np.abs(np.asarray(power)))
    innovation = (z[:, 1:] - 0.6 * z[:, :-1]) / 0.8
    assert np.mean(innovation) == pytest.approx(0.0, abs=0.03)
    # Student t of five degrees of freedom: half of it lies within 0.727.
    assert np.mean(np.abs(innovation) < 0.7267) == pytest.approx(0.5, abs=0.015)


def test_summaries_are_drawn_from_the_law_of_their_residuals():
    """The posterior of a scale under that law is the Gibbs posterior: its ranks are uniform."""
    found = simulate(model("summary", choice=FixedVehicle(3)), one_road(), 400, seed=2)
    road, data = found.trips(np.arange(400))
    summary = found.model.likelihood.observe(data, city().constants)
    pool = found.model.pool

    def clean(road, point):
        return summarize(simulate_power(*point, pool[3], road, city().constants), city().constants)

    exact = jax.jit(jax.vmap(clean))(road, jnp.asarray(found.point))
    for seen, true in (
        (summary.energy_j, exact.energy_j),
        (summary.duration_s, exact.duration_s),
    ):
        misfit = (np.asarray(true) / np.asarray(seen) - 1.0) / 0.05
        # Weighed by one over itself, the ratio leans below one, by its variance.
        assert np.mean(misfit) == pytest.approx(-0.05, abs=0.16)
        assert np.std(misfit) == pytest.approx(1.0, abs=0.13)
    curve = np.asarray(summary.cumulative_share) - np.asarray(exact.cumulative_share)
    assert np.std(curve) == pytest.approx(0.05 * np.sqrt(500), rel=0.02)
    assert np.all(found.vehicle == 3)


def test_textures_are_drawn_from_the_law_of_their_residuals():
    found = simulate(model("texture", choice=FixedVehicle(3)), one_road(), 300, seed=2)
    road, data = found.trips(np.arange(300))
    seen = found.model.likelihood.observe(data, city().constants)
    pool = found.model.pool

    def clean(road, point):
        return simulate_power(*point, pool[3], road, city().constants)

    power = jax.jit(jax.vmap(clean))(road, jnp.asarray(found.point))
    exact = TextureLikelihood().observe(power, city().constants)
    kind = TextureLikelihood()
    variance = np.asarray(seen.log_variance - exact.log_variance) / kind.log_variance_scale
    # Errors of lags are averaged over them, so each alone is wider.
    lag_scale = kind.autocorrelation_scale * np.sqrt(len(kind.lags))
    lags = np.asarray(seen.autocorrelation - exact.autocorrelation) / lag_scale
    for z in (variance, lags):
        assert np.mean(z) == pytest.approx(0.0, abs=0.2)
        assert np.std(z) == pytest.approx(1.0, abs=0.15)
    # A trace without errors is read back from its row as the likelihood itself reads it.
    rows = packed(model("texture"), np.asarray(power))
    again = found.model.likelihood.observe(jnp.asarray(rows), city().constants)
    for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(exact), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_what_is_recorded_fits_together(small):
    assert small["draws"].shape == (24, 60, 2)
    below = np.sum(small["draws"].values < small["truth"].values[:, None], axis=1)
    np.testing.assert_array_equal(small["rank"].values, below)
    np.testing.assert_allclose(
        small["z_score"], (small["mean"] - small["truth"]) / small["sd"], rtol=1e-12
    )
    assert np.all(small["contraction"] < 1.0)
    np.testing.assert_allclose(small["vehicle_probability"].sum("pool_vehicle"), 1.0, rtol=1e-4)
    picked = small["vehicle_probability"].values[np.arange(24), small["true_vehicle"].values]
    np.testing.assert_array_equal(small["true_probability"].values, picked)
    # Flat prior: its density is one over the area and the number of vehicles.
    log_prior = -np.log(0.98 * 1.5 * len(city().vehicles))
    np.testing.assert_allclose(small["log_score"] - small["log_gain"], log_prior, rtol=1e-4)
    assert small.attrs["region_fingerprint"] == city().fingerprint
    table, test = calibration_table(small), vehicle_test(small)
    assert list(table.index) == ["aggressiveness", "detour", "vehicle", "joint"]
    assert set(test) == {"brier", "log", "brier_z", "brier_p", "log_z", "log_p"}
    assert all(np.isfinite(value) for value in test.values())


@pytest.mark.slow
def test_log_score_is_the_density_of_the_posterior(small):
    """One vehicle: the posterior density at the truth, by brute force over a fine grid."""
    fixed = model(choice=FixedVehicle(5))
    found = calibrate(city(), one_road(), model=fixed, n_simulations=3, sampler=QUICK, seed=4)
    assert np.all(found["true_vehicle"] == 5)
    np.testing.assert_allclose(found["true_probability"], 1.0, rtol=1e-5)
    simulations = simulate(fixed, one_road(), 3, seed=4)
    exact, _ = fixed.exact()
    road, data = simulations.trips(np.asarray([0]))
    trip = jax.tree.map(lambda leaf: leaf[0], TripData(road, data))
    center, spread = found["mean"].values[0], found["sd"].values[0]
    low = np.maximum(center - 9.0 * spread, [0.02, 1.0])
    high = np.minimum(center + 9.0 * spread, [1.0, 2.5])
    axes = [np.linspace(a, b, 161)[:-1] + (b - a) / 320 for a, b in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)

    def value(at):
        return exact.log_weights(at, trip)[0] + exact.log_prior(at)

    values = jax.jit(lambda p: jax.lax.map(value, p, batch_size=640))(
        jnp.asarray(points, jnp.float32)
    )
    area = np.prod((high - low) / 160)
    log_evidence = np.logaddexp.reduce(np.asarray(values, np.float64)) + np.log(area)
    at_truth = float(jax.jit(value)(jnp.asarray(simulations.point[0])))
    assert found["log_score"].values[0] == pytest.approx(at_truth - log_evidence, abs=0.35)


@pytest.mark.slow
def test_encode_samples_as_well():
    settings = EncodeSettings(method="laplace", work=LaplaceFit(n_chains=2, n_draws=30))
    sampler = EncodeSampler(settings=settings, n_draws=40, chunk_size=4)
    found = calibrate(
        city(), one_road(), model=model("summary"), n_simulations=4, sampler=sampler, seed=1
    )
    assert found["draws"].shape == (4, 40, 2)
    # Summaries hold a few percent of error: every posterior is narrower than the prior.
    assert np.all(found["contraction"].sel(parameter="aggressiveness") > 0.3)
    assert np.all(np.abs(found["z_score"]) < 6.0)


def test_arviz_draws_the_ecdf(small):
    arviz_plots = pytest.importorskip("arviz_plots")
    tree = sbc_tree(small)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure = arviz_plots.plot_ecdf_pit(tree, backend="matplotlib")
    assert {"aggressiveness", "detour", "vehicle", "joint"} <= set(figure.viz["plot"].data_vars)
    pit = calibration_pit(small)
    np.testing.assert_array_equal(tree["prior_sbc"]["detour"].values[0], pit["detour"].values)
    assert np.all((pit.to_array() > 0.0) & (pit.to_array() < 1.0))


def test_wrong_input_is_refused():
    bad = routes()
    broken = RoadProfiles(**{**vars(bad), "status": np.asarray([0, 4, 0], np.uint8)})
    with pytest.raises(InputDataError, match="road 1: no drivable path"):
        simulate(model(), broken, 3)
    with pytest.raises(ValueError, match="'trace', 'summary' or 'texture'.*TwoRecords"):
        simulate(model(TwoRecords(LAW)), one_road(), 3)
    with pytest.raises(ValueError, match="relaxed"):
        simulate(model(choice="gumbel"), one_road(), 3)
    with pytest.raises(ValueError, match="gives draws"):
        EncodeSampler(settings=EncodeSettings(method="map"))


@pytest.mark.slow
def test_a_thousand_simulations_are_uniform_and_a_narrowed_sampler_is_rejected():
    """The whole promise: exact within the envelope, and the test has teeth."""
    found = calibrate(city(), one_road(), model=model("summary"), n_simulations=1_000, seed=0)
    table = calibration_table(found)
    assert table["ok"].all(), table
    assert min(vehicle_test(found)["brier_p"], vehicle_test(found)["log_p"]) > 0.001
    wrong = calibration_table(narrowed(found))
    assert not wrong.loc[["aggressiveness", "detour", "joint"], "ok"].any(), wrong


def narrowed(found):
    """The same calibration by a sampler whose standard deviations are 0.8 of what they were."""
    mean = found["mean"].expand_dims(draw=found.sizes["draw"], axis=1).values
    narrow = mean + 0.8 * (found["draws"].values - mean)
    below = np.sum(narrow < found["truth"].values[:, None], axis=1)
    return found.assign(draws=(found["draws"].dims, narrow), rank=(found["rank"].dims, below))


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", ["summary", "texture"])
@pytest.mark.parametrize("method", ["grid", "quadrature", "hmc"])
def test_exact_methods_are_calibrated_under_summaries(method, likelihood):
    """Laplace and NUTS are left out: the first is no exact method, the second takes seconds."""
    few = TripModel.of(thin_city(), likelihood=likelihood)
    found = calibrate(thin_city(), one_road(), model=few, n_simulations=400, sampler=method, seed=5)
    assert calibration_table(found)["ok"].all()
    assert vehicle_test(found)["log_p"] > 0.001


@pytest.mark.slow
def test_exact_methods_are_calibrated_under_whole_traces():
    """Many narrow heaps, of which the survey of beginnings finds the right one."""
    few = TripModel.of(thin_city(), likelihood=LAW)
    found = calibrate(thin_city(), one_road(), model=few, n_simulations=400, seed=5)
    table = calibration_table(found)
    assert table["ok"].all(), table
    assert vehicle_test(found)["log_p"] > 0.001
    wrong = calibration_table(narrowed(found))
    assert not wrong.loc[["aggressiveness", "detour"], "ok"].any(), wrong


@pytest.mark.slow
def test_laplace_is_found_out_on_traces():
    """A Gaussian around the highest point is not the posterior of a jagged likelihood."""
    few = TripModel.of(thin_city(), likelihood=LAW)
    found = calibrate(
        thin_city(), one_road(), model=few, n_simulations=200, sampler="laplace", seed=5
    )
    assert not calibration_table(found)["ok"].all()
