"""Sensitivity: exact laws of single constants, differences, new routes, normal posteriors."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm

from prisma_sbi.models import TripModel, beta_prior
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.simulator import (
    roads_from_profiles,
    simulate_fleet,
    simulate_power,
    vehicles_from_pool,
)
from prisma_sbi.study import simulate
from prisma_sbi.study.power_scaling import PriorRole, power_scaling
from prisma_sbi.study.sensitivity import (
    CONSTANTS,
    ScaledTrip,
    SensitivitySettings,
    constant_sensitivity,
    constant_table,
    factors,
)
from tests.study.examples import LAW, QUICK, city, model, routes

NAMES = tuple(CONSTANTS)
POINT, VEHICLE = jnp.asarray([0.45, 1.3]), jnp.asarray(20)
N_DRAWS = 4_000
SMALL = SensitivitySettings(align=QUICK.align, grid=QUICK.grid, n_draws=200)


def scaled_trip(trip: int = 0, constants: Constants | None = None) -> ScaledTrip:
    profiles, constants = routes(), constants or city().constants
    road = jax.tree.map(lambda leaf: leaf[trip], roads_from_profiles(profiles))
    creeping = jnp.asarray(profiles.speed_mps[trip] == np.float32(constants.creep_speed_mps))
    return ScaledTrip(vehicles_from_pool(city().vehicles, constants), road, creeping, constants)


def factor(**changed: float) -> jnp.ndarray:
    return jnp.asarray([changed.get(name, 1.0) for name in NAMES], jnp.float32)


def test_an_engine_better_by_a_tenth_needs_a_tenth_less_above_idle():
    trip = scaled_trip()
    idle = float(trip.pool.idle_power_w[VEHICLE])
    before = np.asarray(trip.power(factor(), POINT, VEHICLE))
    after = np.asarray(trip.power(factor(tank_efficiency=1.1), POINT, VEHICLE))
    driving = before > 1.01 * idle
    assert driving.sum() > 20
    np.testing.assert_allclose(
        (after - idle)[driving], (before - idle)[driving] / 1.1, rtol=2e-4, atol=1.0
    )
    np.testing.assert_allclose(after[~driving], before[~driving], rtol=2e-2)


def test_idle_power_is_added_to_every_second_of_the_trip():
    trip = scaled_trip()
    idle = float(trip.pool.idle_power_w[VEHICLE])
    moved = trip.power(factor(idle_power_w_per_l=1.2), POINT, VEHICLE) - trip.power(
        factor(), POINT, VEHICLE
    )
    moved = np.asarray(moved)
    assert np.max(moved) == pytest.approx(0.2 * idle, rel=1e-3)
    during = np.flatnonzero(moved > 0.1 * idle)
    np.testing.assert_allclose(moved[during[:-1]], 0.2 * idle, rtol=1e-2)


def test_ceiling_and_aggressiveness_are_one_product():
    """Only their product enters, so that a higher ceiling is a calmer driver, exactly."""
    trip = scaled_trip(1)
    raised = trip.power(
        factor(acceleration_ceiling_mps2=1.25), POINT / jnp.asarray([1.25, 1.0]), VEHICLE
    )
    np.testing.assert_allclose(raised, trip.power(factor(), POINT, VEHICLE), rtol=1e-2, atol=60.0)


@pytest.mark.parametrize("preset", ["published", "realistic"])
@pytest.mark.parametrize("name", NAMES)
def test_factors_are_the_simulator_at_other_constants(name, preset):
    """Constants changed for good, and roads routed again, give the same trace."""
    base = Constants.preset(preset, horizon_s=city().constants.horizon_s)
    changed = replace(base, **{name: 1.1 * getattr(base, name)})
    region = replace(city(), constants=changed)
    fleet = simulate_fleet(city(), 3, seed=2)
    ends = ("start_lat", "start_lon", "end_lat", "end_lon")
    again = route_profiles(region, *(fleet[end].values for end in ends))
    pool = vehicles_from_pool(region.vehicles, changed)
    moved = False
    for trip in range(3):
        road = jax.tree.map(lambda leaf, trip=trip: leaf[trip], roads_from_profiles(again))
        expected = np.asarray(simulate_power(POINT[0], POINT[1], pool[VEHICLE], road, changed))
        scaled = scaled_trip(trip, base)
        found = np.asarray(scaled.power(factor(**{name: 1.1}), POINT, VEHICLE))
        as_is = np.asarray(scaled.power(factor(), POINT, VEHICLE))
        # Rounding moves a kink by a step now and then; all other seconds agree.
        assert np.mean(np.abs(found - expected) < 1.0 + 1e-3 * np.abs(expected)) > 0.97
        moved |= bool(np.mean(np.abs(as_is - expected) > 10.0) > 0.01)
    assert moved


def test_derivatives_are_those_of_differences():
    with jax.enable_x64(True):
        trip = jax.tree.map(
            lambda leaf: jnp.asarray(leaf, jnp.float64) if leaf.dtype == jnp.float32 else leaf,
            scaled_trip(),
        )
        point, ones = jnp.asarray([0.45, 1.3]), jnp.ones(len(NAMES))
        power = jax.jit(lambda value: trip.power(value, point, VEHICLE))
        slope = np.asarray(jax.jacfwd(power)(ones))
        step = 1e-7
        for place, name in enumerate(NAMES):
            up, down = (power(ones.at[place].add(sign * step)) for sign in (1.0, -1.0))
            difference = np.asarray((up - down) / (2.0 * step))
            close = np.abs(difference - slope[:, place]) < 1.0 + 1e-3 * np.abs(difference)
            assert np.mean(close) > 0.98, name
            assert np.max(np.abs(slope[:, place])) > 1.0, name


def _distance(mean: float, sd: float, other_mean: float, other_sd: float) -> float:
    """Cumulative Jensen-Shannon distance of two normal laws, by the formula of the authors."""

    def one_way(values, sign):
        p = norm.cdf(sign * (values - mean) / sd)
        q = norm.cdf(sign * (values - other_mean) / other_sd)
        middle = 0.5 * (p + q)
        first = trapezoid(p * np.log2((p + 1e-300) / (middle + 1e-300)), values)
        second = trapezoid(q * np.log2((q + 1e-300) / (middle + 1e-300)), values)
        p_area, q_area = trapezoid(p, values), trapezoid(q, values)
        # The corrections of the two directions cancel.
        return np.sqrt((first + second) / (p_area + q_area))

    # As far out as the draws go: the areas below the two depend on it.
    low, high = mean + sd * norm.ppf(0.5 / N_DRAWS), mean - sd * norm.ppf(0.5 / N_DRAWS)
    values = np.linspace(low, high, 20_001)
    return max(one_way(values, 1.0), one_way(values, -1.0))


@pytest.mark.parametrize(
    ("prior_sd", "data_mean", "data_sd", "role"),
    [
        (10.0, 1.0, 0.5, PriorRole.OK),
        (1.0, 3.0, 1.0, PriorRole.CONFLICT),
        (0.5, 0.2, 10.0, PriorRole.STRONG_PRIOR),
    ],
)
def test_power_scaling_of_a_normal_posterior(prior_sd, data_mean, data_sd, role):
    """Prior N(0, s0), one observation N(theta, s): every scaled posterior is normal and known."""

    def posterior(prior_power, data_power):
        precision = prior_power / prior_sd**2 + data_power / data_sd**2
        return data_power * data_mean / data_sd**2 / precision, precision**-0.5

    mean, sd = posterior(1.0, 1.0)
    quantile = (np.arange(N_DRAWS) + 0.5) / N_DRAWS
    draw = norm.ppf(np.random.default_rng(0).permutation(quantile)) * sd + mean
    found = power_scaling(
        {"theta": draw[None]},
        -0.5 * (draw[None] / prior_sd) ** 2,
        -0.5 * ((draw[None] - data_mean) / data_sd) ** 2,
    )
    for component, powers in (("prior", (0.99, 1.0)), ("likelihood", (1.0, 0.99))):
        low = _distance(mean, sd, *posterior(*powers)) / -np.log2(0.99)
        high_powers = tuple(2.0 - power for power in powers)
        high = _distance(mean, sd, *posterior(*high_powers)) / np.log2(1.01)
        seen = found["sensitivity"].sel(component=component).item()
        assert seen == pytest.approx(0.5 * (low + high), rel=0.08, abs=2e-3)
    assert found["role"].item() == role


def test_a_flat_prior_has_nothing_to_scale():
    rng = np.random.default_rng(0)
    draw = rng.normal(size=(2, 200))
    found = power_scaling({"theta": draw, "still": 0.0 * draw}, np.zeros((2, 200)), -0.5 * draw**2)
    assert np.all(found["sensitivity"].sel(component="prior") == 0.0)
    assert np.all(found["sensitivity"].sel(parameter="still") == 0.0)
    assert np.all(found["sensitivity"].sel(parameter="theta", component="likelihood") > 0.05)
    assert np.all(found["role"] == PriorRole.OK)


def test_a_posterior_of_two_points_is_scaled_by_hand():
    """Most draws are the same, so that the tail of the weights has no shape."""
    share, gap, n = 0.3, 2.0, 400
    draw = (np.arange(n) >= share * n).astype(float)
    found = power_scaling({"theta": draw[None]}, np.zeros((1, n)), gap * draw[None])
    rates = []
    for power in (0.99, 1.01):
        other = share / (share + (1.0 - share) * np.exp((power - 1.0) * gap))
        ways = []
        # Between the two points either law has one step: below it, and above it.
        for p, q in ((share, other), (1.0 - share, 1.0 - other)):
            middle = 0.5 * (p + q)
            ways.append(np.sqrt((p * np.log2(p / middle) + q * np.log2(q / middle)) / (p + q)))
        rates.append(max(ways) / abs(np.log2(power)))
    seen = found["sensitivity"].sel(component="likelihood").item()
    assert seen == pytest.approx(np.mean(rates), rel=0.02)


def test_refits_change_one_constant_at_a_time():
    rows = factors(0.1)
    assert rows.shape == (13, 6)
    assert np.all(rows[0] == 1.0)
    assert np.all((rows[1:] != 1.0).sum(axis=1) == 1)
    np.testing.assert_allclose(rows[1:].max(axis=1) * rows[1:].min(axis=1), np.tile([0.9, 1.1], 6))


@pytest.fixture(scope="module")
def found():
    seen = simulate(model(LAW, choice="fixed"), routes(), 3, seed=4)
    with_prior = model(LAW, choice="fixed", prior=beta_prior(city().constants))
    return constant_sensitivity(city(), routes(), seen.data, model=with_prior, settings=SMALL), seen


@pytest.mark.slow
def test_a_higher_ceiling_makes_calmer_drivers(found):
    """Only the product of the two enters: means move by the inverse, the detour by nothing."""
    result, _ = found
    aggressiveness = result["mean"].sel(parameter="aggressiveness").values
    inside = aggressiveness < 0.8
    assert inside.any()
    shift = result["shift"].sel(constant="acceleration_ceiling_mps2", parameter="aggressiveness")
    for side, ratio in (("lower", 1 / 0.9), ("higher", 1 / 1.1)):
        expected = aggressiveness * (ratio - 1.0)
        error = np.abs(shift.sel(side=side).values - expected)
        spread = result["sd"].sel(parameter="aggressiveness").values
        assert np.all(error[inside] < 0.1 * np.abs(expected[inside]) + 0.5 * spread[inside])
    # The vehicle is known: its mass cannot move.
    assert np.all(result["shift"].sel(parameter="vehicle_mass_kg") == 0.0)
    assert np.all(result["shift_sd"].sel(parameter="vehicle_mass_kg") == 0.0)


@pytest.mark.slow
def test_the_table_orders_constants_by_what_they_move(found):
    result, _ = found
    table = constant_table(result)
    assert set(table.index) == set(NAMES)
    strongest = table[[name for name in table if name.startswith("shift_sd_")]].max(axis=1)
    assert strongest.is_monotonic_decreasing
    assert np.all(table["trace_change"] > 0.0)
    assert np.all(table["prefer_lower"] + table["prefer_higher"] <= 1.0)
    assert set(np.unique(result["role"])) <= {str(role) for role in PriorRole}


def test_wrong_input_is_refused():
    power = np.zeros((3, city().constants.n_times), np.float32)
    with pytest.raises(ValueError, match="likelihood='trace'"):
        constant_sensitivity(city(), routes(), power, model=TripModel.of(city()))
    with pytest.raises(ValueError, match="power_w"):
        constant_sensitivity(city(), routes(), power[:2])
    with pytest.raises(ValueError, match="change"):
        SensitivitySettings(change=0.9)
    efficient = replace(city(), constants=replace(city().constants, tank_efficiency=0.95))
    with pytest.raises(ValueError, match="tank_efficiency"):
        constant_sensitivity(efficient, routes(), power)
