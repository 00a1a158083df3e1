"""Profile likelihood: closed forms for a normal one, quadrature's intervals, ragged curves."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from prisma_sbi.models import FixedVehicle
from prisma_sbi.study import (
    GridSampler,
    ProfileSettings,
    information_gain,
    profile_likelihood,
    simulate,
)
from prisma_sbi.study.profiles import _interval
from tests.study.examples import FEW_POINTS, QUICK, city, model, routes

SD = np.asarray([0.03, 0.08])
CORRELATION = 0.8
FEW = ProfileSettings(
    n_values=81,
    n_inner=10,
    population=FEW_POINTS,
)


class Bell(eqx.Module):
    """Normal in the point around what was observed; each vehicle is a little less likely."""

    def observe(self, power_w, constants):
        return jnp.asarray(power_w)[..., :2]

    def log_likelihoods(self, point, vehicles, trip, constants, *, stride=1):
        precision = jnp.linalg.inv(
            jnp.asarray(
                [
                    [SD[0] ** 2, CORRELATION * SD[0] * SD[1]],
                    [CORRELATION * SD[0] * SD[1], SD[1] ** 2],
                ],
                jnp.float32,
            )
        )
        offset = point - trip.observed
        return -0.5 * offset @ precision @ offset - 0.1 * jnp.arange(len(vehicles.idle_power_w))

    def sampled(self):
        return self


CENTER = np.asarray([[0.4, 1.7], [0.55, 1.5], [0.99, 1.02]], np.float32)


@pytest.fixture(scope="module")
def bell():
    return profile_likelihood(
        city(), routes(), CENTER, model=model(Bell()), level=0.9, settings=FEW, chunk_size=3
    )


def test_intervals_of_a_normal_likelihood(bell):
    half = norm.ppf(0.95) * SD
    for row in (0, 1):
        np.testing.assert_allclose(bell["low"][row], CENTER[row] - half, atol=0.02 * SD.max())
        np.testing.assert_allclose(bell["high"][row], CENTER[row] + half, atol=0.02 * SD.max())
    np.testing.assert_allclose(bell["best"][:2], CENTER[:2], atol=0.1 * SD.min())
    assert np.all(bell["best_vehicle"] == 0)
    assert np.all(bell["n_pieces"] == 1)
    # The third stands at two bounds.
    assert bell["open_high"].values[2].tolist() == [True, False]
    assert bell["open_low"].values[2].tolist() == [False, True]


def test_curve_is_the_parabola_of_the_marginal(bell):
    """The other parameter is always at its best, so the ridge costs nothing."""
    for axis in (0, 1):
        value, drop = bell["value"].values[0, axis], bell["drop"].values[0, axis]
        z = (value - CENTER[0, axis]) / SD[axis]
        near = np.abs(z) < 3.0
        assert near.sum() > 25
        np.testing.assert_allclose(drop[near], -0.5 * z[near] ** 2, atol=0.05)
        other = CENTER[0, 1 - axis] + CORRELATION * z * SD[1 - axis]
        np.testing.assert_allclose(
            bell["other"].values[0, axis][near], other[near], atol=0.1 * SD[1 - axis]
        )


@pytest.mark.slow
def test_intervals_are_those_of_quadrature_in_the_normal_limit(bell):
    """The sampler, on the same data under a flat prior: central intervals of its draws."""
    simulations = simulate(model(choice=FixedVehicle(0)), routes(), 2)
    same = eqx.tree_at(lambda s: (s.model, s.data), simulations, (model(Bell()), CENTER[:2]))
    sampler = GridSampler(grid=QUICK.grid, align=QUICK.align, n_draws=2_000, chunk_size=2)
    draws = sampler(city(), same, None)
    low, high = np.quantile(draws.point, [0.05, 0.95], axis=1)
    # Weighed draws, some hundreds of them effective.
    np.testing.assert_allclose(bell["low"][:2], low, atol=0.25 * SD.max())
    np.testing.assert_allclose(bell["high"][:2], high, atol=0.25 * SD.max())
    width = (high - low).mean(axis=0) / (bell["high"] - bell["low"])[:2].mean("trip")
    np.testing.assert_allclose(width, 1.0, atol=0.12)


def test_interval_of_a_ragged_curve():
    value = np.asarray([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]])
    drop = np.asarray([[-9.0, -1.0, -4.0, 0.0, -1.0, -4.0]])
    low, high, n_pieces = _interval(value, drop, 2.25)
    assert low[0] == pytest.approx(1.0 - (1.5 - 1.0) / (3.0 - 1.0))
    assert high[0] == pytest.approx(4.0 + (1.5 - 1.0) / (2.0 - 1.0))
    assert n_pieces == 2
    low, high, n_pieces = _interval(value, np.zeros((1, 6)), 2.25)
    assert (low, high, n_pieces) == (0.0, 5.0, 1)


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="3 traces"):
        profile_likelihood(city(), routes(), CENTER[:2])


@pytest.mark.slow
def test_intervals_hold_simulated_truths():
    """Likelihood-ratio intervals of traces: close to their level, though curves are ragged."""
    simulations = simulate(model(), routes(), 48, seed=6)
    found = profile_likelihood(
        city(), routes().take(simulations.road), simulations.data, model=model(), level=0.9
    )
    truth = simulations.point
    covered = (found["low"].values <= truth) & (truth <= found["high"].values)
    assert np.all(covered.sum(axis=0) >= 37)
    assert np.all(found["high"] - found["low"] < [0.98, 1.5])


def flat_draws():
    """A trip without information: noise beyond all power."""
    from_noise = model(eqx.tree_at(lambda law: law.floor_w, model().likelihood, 1e12))
    simulations = simulate(from_noise, routes(), 3, seed=1)
    sampler = GridSampler(grid=QUICK.grid, align=QUICK.align, n_draws=300, chunk_size=3)
    return from_noise, simulations, sampler(city(), simulations, None)


@pytest.mark.slow
def test_an_uninformative_trip_contracts_nothing():
    of, simulations, draws = flat_draws()
    found = information_gain(of, draws.point, draws.vehicle_probability, truth=simulations.point)
    # Relative error of a variance of a flat law from some 200 effective draws: 0.9 / sqrt(200).
    assert np.all(np.abs(found["contraction"]) < 0.25)
    assert np.abs(found["contraction"]).mean() < 0.1
    assert np.all(np.abs(found["gain"].sel(descriptor="vehicle")) < 1e-3)
    assert np.all(found["gain"].sel(descriptor=["aggressiveness", "detour"]) < 0.25)
    np.testing.assert_allclose(found["n_vehicles"], len(city().vehicles), rtol=1e-3)
    assert np.all(np.abs(found["z_score"]) < 2.0)


def test_information_of_known_draws():
    rng = np.random.default_rng(0)
    center, sd = np.asarray([0.5, 1.6]), np.asarray([0.01, 0.02])
    draws = center + sd * rng.normal(size=(4, 2_000, 2))
    probability = np.zeros((4, len(city().vehicles)))
    probability[:, :2] = 0.5
    found = information_gain(model(), draws, probability, truth=np.tile(center + sd, (4, 1)))
    contraction = 1.0 - 12.0 * sd**2 / np.asarray([0.98, 1.5]) ** 2
    np.testing.assert_allclose(found["contraction"], np.tile(contraction, (4, 1)), atol=5e-4)
    expected = np.log(np.asarray([0.98, 1.5]) / (sd * np.sqrt(2 * np.pi * np.e)))
    np.testing.assert_allclose(found["gain"].values[:, :2], np.tile(expected, (4, 1)), atol=0.1)
    np.testing.assert_allclose(found["gain"].values[:, 2], np.log(len(city().vehicles) / 2))
    np.testing.assert_allclose(found["n_vehicles"], 2.0)
    np.testing.assert_allclose(found["z_score"], -1.0, atol=0.1)
