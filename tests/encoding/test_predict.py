"""Posterior prediction and log likelihood, and ArviZ on what comes out."""

import warnings

import arviz as az
import numpy as np
import pytest
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.encoding import (
    EncodeSettings,
    QuadratureFit,
    add_log_likelihood,
    add_posterior_predictive,
    encode,
    model_of,
)
from prisma_sbi.models import TraceLikelihood, TripModel
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.simulator.trip import simulate_trips
from tests.encoding.conftest import SMALL_GRID, small

ENDS = ("start_lat", "start_lon", "end_lat", "end_lon")
GRID = QuadratureFit(grid=SMALL_GRID, n_chains=4, n_draws=50)


def test_prediction_of_summaries_is_the_simulated_trace(city, fits):
    fit = fits["quadrature"]
    found = add_posterior_predictive(city, fit, n_draws=3)
    predicted = found["posterior_predictive"].dataset["power_w"]
    assert predicted.dims == ("chain", "draw", "trip", "time")
    assert predicted.shape[:2] == (2, 3)
    last = fit["posterior"].dataset.isel(chain=1, draw=-1)
    profiles = route_profiles(city, *(fit["constant_data"].dataset[name].values for name in ENDS))
    columns = (last[name].values for name in ("aggressiveness", "detour", "vehicle"))
    np.testing.assert_allclose(
        predicted.values[1, -1], simulate_trips(city, profiles, *columns), rtol=1e-5
    )


def test_some_trips_can_be_asked_for_by_name(city, fits):
    names = [str(name) for name in fits["map"]["posterior"]["trip"].values[[3, 1]]]
    found = add_posterior_predictive(city, fits["map"], trips=names)
    assert found["posterior_predictive"]["trip"].values.tolist() == names
    assert found["observed_data"]["trip"].values.tolist() == names
    with pytest.raises(InputDataError, match="'elsewhere'"):
        add_posterior_predictive(city, fits["map"], trips=["elsewhere"])


def test_prediction_under_the_trace_law_carries_its_noise(city, fleet):
    law = TraceLikelihood(floor_w=800.0, share=0.2)
    model = TripModel.of(city, likelihood=law)
    fit = encode(city, fleet.isel(trip=[0, 1]), model=model, settings=small("quadrature"))
    assert isinstance(model_of(city, fit).likelihood, TraceLikelihood)
    found = add_posterior_predictive(city, fit, n_draws=5)
    silent = found["posterior_predictive"].dataset["power_w"].values[..., -5:]
    observed = fit["observed_data"].dataset["power_w"].values[:, -5:]
    after = np.flatnonzero((observed == 0.0).all(axis=1))
    assert after.size
    spread = silent[:, :, after].std()
    assert 400.0 < spread < 1_600.0


def test_log_likelihood_is_that_of_the_model(city, fits):
    fit = fits["quadrature"]
    found = add_log_likelihood(city, fit, n_draws=2, chunk_size=2)
    values = found["log_likelihood"].dataset["power_w"]
    assert values.dims == ("chain", "draw", "trip")
    assert found["posterior"].sizes["draw"] == 2
    # By hand for one draw: the mean over vehicles of exp(-loss), vehicle by vehicle.
    draw = found["posterior"].dataset.isel(chain=0, draw=1, trip=2)
    profiles = route_profiles(city, *(fit["constant_data"].dataset[name].values for name in ENDS))
    n_vehicles = len(city.vehicles)
    power_w = simulate_trips(
        city,
        profiles.take(np.full(n_vehicles, 2)),
        np.full(n_vehicles, draw["aggressiveness"].item()),
        np.full(n_vehicles, draw["detour"].item()),
        np.arange(n_vehicles),
    ).astype(float)
    observed = fit["observed_data"].dataset["power_w"].values[2].astype(float)
    constants = city.constants
    energy, total = power_w.sum(axis=1), observed.sum()
    level = constants.activity_threshold * constants.power_span_w
    active, seen = (np.sum(1 - np.exp(-((p / level) ** 2)), axis=-1) for p in (power_w, observed))
    gap = np.cumsum(power_w, axis=1) / energy[:, None] - np.cumsum(observed) / total
    loss = 0.5 * (
        ((energy / total - 1) / constants.energy_scale) ** 2
        + ((active / seen - 1) / constants.duration_scale) ** 2
        + np.mean(gap**2, axis=1) / constants.shape_scale**2
    )
    expected = np.log(np.mean(np.exp(-loss)))
    assert values.values[0, 1, 2] == pytest.approx(expected, rel=2e-3, abs=2e-3)


def test_a_law_of_ones_own_must_be_given_again(city, fits):
    fit = fits["quadrature"].copy()
    fit.attrs = {**fit.attrs, "model": '{"likelihood": {"name": "Mine"}}'}
    with pytest.raises(InputDataError, match="'Mine'.*Pass the model"):
        add_posterior_predictive(city, fit)
    assert "posterior_predictive" in add_posterior_predictive(
        city, fit, model=TripModel.of(city), n_draws=1
    )


@pytest.fixture(scope="module")
def whole(city, fleet) -> xr.DataTree:
    """A fit with every group."""
    settings = EncodeSettings(method="quadrature", work=GRID)
    fit = encode(city, fleet, settings=settings)
    return add_log_likelihood(city, add_posterior_predictive(city, fit, n_draws=10))


@pytest.mark.slow
@pytest.mark.parametrize(
    "plot",
    [
        lambda fit: az.plot_trace_dist(fit, var_names=["detour"]),
        lambda fit: az.plot_pair(fit.isel(trip=[0]), var_names=["aggressiveness", "detour"]),
        lambda fit: az.plot_forest(fit, var_names=["aggressiveness"]),
        lambda fit: az.plot_ppc_dist(fit.isel(trip=[0, 1]), num_samples=5),
    ],
    ids=["trace_dist", "pair", "forest", "ppc_dist"],
)
def test_arviz_draws_a_fit(whole, plot):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert plot(whole) is not None


def test_arviz_sums_up_and_compares_fits(whole, city, fleet):
    summary = az.summary(whole, var_names=["aggressiveness", "detour"])
    assert len(summary) == 2 * fleet.sizes["trip"]
    with warnings.catch_warnings():
        # A trip on its own says nothing about the others; the large k are the point.
        warnings.simplefilter("ignore")
        loo = az.loo(whole, pointwise=True)
        assert loo.pareto_k.shape == (fleet.sizes["trip"],)
        assert np.isfinite(loo.elpd)
        other = encode(
            city,
            fleet,
            model=TripModel.of(city, likelihood="texture"),
            settings=EncodeSettings(method="quadrature", work=GRID),
        )
        table = az.compare({"summary": whole, "texture": add_log_likelihood(city, other)})
    assert set(table.index) == {"summary", "texture"}
