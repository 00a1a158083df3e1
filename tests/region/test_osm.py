"""Roads from OSMnx graphs and from files."""

import logging
from pathlib import Path

import networkx as nx
import numpy as np
import osmium
import osmnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import LineString

from prisma_sbi._errors import InputDataError
from prisma_sbi.region.assembly import great_circle_m, largest_component
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.osm import osmnx_settings, read_roads
from prisma_sbi.region.osm_filter import is_drivable
from prisma_sbi.region.osm_graph import road_network_from_graph
from prisma_sbi.region.osm_tags import CLASS_SPEEDS_KMH, node_control, road_class, tag_values
from prisma_sbi.region.roads import RoadNetwork
from tests.region.conftest import both_ways, make_network


def _graph(**changes: dict) -> nx.MultiDiGraph:
    """A triangle 10 -> 30 -> 20 -> 10 of residential streets, tags changed by edge name."""
    graph = nx.MultiDiGraph(crs="epsg:4326")
    graph.add_node(10, x=0.0, y=0.0)
    graph.add_node(30, x=0.01, y=0.0)
    graph.add_node(20, x=0.01, y=0.01)
    for u, v in ((10, 30), (30, 20), (20, 10)):
        tags = {"highway": "residential", "length": 1_500.0} | changes.get(f"e{u}_{v}", {})
        graph.add_edge(u, v, **{k: value for k, value in tags.items() if value is not None})
    return graph


def _speed(network: RoadNetwork, u: int, v: int) -> float:
    ends = zip(network.node_id[network.edge_from], network.node_id[network.edge_to], strict=True)
    return float(network.edge_speed_mps[list(ends).index((u, v))])


def test_graph_gives_sorted_arrays():
    network = road_network_from_graph(_graph())
    assert network.node_id.tolist() == [10, 20, 30]
    assert network.node_id[network.edge_from].tolist() == [10, 20, 30]
    assert network.node_id[network.edge_to].tolist() == [30, 10, 20]
    assert network.edge_class.tolist() == ["residential"] * 3
    assert network.geometry_offset.tolist() == [0, 2, 4, 6]
    assert "OpenStreetMap" in network.attribution


@pytest.mark.parametrize(
    ("maxspeed", "speed_kmh"),
    [
        ("50", 50.0),
        ("35 mph", 56.33),
        (["30 mph", "40 mph"], 56.33),
        ("['30 mph', '40 mph']", 56.33),
        ("30;50", 40.0),
        ("DE:urban", 50.0),
        ("walk", CLASS_SPEEDS_KMH["residential"]),
        ("0", CLASS_SPEEDS_KMH["residential"]),
        ("none", CLASS_SPEEDS_KMH["residential"]),
        (["signals", "variable"], CLASS_SPEEDS_KMH["residential"]),
        (float("nan"), CLASS_SPEEDS_KMH["residential"]),
        (None, CLASS_SPEEDS_KMH["residential"]),
    ],
)
def test_graph_reads_limits(maxspeed: object, speed_kmh: float):
    network = road_network_from_graph(_graph(e10_30={"maxspeed": maxspeed}))
    assert _speed(network, 10, 30) * 3.6 == pytest.approx(speed_kmh, abs=0.01)
    # An untagged edge keeps the default of its class whatever its neighbors say.
    assert _speed(network, 30, 20) * 3.6 == pytest.approx(CLASS_SPEEDS_KMH["residential"])


def test_graph_takes_class_speeds_from_the_caller():
    graph = _graph(e10_30={"highway": "raceway"}, e30_20={"highway": None})
    network = road_network_from_graph(graph, class_speeds_kmh={"residential": 30.0})
    assert _speed(network, 20, 10) * 3.6 == pytest.approx(30.0)
    assert _speed(network, 10, 30) * 3.6 == pytest.approx(40.0)
    assert _speed(network, 30, 20) * 3.6 == pytest.approx(40.0)


def test_graph_is_not_changed():
    graph = _graph(e10_30={"maxspeed": "35 mph"})
    before = nx.to_dict_of_dicts(graph.copy())
    road_network_from_graph(graph, repair=True)
    assert nx.to_dict_of_dicts(graph) == before


