"""The simulator of many trips: compiled once, equal to one trip at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from prisma_sbi.region import Constants, RoadProfiles, demo_region
from prisma_sbi.simulator import trip as trip_module
from prisma_sbi.simulator.driver import drive, roads_from_profiles
from prisma_sbi.simulator.trip import simulate_power, simulate_trips
from prisma_sbi.simulator.vehicle import power_trace, vehicles_from_pool
from tests.simulator.examples import make_road, make_vehicle

N = 11


@pytest.fixture(scope="module")
def region():
    return demo_region()


@pytest.fixture(scope="module")
def profiles():
    roads = [make_road(seed) for seed in range(N)]
    return RoadProfiles(
        length_m=np.array([road.length_m for road in roads], np.float32),
        speed_mps=np.array([road.speed_mps for road in roads], np.float32),
        grade=np.tan(np.array([road.slope_rad for road in roads], np.float32)),
        start_node=np.zeros(N, np.int32),
        end_node=np.ones(N, np.int32),
        status=np.zeros(N, np.uint8),
    )


@pytest.fixture(scope="module")
def columns(region):
    rng = np.random.default_rng(0)
    return (
        rng.uniform(0.2, 0.9, N),
        rng.uniform(1.0, 2.0, N),
        rng.integers(0, len(region.vehicles), N),
    )


def test_many_trips_equal_one_after_the_other(region, profiles, columns):
    found = simulate_trips(region, profiles, *columns)
    pool = vehicles_from_pool(region.vehicles, region.constants)
    roads = roads_from_profiles(profiles)
    for row, (a, k, v) in enumerate(zip(*columns, strict=True)):
        road = jax.tree.map(lambda leaf, row=row: leaf[row], roads)
        alone = simulate_power(
            jnp.asarray(a, jnp.float32),
            jnp.asarray(k, jnp.float32),
            pool[int(v)],
            road,
            region.constants,
        )
        difference = np.abs(found[row] - alone).max()
        assert difference < 2e-3 * np.abs(found[row]).max()
    assert found.dtype == np.float32
    assert found.shape == (N, region.constants.n_times)


def test_chunks_leave_no_trace(region, profiles, columns):
    seen = []
    whole = simulate_trips(region, profiles, *columns)
    chunked = simulate_trips(
        region, profiles, *columns, chunk_size=4, progress=lambda *at: seen.append(at)
    )
    np.testing.assert_allclose(chunked, whole, rtol=1e-4, atol=30.0)
    assert seen == [(4, N), (8, N), (N, N)]


def test_one_compilation_serves_every_call_and_chunk(region, profiles, columns, monkeypatch):
    traced = []

    def counting(*arguments):
        traced.append(1)
        return simulate_power(*arguments)

    monkeypatch.setattr(trip_module, "simulate_power", counting)
    for n in (N, 9, 5, 2):
        rows = np.arange(n)
        simulate_trips(
            region,
            profiles.take(rows),
            *(column[rows] for column in columns),
            chunk_size=5,
        )
    assert len(traced) == 1


def test_no_trips_give_no_traces(region, profiles, columns):
    none = np.zeros(0, int)
    found = simulate_trips(region, profiles.take(none), *(column[none] for column in columns))
    assert found.shape == (0, region.constants.n_times)


def test_wrong_lengths_and_unknown_vehicles_are_refused(region, profiles, columns):
    aggressiveness, detour, vehicle = columns
    with pytest.raises(ValueError, match=f"Expected {N} values of each descriptor"):
        simulate_trips(region, profiles, aggressiveness[:3], detour, vehicle)
    with pytest.raises(ValueError, match="Expected vehicle in 0..63; got 64..64"):
        simulate_trips(region, profiles, aggressiveness, detour, np.full(N, 64))
    with pytest.raises(ValueError, match="Expected vehicle in 0..63; got -1..-1"):
        simulate_trips(region, profiles, aggressiveness, detour, np.full(N, -1))


@pytest.mark.usefixtures("x64")
def test_compiled_and_mapped_equal_one_after_the_other_uncompiled():
    constants = Constants(horizon_s=60)
    roads = [make_road(seed, length_m=400.0) for seed in range(2)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *roads)
    a, k = jnp.linspace(0.2, 0.9, 2), jnp.linspace(1.0, 2.0, 2)

    def one(a, k, road):
        return simulate_power(a, k, make_vehicle(), road, constants)

    mapped = jax.vmap(one)(a, k, stacked)
    compiled = jax.jit(jax.vmap(one))(a, k, stacked)
    with jax.disable_jit():
        looped = jnp.stack([one(a[row], k[row], road) for row, road in enumerate(roads)])
    np.testing.assert_allclose(mapped, looped, atol=1e-6)
    np.testing.assert_allclose(compiled, looped, atol=1e-6)


def test_trip_is_a_driver_run_seen_by_a_vehicle(constants):
    at, road, vehicle = (jnp.asarray(0.5), jnp.asarray(1.2)), make_road(1), make_vehicle()
    expected = power_trace(vehicle, drive(*at, road, constants), constants)
    np.testing.assert_array_equal(simulate_power(*at, vehicle, road, constants), expected)
