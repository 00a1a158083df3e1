"""Routing against brute force, hand-made roads and its own laws."""

import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi.region.constants import Constants
from prisma_sbi.region.edge_heights import edge_heights
from prisma_sbi.region.elevation import Elevation
from prisma_sbi.region.paths import path_edges
from prisma_sbi.region.profiles import RoadProfiles, RouteStatus
from prisma_sbi.region.record import Region
from prisma_sbi.region.routing import (
    network_distances,
    route_profiles,
    shortest_path_nodes,
    snap_to_nodes,
)
from tests.region.conftest import DEG_PER_M, both_ways, make_elevation, make_network, make_region


def random_region(seed: int, n_nodes: int = 40, n_edges: int = 90) -> Region:
    """A random directed graph, not always connected, with hills."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(-4000, 4000, (n_nodes, 2))
    pairs = {tuple(map(int, rng.choice(n_nodes, 2, replace=False))) for _ in range(n_edges)}
    edges = [
        (tail, head, float(np.hypot(*(xy[tail] - xy[head])) * rng.uniform(1, 1.5)), 5.0 + tail)
        for tail, head in sorted(pairs)
    ]
    control = {node: node % 4 for node in range(n_nodes)}
    plane = make_elevation(0.02, -0.03)
    hills = plane.height_m + rng.normal(0, 3, plane.height_m.shape).astype(np.float32)
    elevation = Elevation(
        height_m=hills,
        north_deg=plane.north_deg,
        west_deg=plane.west_deg,
        lat_step_deg=plane.lat_step_deg,
        lon_step_deg=plane.lon_step_deg,
    )
    return make_region(
        make_network([tuple(p) for p in xy], edges, control=control), elevation=elevation
    )


def as_networkx(region: Region) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(region.roads.n_nodes))
    roads = region.roads
    for tail, head, length in zip(
        roads.edge_from.tolist(), roads.edge_to.tolist(), roads.edge_length_m, strict=True
    ):
        graph.add_edge(tail, head, length=length)
    return graph


def route_between(region: Region, start: list[int], end: list[int], **options) -> RoadProfiles:
    lat, lon = region.roads.node_lat_deg, region.roads.node_lon_deg
    return route_profiles(region, lat[start], lon[start], lat[end], lon[end], **options)


def all_pairs(region: Region) -> tuple[list[int], list[int]]:
    n = region.roads.n_nodes
    return np.repeat(np.arange(n), n).tolist(), np.tile(np.arange(n), n).tolist()


# ---------------------------------------------------------------- shortest paths


@pytest.mark.parametrize("seed", [0, 1])
def test_paths_agree_with_networkx(seed: int) -> None:
    region = random_region(seed)
    graph = as_networkx(region)
    start, end = all_pairs(region)
    profiles = route_between(region, start, end, chunk_size=7)
    paths = shortest_path_nodes(region, np.array(start), np.array(end))
    truth = dict(nx.all_pairs_dijkstra_path_length(graph, weight="length"))
    statuses = set()
    for trip, (tail, head) in enumerate(zip(start, end, strict=True)):
        nodes = paths.node[paths.offset[trip] : paths.offset[trip + 1]].tolist()
        statuses.add(int(profiles.status[trip]))
        if tail == head:
            assert profiles.status[trip] == RouteStatus.SAME_PLACE
            assert nodes == [tail]
        elif head not in truth[tail]:
            assert profiles.status[trip] == RouteStatus.UNREACHABLE
            assert nodes == []
        else:
            assert profiles.status[trip] == RouteStatus.OK
            assert (nodes[0], nodes[-1]) == (tail, head)
            length = nx.path_weight(graph, nodes, "length")
            assert length == pytest.approx(truth[tail][head])
            assert profiles.length_m[trip] == pytest.approx(length, rel=1e-6)
    assert statuses == {RouteStatus.OK, RouteStatus.SAME_PLACE, RouteStatus.UNREACHABLE}


def test_network_distances_agree_with_networkx() -> None:
    region = random_region(2)
    start = np.array([5, 3, 5, 0])
    found = network_distances(region, start)
    assert found.dtype == np.float32
    assert found.shape == (4, region.roads.n_nodes)
    truth = dict(nx.all_pairs_dijkstra_path_length(as_networkx(region), weight="length"))
    for row, tail in zip(found, start.tolist(), strict=True):
        expected = [truth[tail].get(node, np.inf) for node in range(region.roads.n_nodes)]
        np.testing.assert_allclose(row, expected, rtol=1e-6)


def test_the_shorter_of_two_parallel_edges_counts() -> None:
    roads = make_network(
        [(0, 0), (100, 0)], [(0, 1, 300.0, 9.0), (0, 1, 100.0, 7.0), (1, 0, 100.0, 7.0)]
    )
    region = make_region(roads)
    profile = route_between(region, [0], [1])
    assert profile.length_m[0] == pytest.approx(100.0)
    np.testing.assert_allclose(profile.speed_mps, 7.0)


def test_snapping_finds_the_nearest_junction_and_skips_missing_points() -> None:
    region = random_region(3)
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(-0.04, 0.04, (2, 50))
    far = np.hypot(
        lat[:, None] - region.roads.node_lat_deg, lon[:, None] - region.roads.node_lon_deg
    )
    np.testing.assert_array_equal(snap_to_nodes(region, lat, lon), far.argmin(axis=1))
    lat[3], lon[4] = np.nan, np.inf
    assert np.flatnonzero(snap_to_nodes(region, lat, lon) == -1).tolist() == [3, 4]


@pytest.mark.parametrize("bad", [-1, 4])
def test_unknown_nodes_are_refused(three_edge_region: Region, bad: int) -> None:
    with pytest.raises(ValueError, match="node positions in"):
        shortest_path_nodes(three_edge_region, np.array([0, bad]), np.array([1, 1]))
    with pytest.raises(ValueError, match="node positions in"):
        network_distances(three_edge_region, np.array([bad]))


# ---------------------------------------------------------------- profiles


def test_hand_made_road_has_its_known_profile(three_edge_region: Region) -> None:
    profile = route_between(three_edge_region, [0], [3])
    assert profile.status[0] == RouteStatus.OK
    assert profile.length_m[0] == pytest.approx(1000.0)
    s = np.linspace(0, 1000, 256)
    expected = np.where(s < 400, 10.0, np.where(s < 600, 20.0, 15.0))
    np.testing.assert_allclose(profile.speed_mps[0], expected)
    np.testing.assert_allclose(profile.grade[0], 0.04, atol=2e-5)
    assert profile.speed_mps.dtype == profile.grade.dtype == profile.length_m.dtype == np.float32


def test_constant_hill_is_recovered_up_and_down_and_across(three_edge_region: Region) -> None:
    there = route_between(three_edge_region, [0, 1], [3, 2])
    back = route_between(three_edge_region, [3, 2], [0, 1])
    np.testing.assert_allclose(there.grade, 0.04, atol=2e-5)
    np.testing.assert_allclose(back.grade, -0.04, atol=2e-5)
    across = make_region(three_edge_region.roads, elevation=make_elevation(rise_north=0.1))
    np.testing.assert_allclose(route_between(across, [0], [3]).grade, 0.0, atol=1e-6)


def test_scaled_geometry_spreads_the_rise_over_the_edge_length() -> None:
    # 500 m of map, 1000 m of road: half the slope of the ground.
    roads = make_network([(0, 0), (500, 0)], [(0, 1, 1000.0, 10.0)])
    region = make_region(roads, elevation=make_elevation(rise_east=0.08))
    np.testing.assert_allclose(route_between(region, [0], [1]).grade, 0.04, atol=2e-5)


def test_grade_is_the_slope_of_heights_averaged_over_the_window() -> None:
    region = random_region(4)
    start, end = all_pairs(region)
    profiles = route_between(region, start, end)
    trip = int(np.argmax(np.where(profiles.status == 0, profiles.length_m, 0)))
    path = shortest_path_nodes(region, np.array([start[trip]]), np.array([end[trip]]))
    s, height = [], []
    at = 0.0
    for edge in path_edges(region, path).node:
        samples = edge_heights(region)
        values = samples.height_m[samples.offset[edge] : samples.offset[edge + 1]]
        length = region.roads.edge_length_m[edge]
        s.append(at + np.linspace(0, length, len(values)))
        height.append(values)
        at += length
    fine = np.linspace(0, at, 200_001)
    h = np.interp(fine, np.concatenate(s), np.concatenate(height))
    window = round(region.constants.elevation_smoothing_m / (fine[1] - fine[0]))
    smooth = np.convolve(h, np.ones(window) / window, mode="valid")
    slope = np.gradient(smooth, fine[1] - fine[0])
    center = fine[window // 2 :][: len(slope)]
    points = np.linspace(0, at, 256)
    inside = (points > 100) & (points < at - 100)
    expected = np.interp(points[inside], center, slope)
    np.testing.assert_allclose(profiles.grade[trip][inside], expected, atol=2e-3)
    assert np.std(expected) > 5e-3


def test_steep_ground_is_clipped(three_edge_region: Region) -> None:
    cliff = make_region(three_edge_region.roads, elevation=make_elevation(rise_east=0.5))
    np.testing.assert_allclose(route_between(cliff, [0], [3]).grade, 0.15)


@pytest.mark.parametrize("kind", [1, 2])
def test_signal_and_stop_lower_speed_over_the_creep_stretch(kind: int) -> None:
    nodes = [(0.0, 0.0), (400.0, 0.0), (1000.0, 0.0)]
    edges = both_ways((0, 1, 400.0, 10.0), (1, 2, 600.0, 20.0))
    region = make_region(make_network(nodes, edges, control={1: kind}))
    free = make_region(make_network(nodes, edges, control={1: 3, 0: 1, 2: 2}))
    s = np.linspace(0, 1000, 256)
    slowed = route_between(region, [0], [2]).speed_mps[0]
    unslowed = route_between(free, [0], [2]).speed_mps[0]
    near = np.abs(s - 400) <= 10.0
    assert near.sum() >= 4
    np.testing.assert_allclose(slowed[near], 3.0)
    np.testing.assert_allclose(slowed[~near], unslowed[~near])
    assert unslowed.min() == pytest.approx(10.0)


def test_creep_never_raises_a_slower_road() -> None:
    roads = make_network(
        [(0, 0), (400, 0), (800, 0)], [(0, 1, 400.0, 2.0), (1, 2, 400.0, 2.0)], control={1: 1}
    )
    np.testing.assert_allclose(route_between(make_region(roads), [0], [2]).speed_mps, 2.0)


@pytest.mark.parametrize("length", [40.0, 3_000.0, 30_000.0])
@pytest.mark.parametrize("n_points", [16, 256])
def test_no_control_is_missed_by_sampling(length: float, n_points: int) -> None:
    share = [0.0, 0.12, 0.37, 0.5003, 0.81, 1.0]
    legs = np.diff(share) * length
    nodes = [(s * 5000.0, 0.0) for s in share]
    edges = [(i, i + 1, float(leg), 20.0) for i, leg in enumerate(legs)]
    control = dict.fromkeys(range(6), 1)
    region = make_region(
        make_network(nodes, edges, control=control), constants=Constants(n_route_points=n_points)
    )
    speed = route_between(region, [0], [5]).speed_mps[0]
    for position in share[1:-1]:
        assert speed[round(position * (n_points - 1))] == pytest.approx(3.0)


# ---------------------------------------------------------------- laws


@settings(max_examples=25, deadline=None)
@given(
    legs=st.lists(st.floats(1.0, 3000.0), min_size=1, max_size=8),
    controlled=st.sets(st.integers(0, 8)),
    rise=st.floats(-0.1, 0.1),
)
def test_reversed_trip_mirrors_its_profile(
    legs: list[float], controlled: set[int], rise: float
) -> None:
    x = np.concatenate([[0.0], np.cumsum(legs)]) * min(1.0, 9000.0 / sum(legs))
    edges = both_ways(*((i, i + 1, leg, 10.0 + i) for i, leg in enumerate(legs)))
    control = {node: 1 for node in controlled if node < len(x)}
    plane = make_elevation(rise_east=rise)
    waves = plane.height_m + 5 * np.sin(np.arange(plane.height_m.shape[1], dtype=np.float32))
    elevation = Elevation(
        height_m=waves,
        north_deg=plane.north_deg,
        west_deg=plane.west_deg,
        lat_step_deg=plane.lat_step_deg,
        lon_step_deg=plane.lon_step_deg,
    )
    region = make_region(
        make_network([(float(v), 0.0) for v in x], edges, control=control), elevation=elevation
    )
    last = len(legs)
    paths = shortest_path_nodes(region, np.array([0]), np.array([last]))
    assert paths.node.tolist() == list(range(last + 1))
    profile = route_between(region, [0, last], [last, 0])
    assert profile.status.tolist() == [RouteStatus.OK, RouteStatus.OK]
    np.testing.assert_allclose(profile.length_m, sum(legs), rtol=1e-6)
    np.testing.assert_allclose(profile.grade[0], -profile.grade[1, ::-1], atol=1e-5)
    assert np.all(profile.speed_mps > 0)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    chunk_size=st.integers(1, 50),
)
def test_chunks_and_order_do_not_change_profiles(seed: int, chunk_size: int) -> None:
    region = random_region(5)
    rng = np.random.default_rng(seed)
    start, end = rng.integers(0, region.roads.n_nodes, (2, 30)).tolist()
    whole = route_between(region, start, end)
    parts = route_between(region, start, end, chunk_size=chunk_size)
    order = rng.permutation(30)
    mixed = route_between(region, np.array(start)[order].tolist(), np.array(end)[order].tolist())
    for name in ("length_m", "speed_mps", "grade", "status", "start_node", "end_node"):
        np.testing.assert_allclose(getattr(whole, name), getattr(parts, name), atol=1e-6)
        np.testing.assert_allclose(getattr(whole, name)[order], getattr(mixed, name), atol=1e-6)


# ---------------------------------------------------------------- bad trips


def test_bad_trips_keep_their_row_and_leave_the_others_alone(three_edge_region: Region) -> None:
    east = np.array([1000.0, 1000.0, 1000.0, 1e6, 3.0, 1000.0]) * DEG_PER_M
    start_lat = np.array([0.0, np.nan, 0.0, 0.0, 0.0, 0.0])
    start_lon = np.array([0.0, 0.0, np.inf, 0.0, 0.0, 0.0])
    calls: list[tuple[int, int]] = []
    profiles = route_profiles(
        three_edge_region,
        start_lat,
        start_lon,
        np.zeros(6),
        east,
        chunk_size=1,
        progress=lambda done, total: calls.append((done, total)),
    )
    status = RouteStatus
    assert profiles.status.tolist() == [
        status.OK,
        status.BAD_COORDINATE,
        status.BAD_COORDINATE,
        status.OUT_OF_REGION,
        status.SAME_PLACE,
        status.OK,
    ]
    assert calls == [(5, 6), (6, 6)]
    bad = profiles.take(profiles.status != 0)
    np.testing.assert_array_equal(bad.length_m, 1.0)
    np.testing.assert_array_equal(bad.grade, 0.0)
    assert np.all(bad.speed_mps > 0)
    assert profiles.start_node.tolist() == [0, -1, -1, -1, 0, 0]
    np.testing.assert_array_equal(profiles.speed_mps[0], profiles.speed_mps[5])
    assert profiles.length_m[0] == pytest.approx(1000.0)


def test_disconnected_graph_reports_unreachable() -> None:
    nodes = [(0, 0), (500, 0), (0, 3000), (500, 3000)]
    edges = both_ways((0, 1, 500.0, 10.0), (2, 3, 500.0, 10.0))
    profiles = route_between(make_region(make_network(nodes, edges)), [0, 0, 3], [1, 2, 1])
    assert profiles.status.tolist() == [
        RouteStatus.OK,
        RouteStatus.UNREACHABLE,
        RouteStatus.UNREACHABLE,
    ]
    assert all(RouteStatus(code).text for code in profiles.status)


def test_no_trips_give_no_rows(three_edge_region: Region) -> None:
    none = np.empty(0)
    profiles = route_profiles(three_edge_region, none, none, none, none)
    assert len(profiles) == 0
    assert profiles.speed_mps.shape == (0, 256)
    assert shortest_path_nodes(three_edge_region, none, none).offset.tolist() == [0]


def test_arrays_of_different_length_are_refused(three_edge_region: Region) -> None:
    with pytest.raises(ValueError, match="one coordinate of each kind"):
        route_profiles(three_edge_region, np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match="chunk_size"):
        route_profiles(three_edge_region, *[np.zeros(2)] * 4, chunk_size=0)


def test_thousands_of_trips_route_fast() -> None:
    side = 60
    x, y = np.meshgrid(np.arange(side) * 150.0 - 4500, np.arange(side) * 150.0 - 4500)
    node = np.arange(side * side).reshape(side, side)
    pairs = [*zip(node[:, :-1].flat, node[:, 1:].flat, strict=True)]
    pairs += [*zip(node[:-1].flat, node[1:].flat, strict=True)]
    edges = both_ways(*((int(a), int(b), 150.0, 12.0) for a, b in pairs))
    region = make_region(make_network(list(zip(x.flat, y.flat, strict=True)), edges))
    rng = np.random.default_rng(0)
    start, end = rng.integers(0, side * side, (2, 2000)).tolist()
    began = time.perf_counter()
    profiles = route_between(region, start, end)
    assert time.perf_counter() - began < 10.0  # 12,000 in a minute, at a fifth of the trips
    assert (profiles.status != 0).sum() < 10
