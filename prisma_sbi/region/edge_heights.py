"""Heights along every edge, sampled once for each region."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from prisma_sbi.region.paths import ragged_index
from prisma_sbi.region.record import Region
from prisma_sbi.region.roads import RoadNetwork
from prisma_sbi.units import EARTH_RADIUS_M

_SPACING_M = 30.0  # a third of an SRTM cell of 3 arc-seconds; finer adds nothing


class EdgeHeights(NamedTuple):
    """Heights at equal spacing along each edge, both ends included.

    Attributes
    ----------
    offset : (edge + 1,) int64
        Edge ``e`` owns the samples ``offset[e]:offset[e + 1]``.
    height_m : (sample,) float64
    """

    offset: np.ndarray
    height_m: np.ndarray


# Derived from the immutable record it is keyed by and dropped together with it.
_PROFILES: WeakKeyDictionary[Region, EdgeHeights] = WeakKeyDictionary()


def edge_heights(region: Region) -> EdgeHeights:
    """Heights along the shape of each edge, sampled every 30 m or closer; computed once."""
    profile = _PROFILES.get(region)
    if profile is None:
        profile = _PROFILES[region] = _sample_edges(region)
    return profile


def _sample_edges(region: Region) -> EdgeHeights:
    """Walk all polylines at once and read the raster under each sample."""
    roads = region.roads
    n_samples = np.ceil(roads.edge_length_m / _SPACING_M).astype(np.int64) + 1
    n_samples = np.maximum(n_samples, 2)
    offset = np.concatenate([[0], np.cumsum(n_samples)])
    edge = np.repeat(np.arange(roads.n_edges), n_samples)
    fraction = (np.arange(offset[-1]) - offset[edge]) / (n_samples[edge] - 1)
    # Edge e occupies [2 e, 2 e + 1] on one common axis, so that a single interpolation serves.
    knot = _shape_fractions(roads)
    wanted = 2.0 * edge + fraction
    lat = np.interp(wanted, knot, roads.geometry_lat_deg)
    lon = np.interp(wanted, knot, roads.geometry_lon_deg)
    height = np.asarray(region.elevation.sample(lat, lon), dtype=np.float64)
    return EdgeHeights(offset, height)


def _shape_fractions(roads: RoadNetwork) -> np.ndarray:
    """Position of each shape point: twice the edge plus the travelled share of its polyline."""
    count = np.diff(roads.geometry_offset)
    edge = np.repeat(np.arange(roads.n_edges), count)
    lat, lon = np.radians(roads.geometry_lat_deg), np.radians(roads.geometry_lon_deg)
    east = np.diff(lon) * np.cos((lat[1:] + lat[:-1]) / 2)
    leg = np.concatenate([[0.0], EARTH_RADIUS_M * np.hypot(np.diff(lat), east)])
    leg[roads.geometry_offset[:-1]] = 0.0
    travelled = np.cumsum(leg)
    travelled -= travelled[roads.geometry_offset[:-1]][edge]
    total = travelled[roads.geometry_offset[1:] - 1][edge]
    # A polyline without extent (all points equal) is walked by point number; any walk will do.
    number = (np.arange(len(edge)) - roads.geometry_offset[:-1][edge]) / np.maximum(
        count[edge] - 1, 1
    )
    share = np.divide(travelled, total, out=number, where=total > 0)
    return 2.0 * edge + share


def concatenate_heights(
    region: Region, edge: np.ndarray, edge_start_m: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and heights along edges that begin at the given positions.

    Neighbouring edges share a junction, which therefore occurs twice, at the same position and
    with the same height.
    """
    profile = edge_heights(region)
    count = np.diff(profile.offset)[edge]
    flat = ragged_index(profile.offset[:-1][edge], count)
    number = flat - np.repeat(profile.offset[:-1][edge], count)
    spacing = region.roads.edge_length_m[edge] / (count - 1)
    position = np.repeat(edge_start_m, count) + number * np.repeat(spacing, count)
    return position, profile.height_m[flat]