def test_graph_keeps_the_shortest_parallel_edge_and_drops_loops():
    graph = _graph()
    graph.add_edge(10, 30, highway="primary", length=900.0)
    graph.add_edge(10, 30, highway="tertiary", length=2_000.0)
    graph.add_edge(20, 20, highway="residential")  # a loop needs no length
    network = road_network_from_graph(graph)
    assert network.n_edges == 3
    assert network.edge_length_m[0] == 900.0
    assert network.edge_class[0] == "primary"


def test_graph_edge_without_length_is_named_or_repaired():
    bent = LineString([(0.0, 0.0), (0.0, 0.01), (0.01, 0.01), (0.01, 0.0)])
    graph = _graph(e10_30={"length": None, "geometry": bent})
    with pytest.raises(InputDataError, match=r"got None on the edge from node 10 to node 30"):
        road_network_from_graph(graph)
    network = road_network_from_graph(graph, repair=True)
    assert network.edge_length_m[0] == pytest.approx(3 * 1_111.95, rel=1e-4)
    assert network.edge_length_m[1:].tolist() == [1_500.0, 1_500.0]


@pytest.mark.parametrize("length", [0.0, -3.0, float("nan"), float("inf"), "long"])
def test_graph_edge_with_impossible_length_is_an_error(length: object):
    with pytest.raises(InputDataError, match="Expected a positive length"):
        road_network_from_graph(_graph(e30_20={"length": length}))


def test_graph_geometry_runs_from_start_to_end_and_holds_both():
    backwards = LineString([(0.01, 0.01), (0.012, 0.005), (0.01, 0.0)])
    short = LineString([(0.007, 0.007), (0.003, 0.003)])
    graph = _graph(e30_20={"geometry": backwards}, e20_10={"geometry": short})
    network = road_network_from_graph(graph)
    for edge in range(network.n_edges):
        first, last = network.geometry_offset[edge], network.geometry_offset[edge + 1] - 1
        for end, point in ((network.edge_from[edge], first), (network.edge_to[edge], last)):
            assert network.geometry_lat_deg[point] == network.node_lat_deg[end]
            assert network.geometry_lon_deg[point] == network.node_lon_deg[end]
    assert np.diff(network.geometry_offset).tolist() == [2, 4, 3]


def test_graph_with_bad_nodes_is_refused():
    graph = _graph()
    graph.nodes[20]["x"] = 551_234.0  # projected to metres
    with pytest.raises(InputDataError, match="on node 20"):
        road_network_from_graph(graph)
    named = nx.relabel_nodes(_graph(), {10: "a"})
    with pytest.raises(InputDataError, match="whole numbers as node identifiers"):
        road_network_from_graph(named)
    with pytest.raises(TypeError, match="MultiDiGraph"):
        road_network_from_graph(nx.DiGraph(_graph()))
    with pytest.raises(InputDataError, match="at least 2 nodes"):
        road_network_from_graph(nx.MultiDiGraph())


def test_disconnected_graph_keeps_the_largest_component(caplog: pytest.LogCaptureFixture):
    graph = _graph()
    graph.add_node(40, x=0.02, y=0.0)
    graph.add_edge(30, 40, highway="residential", length=1_100.0)  # a way in and none out
    with caplog.at_level(logging.INFO):
        network = road_network_from_graph(graph)
    assert network.node_id.tolist() == [10, 20, 30]
    assert "3 of 4 junctions" in caplog.text
    assert caplog.records[-1].levelno == logging.WARNING
    assert road_network_from_graph(graph, largest_component=False).n_nodes == 4


def test_network_without_any_round_trip_is_an_error():
    line = make_network([(0, 0), (100, 0), (200, 0)], [(0, 1, 100.0, 9.0), (1, 2, 100.0, 9.0)])
    with pytest.raises(InputDataError, match="junctions that reach each other"):
        largest_component(line)


