"""Road networks from files: OSMnx GraphML, OSM XML and OSM PBF."""

import tempfile
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.sax import SAXException

from prisma_sbi._errors import InputDataError
from prisma_sbi._optional import optional_import
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.osm_filter import write_drivable_ways
from prisma_sbi.region.osm_graph import road_network_from_graph
from prisma_sbi.region.osm_tags import CONTROL_SIGNAL, CONTROL_STOP, node_control
from prisma_sbi.region.roads import RoadNetwork

NODE_TAGS = ["highway", "crossing", "traffic_signals"]
"""Node tags that OSMnx keeps, so that signals at pedestrian crossings are known."""

_OSM_SUFFIXES = (".osm", ".osm.xml", ".xml", ".osm.pbf", ".pbf", ".osm.bz2", ".osm.gz")


def read_roads(
    path: str | Path,
    *,
    bounds: Bounds | None = None,
    largest_component: bool = True,
    repair: bool = False,
) -> RoadNetwork:
    """Read a drive network from a file.

    Parameters
    ----------
    path
        ``.graphml`` as OSMnx saves it; OSM XML (``.osm``, ``.osm.xml``, ``.xml``, also
        ``.osm.gz`` and ``.osm.bz2``); or OSM PBF (``.osm.pbf``, ``.pbf``).
    bounds
        Drop junctions outside this box.
    largest_component
        Keep only the largest set of junctions that all reach each other.
    repair
        Compute the length of an edge that has none (GraphML only: the other forms hold no
        lengths, so that all of them are computed).

    Returns
    -------
    network : RoadNetwork

    Raises
    ------
    InputDataError
        If the file is missing, empty, of an unknown form, cannot be read, or holds no
        drivable road.

    Notes
    -----
    An OSM XML file that OSMnx wrote holds one way per directed edge; each is read from its
    first node to its last one only. In any other OSM file the drivable ways are selected
    first, and nodes between junctions are merged into the shape of the edges, except where a
    signal, a stop sign or a change of limit or class asks for a node.
    """
    path = Path(path)
    _require_content(path)
    name = path.name.lower()
    if name.endswith(".graphml"):
        graph = _load_graphml(path)
    elif name.endswith(_OSM_SUFFIXES):
        graph = _load_osm(path, bounds=bounds)
        repair = True
    else:
        raise InputDataError(
            f"Expected a road file ending in .graphml or one of {', '.join(_OSM_SUFFIXES)}; "
            f"got {path}. Rename or convert it."
        )
    try:
        return road_network_from_graph(
            graph, largest_component=largest_component, repair=repair, bounds=bounds
        )
    except InputDataError as error:
        raise InputDataError(f"{error} The roads come from {path}.") from error


@contextmanager
def osmnx_settings(**values: Any) -> Iterator[Any]:
    """Give OSMnx other settings for a while; what they were is restored in any case."""
    settings = optional_import("osmnx", extra="geo").settings
    before = {name: getattr(settings, name) for name in values}
    try:
        for name, value in values.items():
            setattr(settings, name, value)
        yield settings
    finally:
        for name, value in before.items():
            setattr(settings, name, value)


def simplify_roads(graph: Any) -> Any:
    """Merge nodes between junctions into edge shapes, keeping those that matter for speed."""
    osmnx = optional_import("osmnx", extra="geo")
    for _, tags in graph.nodes(data=True):
        if node_control(tags) in (CONTROL_SIGNAL, CONTROL_STOP):
            tags["control"] = True
    return osmnx.simplification.simplify_graph(
        graph, node_attrs_include=["control"], edge_attrs_differ=["maxspeed", "highway"]
    )


def _require_content(path: Path) -> None:
    """Refuse a path that is no file, or an empty one."""
    if not path.is_file():
        raise InputDataError(f"Expected a road file; got {path}, which is not a file.")
    if path.stat().st_size == 0:
        raise InputDataError(f"Expected roads in {path}; got an empty file. Download it again.")


def _load_graphml(path: Path) -> Any:
    """OSMnx graph of a GraphML file."""
    osmnx = optional_import("osmnx", extra="geo")
    networkx = optional_import("networkx", extra="geo")
    shapely_errors = optional_import("shapely.errors", extra="geo")
    unreadable = (
        OSError,
        ValueError,
        KeyError,
        AttributeError,
        ElementTree.ParseError,
        networkx.NetworkXError,
        shapely_errors.ShapelyError,
    )
    try:
        return osmnx.io.load_graphml(path)
    except unreadable as error:
        raise InputDataError(
            f"Expected GraphML as osmnx.io.save_graphml writes it; got {path}: {error}. "
            "Save or download it again."
        ) from error


def _load_osm(path: Path, *, bounds: Bounds | None) -> Any:
    """OSMnx graph of an OSM file, whatever its form."""
    if path.suffix.lower() in {".osm", ".xml"} and _written_by_osmnx(path):
        with osmnx_settings(all_oneway=True, useful_tags_node=NODE_TAGS):
            graph = _graph_from_xml(path, source=path)
        return graph if _has_one_edge_per_way(graph) else simplify_roads(graph)
    with tempfile.TemporaryDirectory(prefix="prisma-roads-") as folder:
        drivable = Path(folder) / "drivable.osm"
        if write_drivable_ways(path, drivable, bounds=bounds) == 0:
            where = "" if bounds is None else f" inside {bounds}"
            raise InputDataError(
                f"Expected drivable roads in {path}{where}; got none. "
                "Check that the file covers the region."
            )
        with osmnx_settings(all_oneway=False, useful_tags_node=NODE_TAGS):
            graph = _graph_from_xml(drivable, source=path)
    return simplify_roads(graph)


def _written_by_osmnx(path: Path) -> bool:
    """Whether the root element names OSMnx as the generator."""
    try:
        for _, element in ElementTree.iterparse(path, events=("start",)):
            return element.get("generator", "").startswith("OSMnx")
    except (ElementTree.ParseError, OSError) as error:
        raise InputDataError(
            f"Expected OSM XML; got {path}: {error}. Download it again."
        ) from error
    return False


def _has_one_edge_per_way(graph: Any) -> bool:
    """Whether ways are whole edges already, which means the graph was simplified before."""
    return len({way for _, _, way in graph.edges(data="osmid")}) == graph.number_of_edges()


def _graph_from_xml(path: Path, *, source: Path) -> Any:
    """Graph of an OSM XML file, not simplified, with great-circle lengths."""
    osmnx = optional_import("osmnx", extra="geo")
    try:
        with warnings.catch_warnings():
            # The directions of such a file are taken care of by the caller.
            warnings.filterwarnings("ignore", message="The XML file you are loading appears")
            return osmnx.graph.graph_from_xml(path, simplify=False, retain_all=True)
    except (OSError, ValueError, KeyError, ElementTree.ParseError, SAXException) as error:
        raise InputDataError(
            f"Expected OSM XML with nodes and ways; got {source}: {error}. Download it again."
        ) from error
