"""Drivable ways out of an OSM file (PBF or XML), written as a small OSM XML file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prisma_sbi._errors import InputDataError
from prisma_sbi._optional import optional_import
from prisma_sbi.region.bounds import Bounds

DRIVABLE_CLASSES = frozenset(
    name + suffix
    for name in ("motorway", "trunk", "primary", "secondary", "tertiary")
    for suffix in ("", "_link")
) | {"unclassified", "residential", "living_street", "road"}
"""``highway`` values of the public roads that cars use."""

_CLOSED = {"no", "private"}
_KEPT_NODE_TAGS = ("highway", "crossing", "traffic_signals")
_KEPT_WAY_TAGS = ("highway", "junction", "maxspeed", "name", "oneway")


def is_drivable(tags: Mapping[str, str]) -> bool:
    """Whether a way with these tags is a public road that cars may use."""
    if tags.get("highway") not in DRIVABLE_CLASSES or tags.get("area") == "yes":
        return False
    # The most specific access tag decides.
    for key in ("motorcar", "motor_vehicle", "vehicle", "access"):
        if key in tags:
            return tags[key] not in _CLOSED
    return True


def write_drivable_ways(source: Path, target: Path, *, bounds: Bounds | None = None) -> int:
    """Copy the drivable ways of an OSM file and their nodes; return the number of ways written.

    A way is cut where one of its nodes is missing from the file or lies outside ``bounds``,
    so that no edge jumps over the gap; each part becomes a way of its own.

    Parameters
    ----------
    source
        OSM file in any form that osmium reads (``.osm.pbf``, ``.osm``, ``.osm.bz2``, ...).
    target
        OSM XML file (``.osm``) to write.
    bounds
        Keep only nodes inside this box.

    Returns
    -------
    n_ways : int

    Raises
    ------
    InputDataError
        If the file cannot be read as OSM.
    """
    osmium = optional_import("osmium", extra="geo")
    try:
        ways = list(_drivable_ways(osmium, source))
        tracker = osmium.IdTracker()
        for _, references, _ in ways:
            for reference in references:
                tracker.add_node(reference)
        with osmium.SimpleWriter(str(target), overwrite=True) as writer:
            known = _copy_nodes(osmium, source, writer, tracker=tracker, bounds=bounds)
            return _write_ways(osmium, writer, ways, known)
    except (RuntimeError, OSError) as error:
        raise InputDataError(
            f"Expected an OSM file that osmium can read; got {source}: {error}. "
            "Download it again, or check that its name ends in the right suffix."
        ) from error


def _drivable_ways(osmium: Any, source: Path) -> Iterator[tuple[int, list[int], dict[str, str]]]:
    """Yield identifier, node references and useful tags of each drivable way."""
    processor = osmium.FileProcessor(str(source), osmium.osm.WAY)
    for way in processor.with_filter(osmium.filter.KeyFilter("highway")):
        tags = dict(way.tags)
        if is_drivable(tags):
            kept = {key: tags[key] for key in _KEPT_WAY_TAGS if key in tags}
            yield way.id, [node.ref for node in way.nodes], kept


def _copy_nodes(
    osmium: Any, source: Path, writer: Any, *, tracker: Any, bounds: Bounds | None
) -> set[int]:
    """Write the tracked nodes inside the box and return their identifiers."""
    known = set()
    processor = osmium.FileProcessor(str(source), osmium.osm.NODE)
    for node in processor.with_filter(tracker.id_filter()):
        if not node.location.valid():
            continue
        lat, lon = node.location.lat, node.location.lon
        if bounds is not None and not bounds.contains(lat, lon):
            continue
        tags = {key: node.tags[key] for key in _KEPT_NODE_TAGS if key in node.tags}
        writer.add_node(osmium.osm.mutable.Node(id=node.id, location=(lon, lat), tags=tags))
        known.add(node.id)
    return known


def _write_ways(
    osmium: Any, writer: Any, ways: list[tuple[int, list[int], dict[str, str]]], known: set[int]
) -> int:
    """Write every run of known nodes as a way with a number of its own."""
    n_written = 0
    for _, references, tags in ways:
        run: list[int] = []
        for reference in [*references, None]:
            if reference in known:
                run.append(reference)
                continue
            if len(run) >= 2:
                n_written += 1
                writer.add_way(osmium.osm.mutable.Way(id=n_written, nodes=run, tags=tags))
            run = []
    return n_written
