"""The atlas: agreement with single trips, laws of information, what routes are like."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from prisma_sbi.models import TraceLikelihood, TripModel
from prisma_sbi.region import RoadProfiles
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.study import local_information, vehicle_distances
from prisma_sbi.study.atlas import (
    DRIVER,
    best_routes,
    choice_information,
    draw_routes,
    information_atlas,
)
from tests.study.examples import city, model

VEHICLE = 7
N_VEHICLES = 5
CHUNK = 4
"""One size for all tests: one compilation."""


@pytest.fixture(scope="module")
def routes() -> RoadProfiles:
    return draw_routes(city(), 12, seed=4)


@pytest.fixture(scope="module")
def atlas(routes) -> xr.Dataset:
    return information_atlas(
        city(), routes, vehicle=VEHICLE, n_vehicles=N_VEHICLES, model=model(), chunk_size=CHUNK
    )


def test_each_route_is_what_it_is_alone(routes, atlas):
    for row in (0, 7):
        alone = local_information(
            city(),
            routes.take(np.asarray([row])),
            np.asarray([DRIVER]),
            np.asarray([VEHICLE]),
            model=model(),
            with_vehicle=True,
            chunk_size=CHUNK,
        )
        expected = alone["information"].values[0]
        tolerance = 1e-3 * np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        assert np.all(np.abs(atlas["information"].values[row] - expected) <= tolerance)
        precision = expected + np.diag(alone["scale"].values ** -2.0)
        sd = np.sqrt(np.diag(np.linalg.inv(precision)))[:2]
        np.testing.assert_allclose(atlas["posterior_sd"].values[row], sd, rtol=0.01)
        gain = np.log(alone["scale"].values[:2] / sd)
        np.testing.assert_allclose(atlas["gain"].values[row, :2], gain, atol=0.01)


def test_same_seed_same_routes(routes):
    again, other = draw_routes(city(), 12, seed=4), draw_routes(city(), 12, seed=5)
    np.testing.assert_array_equal(again.start_node, routes.start_node)
    np.testing.assert_array_equal(again.end_node, routes.end_node)
    assert not np.array_equal(other.start_node, routes.start_node)
    assert np.all(draw_routes(city(), 12, seed=4, shortest_m=3_000.0).length_m >= 3_000.0)


def test_a_long_way_with_stops_tells_more_than_a_short_one():
    """Both flat, so that only length and stops count."""
    far = draw_routes(city(), 40, seed=1, shortest_m=3_000.0)
    everywhere = information_atlas(city(), far, n_vehicles=0, model=model(), chunk_size=CHUNK)
    stops = everywhere["n_stops"].values
    long = far.take(np.asarray([int(stops.argmax())]))
    short = _short_road(300.0)
    both = [replace(road, grade=np.zeros_like(road.grade)) for road in (long, short)]
    found = [
        information_atlas(city(), road, n_vehicles=N_VEHICLES, model=model(), chunk_size=CHUNK)
        for road in both
    ]
    assert found[0]["n_stops"].item() >= 3
    assert np.all(found[0]["gain"].values > found[1]["gain"].values)
    assert found[0]["height_range_m"].item() == 0.0


def _short_road(length_m: float) -> RoadProfiles:
    """The street whose length is nearest to one."""
    roads = city().roads
    edge = int(np.argmin(np.abs(roads.edge_length_m - length_m)))
    ends = roads.edge_from[[edge]], roads.edge_to[[edge]]
    places = [array[node] for node in ends for array in (roads.node_lat_deg, roads.node_lon_deg)]
    found = route_profiles(city(), *places)
    assert abs(found.length_m[0] - length_m) < 60.0
    return found


def test_gains_obey_the_laws_of_information(routes, atlas):
    assert np.all(atlas["gain"].values >= 0.0)
    assert np.all(atlas["gain"].sel(descriptor="vehicle").values <= np.log(N_VEHICLES))
    assert np.all(atlas["posterior_sd"].values <= atlas["prior_sd"].values)
    assert np.all(atlas["posterior_sd"].values <= atlas["bound"].values * (1.0 + 1e-9))


@pytest.mark.slow
def test_noise_costs_information(routes, atlas):
    noisy = TraceLikelihood(floor_w=30_000.0, share=0.5)
    worse = information_atlas(
        city(), routes, vehicle=VEHICLE, n_vehicles=N_VEHICLES, model=model(noisy), chunk_size=CHUNK
    )
    assert np.all(worse["gain"].values < atlas["gain"].values)


def test_information_about_a_choice_between_two():
    """Between nothing and everything, and below the exact information of two normal laws."""
    rng = np.random.default_rng(0)
    for distance in (0.5, 1.0, 2.0, 4.0):
        seen = rng.normal(0.5 * distance, 1.0, 200_000)
        # The other option has its mean at -distance/2: log odds are distance times what is seen.
        exact = np.mean(np.log(2.0) - np.log1p(np.exp(-distance * seen)))
        bound = choice_information(np.asarray([[0.0, distance], [distance, 0.0]]))
        assert 0.4 * exact < bound < exact + 0.005
    assert choice_information(np.zeros((3, 4, 4))) == pytest.approx(np.zeros(3))
    assert choice_information(1e3 * (1.0 - np.eye(4))) == pytest.approx(np.log(4.0))


@pytest.mark.slow
def test_vehicles_are_told_apart_by_their_distances(routes, atlas):
    """The vehicles that are counted are those at even ranks of mass."""
    order = np.argsort(city().vehicles.mass_kg, kind="stable")
    rows = order[np.linspace(0, len(order) - 1, N_VEHICLES).round().astype(int)]
    some = routes.take(np.asarray([2]))
    distance = vehicle_distances(city(), some, np.asarray([DRIVER]), model=model())["distance"]
    expected = choice_information(distance.values[0][np.ix_(rows, rows)])
    assert atlas["gain"].values[2, 2] == pytest.approx(float(expected), abs=0.01)


def test_facts_of_a_route_by_hand(routes, atlas):
    roads = city().roads
    for row in range(12):
        edges = atlas["step_edge"].values[atlas["step_route"].values == row]
        assert roads.edge_from[edges[0]] == routes.start_node[row]
        assert roads.edge_to[edges[-1]] == routes.end_node[row]
        length = roads.edge_length_m[edges].sum()
        assert atlas["length_m"].values[row] == pytest.approx(length, rel=1e-5)
        stops = sum(int(roads.node_control[roads.edge_to[edge]]) in (1, 2) for edge in edges[:-1])
        assert atlas["n_stops"].values[row] == stops
        speeds = roads.edge_speed_mps[edges]
        assert speeds.min() <= atlas["speed_limit_mps"].values[row] <= speeds.max()
    assert np.all(atlas["height_range_m"].values > 0.0)
    assert atlas["start_lat"].values[3] == roads.node_lat_deg[routes.start_node[3]]


def test_best_routes_come_first(atlas):
    rows = best_routes(atlas, 4, descriptor="detour")
    detour = atlas["gain"].sel(descriptor="detour").values
    assert detour[rows].tolist() == sorted(detour.tolist(), reverse=True)[:4]
    assert best_routes(atlas, 1)[0] == atlas["total_gain"].values.argmax()


@pytest.mark.slow
def test_summaries_have_an_atlas_without_vehicles(routes):
    few = routes.take(np.arange(2))
    summaries = TripModel.of(city(), likelihood="summary")
    found = information_atlas(city(), few, n_vehicles=0, model=summaries, chunk_size=2)
    assert found["descriptor"].values.tolist() == ["aggressiveness", "detour"]
    with pytest.raises(ValueError, match="likelihood='trace'"):
        information_atlas(city(), few, model=summaries, chunk_size=2)


def test_wrong_requests_are_refused(routes):
    with pytest.raises(ValueError, match="detour in"):
        information_atlas(city(), routes, driver=(0.5, 9.0))
    with pytest.raises(ValueError, match="vehicle in"):
        information_atlas(city(), routes, vehicle=10_000)
    with pytest.raises(ValueError, match="shortest_m"):
        draw_routes(city(), 3, shortest_m=1e7)
