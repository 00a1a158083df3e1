"""The driver against a plain transcription, and laws it must keep."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi.region.constants import Constants
from prisma_sbi.region.profiles import RoadProfiles
from prisma_sbi.simulator.driver import (
    Road,
    drive,
    driver_setting,
    roads_from_profiles,
    squared_speed_envelope,
)
from tests.simulator import reference
from tests.simulator.examples import (
    AGGRESSIVENESS,
    DETOUR,
    flat_road,
    make_road,
    plain_roads,
    road_of,
)

CASES = [
    Constants(horizon_s=300),
    Constants(horizon_s=300, start_speed_share=0.8),
    Constants(horizon_s=300, acceleration_ceiling_mps2=4.0, acceleration_fade_mps=8.0),
    Constants(horizon_s=300, end_speed_share=0.7),
    Constants(horizon_s=120, time_step_s=0.5, brake_fraction=0.6, control_gain_per_s=1.4),
    Constants(horizon_s=300, time_step_s=2.0, brake_fraction=1.5, arrival_tolerance_m=25.0),
]
run = jax.jit(drive, static_argnames="constants")


def drive_plain(plain, aggressiveness, detour, constants):
    """A compiled driver run on a plain road."""
    return run(jnp.asarray(aggressiveness), jnp.asarray(detour), road_of(plain), constants)


@given(plain_roads(), AGGRESSIVENESS, DETOUR, st.sampled_from(CASES))
@settings(max_examples=100, deadline=None)
def test_driver_equals_plain_transcription(plain, aggressiveness, detour, constants):
    with jax.enable_x64():
        found = drive_plain(plain, aggressiveness, detour, constants)
    expected = reference.drive(aggressiveness, detour, *plain, constants=constants)
    columns = (found.speed_mps, found.acceleration_mps2, found.slope_rad, found.engaged)
    # Past the arrival nothing is drawn; there the root of a distance near zero magnifies
    # rounding, so the states need not agree to the last digits.
    before = np.asarray(expected[3]) > 0
    np.testing.assert_allclose(found.engaged, expected[3], atol=1e-9)
    for column, wanted in zip(columns, expected, strict=True):
        np.testing.assert_allclose(
            np.asarray(column)[before], np.asarray(wanted)[before], atol=1e-9
        )


@given(plain_roads(2), AGGRESSIVENESS, DETOUR)
@settings(max_examples=20, deadline=None)
def test_road_of_two_points_is_a_road(plain, aggressiveness, detour):
    with jax.enable_x64():
        found = drive_plain(plain, aggressiveness, detour, CASES[0])
    expected = reference.drive(aggressiveness, detour, *plain, constants=CASES[0])
    np.testing.assert_allclose(found.engaged, expected[3], atol=1e-9)


@given(
    st.lists(st.floats(0.5, 40.0), min_size=50, max_size=50),
    st.floats(0.0, 3.0),
    st.floats(0.01, 60.0),
    st.just(0.0) | st.floats(0.1, 40.0),
)
@settings(max_examples=60, deadline=None)
def test_envelope_closed_form_equals_backward_loop(limits, brake, spacing, end):
    expected = np.square(reference.speed_envelope(limits, spacing, brake, end))
    with jax.enable_x64():
        found = squared_speed_envelope(
            jnp.asarray(limits), jnp.asarray(spacing), jnp.asarray(brake), jnp.asarray(end**2)
        )
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_envelope_keeps_the_limits_and_the_brake():
    limits, brake, spacing = jnp.asarray([20.0, 20.0, 3.0, 20.0, 20.0]), 1.0, 30.0
    squared = squared_speed_envelope(limits, jnp.asarray(spacing), jnp.asarray(brake))
    # By hand: one spacing before the end of the road 60 m^2/s^2, and so on backwards.
    np.testing.assert_allclose(squared, [129.0, 69.0, 9.0, 120.0, 60.0], rtol=1e-6)


@given(plain_roads(), st.floats(0.02, 1.0), DETOUR, st.sampled_from(CASES[:4]))
@settings(max_examples=80, deadline=None)
def test_driver_exceeds_the_envelope_by_the_lag_of_the_control_at_most(
    plain, aggressiveness, detour, constants
):
    # Squared speed minus squared envelope grows only while the brake is not yet fully on, that
    # is while the gap is below limit / gain; each braking step adds (limit dt)^2 by discreteness.
    with jax.enable_x64():
        found = drive_plain(plain, aggressiveness, detour, constants)
        setting = driver_setting(
            jnp.asarray(aggressiveness), jnp.asarray(detour), road_of(plain), constants
        )
    speed, dt = np.asarray(found.speed_mps), constants.time_step_s
    position = dt * (np.cumsum(speed) - speed)
    points = float(setting.spacing_m) * np.arange(len(plain[1]))
    squared = np.interp(position, points, setting.squared_envelope)
    limit, top = float(setting.acceleration_limit_mps2), max(plain[1])
    lag = limit * top * (2.0 / constants.control_gain_per_s + dt) + (limit * dt) ** 2
    driving = np.asarray(found.engaged) > 0
    assert np.all((speed**2 - squared)[driving] <= lag + 1e-9)
    assert np.all(speed <= top + 1e-9)
    assert np.all(np.abs(found.acceleration_mps2) <= limit + 1e-12)


@given(plain_roads(), AGGRESSIVENESS, DETOUR, st.sampled_from(CASES))
@settings(max_examples=60, deadline=None)
def test_engaged_distance_ends_at_the_arrival(plain, aggressiveness, detour, constants):
    with jax.enable_x64():
        found = drive_plain(plain, aggressiveness, detour, constants)
    speed, engaged = np.asarray(found.speed_mps), np.asarray(found.engaged)
    length = detour * plain[0]
    arrival = length - min(constants.arrival_tolerance_m, length / 2)
    distance = constants.time_step_s * np.sum(speed * engaged)
    covered = constants.time_step_s * np.sum(speed)
    assert distance <= length
    assert distance == pytest.approx(min(covered, arrival), abs=1e-8)
    assert np.all(np.diff(engaged) <= 0)
    assert np.sum((engaged > 0) & (engaged < 1)) <= 1
    assert np.all(speed >= 0)


def test_aggressive_driver_arrives_and_the_engine_stops(constants):
    found = drive(jnp.asarray(0.5), jnp.asarray(1.0), flat_road(), constants)
    engaged = np.asarray(found.engaged)
    arrived = np.flatnonzero(engaged < 1)[0]
    # 2 km at 15 m/s, one and a half such accelerations lost at both ends of 15 s each.
    assert arrived == pytest.approx(2_000 / 15 + 15, abs=8)
    assert np.all(engaged[arrived + 1 :] == 0)
    assert float(jnp.max(found.speed_mps)) == pytest.approx(15.0, abs=1e-3)


def test_recording_cut_on_the_move_ends_at_its_share_of_the_speed():
    constants = Constants(horizon_s=300, end_speed_share=0.6)
    found = drive(jnp.asarray(0.8), jnp.asarray(1.0), flat_road(speed_mps=15.0), constants)
    last = int(np.flatnonzero(np.asarray(found.engaged) > 0)[-1])
    # The control lags behind a falling target by braking over gain, and by a time step.
    limit = 0.8 * constants.acceleration_ceiling_mps2
    lag = limit * (1.0 / constants.control_gain_per_s + constants.time_step_s)
    assert 0.6 * 15.0 - 1e-3 <= float(found.speed_mps[last]) <= 0.6 * 15.0 + lag


def test_more_aggressive_driver_arrives_earlier(constants):
    seconds = [
        float(jnp.sum(drive(jnp.asarray(a), jnp.asarray(1.0), make_road(5), constants).engaged))
        for a in (0.1, 0.3, 0.6, 1.0)
    ]
    assert np.all(np.diff(seconds) < 0)


@pytest.mark.parametrize("start", [0.0, 0.8])
def test_no_aggressiveness_no_motion(start):
    constants = Constants(horizon_s=100, start_speed_share=start)
    found = drive(jnp.asarray(0.0), jnp.asarray(1.0), make_road(0), constants)
    assert float(jnp.max(jnp.abs(found.speed_mps))) == 0.0
    assert float(jnp.max(jnp.abs(found.acceleration_mps2))) == 0.0
    assert np.all(np.asarray(found.engaged) == 1.0)


def test_no_detour_leaves_the_road_unchanged(constants):
    road = make_road(4)
    setting = driver_setting(jnp.asarray(0.5), jnp.asarray(1.0), road, constants)
    assert float(setting.length_m) == float(road.length_m)
    np.testing.assert_array_equal(setting.slope_rad, road.slope_rad)


@pytest.mark.usefixtures("x64")
def test_detour_is_a_longer_and_flatter_road(constants):
    road = make_road(4)
    stretched = Road(1.7 * road.length_m, road.speed_mps, road.slope_rad / 1.7)
    by_detour = drive(jnp.asarray(0.5), jnp.asarray(1.7), road, constants)
    by_hand = drive(jnp.asarray(0.5), jnp.asarray(1.0), stretched, constants)
    for left, right in zip(jax.tree.leaves(by_detour), jax.tree.leaves(by_hand), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-9)


def test_detour_takes_longer_in_proportion(constants):
    road = flat_road(length_m=1_500.0)
    seconds = [
        float(jnp.sum(drive(jnp.asarray(0.8), jnp.asarray(k), road, constants).engaged))
        for k in (1.0, 2.0)
    ]
    assert seconds[1] - seconds[0] == pytest.approx(1_500 / 15.0, rel=0.02)


def test_driver_slows_for_a_signal_and_speeds_up_again(constants):
    road = flat_road(length_m=1_000.0)
    slow = Road(road.length_m, road.speed_mps.at[32].set(3.0), road.slope_rad)
    found = drive(jnp.asarray(0.5), jnp.asarray(1.0), slow, constants)
    speed = np.asarray(found.speed_mps)
    position = np.cumsum(speed) - speed
    signal = 1_000.0 * 32 / 63
    lowest = speed[np.abs(position - signal) < 20].min()
    assert 3.0 <= lowest < 7.0
    assert speed[position < signal - 100].max() > 14.0
    assert speed[(position > signal + 100) & (position < 900)].max() > 14.0


def test_acceleration_fades_as_the_closed_form_says():
    """Under full acceleration v + v^2 / (2 f) = a t, so the speed after t is a root."""
    fade, limit, step = 8.0, 3.0, 0.01
    constants = Constants(
        horizon_s=20,
        time_step_s=step,
        acceleration_ceiling_mps2=limit,
        acceleration_fade_mps=fade,
        control_gain_per_s=50.0,
    )
    road = Road(jnp.asarray(5_000.0), jnp.full(64, 60.0), jnp.zeros(64))
    speed = np.asarray(drive(jnp.asarray(1.0), jnp.asarray(1.0), road, constants).speed_mps)
    time = step * np.arange(len(speed))
    expected = fade * (np.sqrt(1.0 + 2.0 * limit * time / fade) - 1.0)
    np.testing.assert_allclose(speed, expected, atol=0.03)
    published = replace(constants, acceleration_fade_mps=0.0)
    constant = np.asarray(drive(jnp.asarray(1.0), jnp.asarray(1.0), road, published).speed_mps)
    np.testing.assert_allclose(constant, limit * time, atol=0.05)


def test_roads_from_profiles_turns_grades_into_angles():
    profiles = RoadProfiles(
        length_m=np.array([900.0, 1_200.0], np.float32),
        speed_mps=np.full((2, 5), 12.0, np.float32),
        grade=np.array([[0.0] * 5, [1.0] * 5], np.float32),
        start_node=np.zeros(2, np.int32),
        end_node=np.ones(2, np.int32),
        status=np.zeros(2, np.uint8),
    )
    roads = roads_from_profiles(profiles)
    np.testing.assert_allclose(roads.slope_rad, [[0.0] * 5, [np.pi / 4] * 5], rtol=1e-6)
    np.testing.assert_array_equal(roads.length_m, profiles.length_m)
