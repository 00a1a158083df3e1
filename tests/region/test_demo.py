"""The embedded city: what it promises, and that it is the same everywhere."""

import hashlib
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from prisma_sbi.region import assembly, demo
from prisma_sbi.region.assembly import great_circle_m
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.demo import demo_elevation, demo_region, demo_roads
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.units import MPS_PER_MPH

ROADS_DIGEST = "4c7dda61d763dcd5"
ELEVATION_DIGEST = "207c6798417e3baa"


def _digest(record: object) -> str:
    digest = hashlib.sha256()
    for item in fields(record):  # pyright: ignore[reportArgumentType]
        value = getattr(record, item.name)
        if isinstance(value, np.ndarray) and value.dtype.kind != "U":
            digest.update(np.ascontiguousarray(value).tobytes())
        else:
            digest.update(repr(value.tolist() if isinstance(value, np.ndarray) else value).encode())
    return digest.hexdigest()[:16]


def test_city_is_the_same_everywhere():
    assert _digest(demo_roads()) == ROADS_DIGEST
    assert _digest(demo_elevation()) == ELEVATION_DIGEST


def test_city_does_not_hang_on_last_bits(monkeypatch: pytest.MonkeyPatch):
    for sign in (1, -1):
        nudge = 1.0 + sign * 2.0**-51
        for module, name in (
            (demo, "EARTH_RADIUS_M"),
            (assembly, "EARTH_RADIUS_M"),
            (demo, "_BASE_HEIGHT_M"),
        ):
            monkeypatch.setattr(module, name, getattr(module, name) * nudge)
        assert _digest(demo_roads.__wrapped__()) == ROADS_DIGEST
        assert _digest(demo_elevation.__wrapped__()) == ELEVATION_DIGEST
        monkeypatch.undo()


def test_city_needs_no_extra():
    code = (
        "import sys\n"
        "for name in ('osmnx', 'networkx', 'rasterio', 'osmium', 'sklearn', 'requests'):\n"
        "    sys.modules[name] = None\n"
        "from prisma_sbi.region import demo_region\n"
        "print(demo_region().fingerprint)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == demo_region().fingerprint


def test_every_junction_reaches_every_other():
    roads = demo_roads()
    assert 300 <= roads.n_nodes <= 600
    ones = np.ones(roads.n_edges)
    shape = (roads.n_nodes, roads.n_nodes)
    adjacency = coo_array((ones, (roads.edge_from, roads.edge_to)), shape=shape)
    n_components, _ = connected_components(adjacency, directed=True, connection="strong")
    assert n_components == 1


def test_streets_have_sound_shapes_and_lengths():
    roads = demo_roads()
    assert np.all(roads.edge_from != roads.edge_to)
    for edge in range(roads.n_edges):
        shape = slice(roads.geometry_offset[edge], roads.geometry_offset[edge + 1])
        lat, lon = roads.geometry_lat_deg[shape], roads.geometry_lon_deg[shape]
        assert (lat[0], lon[0]) == (
            roads.node_lat_deg[roads.edge_from[edge]],
            roads.node_lon_deg[roads.edge_from[edge]],
        )
        assert (lat[-1], lon[-1]) == (
            roads.node_lat_deg[roads.edge_to[edge]],
            roads.node_lon_deg[roads.edge_to[edge]],
        )
        walked = great_circle_m(lat[:-1], lon[:-1], lat[1:], lon[1:]).sum()
        assert roads.edge_length_m[edge] == pytest.approx(walked, abs=0.006)


def test_classes_speeds_and_controls_are_all_there():
    roads = demo_roads()
    mph = {
        str(name): set(np.round(roads.edge_speed_mps[roads.edge_class == name] / MPS_PER_MPH, 6))
        for name in np.unique(roads.edge_class)
    }
    assert mph == {
        "motorway": {65.0},
        "motorway_link": {40.0},
        "primary": {45.0},
        "tertiary": {35.0},
        "residential": {25.0},
    }
    n_controls = np.bincount(roads.node_control, minlength=3)
    assert n_controls[1] >= 20
    assert n_controls[2] >= 20
    ends = set(zip(roads.edge_from.tolist(), roads.edge_to.tolist(), strict=True))
    one_way = np.asarray([(v, u) not in ends for u, v in sorted(ends)])
    assert np.all(one_way[roads.edge_class == "motorway"])
    assert one_way[roads.edge_class == "residential"].sum() > 10


def test_city_has_its_size_and_hills():
    region = demo_region()
    roads, bounds = region.roads, region.bounds
    assert bounds.contains(roads.node_lat_deg, roads.node_lon_deg).all()
    middle = 0.5 * (bounds.south_deg + bounds.north_deg)
    height_m = great_circle_m(bounds.south_deg, bounds.west_deg, bounds.north_deg, bounds.west_deg)
    width_m = great_circle_m(middle, bounds.west_deg, middle, bounds.east_deg)
    assert width_m == pytest.approx(10_000, rel=0.1)
    assert height_m == pytest.approx(8_000, rel=0.1)
    heights = demo_elevation().height_m
    assert heights.dtype == np.float32
    assert np.ptp(heights) == pytest.approx(120.0, abs=5.0)
    rows, columns = np.gradient(heights.astype(np.float64), 80.0)
    assert 0.07 < np.hypot(rows, columns).max() <= 0.0801
    # The raster reaches beyond the outermost junctions.
    south_deg = region.elevation.north_deg - region.elevation.lat_step_deg * heights.shape[0]
    east_deg = region.elevation.west_deg + region.elevation.lon_step_deg * heights.shape[1]
    assert south_deg < bounds.south_deg < bounds.north_deg < region.elevation.north_deg
    assert region.elevation.west_deg < bounds.west_deg < bounds.east_deg < east_deg


def test_city_takes_constants():
    constants = Constants(horizon_s=300)
    region = demo_region(constants=constants)
    assert region.constants == constants
    assert region.fingerprint != demo_region().fingerprint
    assert region.fingerprint == demo_region(constants=constants).fingerprint


def test_trips_across_the_city_are_routed():
    region = demo_region()
    node = np.random.Generator(np.random.PCG64(5)).permutation(region.roads.n_nodes)[:200]
    lat, lon = region.roads.node_lat_deg[node], region.roads.node_lon_deg[node]
    profiles = route_profiles(region, lat[:100], lon[:100], lat[100:], lon[100:])
    assert np.all(profiles.status == 0)
    assert np.all(profiles.length_m > 0)
    assert np.abs(profiles.grade).max() < 0.081
