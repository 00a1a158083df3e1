"""Distances of trips as trips: laws over the registry, closed forms, floors."""

import numpy as np
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation import (
    TRIP_DISTANCES,
    TripFacts,
    local_plane_km,
    trip_floors,
    trip_scores,
)

NAMES = sorted(TRIP_DISTANCES)


def trips(n_trips, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    return TripFacts(
        length_m=1_000 * rng.gamma(3.0, size=n_trips) + 1_000 * shift,
        energy_j=1e6 * rng.gamma(2.0, size=n_trips) + 1e6 * shift,
        ends_km=rng.normal(size=(n_trips, 4)) + shift,
    )


@pytest.mark.parametrize("name", NAMES)
def test_distance_is_zero_on_identical_and_symmetric(name):
    distance, first, second = TRIP_DISTANCES[name], trips(50, 0), trips(60, 1, 0.3)
    assert distance(first, first.take(np.arange(50)[::-1])) == pytest.approx(0.0, abs=1e-6)
    assert distance(first, second) > 0
    assert distance(first, second) == pytest.approx(distance(second, first))


@pytest.mark.parametrize("name", NAMES)
def test_distance_grows_with_a_shift(name):
    distance, real = TRIP_DISTANCES[name], trips(400, 0)
    found = [distance(real, trips(400, 1, shift)) for shift in (0.0, 0.5, 2.0)]
    assert found == sorted(found)
    assert found[1] > 1.5 * found[0]


def test_length_and_energy_are_shifts_in_their_units():
    real = trips(80, 0)
    moved = TripFacts(
        length_m=real.length_m + 70.0, energy_j=real.energy_j + 5e4, ends_km=real.ends_km
    )
    assert TRIP_DISTANCES["length"](real, moved) == pytest.approx(70.0)
    assert TRIP_DISTANCES["energy"](real, moved) == pytest.approx(5e4)


def test_two_points_have_the_distance_of_the_formula():
    one = TripFacts(length_m=np.ones(4), energy_j=np.ones(4), ends_km=np.zeros((4, 4)))
    other = TripFacts(length_m=np.ones(4), energy_j=np.ones(4), ends_km=np.full((4, 4), 2.0))
    assert TRIP_DISTANCES["origin_destination"](one, other) == pytest.approx(np.sqrt(2 * 4.0))


def test_ends_that_no_longer_belong_together_are_seen():
    """Starts and ends keep their laws; only who goes where is lost."""
    rng = np.random.default_rng(0)
    start = 5.0 * rng.normal(size=(500, 2))
    near = np.hstack([start, start + 0.1 * rng.normal(size=(500, 2))])
    shuffled = np.hstack([start, near[rng.permutation(500), 2:]])
    facts = [
        TripFacts(length_m=np.ones(500), energy_j=np.ones(500), ends_km=ends)
        for ends in (near, shuffled)
    ]
    floor = trip_floors(facts[0], n_splits=3)["origin_destination"].mean
    assert TRIP_DISTANCES["origin_destination"](*facts) > 2 * floor


def test_fresh_trips_of_the_same_law_reach_the_floor():
    real = trips(600, 0)
    floors = trip_floors(real, n_splits=5)
    scores = trip_scores(real, trips(600, 1), floors)
    for name in NAMES:
        assert 0.2 < scores[f"{name}_x_floor"] < 2.0
        assert scores[f"{name}_x_floor"] == pytest.approx(scores[name] / floors[name].mean)


def test_plane_is_true_to_scale():
    zero, one = np.zeros(1), np.ones(1)
    ends = local_plane_km(zero + 60.0, zero, zero + 61.0, one, center_lat=60.0)
    assert ends[0, 2] - ends[0, 0] == pytest.approx(55.6, abs=0.1)
    assert ends[0, 3] - ends[0, 1] == pytest.approx(111.2, abs=0.1)


def test_unusable_trips_are_refused():
    with pytest.raises(InputDataError, match="at least 4"):
        trips(3, 0)
    with pytest.raises(InputDataError, match="finite length_m"):
        TripFacts(length_m=np.full(4, np.nan), energy_j=np.ones(4), ends_km=np.ones((4, 4)))
    with pytest.raises(InputDataError, match="two ends"):
        TripFacts(length_m=np.ones(4), energy_j=np.ones(4), ends_km=np.ones((4, 2)))
    with pytest.raises(InputDataError, match="two halves"):
        trip_floors(trips(5, 0))
