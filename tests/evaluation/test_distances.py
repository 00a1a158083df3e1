"""Laws over the registry of distances, and the floors made from them."""

import numpy as np
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation import (
    ALL_DISTANCES,
    DISTANCES,
    Population,
    amplitude_scale_w,
    compute_floors,
)
from tests.evaluation.conftest import make_traces

NAMES = sorted(ALL_DISTANCES)
WITHOUT_UNIT = ("acf", "fid", "spectrum")


def population(power_w: np.ndarray, scale_w: float = 20_000.0) -> Population:
    """Traces with ends made from each trace alone, so that laws can treat all alike."""
    numbers = [power_w.mean(axis=1), power_w.std(axis=1), power_w[:, 0], power_w.max(axis=1)]
    return Population(power_w=power_w, scale_w=scale_w, ends_km=np.column_stack(numbers) / scale_w)


@pytest.mark.parametrize("name", NAMES)
def test_distance_zero_on_identical(name, real_w):
    assert ALL_DISTANCES[name](population(real_w), population(real_w.copy())) == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_distance_symmetric_and_positive(name, real_w, other_w):
    there = ALL_DISTANCES[name](population(real_w), population(other_w))
    assert there > 0.0
    assert ALL_DISTANCES[name](population(other_w), population(real_w)) == pytest.approx(there)


@pytest.mark.parametrize("name", NAMES)
def test_distance_does_not_depend_on_the_order_of_trips(name, real_w, other_w):
    plain = ALL_DISTANCES[name](population(real_w), population(other_w))
    turned = ALL_DISTANCES[name](population(real_w[::-1].copy()), population(other_w))
    assert turned == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("name", WITHOUT_UNIT)
def test_distance_does_not_depend_on_the_unit_of_power(name, real_w, other_w):
    plain = ALL_DISTANCES[name](population(real_w), population(other_w))
    in_kw = ALL_DISTANCES[name](population(real_w / 1e3, 20.0), population(other_w / 1e3, 20.0))
    assert in_kw == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_distance_sees_a_different_process(name, real_w, other_w):
    same = ALL_DISTANCES[name](population(real_w), population(other_w))
    wrong = 1.2 * make_traces(200, seed=3, phi=0.0)
    wrong[:, 40:] = 0.0
    assert ALL_DISTANCES[name](population(real_w), population(wrong)) > 1.2 * same


def test_population_take_equals_a_population_of_these_trips(real_w):
    whole = population(real_w)
    names = ("autocorrelation", "features", "periodogram", "duration_s", "energy_j", "levels_w")
    for name in names:
        getattr(whole, name)
    rows = np.array([3, 50, 7])
    part, fresh = whole.take(rows), population(real_w[rows])
    for name in (*names, "ends_km"):
        np.testing.assert_array_equal(getattr(part, name), getattr(fresh, name))


def test_amplitude_scale_is_the_percentile_range():
    power_w = np.linspace(0.0, 100.0, 1001).reshape(7, 143)
    assert amplitude_scale_w(power_w) == pytest.approx(90.0)
    outlier = power_w.copy()
    outlier[0, 0] = 1e9
    assert amplitude_scale_w(outlier) == pytest.approx(90.0, rel=0.01)


def test_amplitude_scale_without_spread():
    rare = np.zeros((10, 100))
    rare[0, :10] = 1000.0
    assert amplitude_scale_w(rare) == pytest.approx(rare.std())
    assert amplitude_scale_w(np.full((4, 9), 7.0)) == 1.0


def test_floors_positive_with_spread_and_repeatable(real_w):
    floors = compute_floors(real_w, seed=4)
    assert set(floors.by_distance) == set(DISTANCES)
    for floor in floors.by_distance.values():
        assert floor.mean > 0.0
        assert 0.0 < floor.sd < floor.mean
    assert compute_floors(real_w, seed=4) == floors
    assert compute_floors(real_w, seed=5) != floors
    assert (floors.n_real, floors.n_half, floors.n_splits) == (200, 100, 15)


def test_floors_are_the_distances_of_the_halves():
    real_w = make_traces(5, seed=0)
    floors = compute_floors(real_w, seed=9, n_splits=1)
    order = np.random.default_rng(9).permutation(5)
    scale_w = amplitude_scale_w(real_w)
    halves = [population(real_w[order[part]], scale_w) for part in (slice(0, 2), slice(2, 4))]
    for name, distance in DISTANCES.items():
        assert floors.by_distance[name].mean == pytest.approx(distance(*halves))
        assert floors.by_distance[name].sd == 0.0


def test_floors_shrink_with_more_trips():
    small = compute_floors(make_traces(200, seed=5))
    large = compute_floors(make_traces(3200, seed=5))
    # 16 times the trips: Fréchet falls as 1 / n, autocorrelation as 1 / sqrt(n).
    fid = small.by_distance["fid"].mean / large.by_distance["fid"].mean
    acf = small.by_distance["acf"].mean / large.by_distance["acf"].mean
    assert 8.0 < fid < 32.0
    assert 2.0 < acf < 8.0


def test_floors_reject_too_few_trips_or_splits(real_w):
    with pytest.raises(InputDataError, match="at least 4 real traces; got 3"):
        compute_floors(real_w[:3])
    with pytest.raises(ValueError, match="n_splits >= 1"):
        compute_floors(real_w, n_splits=0)
