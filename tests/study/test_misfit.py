"""Posterior predictive checks: ranks by hand, uniform under truth, defects found and named."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from prisma_sbi.encoding import encode
from prisma_sbi.models import TraceLikelihood
from prisma_sbi.simulator import simulate_fleet
from prisma_sbi.study import simulate
from prisma_sbi.study.discrepancies import DISCREPANCIES, discrepancies, trip_end
from prisma_sbi.study.misfit import (
    Prediction,
    compare,
    fit_prediction,
    misfit_by,
    misfit_table,
    trip_misfit,
    worst_trips,
)
from tests.study.examples import LAW, QUICK, city, model, routes

COLUMN = {name: place for place, name in enumerate(DISCREPANCIES)}
N_TRIPS, N_REPLICATES = 24, 40
MILD = TraceLikelihood(floor_w=500.0, share=0.1, memory=0.5, degrees_of_freedom=30.0)


def _square(n_times=100, period=10, power_w=20_000.0, idle_w=4_000.0, end=60) -> np.ndarray:
    """Half a period at power, half at idle, then nothing."""
    time = np.arange(n_times)
    power = np.where(time % period < period // 2, power_w, idle_w)
    return np.where(time < end, power, 0.0)[None]


@pytest.fixture(scope="module")
def simulations():
    return simulate(model(MILD), routes(), N_TRIPS, seed=5)


@pytest.fixture(scope="module")
def truthful(simulations):
    """Predictions from the true descriptors."""
    point = np.repeat(simulations.point[:, None], 2, axis=1)
    vehicle = np.repeat(simulations.vehicle[:, None], 2, axis=1)
    return Prediction.of(
        city(),
        routes().take(simulations.road),
        point,
        vehicle,
        likelihood=MILD,
        n_replicates=N_REPLICATES,
        seed=9,
    )


@pytest.fixture(scope="module")
def honest(truthful, simulations):
    return trip_misfit(truthful, simulations.data)


def test_discrepancies_of_a_square_wave_are_those_by_hand():
    found = dict(zip(DISCREPANCIES, discrepancies(_square())[0], strict=True))
    # Ten seconds a period, six periods; the last five seconds are idle.
    assert found["duration_s"] == 60.0
    assert found["energy_j"] == 30 * 24_000.0
    assert found["first_second_w"] == found["level_90_w"] == 20_000.0
    assert found["level_10_w"] == 4_000.0
    assert found["log_variance"] == pytest.approx(np.log(8_000.0**2), rel=1e-3)
    assert found["zero_share"] == 0.0
    assert found["idle_share"] == pytest.approx(0.5)
    assert found["braking_share"] == pytest.approx(6 / 60)
    assert found["n_starts"] == 5.0


def test_discrepancies_are_those_of_the_trip_alone():
    """How long it is quiet afterwards does not matter; for a spectrum, hardly."""
    short, long = discrepancies(_square(80)), discrepancies(_square(400))
    np.testing.assert_allclose(short[:, :-1], long[:, :-1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(short[:, -1], long[:, -1], atol=0.002)


def test_engine_off_in_mid_trip_is_not_the_end():
    power = _square()
    power[:, 30:45] = 0.0
    assert trip_end(power)[0] == trip_end(_square())[0]
    assert discrepancies(power)[0, COLUMN["zero_share"]] == pytest.approx(15 / 60)
    # Nor are small readings after arrival the trip.
    power[:, 60:] = 1_500.0
    assert trip_end(power)[0] == trip_end(_square())[0]


def test_trip_end_is_the_best_cut_of_all():
    rng = np.random.default_rng(0)
    power = rng.normal(0.0, 4_000.0, (40, 50)) * (rng.uniform(size=(40, 1)) * 50 > np.arange(50))
    activity = np.clip(np.abs(power) / 3_000.0 - 1.0, 0.0, 1.0) - 0.04
    gains = np.stack([activity[:, :n].sum(axis=1) for n in range(1, 51)], axis=1)
    end = trip_end(power)
    np.testing.assert_allclose(gains[np.arange(40), end - 1][end > 2], gains.max(axis=1)[end > 2])


@given(arrays(np.float64, (3, 40), elements=st.floats(-1e5, 1e5, allow_subnormal=False)))
@settings(max_examples=60, deadline=None)
def test_discrepancies_are_finite_whatever_the_trace(power):
    found = discrepancies(power)
    assert np.all(np.isfinite(found))
    shares = [COLUMN[f"{name}_share"] for name in ("zero", "idle", "braking")]
    assert np.all((found[:, shares] >= 0.0) & (found[:, shares] <= 1.0))
    levels = found[:, [COLUMN[f"level_{percent}_w"] for percent in (10, 50, 90)]]
    assert np.all(np.diff(levels, axis=1) >= -1e-6)


def test_p_values_are_counted_as_by_hand():
    rng = np.random.default_rng(1)
    n = len(DISCREPANCIES)
    observed = rng.integers(0, 5, (4, n)).astype(float)
    replicated = rng.integers(0, 5, (4, 9, n)).astype(float)
    found = compare(observed, replicated)
    for trip, column in np.ndindex(4, n):
        here, others = observed[trip, column], replicated[trip, :, column]
        # Mean over the places that the observation may take among ten, counted from the top.
        first, last = sum(others > here), sum(others >= here)
        p_above = np.mean([(place + 0.5) / 10 for place in range(first, last + 1)])
        assert found["p_above"][trip, column] == pytest.approx(p_above)
        assert found["p_value"][trip, column] == pytest.approx(2 * min(p_above, 1 - p_above))


def test_whole_trips_rank_as_by_brute_force():
    """The rank of the whole treats an observation as one more replicate: all places alike."""
    rng = np.random.default_rng(2)
    n, n_trips, n_replicates = len(DISCREPANCIES), 600, 19
    scale = 10.0 * np.asarray([item.resolution for item in DISCREPANCIES.values()])
    every = scale * rng.standard_t(4, (n_trips, n_replicates + 1, n))
    found = compare(every[:, 0], every[:, 1:])["p_score"]
    counts = np.bincount(np.round(found * (n_replicates + 1) - 0.5).astype(int), minlength=20)
    assert counts.sum() == n_trips
    # Chi-square of 19 degrees: beyond 43.8 in one of a thousand.
    assert np.sum((counts - 30) ** 2 / 30) < 43.8
    # One trip by loops.
    z = (every[0] - every[0].mean(axis=0)) / every[0].std(axis=0, ddof=1)
    distance = [np.sqrt(np.mean(row**2)) for row in z]
    assert found[0] == pytest.approx((sum(d > distance[0] for d in distance[1:]) + 0.5) / 20)


def test_replicates_from_the_truth_give_uniform_p_values(honest):
    """Observation and replicates are then draws of one law."""
    p = honest["p_above"].values
    # Discrepancies of a trip depend on each other: bounds for the mean of 24 trips each.
    assert np.all(np.abs(p.mean(axis=0) - 0.5) < 4.0 / np.sqrt(12 * N_TRIPS))
    share = (honest["p_value"].values < 0.1).mean()
    assert 0.04 < share < 0.17
    assert 0.3 < honest["p_score"].values.mean() < 0.7
    assert (honest["p_score"].values < 0.05).mean() < 0.2


def test_replicates_do_not_depend_on_the_other_trips(truthful):
    both = truthful.traces(np.asarray([3, 7]))
    np.testing.assert_allclose(truthful.traces(np.asarray([7, 7]))[0], both[1], rtol=1e-5, atol=1.0)
    assert not np.allclose(both[1, 0], both[1, 1])


def _defects(data: np.ndarray) -> dict[str, tuple[np.ndarray, str, float]]:
    """Spoiled traces, the discrepancy that has to notice, and the sign."""
    idling = np.where((np.abs(data) < 12_000.0) & (data > 1_500.0), 2.0 * data, data)
    off = np.where((data > 0.0) & (data < 9_000.0), 0.0, data)
    smooth = np.apply_along_axis(lambda p: np.convolve(p, np.ones(5) / 5, "same"), 1, data)
    early = data.copy()
    early[:, 0] += 60_000.0
    return {
        "idle doubled": (idling, "level_10_w", 1.0),
        "engine off": (off, "zero_share", 1.0),
        "smoothed": (smooth, "autocorrelation_1", 1.0),
        "cut at speed": (early, "first_second_w", 1.0),
    }


@pytest.mark.parametrize("defect", ["idle doubled", "engine off", "smoothed", "cut at speed"])
def test_an_injected_defect_is_found_by_its_discrepancy(truthful, simulations, honest, defect):
    spoiled, name, sign = _defects(simulations.data)[defect]
    found = trip_misfit(truthful, spoiled.astype(np.float32)).sel(discrepancy=name)
    extreme = found["p_value"].values < 0.05
    before = honest.sel(discrepancy=name)["p_value"].values < 0.05
    assert extreme.mean() > 0.6
    assert before.mean() < 0.2
    assert np.mean(np.sign(found["z"].values[extreme]) == sign) > 0.9


def test_noise_that_remembers_is_found(truthful, simulations):
    lasting = TraceLikelihood(floor_w=500.0, share=0.1, memory=0.97, degrees_of_freedom=30.0)
    clean = truthful.traces(np.arange(N_TRIPS)).mean(axis=1)
    data = np.asarray(lasting.law(jnp.asarray(clean)).sample(jax.random.key(3)))
    table = misfit_table(trip_misfit(truthful, data))
    assert table.loc["fast_energy", "share_low"] > 0.6
    assert table.loc["fast_energy", "share_high"] == 0.0


def test_worst_trips_are_named_with_what_is_wrong(truthful, simulations):
    data = simulations.data.copy()
    data[11, 0] += 300_000.0
    names = [f"trip {row}" for row in range(N_TRIPS)]
    found = trip_misfit(truthful, data, names=names)
    first = worst_trips(found, 3).iloc[0]
    assert first["trip"] == "trip 11"
    assert first["row"] == 11
    assert first["how"] == "begins at more power"
    assert first["observed"] > first["predicted_high"]
    assert found["worst"].values[11] == "first_second_w"
    kind = np.where(np.arange(N_TRIPS) == 11, "bad", "good")
    by = misfit_by(found, kind)
    assert by.loc["any", "bad"] == by.loc["first_second_w", "bad"] == 1.0
    assert by.loc["first_second_w", "good"] < 0.2
    assert len(worst_trips(found)) == N_TRIPS


@pytest.mark.slow
def test_a_fit_of_points_predicts_as_its_points():
    fleet = simulate_fleet(city(), 3, seed=2, noise_scale=0.0)
    fit = encode(city(), fleet)
    rows = np.asarray([0, 2])
    made = fit_prediction(city(), fit, routes().take(rows), rows, n_replicates=20, seed=1)
    best = np.asarray(fit["posterior"].to_dataset()["detour"])[0, 0, rows]
    np.testing.assert_allclose(made.point[:, :, 1], np.repeat(best[:, None], 20, 1), rtol=1e-6)
    found = trip_misfit(made, fleet["power_w"].values[rows])
    assert found.attrs["n_replicates"] == 20
    # What was fitted is met; the exact traces lack the noise, and that is seen.
    assert np.all(np.abs(found["z"].sel(discrepancy="duration_s")) < 3.0)
    assert np.all(found["p_value"].sel(discrepancy="fast_energy") < 0.1)


@pytest.mark.slow
def test_posterior_replicates_are_conservative():
    """Draws have seen the data: extreme p-values are rarer than nominal, or hardly more."""
    seen = simulate(model(LAW), routes(), 96, seed=6)
    draws = QUICK(city(), seen, None)
    made = Prediction.of(
        city(), routes().take(seen.road), draws.point, draws.vehicle, likelihood=LAW
    )
    found = trip_misfit(made, seen.data)
    p = found["p_value"].values
    assert (p < 0.1).mean() < 0.13
    assert found["p_above"].sel(discrepancy="energy_j").values.std() < 1.0 / np.sqrt(12.0)
    assert (found["p_score"].values < 0.05).mean() < 0.12


def test_wrong_input_is_refused(truthful):
    with pytest.raises(ValueError, match="one row a road"):
        Prediction.of(city(), routes(), np.zeros((2, 5, 2)), np.zeros((2, 5), int))
    with pytest.raises(ValueError, match="n_replicates >= 20"):
        Prediction.of(city(), routes(), np.zeros((3, 5, 2)), np.zeros((3, 5), int), n_replicates=3)
    with pytest.raises(ValueError, match="power_w"):
        trip_misfit(truthful, np.zeros((2, 500), np.float32))