@settings(max_examples=40, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=30),
)
def test_largest_component_is_the_one_networkx_finds(pairs: list[tuple[int, int]]):
    edges = [(u, v, 100.0 + u, 9.0 + v) for u, v in sorted({p for p in pairs if p[0] != p[1]})]
    if not edges:
        return
    network = make_network([(100.0 * i, 10.0 * i * i) for i in range(9)], edges)
    graph = nx.DiGraph([(u, v) for u, v, *_ in edges])
    size = max(map(len, nx.strongly_connected_components(graph)))
    if size < 2:
        with pytest.raises(InputDataError):
            largest_component(network)
        return
    part = largest_component(network)
    assert part.n_nodes == size
    inner = nx.DiGraph(zip(part.edge_from.tolist(), part.edge_to.tolist(), strict=True))
    assert nx.is_strongly_connected(inner)
    old = {(u + 100, v + 100): (length, speed) for u, v, length, speed in edges}
    for edge in range(part.n_edges):
        u, v = part.node_id[part.edge_from[edge]], part.node_id[part.edge_to[edge]]
        assert old[u, v] == (part.edge_length_m[edge], part.edge_speed_mps[edge])
        first, last = part.geometry_offset[edge], part.geometry_offset[edge + 1] - 1
        assert part.geometry_lon_deg[first] == part.node_lon_deg[part.edge_from[edge]]
        assert part.geometry_lat_deg[last] == part.node_lat_deg[part.edge_to[edge]]


def test_connected_network_is_returned_as_it_is():
    network = make_network([(0, 0), (100, 0)], both_ways((0, 1, 100.0, 9.0)))
    assert largest_component(network) is network


@pytest.mark.parametrize(
    ("tags", "control"),
    [
        ({}, 0),
        ({"highway": "traffic_signals"}, 1),
        ({"highway": "crossing", "crossing": "traffic_signals"}, 1),
        ({"highway": "crossing", "traffic_signals": "pedestrian_crossing"}, 1),
        ({"highway": "crossing;traffic_signals"}, 1),
        ({"highway": "motorway_junction", "traffic_signals": "ramp_meter"}, 0),
        ({"highway": "stop"}, 2),
        ({"highway": ["stop", "crossing"]}, 2),
        ({"highway": "crossing", "crossing": "unmarked"}, 3),
        ({"highway": "give_way"}, 3),
        ({"highway": "turning_circle"}, 0),
        ({"highway": float("nan")}, 0),
    ],
)
def test_node_control_reads_tags(tags: dict, control: int):
    assert node_control(tags) == control


def test_road_class_does_not_depend_on_order():
    assert road_class(["residential", "tertiary"]) == road_class("['tertiary', 'residential']")
    assert road_class(["residential", "tertiary"]) == "tertiary"
    assert road_class(None) == "road"
    assert tag_values("[broken") == ["[broken"]


def test_great_circle_agrees_with_osmnx():
    lat, lon = np.array([42.3, -10.0, 0.0]), np.array([-83.7, 20.0, 179.9])
    to_lat, to_lon = np.array([42.31, -10.0, 0.0]), np.array([-83.72, 20.0, -179.9])
    expected = osmnx.distance.great_circle(lat, lon, to_lat, to_lon)
    assert great_circle_m(lat, lon, to_lat, to_lon) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("tags", "drivable"),
    [
        ({"highway": "residential"}, True),
        ({"highway": "motorway_link"}, True),
        ({"highway": "footway"}, False),
        ({"highway": "service"}, False),
        ({"building": "yes"}, False),
        ({"highway": "residential", "access": "private"}, False),
        ({"highway": "residential", "access": "no", "motor_vehicle": "yes"}, True),
        ({"highway": "residential", "motorcar": "no"}, False),
        ({"highway": "tertiary", "area": "yes"}, False),
    ],
)
def test_drivable_ways(tags: dict[str, str], drivable: bool):
    assert is_drivable(tags) == drivable


# Files ------------------------------------------------------------------------------------

