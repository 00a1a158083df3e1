"""Traffic: the wander it says, nothing where none is asked for, and a draw that repeats."""

import numpy as np
import pytest

from prisma_sbi.region.constants import Constants
from prisma_sbi.region.demo import demo_region
from prisma_sbi.region.profiles import RoadProfiles
from prisma_sbi.simulator import draw_traces, road_with_traffic, simulate_trips
from prisma_sbi.simulator.traffic import smooth_noise
from prisma_sbi.study.atlas import draw_routes

WANDER = Constants(speed_wander=0.3, speed_wander_length_m=120.0, speed_wander_limit=1.15)


def roads(n_trips, *, length_m=5_000.0, n_points=256, speed_mps=20.0):
    """Equal, straight, level roads."""
    shape = (n_trips, n_points)
    return RoadProfiles(
        length_m=np.full(n_trips, length_m, np.float32),
        speed_mps=np.full(shape, speed_mps, np.float32),
        grade=np.zeros(shape, np.float32),
        start_node=np.zeros(n_trips, np.int32),
        end_node=np.ones(n_trips, np.int32),
        status=np.zeros(n_trips, np.uint8),
    )


def test_published_roads_come_back_as_they_are_and_nothing_is_drawn():
    given, rng = roads(3), np.random.default_rng(0)
    assert road_with_traffic(given, Constants(), rng) is given
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state


def test_published_draws_are_the_simulator():
    region = demo_region()
    profiles = draw_routes(region, 4, seed=1)
    at = (np.full(4, 0.5), np.full(4, 1.1), np.arange(4))
    found = draw_traces(region, profiles, *at, np.random.default_rng(0))
    np.testing.assert_array_equal(found, simulate_trips(region, profiles, *at))


def test_wander_has_the_spread_and_the_limit_of_the_constants():
    given = roads(4_000)
    found = road_with_traffic(given, WANDER, np.random.default_rng(1))
    log = np.log(found.speed_mps / given.speed_mps)
    assert log.max() == pytest.approx(np.log(1.15), abs=1e-5)
    # Below the limit the law is normal: median and lower quantile are not touched by it.
    low, middle = np.quantile(log, [0.1587, 0.5])
    assert middle == pytest.approx(-0.045, abs=0.01)
    assert middle - low == pytest.approx(0.3, rel=0.04)
    np.testing.assert_array_equal(found.length_m, given.length_m)
    np.testing.assert_array_equal(found.grade, given.grade)


@pytest.mark.parametrize("length_m", [1_500.0, 5_000.0, 12_000.0])
def test_correlation_over_a_distance_is_that_of_the_formula(length_m):
    """At every length of road the same meters decorrelate."""
    spacing = length_m / 255
    z = smooth_noise(6_000, 256, np.full(6_000, 120.0 / spacing), np.random.default_rng(2))
    assert z.std() == pytest.approx(1.0, rel=0.03)
    for steps in {1, int(170 / spacing), int(340 / spacing)}:
        found = np.mean(z[:, 100] * z[:, 100 + steps])
        expected = np.exp(-((steps * spacing) ** 2) / (4 * 120.0**2))
        assert found == pytest.approx(expected, abs=0.06)


def test_ends_of_a_road_are_strangers():
    z = smooth_noise(4_000, 256, np.full(4_000, 6.0), np.random.default_rng(3))
    assert abs(np.mean(z[:, 0] * z[:, -1])) < 0.06


def test_crawling_stays_and_nobody_stands():
    slow = roads(50, speed_mps=0.5)
    found = road_with_traffic(slow, Constants(speed_wander=1.5), np.random.default_rng(4))
    assert found.speed_mps.min() >= 0.5
    usual = road_with_traffic(roads(500), Constants(speed_wander=1.5), np.random.default_rng(5))
    assert usual.speed_mps.min() == pytest.approx(1.0)


def test_same_state_same_traffic_other_state_other_traffic():
    first, again, other = (
        road_with_traffic(roads(5), WANDER, np.random.default_rng(seed)).speed_mps
        for seed in (7, 7, 8)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
