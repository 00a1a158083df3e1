"""The three likelihoods: against the whole simulated trace, and their derivatives."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from prisma_sbi.models import (
    Likelihood,
    PartialLikelihood,
    SummaryLikelihood,
    TextureLikelihood,
    TraceLikelihood,
    TripData,
    partial_log_likelihoods,
)
from prisma_sbi.region.constants import Constants
from tests.gradients import compare_with_differences
from tests.models.examples import CONSTANTS, N_VEHICLES, POINTS, observed_trace, simulated
from tests.models.published import published_loss
from tests.simulator.examples import make_pool, make_road

KINDS = {
    "summary": SummaryLikelihood(),
    "texture": TextureLikelihood(),
    "trace": TraceLikelihood(),
}


@eqx.filter_jit
def log_likelihoods(likelihood, point, vehicles, trip, constants, *, stride=1):
    return likelihood.log_likelihoods(point, vehicles, trip, constants, stride=stride)


def summary_by_hand(simulated_w, observed_w, constants):
    return -published_loss(simulated_w, observed_w, constants)


def trace_by_hand(simulated_w, observed_w, constants):
    law = TraceLikelihood().law(jnp.asarray(simulated_w))
    return float(law.log_prob(jnp.asarray(observed_w)))


def texture_of(power_w, constants, lags):
    """Log variance and autocorrelation over the smooth duration, from the whole trace."""
    p = np.asarray(power_w, float) / constants.power_span_w
    n = max(np.sum(1.0 - np.exp(-((p / constants.activity_threshold) ** 2))), 1.0)
    mean = p.sum() / n
    variance = max((p**2).sum() / n - mean**2, 1e-6)
    return np.log(variance), np.asarray(
        [((p[lag:] * p[:-lag]).sum() / n - mean**2) / variance for lag in lags]
    )


def texture_by_hand(simulated_w, observed_w, constants):
    kind = TextureLikelihood()
    (v, a), (w, b) = (texture_of(x, constants, kind.lags) for x in (simulated_w, observed_w))
    return (
        -published_loss(simulated_w, observed_w, constants)
        - 0.5 * ((v - w) / kind.log_variance_scale) ** 2
        - 0.5 * np.mean(((a - b) / kind.autocorrelation_scale) ** 2)
    )


BY_HAND = {"summary": summary_by_hand, "texture": texture_by_hand, "trace": trace_by_hand}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    "constants",
    [
        CONSTANTS,
        Constants(horizon_s=90, time_step_s=0.5, recuperation=0.6),
        Constants.preset("realistic", horizon_s=90),
    ],
    ids=["default", "half a second, recuperating", "realistic"],
)
def test_running_evaluation_equals_that_of_whole_traces(name, constants):
    likelihood, pool = KINDS[name], make_pool(constants)
    assert isinstance(likelihood, Likelihood)
    for seed in (0, 3):
        road, observed = make_road(seed), observed_trace(seed, constants)
        trip = TripData(road, likelihood.observe(observed, constants))
        for point in POINTS:
            found = log_likelihoods(likelihood, jnp.asarray(point), pool, trip, constants)
            assert found.shape == (N_VEHICLES,)
            traces = simulated(point, pool, road, constants)
            expected = [BY_HAND[name](trace, observed, constants) for trace in traces]
            np.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.usefixtures("x64")
def test_beginnings_are_as_likely_as_shorter_traces():
    likelihood, pool, road = TraceLikelihood(), make_pool(), make_road(3)
    observed, shares = observed_trace(3), (0.001, 0.25, 0.6, 1.0)
    trip, point = TripData(road, observed), jnp.asarray(POINTS[2])
    assert isinstance(likelihood, PartialLikelihood)
    found = partial_log_likelihoods(likelihood, point, pool, trip, CONSTANTS, shares)
    ends = [1, *(round(share * CONSTANTS.n_times) for share in shares[1:])]
    expected = [
        [
            trace_by_hand(trace[:end], observed[:end], CONSTANTS)
            for trace in simulated(point, pool, road)
        ]
        for end in ends
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    whole = log_likelihoods(likelihood, point, pool, trip, CONSTANTS)
    np.testing.assert_allclose(found[-1], whole, rtol=1e-12)


@pytest.mark.parametrize("shares", [(0.5, 0.25), (0.0, 1.0), (0.5, 1.5)])
def test_beginnings_must_grow(shares):
    likelihood, pool = TraceLikelihood(), make_pool()
    trip, point = TripData(make_road(3), observed_trace(3)), jnp.asarray(POINTS[2])
    with pytest.raises(ValueError, match="rising shares above 0 up to 1"):
        partial_log_likelihoods(likelihood, point, pool, trip, CONSTANTS, shares)


def test_summaries_have_no_beginning_but_powers():
    likelihood, pool, road = SummaryLikelihood(), make_pool(), make_road(3)
    trip = TripData(road, likelihood.observe(observed_trace(3), CONSTANTS))
    point = jnp.asarray(POINTS[2])
    assert not isinstance(likelihood, PartialLikelihood)
    found = partial_log_likelihoods(likelihood, point, pool, trip, CONSTANTS, (0.5, 1.0))
    whole = log_likelihoods(likelihood, point, pool, trip, CONSTANTS)
    np.testing.assert_allclose(found, np.outer([0.25, 1.0], whole), rtol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_single_precision_is_good_enough(name):
    likelihood, pool, road = KINDS[name], make_pool(), make_road(0)
    observed = observed_trace(0)
    trip = TripData(road, likelihood.observe(observed, CONSTANTS))
    for point in POINTS:
        found = log_likelihoods(likelihood, jnp.asarray(point), pool, trip, CONSTANTS)
        traces = simulated(point, pool, road)
        expected = [BY_HAND[name](trace, observed, CONSTANTS) for trace in traces]
        np.testing.assert_allclose(found, expected, rtol=3e-3, atol=0.02)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", KINDS)
def test_derivatives_equal_finite_differences(name):
    likelihood, pool = KINDS[name], make_pool()

    @jax.jit
    def value(point, trip):
        return likelihood.log_likelihoods(point, pool, trip, CONSTANTS)

    compared = []
    for seed in (0, 1):
        trip = TripData(make_road(seed), likelihood.observe(observed_trace(seed), CONSTANTS))
        rng = np.random.default_rng(seed)
        for _ in range(6):
            at = jnp.asarray(rng.uniform([0.1, 1.05], [0.95, 2.4]))
            compared.append(compare_with_differences(partial(value, trip=trip), at))
    assert np.mean(compared) > 0.8


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", KINDS)
def test_reverse_mode_equals_forward_mode(name):
    likelihood, pool = KINDS[name], make_pool()
    trip = TripData(make_road(1), likelihood.observe(observed_trace(1), CONSTANTS))

    def value(point):
        return likelihood.log_likelihoods(point, pool, trip, CONSTANTS)

    at = jnp.asarray([0.5, 1.3])
    forward, backward = jax.jit(jax.jacfwd(value))(at), jax.jit(jax.jacrev(value))(at)
    np.testing.assert_allclose(forward, backward, rtol=1e-7)


def ramp_and_spikes():
    """A smooth ramp and a train of spikes with the same energy every ten seconds."""
    n = CONSTANTS.n_times
    ramp = np.linspace(12_000.0, 28_000.0, n)
    swing = np.where(np.arange(n) % 2 == 0, 0.75, -0.75)
    return ramp, ramp * (1.0 + swing)


@pytest.mark.usefixtures("x64")
def test_texture_tells_apart_what_the_summary_cannot():
    ramp, spikes = ramp_and_spikes()
    # The same to the published loss, but for a little of the cumulative curve...
    assert spikes.sum() == pytest.approx(ramp.sum(), rel=0.01)
    assert published_loss(spikes, ramp, CONSTANTS) < 0.3
    # ... and a world apart in texture.
    assert -texture_by_hand(spikes, ramp, CONSTANTS) > 20.0
    one, other = (
        TextureLikelihood().observe(jnp.asarray(trace), CONSTANTS) for trace in (ramp, spikes)
    )
    for found, trace in ((one, ramp), (other, spikes)):
        log_variance, autocorrelation = texture_of(trace, CONSTANTS, TextureLikelihood().lags)
        assert float(found.log_variance) == pytest.approx(log_variance, rel=1e-9)
        np.testing.assert_allclose(found.autocorrelation, autocorrelation, rtol=1e-9)
    assert float(other.log_variance - one.log_variance) > 1.0
    assert float(one.autocorrelation[0]) > 0.8 > 0.0 > float(other.autocorrelation[0])


@pytest.mark.usefixtures("x64")
def test_zeros_after_arrival_do_not_count_as_texture():
    ramp, _ = ramp_and_spikes()
    lags = (1,)
    kind, long = TextureLikelihood(lags=lags), Constants(horizon_s=2 * CONSTANTS.horizon_s)
    short_trip = kind.observe(jnp.asarray(ramp), CONSTANTS)
    long_trip = kind.observe(jnp.asarray(np.pad(ramp, (0, len(ramp)))), long)
    assert float(short_trip.log_variance) == pytest.approx(float(long_trip.log_variance))
    np.testing.assert_allclose(short_trip.autocorrelation, long_trip.autocorrelation, rtol=1e-9)


def test_stride_changes_the_summary_alone():
    pool, at = make_pool(), jnp.asarray([0.5, 1.3])
    for name, likelihood in KINDS.items():
        trip = TripData(make_road(0), likelihood.observe(observed_trace(0), CONSTANTS))
        exact, cheap = (
            log_likelihoods(likelihood, at, pool, trip, CONSTANTS, stride=stride)
            for stride in (1, 5)
        )
        assert np.array_equal(exact, cheap) == (name != "summary")


BAD = {
    "no power": np.zeros(120),
    "more recuperated than spent": np.full(120, -5_000.0),
    "absurdly much": np.full(120, 1e7),
    "one sample": np.eye(1, 120)[0] * 3e4,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_strange_traces_have_finite_values_and_derivatives(name):
    likelihood, pool = KINDS[name], make_pool()

    @jax.jit
    def both(at, trip):
        def value(point):
            return likelihood.log_likelihoods(point, pool, trip, CONSTANTS)

        return value(at), jax.jacfwd(value)(at)

    for trace in BAD.values():
        observed = likelihood.observe(jnp.asarray(trace, jnp.float32), CONSTANTS)
        for point in ((0.02, 1.0), (0.5, 1.5), (1.0, 2.5)):
            for array in both(jnp.asarray(point), TripData(make_road(0), observed)):
                assert np.all(np.isfinite(array))


@pytest.mark.parametrize("lags", [(), (0,), (1, -3)])
def test_impossible_lags_are_refused(lags):
    with pytest.raises(ValueError, match="Expected lags of 1 or more"):
        TextureLikelihood(lags=lags)
