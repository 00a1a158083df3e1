"""An embedded city: a region made by code alone, for demonstrations and tests."""

from functools import cache
from typing import NamedTuple

import numpy as np

from prisma_sbi.region.assembly import (
    RoadEdge,
    assemble_network,
    largest_component,
    network_bounds,
    polyline_length_m,
)
from prisma_sbi.region.builtin_vehicles import builtin_pool
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.elevation import Elevation
from prisma_sbi.region.osm_tags import CONTROL_NONE, CONTROL_SIGNAL, CONTROL_STOP
from prisma_sbi.region.record import Region
from prisma_sbi.region.roads import RoadNetwork
from prisma_sbi.units import EARTH_RADIUS_M, MPS_PER_MPH

DEMO_NAME = "Prisma City"
_ATTRIBUTION = "Made by prisma_sbi; no real place"
_SEED = 20_611
_CENTER_LAT_DEG, _CENTER_LON_DEG = 45.0, -30.0  # in the Atlantic, where no city can be meant

_N_COLUMNS, _N_ROWS, _BLOCK_M = 23, 18, 440.0
_SHIFT_M = 70.0  # junctions lie this far off the grid at most
_MISSING_BLOCKS = 0.12  # share of residential streets that were never built
_DOWNTOWN_M, _STOP_SHARE = 1_400.0, 0.15
_RING_AXES_M = (3_500.0, 2_700.0)
_N_INTERCHANGES, _HALF_CARRIAGEWAY_M = 8, 12.0

_SPEED_MPH = {
    "motorway": 65.0,
    "motorway_link": 40.0,
    "primary": 45.0,
    "tertiary": 35.0,
    "residential": 25.0,
}
_HILLS = (
    # half height in m, waves per km to the east and to the north, phase
    (30.0, 0.184, 0.088, 0.4),
    (18.0, -0.114, 0.289, 1.9),
    (12.0, 0.324, -0.254, 4.2),
)
_BASE_HEIGHT_M, _CELL_M, _MARGIN_M = 250.0, 80.0, 1_000.0


class _Plan(NamedTuple):
    """Junctions in metres from the center, and streets between them."""

    east_m: np.ndarray
    north_m: np.ndarray
    control: np.ndarray
    streets: list["_Street"]


class _Street(NamedTuple):
    """A directed street with the points between its ends."""

    start: int
    end: int
    road_class: str
    bends_m: np.ndarray


def demo_region(*, constants: Constants | None = None) -> Region:
    """Make the region of the embedded demo city.

    A town of about 10 by 8 km on a crooked grid: residential streets at 25 mph, one-way
    downtown, collectors at 35 mph, arterials at 45 mph with signals where they cross, a
    motorway ring at 65 mph with eight interchanges, stop signs, and hills of 60 m above and
    below the mean with grades up to 8 %.

    Parameters
    ----------
    constants
        Constants of the method; those of :class:`Constants` by default.

    Returns
    -------
    region : Region
        Equal, with equal fingerprint, on every machine.

    Examples
    --------
    >>> from prisma_sbi.region import demo_region
    >>> demo_region().roads.n_nodes > 300
    True
    """
    roads = demo_roads()
    return Region(
        name=DEMO_NAME,
        bounds=network_bounds(roads),
        roads=roads,
        elevation=demo_elevation(),
        vehicles=builtin_pool(),
        constants=Constants() if constants is None else constants,
    )


@cache
def demo_roads() -> RoadNetwork:
    """Road network of the demo city; every junction reaches every other.

    Coordinates are rounded to 1e-7 degree and lengths to a centimetre, so that the last bit
    of a sine on some machine changes nothing.
    """
    plan = _add_ring(_grid(np.random.Generator(np.random.PCG64(_SEED))))
    lat_deg, lon_deg = _to_degrees(plan.east_m, plan.north_m)
    node_id = np.arange(1, len(lat_deg) + 1, dtype=np.int64)
    edges = []
    for street in plan.streets:
        bend_lat_deg, bend_lon_deg = _to_degrees(street.bends_m[:, 0], street.bends_m[:, 1])
        lat = np.concatenate([lat_deg[[street.start]], bend_lat_deg, lat_deg[[street.end]]])
        lon = np.concatenate([lon_deg[[street.start]], bend_lon_deg, lon_deg[[street.end]]])
        edges.append(
            RoadEdge(
                from_id=int(node_id[street.start]),
                to_id=int(node_id[street.end]),
                length_m=round(polyline_length_m(lat, lon), 2),
                speed_mps=_SPEED_MPH[street.road_class] * MPS_PER_MPH,
                road_class=street.road_class,
                lat_deg=lat,
                lon_deg=lon,
            )
        )
    network = assemble_network(
        node_id=node_id,
        node_lat_deg=lat_deg,
        node_lon_deg=lon_deg,
        node_control=plan.control,
        edges=edges,
        attribution=_ATTRIBUTION,
    )
    return largest_component(network)