_PLACES = {  # id: (lon, lat); 2 is a signal on the way, 4 a bend, 7 lies on a footpath
    1: (0.0, 0.0),
    2: (0.001, 0.0),
    3: (0.002, 0.0),
    4: (0.003, 0.0),
    5: (0.003, 0.001),
    6: (0.003, 0.002),
    7: (0.001, 0.002),
}
_WAYS = {
    70: ([1, 2, 3, 4, 5], {"highway": "primary", "maxspeed": "35 mph"}),
    71: ([5, 6], {"highway": "primary", "maxspeed": "45 mph"}),
    72: ([6, 1], {"highway": "residential", "oneway": "-1"}),
    73: ([1, 7, 6], {"highway": "footway"}),
    74: ([7, 1, 2, 7], {"building": "yes"}),
    75: ([6, 99], {"highway": "residential"}),  # its far end is not in the file
}


def _write_osm(path: Path) -> Path:
    mutable = osmium.osm.mutable
    with osmium.SimpleWriter(str(path), overwrite=True) as writer:
        for identifier, place in _PLACES.items():
            tags = {"highway": "traffic_signals"} if identifier == 2 else {}
            writer.add_node(mutable.Node(id=identifier, location=place, tags=tags))
        for identifier, (nodes, tags) in _WAYS.items():
            writer.add_way(mutable.Way(id=identifier, nodes=nodes, tags=tags))
    return path


@pytest.mark.parametrize(
    "name", ["roads.osm.pbf", "roads.pbf", "roads.osm", "roads.osm.xml", "roads.osm.bz2"]
)
def test_osm_files_give_one_network(tmp_path: Path, name: str):
    network = read_roads(_write_osm(tmp_path / name))
    # The bend is gone; the signal (2) and the change of limit (5) are still nodes.
    assert network.node_id.tolist() == [1, 2, 5, 6]
    assert network.node_control.tolist() == [0, 1, 0, 0]
    ends = {
        (int(network.node_id[u]), int(network.node_id[v]))
        for u, v in zip(network.edge_from, network.edge_to, strict=True)
    }
    assert ends == {(1, 2), (2, 1), (2, 5), (5, 2), (5, 6), (6, 5), (1, 6)}
    assert _speed(network, 2, 5) == pytest.approx(15.646, abs=1e-3)
    assert _speed(network, 6, 5) == pytest.approx(20.117, abs=1e-3)
    edge = network.edge_length_m[
        (network.node_id[network.edge_from] == 2) & (network.node_id[network.edge_to] == 5)
    ]
    assert edge == pytest.approx(3 * 111.195, abs=0.01)


def test_osm_file_is_cut_to_bounds(tmp_path: Path):
    box = Bounds(south_deg=-0.1, north_deg=0.0015, west_deg=-0.1, east_deg=0.1)
    for name in ("roads.osm.pbf", "roads.osm"):
        network = read_roads(_write_osm(tmp_path / name), bounds=box)
        assert network.node_id.tolist() == [1, 2, 5]
    elsewhere = Bounds(south_deg=10.0, north_deg=11.0, west_deg=10.0, east_deg=11.0)
    with pytest.raises(InputDataError, match="drivable roads in .*roads.osm inside Bounds"):
        read_roads(tmp_path / "roads.osm", bounds=elsewhere)


def test_osmnx_xml_is_read_one_way(tmp_path: Path):
    path = tmp_path / "graph.osm"
    nodes = "".join(
        f'<node id="{i}" lat="{lat}" lon="{lon}"/>' for i, (lon, lat) in list(_PLACES.items())[:3]
    )
    ways = "".join(
        f'<way id="{i}"><nd ref="{u}"/><nd ref="{v}"/><tag k="highway" v="residential"/>'
        '<tag k="oneway" v="no"/></way>'
        for i, (u, v) in enumerate([(1, 2), (2, 3), (3, 1)])
    )
    path.write_text(f'<osm version="0.6" generator="OSMnx 1.9.4">{nodes}{ways}</osm>', "utf-8")
    network = read_roads(path)
    assert network.n_nodes == network.n_edges == 3


