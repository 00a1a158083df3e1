"""Facts of trips against motions known in closed form."""

import numpy as np
import pytest

from prisma_sbi.region.assembly import great_circle_m
from prisma_sbi.telemetry.facts import trip_facts
from tests.telemetry.tables import METERS_PER_DEGREE, raw_trips

ON = 1_000.0


def northward(time_s, speed_mps=10.0):
    return 42.3 + speed_mps * np.asarray(time_s, dtype=float) / METERS_PER_DEGREE


def facts_of(raw, power_w=None, *, horizon_s=500.0, max_gap_s=10.0):
    power_w = np.full(int(raw.first_row[-1]), ON) if power_w is None else power_w
    return trip_facts(raw, power_w, horizon_s=horizon_s, max_gap_s=max_gap_s)


def test_great_circle_of_one_degree_of_latitude_and_antipodes():
    starts, ends = np.zeros(2), np.array([[1.0, 0.0], [0.0, 180.0]])
    distance_m = great_circle_m(starts, starts, *ends)
    np.testing.assert_allclose(distance_m, [METERS_PER_DEGREE, 180 * METERS_PER_DEGREE])


def test_straight_drive_has_equal_distances_by_all_three_ways():
    raw = raw_trips(101, lat_deg=northward(np.arange(101)), speed_mps=10.0)
    facts = facts_of(raw)
    for distance in (facts.displacement_m, facts.gps_distance_m, facts.speed_distance_m):
        assert distance[0] == pytest.approx(1000.0, rel=1e-6)
    assert facts.duration_s[0] == 100.0
    assert facts.frozen_m[0] == pytest.approx(0.0, abs=1e-6)


def test_horizon_cuts_duration_distance_and_end():
    raw = raw_trips(101, lat_deg=northward(np.arange(101)), speed_mps=np.arange(101.0))
    facts = facts_of(raw, horizon_s=40.5)
    assert facts.duration_s[0] == 40.5
    assert facts.end_lat_deg[0] == pytest.approx(northward(40.0))
    assert facts.end_speed_mps[0] == 40.0
    assert facts.start_speed_mps[0] == 0.0
    assert facts.speed_distance_m[0] == pytest.approx(sum(range(40)) + 0.5 * 40)


def test_times_count_from_the_first_row():
    raw = raw_trips(11, time_s=np.arange(11.0) + 1000.0, speed_mps=10.0)
    facts = facts_of(raw, horizon_s=5.0)
    assert facts.duration_s[0] == 5.0
    assert facts.first_time_s[0] == 1000.0
    assert facts.speed_distance_m[0] == 50.0


def test_frozen_position_is_measured_by_speed_and_per_trip():
    lat_deg = np.concatenate([northward(np.minimum(np.arange(61), 20)), northward(np.arange(61))])
    facts = facts_of(raw_trips(61, 61, lat_deg=lat_deg, speed_mps=10.0))
    np.testing.assert_allclose(facts.frozen_m, [400.0, 0.0], atol=1e-6)


def test_gap_on_the_move_and_at_a_stand_are_told_apart():
    time_s = np.concatenate([[0, 1, 2, 22, 23, 53, 54], [0, 1, 2, 22, 23, 53, 54]]).astype(float)
    speed_mps = np.concatenate([[5, 0, 0, 0, 5, 5, 5], np.full(7, np.nan)])
    raw = raw_trips(7, 7, time_s=time_s, speed_mps=speed_mps)
    facts = facts_of(raw)
    np.testing.assert_array_equal(facts.longest_gap_s, [30.0, 30.0])
    np.testing.assert_array_equal(facts.longest_stop_s, [20.0, 0.0])
    early = facts_of(raw, horizon_s=10.0)
    np.testing.assert_array_equal(early.longest_gap_s, [1.0, 20.0])


@pytest.mark.parametrize(("missing", "gap"), [(slice(0, 15), 15.0), (slice(20, 41), 21.0)])
def test_missing_power_at_either_end_is_a_gap(missing, gap):
    power_w = np.full(41, ON)
    power_w[missing] = np.nan
    assert facts_of(raw_trips(41), power_w).longest_gap_s[0] == gap


def test_position_may_come_late_but_not_too_late():
    lat_deg = northward(np.arange(61))
    lat_deg[:8] = np.nan
    late = facts_of(raw_trips(61, lat_deg=lat_deg))
    assert late.start_lat_deg[0] == pytest.approx(northward(8.0))
    assert np.isnan(facts_of(raw_trips(61, lat_deg=lat_deg), max_gap_s=5.0).start_lat_deg[0])
    lat_deg = northward(np.arange(61))
    lat_deg[45:] = np.nan
    assert np.isnan(facts_of(raw_trips(61, lat_deg=lat_deg)).end_lat_deg[0])
    assert np.isnan(facts_of(raw_trips(61, lat_deg=np.nan)).displacement_m[0])


def test_distance_by_speed_is_unknown_without_speed():
    assert np.isnan(facts_of(raw_trips(11)).speed_distance_m[0])
    assert facts_of(raw_trips(11)).frozen_m[0] == 0.0