@cache
def demo_elevation() -> Elevation:
    """Hills of the demo city as a raster; heights are rounded to a centimetre."""
    half_east_m = 0.5 * (_N_COLUMNS - 1) * _BLOCK_M + _MARGIN_M
    half_north_m = 0.5 * (_N_ROWS - 1) * _BLOCK_M + _MARGIN_M
    east_m = np.arange(-half_east_m, half_east_m + _CELL_M, _CELL_M)
    north_m = np.arange(half_north_m, -half_north_m - _CELL_M, -_CELL_M)
    height_m = _BASE_HEIGHT_M + _hills_m(east_m[None, :], north_m[:, None])
    lat_deg, lon_deg = _to_degrees(east_m[:2], north_m[:2])
    return Elevation(
        height_m=np.round(height_m, 2).astype(np.float32),
        north_deg=float(lat_deg[0]),
        west_deg=float(lon_deg[0]),
        lat_step_deg=round(float(lat_deg[0] - lat_deg[1]), 7),
        lon_step_deg=round(float(lon_deg[1] - lon_deg[0]), 7),
        source=_ATTRIBUTION,
    )


def _hills_m(east_m: np.ndarray, north_m: np.ndarray) -> np.ndarray:
    """Height above the mean: a sum of plane waves."""
    height = np.zeros(np.broadcast_shapes(east_m.shape, north_m.shape))
    for half_height, east_per_km, north_per_km, phase in _HILLS:
        waves = (east_per_km * east_m + north_per_km * north_m) / 1_000.0
        height += half_height * np.sin(2.0 * np.pi * waves + phase)
    return height


