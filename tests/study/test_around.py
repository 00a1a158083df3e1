"""Calibration around one trip: ranks given its trace and a simulated one, and who fails it."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.encoding.fitting import parameter_box
from prisma_sbi.inference import GridSettings, integrate
from prisma_sbi.models import (
    FixedVehicle,
    TraceLikelihood,
    TripData,
    TripPosterior,
    partial_log_likelihoods,
)
from prisma_sbi.simulator.driver import roads_from_profiles
from prisma_sbi.study import (
    GridSampler,
    Sampler,
    calibration_table,
    posterior_calibrate,
    simulate,
)
from prisma_sbi.study.simulations import TwoRecords
from tests.study.examples import LAW, QUICK, city, model, one_road


@dataclass(frozen=True)
class Narrow:
    """A sampler whose draws are too near to each other."""

    factor: float

    def __call__(self, region, simulations, progress):
        """Draw, and move draws towards their mean."""
        draws = GridSampler(n_draws=100)(region, simulations, progress)
        mean = draws.point.mean(axis=1, keepdims=True)
        return replace(draws, point=mean + self.factor * (draws.point - mean))


def observed(likelihood=LAW, **parts):
    return simulate(model(likelihood, **parts), one_road(), 1, seed=8).data[0]


def test_two_records_are_as_likely_as_one_times_the_other():
    law = TraceLikelihood()
    both = TwoRecords(law)
    simulations = simulate(model(law), one_road(), 2, seed=1)
    road = simulations.trips(np.asarray([0]))[0]
    single = [jnp.asarray(row) for row in simulations.data]
    here, constants = simulations.model, city().constants
    point, vehicles = jnp.asarray([0.4, 1.3]), here.pool[jnp.arange(3)]
    first_road = type(road)(**{name: leaf[0] for name, leaf in vars(road).items()})

    def value(likelihood, seen):
        return likelihood.log_likelihoods(point, vehicles, TripData(first_road, seen), constants)

    together = value(both, both.observe(jnp.concatenate(single), constants))
    np.testing.assert_allclose(together, sum(value(law, row) for row in single), rtol=1e-6)

    def beginnings(likelihood, seen):
        trip = TripData(first_road, seen)
        return partial_log_likelihoods(likelihood, point, vehicles, trip, constants, (0.3, 1.0))

    begun = beginnings(both, both.observe(jnp.concatenate(single), constants))
    np.testing.assert_allclose(begun, sum(beginnings(law, row) for row in single), rtol=1e-6)
    np.testing.assert_allclose(begun[1], together, rtol=1e-6)


def exact_moments(fixed, power_w):
    """Mean and standard deviations of a broad posterior, by a fine grid along its box."""
    exact, _ = fixed.exact()
    road = jax.tree.map(lambda leaf: leaf[0], roads_from_profiles(one_road()))
    trip = TripData(road, exact.likelihood.observe(jnp.asarray(power_w), exact.constants))
    box = parameter_box(exact.constants)
    fine = GridSettings(grid_shape=(48, 48), n_levels=6, n_split=32)
    middle = 0.5 * (box.lower + box.upper)
    grid = jax.jit(lambda: integrate(TripPosterior(exact, trip), box, middle, fine))()
    mean, covariance = grid.moments()
    return np.asarray(mean), np.sqrt(np.diagonal(covariance))


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [LAW, "summary"])
def test_truths_lie_where_the_trip_says(likelihood):
    """Truths and draws are near the descriptors of the trip, draws no wider than truths."""
    fixed = {"choice": FixedVehicle(5)}
    trip = simulate(model(likelihood, **fixed), one_road(), 1, seed=8)
    # For summaries the trace without errors stands for the trip.
    power = trip.data[0] if likelihood is LAW else observed(TraceLikelihood(1.0, 1e-6), **fixed)
    found = posterior_calibrate(
        city(), one_road(), power, model=model(likelihood, **fixed), n_simulations=16,
        sampler=QUICK, seed=2,
    )  # fmt: skip
    assert found.sizes["simulation"] == 16
    assert found.attrs["kind"] == "posterior_calibration"
    assert np.all(found["true_vehicle"] == 5)
    truth, sd = found["truth"].values, found["sd"].values
    if likelihood is LAW:
        prior_sd = np.asarray([0.98, 1.5]) / np.sqrt(12.0)
        assert np.all(truth.std(axis=0) < 0.6 * prior_sd)
    else:
        mean, exact_sd = exact_moments(model(likelihood, **fixed), power)
        assert np.all(np.abs(truth.mean(axis=0) - mean) < 4.0 * exact_sd / np.sqrt(16))
        assert np.all(np.abs(np.log(truth.std(axis=0) / exact_sd)) < 0.7)
    # The spread of 16 truths is known to a fifth of itself.
    assert np.all(np.median(sd, axis=0) < 1.5 * truth.std(axis=0))
    assert np.all(np.abs(found["z_score"]) < 6.0)


def test_wrong_traces_are_refused():
    gap = np.where(np.arange(500) < 3, np.nan, observed())
    with pytest.raises(InputDataError, match="3 gaps"):
        posterior_calibrate(city(), one_road(), gap, n_simulations=2)
    with pytest.raises(InputDataError, match="Expected one road"):
        posterior_calibrate(city(), one_road(), np.zeros(7), n_simulations=2)


@pytest.mark.slow
def test_exact_posteriors_pass_and_a_narrowed_sampler_fails_around_a_trip():
    fixed = model(choice=FixedVehicle(5))
    options = {"model": fixed, "n_simulations": 400, "seed": 3}
    power = observed(choice=FixedVehicle(5))
    assert isinstance(Narrow(0.8), Sampler)
    exact = posterior_calibrate(city(), one_road(), power, sampler=Narrow(1.0), **options)
    wrong = posterior_calibrate(city(), one_road(), power, sampler=Narrow(0.8), **options)
    tested = ["aggressiveness", "detour"]
    assert calibration_table(exact).loc[tested, "ok"].all()
    assert not calibration_table(wrong).loc[tested, "ok"].any()