def test_osmnx_xml_of_whole_ways_is_simplified(tmp_path: Path):
    graph = nx.MultiDiGraph(crs="epsg:4326")
    for identifier, (lon, lat) in _PLACES.items():
        graph.add_node(identifier, x=lon, y=lat)
    for way, nodes in enumerate([[1, 2, 3, 4, 5, 6], [6, 1], [3, 7], [7, 3]]):
        for u, v in zip(nodes[:-1], nodes[1:], strict=True):
            graph.add_edge(u, v, osmid=way, highway="residential", oneway=True, length=1.0)
    path = tmp_path / "graph.osm"
    with osmnx_settings(all_oneway=True):
        osmnx.io.save_graph_xml(graph, path)
    network = read_roads(path)
    assert network.node_id.tolist() == [3, 7]


def test_osmnx_settings_are_restored(tmp_path: Path):
    before = dict(vars(osmnx.settings))
    read_roads(_write_osm(tmp_path / "roads.osm"))
    with osmnx_settings(all_oneway=True):
        assert osmnx.settings.all_oneway
    assert dict(vars(osmnx.settings)) == before
    with pytest.raises(ZeroDivisionError), osmnx_settings(all_oneway=True):
        _ = 1 / 0
    assert dict(vars(osmnx.settings)) == before


def test_graphml_with_text_attributes_is_read(tmp_path: Path):
    graph = _graph(e10_30={"maxspeed": "35 mph", "geometry": LineString([(0, 0), (0.01, 0)])})
    graph.nodes[20]["highway"] = "traffic_signals"
    path = tmp_path / "roads.graphml"
    osmnx.io.save_graphml(graph, path)
    network, direct = read_roads(path), road_network_from_graph(graph)
    assert network.edge_speed_mps.tolist() == direct.edge_speed_mps.tolist()
    assert network.node_control.tolist() == [0, 1, 0]


def test_graphml_edge_without_length_names_file_and_edge(tmp_path: Path):
    path = tmp_path / "roads.graphml"
    osmnx.io.save_graphml(_graph(e30_20={"length": None}), path)
    with pytest.raises(InputDataError, match=r"node 30 to node 20.*roads\.graphml"):
        read_roads(path)
    assert read_roads(path, repair=True).n_edges == 3


@pytest.mark.parametrize("name", ["r.graphml", "r.osm", "r.osm.xml", "r.osm.pbf", "r.osm.gz"])
@pytest.mark.parametrize(
    "content",
    [b"", b"not a road at all", b"<osm version='0.6'></osm>", b"<graphml><graph", b"\x00" * 64],
)
def test_unusable_file_is_named(tmp_path: Path, name: str, content: bytes):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputDataError, match=name.replace(".", r"\.")):
        read_roads(path)


def test_missing_or_unknown_file_is_named(tmp_path: Path):
    with pytest.raises(InputDataError, match="not a file"):
        read_roads(tmp_path / "none.graphml")
    (tmp_path / "roads.shp").write_bytes(b"x")
    with pytest.raises(InputDataError, match=r"\.graphml or one of .*roads\.shp"):
        read_roads(tmp_path / "roads.shp")


@pytest.mark.realdata
def test_ann_arbor_graphml_and_xml_are_one_network(reference_data: Path):
    folder = reference_data / "ann-arbor"
    graph = read_roads(folder / "roads.graphml", largest_component=False)
    xml = read_roads(folder / "roads.osm.xml", largest_component=False)
    assert graph.n_nodes == 3_340
    for name in ("node_id", "node_control", "edge_from", "edge_to", "edge_speed_mps"):
        np.testing.assert_array_equal(getattr(graph, name), getattr(xml, name), err_msg=name)
    assert np.bincount(graph.node_control)[1:3].tolist() == [165, 69]
    # The XML has no shapes: its lengths are straight, so never longer, and mostly equal.
    excess_m = graph.edge_length_m - xml.edge_length_m
    assert excess_m.min() > -0.5
    assert np.median(np.abs(excess_m)) < 0.5
    assert 1.0 < graph.edge_length_m.sum() / xml.edge_length_m.sum() < 1.03


@pytest.mark.realdata
def test_ann_arbor_keeps_most_junctions(reference_data: Path):
    network = read_roads(reference_data / "ann-arbor" / "roads.graphml")
    assert 3_200 < network.n_nodes < 3_340
    assert network.edge_speed_mps.min() > 4.0
    assert network.edge_speed_mps.max() < 32.0
