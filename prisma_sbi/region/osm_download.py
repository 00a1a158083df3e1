"""Road networks from OpenStreetMap's servers, through OSMnx."""

import socket
from pathlib import Path
from typing import Any

from prisma_sbi._errors import InputDataError
from prisma_sbi._optional import optional_import
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.download import DownloadError, drop_broken_json
from prisma_sbi.region.osm import NODE_TAGS, osmnx_settings, simplify_roads
from prisma_sbi.region.osm_graph import road_network_from_graph
from prisma_sbi.region.roads import RoadNetwork


def download_roads(
    *,
    cache: str | Path,
    place: str | None = None,
    bounds: Bounds | None = None,
    largest_component: bool = True,
    overpass_url: str | None = None,
    nominatim_url: str | None = None,
) -> RoadNetwork:
    """Download the drive network of a place or of a bounding box.

    Parameters
    ----------
    cache
        Folder for the servers' answers; the same question is asked only once.
    place
        Name that Nominatim knows, for instance ``"Ann Arbor, Michigan, USA"``.
    bounds
        Bounding box. Give either this or ``place``.
    largest_component
        Keep only the largest set of junctions that all reach each other.
    overpass_url, nominatim_url
        Other servers than the public ones.

    Returns
    -------
    network : RoadNetwork

    Raises
    ------
    ValueError
        Unless exactly one of ``place`` and ``bounds`` is given.
    InputDataError
        If the place is unknown or has no drivable roads.
    DownloadError
        If a server cannot be reached or refuses to answer.

    Notes
    -----
    The settings of OSMnx are as before when the call returns.
    """
    if (place is None) == (bounds is None):
        raise ValueError(
            f"Expected either a place or bounds; got place={place!r}, bounds={bounds!r}."
        )
    folder = Path(cache) / "osm"
    folder.mkdir(parents=True, exist_ok=True)
    drop_broken_json(folder)
    values: dict[str, Any] = {
        "cache_folder": folder,
        "use_cache": True,
        "all_oneway": False,
        "useful_tags_node": NODE_TAGS,
    }
    if overpass_url is not None:
        values["overpass_url"] = overpass_url
    if nominatim_url is not None:
        values["nominatim_url"] = nominatim_url
    what = f"the place {place!r}" if place is not None else f"{bounds}"
    with osmnx_settings(**values):
        graph = _download_graph(place, bounds, what=what)
    return road_network_from_graph(
        simplify_roads(graph), largest_component=largest_component, repair=True
    )


def _download_graph(place: str | None, bounds: Bounds | None, *, what: str) -> Any:
    """Ask the servers through OSMnx; nodes between junctions are still in."""
    osmnx = optional_import("osmnx", extra="geo")
    requests = optional_import("requests", extra="geo")
    options = {"network_type": "drive", "simplify": False, "retain_all": True}
    resolve = socket.getaddrinfo  # OSMnx replaces it to stay on one server of a pool
    try:
        if place is not None:
            return osmnx.graph.graph_from_place(place, **options)
        assert bounds is not None
        box = (bounds.west_deg, bounds.south_deg, bounds.east_deg, bounds.north_deg)
        return osmnx.graph.graph_from_bbox(box, **options)
    except (requests.exceptions.RequestException, osmnx._errors.ResponseStatusCodeError) as error:
        raise DownloadError(
            f"Expected OpenStreetMap's servers to answer for {what}; got {error}. "
            "Check the connection, or try again later."
        ) from error
    except (ValueError, TypeError) as error:
        raise InputDataError(
            f"Expected drivable roads for {what}; got none: {error}. "
            "Check the spelling of the place or the limits of the box."
        ) from error
    finally:
        socket.getaddrinfo = resolve