def _to_degrees(east_m: np.ndarray, north_m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Latitude and longitude of points in metres from the center, to 1e-7 degree."""
    meters_per_degree = np.pi * EARTH_RADIUS_M / 180.0
    shrink = 0.7071067811865476  # cosine of the latitude of the center
    lat_deg = _CENTER_LAT_DEG + np.asarray(north_m) / meters_per_degree
    lon_deg = _CENTER_LON_DEG + np.asarray(east_m) / (meters_per_degree * shrink)
    return np.round(lat_deg, 7), np.round(lon_deg, 7)


def _grid(generator: np.random.Generator) -> _Plan:
    """Streets on a crooked grid, with classes by row and column."""
    column, row = np.meshgrid(np.arange(_N_COLUMNS), np.arange(_N_ROWS))
    column, row = column.ravel(), row.ravel()
    shift = (2.0 * generator.random((2, column.size)) - 1.0) * _SHIFT_M
    east_m = (column - 0.5 * (_N_COLUMNS - 1)) * _BLOCK_M + shift[0]
    north_m = (row - 0.5 * (_N_ROWS - 1)) * _BLOCK_M + shift[1]
    downtown = np.hypot(east_m, north_m) < _DOWNTOWN_M
    streets: list[_Street] = []
    for node in range(column.size):
        neighbors = []
        if column[node] + 1 < _N_COLUMNS:
            neighbors.append((node + 1, int(row[node])))
        if row[node] + 1 < _N_ROWS:
            neighbors.append((node + _N_COLUMNS, int(column[node])))
        for other, line in neighbors:
            bend, missing = generator.random(2)
            road_class = _class_of_line(line)
            if road_class == "residential" and missing < _MISSING_BLOCKS:
                continue
            ends = np.asarray([[east_m[i], north_m[i]] for i in (node, other)])
            bends_m = _bend(ends, 0.3 * (bend - 0.5))
            one_way = road_class == "residential" and downtown[node] and downtown[other]
            if not one_way or line % 4 == 1:
                streets.append(_Street(node, other, road_class, bends_m))
            if not one_way or line % 4 == 3:
                streets.append(_Street(other, node, road_class, bends_m[::-1]))
    control = _grid_controls(column, row, downtown, generator.random(column.size))
    return _Plan(east_m, north_m, control, streets)


def _class_of_line(line: int) -> str:
    """Class of a whole row or column: arterials every fourth, collectors halfway."""
    if line % 4 == 2:
        return "primary"
    return "tertiary" if line % 4 == 0 else "residential"


def _grid_controls(
    column: np.ndarray, row: np.ndarray, downtown: np.ndarray, chance: np.ndarray
) -> np.ndarray:
    """Signals where arterials cross, downtown also collectors; stop signs at side streets."""
    column_class = np.asarray([_class_of_line(int(line)) for line in column])
    row_class = np.asarray([_class_of_line(int(line)) for line in row])
    n_arterials = (column_class == "primary").astype(int) + (row_class == "primary")
    n_small = (column_class == "residential").astype(int) + (row_class == "residential")
    control = np.full(column.size, CONTROL_NONE, dtype=np.uint8)
    control[(n_small == 2) & (chance < 2.0 * _STOP_SHARE)] = CONTROL_STOP
    control[(n_small == 1) & (n_arterials == 0) & (chance < _STOP_SHARE)] = CONTROL_STOP
    control[(n_arterials == 2) | (downtown & (n_small == 0))] = CONTROL_SIGNAL
    return control


def _bend(ends_m: np.ndarray, share: float) -> np.ndarray:
    """Place one point between two ends: the middle, moved sideways by a share of the way."""
    along = ends_m[1] - ends_m[0]
    return (ends_m.mean(axis=0) + share * np.asarray([-along[1], along[0]]))[None, :]


def _add_ring(plan: _Plan) -> _Plan:
    """Add a motorway ring of two carriageways, with ramps to the nearest arterial crossings."""
    n_grid = len(plan.east_m)
    crossings = np.flatnonzero(plan.control == CONTROL_SIGNAL)
    streets = list(plan.streets)
    points: list[np.ndarray] = []
    step = 2.0 * np.pi / _N_INTERCHANGES
    for direction in (1.0, -1.0):
        offset_m = direction * _HALF_CARRIAGEWAY_M  # keep right: counter-clockwise outside
        first = n_grid + len(points)
        middles = direction * (np.arange(_N_INTERCHANGES) + 0.5) * step
        turns = (middles[:, None] + direction * np.asarray([-0.1, 0.1]) * step).ravel()
        points += list(_on_ring(turns, offset_m))
        for i, turn in enumerate(turns):
            following = (i + 1) % len(turns)
            onward = turns[following] + direction * 2.0 * np.pi * (following == 0)
            bends_m = _on_ring(np.linspace(turn, onward, 6)[1:-1], offset_m)
            streets.append(_Street(first + i, first + following, "motorway", bends_m))
        for i, middle_m in enumerate(_on_ring(middles, 0.0)):
            distance_m = np.hypot(
                plan.east_m[crossings] - middle_m[0], plan.north_m[crossings] - middle_m[1]
            )
            crossing = int(crossings[np.argmin(distance_m)])
            way_off, way_on = first + 2 * i, first + 2 * i + 1
            streets.append(_Street(way_off, crossing, "motorway_link", np.empty((0, 2))))
            streets.append(_Street(crossing, way_on, "motorway_link", np.empty((0, 2))))
    ring = np.stack(points)
    return _Plan(
        np.concatenate([plan.east_m, ring[:, 0]]),
        np.concatenate([plan.north_m, ring[:, 1]]),
        np.concatenate([plan.control, np.full(len(ring), CONTROL_NONE, dtype=np.uint8)]),
        streets,
    )


def _on_ring(turn: np.ndarray, offset_m: float) -> np.ndarray:
    """Points of the ring at an angle, the outer carriageway at a positive offset."""
    east = (_RING_AXES_M[0] + offset_m) * np.cos(turn)
    north = (_RING_AXES_M[1] + offset_m) * np.sin(turn)
    return np.stack([east, north], axis=-1)
