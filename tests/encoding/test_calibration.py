"""Coverage under the trace law: intervals hold what they promise, and a wrong law is found out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

from prisma_sbi.encoding import encode
from prisma_sbi.models import TraceLikelihood, TripModel
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.simulator.fleet import simulate_fleet
from prisma_sbi.simulator.trip import simulate_trips

N_TRIPS = 60
LAW = TraceLikelihood(floor_w=3_000.0, share=0.5)
ENDS = ("start_lat", "start_lon", "end_lat", "end_lon")


@pytest.fixture(scope="module")
def truth_and_traces(city):
    """Descriptors drawn from the prior, and traces drawn from the model."""
    fleet = simulate_fleet(city, N_TRIPS, seed=5, noise_scale=0.0)
    rng = np.random.default_rng(0)
    truth = {
        "aggressiveness": rng.uniform(0.02, 1.0, N_TRIPS),
        "detour": rng.uniform(1.0, 2.5, N_TRIPS),
    }
    vehicle = rng.integers(0, len(city.vehicles), N_TRIPS)
    profiles = route_profiles(city, *(fleet[name].values for name in ENDS))
    clean = simulate_trips(city, profiles, truth["aggressiveness"], truth["detour"], vehicle)
    noisy = LAW.law(jnp.asarray(clean)).sample(jax.random.key(1))
    traces = fleet.assign(power_w=(("trip", "time"), np.asarray(noisy, np.float32)))
    return {**truth, "vehicle": vehicle}, traces


def ranks(city, truth, traces, law, method):
    """Share of draws below the truth, by parameter, and the fit."""
    fit = encode(city, traces, method=method, model=TripModel.of(city, likelihood=law))
    posterior = fit["posterior"].dataset
    below = {}
    for name in ("aggressiveness", "detour"):
        draws = posterior[name].transpose("trip", "chain", "draw").values.reshape(N_TRIPS, -1)
        below[name] = np.mean(draws < truth[name][:, None], axis=1)
    return below, fit


def misses(below, level):
    """Whether a central interval covers more or less often than chance allows."""
    tail = 0.5 * (1.0 - level)
    n_covered = int(np.sum((below > tail) & (below < 1.0 - tail)))
    low, high = binom.interval(0.999, len(below), level)
    return not low <= n_covered <= high


def failures(truth, below, fit):
    """Names of the checks that a fit fails: intervals by parameter and level, and vehicles."""
    found = [
        f"{name} at {level}"
        for name, values in below.items()
        for level in (0.5, 0.9)
        if misses(values, level)
    ]
    # Vehicles too: the mean probability of the best guess is how often it is right.
    probability = fit["sample_stats"].dataset["vehicle_probability"].values
    right = np.mean(probability.argmax(axis=1) == truth["vehicle"])
    claimed = np.mean(probability.max(axis=1))
    if abs(right - claimed) > 3.3 * np.sqrt(claimed * (1.0 - claimed) / N_TRIPS):
        found.append("vehicle")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("method", ["quadrature", "hmc"])
def test_intervals_and_vehicle_probabilities_hold(city, truth_and_traces, method):
    truth, traces = truth_and_traces
    assert failures(truth, *ranks(city, truth, traces, LAW, method)) == []


@pytest.mark.slow
def test_a_wrong_noise_scale_is_found_out(city, truth_and_traces):
    truth, traces = truth_and_traces
    halved = TraceLikelihood(floor_w=1_500.0, share=0.25)
    assert failures(truth, *ranks(city, truth, traces, halved, "quadrature"))
