"""Building a region from records and from files."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.build import build_region
from prisma_sbi.region.builtin_vehicles import builtin_pool
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.demo import demo_elevation, demo_roads
from prisma_sbi.region.record import Region
from prisma_sbi.region.storage import save_region
from prisma_sbi.units import EARTH_RADIUS_M
from tests.region.conftest import make_elevation, make_pool


def test_records_are_taken_as_they_are(three_edge_region: Region):
    bounds, constants = three_edge_region.bounds, Constants(horizon_s=300)
    region = build_region(
        name="x",
        roads=three_edge_region.roads,
        elevation=three_edge_region.elevation,
        vehicles=three_edge_region.vehicles,
        bounds=bounds,
        constants=constants,
    )
    assert region.fingerprint == replace(three_edge_region, constants=constants).fingerprint


def test_bounds_default_to_300_m_around_the_junctions_and_constants_to_theirs():
    roads = demo_roads()
    region = build_region(
        name="x", roads=roads, elevation=demo_elevation(), vehicles=builtin_pool()
    )
    south_m = np.radians(roads.node_lat_deg.min() - region.bounds.south_deg) * EARTH_RADIUS_M
    assert south_m == pytest.approx(300.0, rel=1e-6)
    shrink = np.cos(np.radians(roads.node_lat_deg.mean()))
    east_m = np.radians(region.bounds.east_deg - roads.node_lon_deg.max()) * EARTH_RADIUS_M
    assert east_m * shrink == pytest.approx(300.0, rel=1e-3)
    assert region.constants == Constants()


def test_files_give_the_region_they_came_from(tmp_path: Path):
    saved = build_region(
        name="x", roads=demo_roads(), elevation=demo_elevation(), vehicles=make_pool()
    )
    folder = save_region(saved, tmp_path / "saved")
    region = build_region(
        name="y",
        roads=str(folder / "roads.graphml"),
        elevation=folder / "elevation.tif",
        vehicles=make_pool(),
    )
    assert region.bounds == saved.bounds
    np.testing.assert_array_equal(region.roads.node_id, saved.roads.node_id)
    np.testing.assert_array_equal(region.roads.edge_length_m, saved.roads.edge_length_m)
    lat, lon = saved.roads.node_lat_deg, saved.roads.node_lon_deg
    np.testing.assert_allclose(
        region.elevation.sample(lat, lon), saved.elevation.sample(lat, lon), atol=0.01
    )


def test_bounds_cut_roads_from_a_file(tmp_path: Path):
    saved = build_region(
        name="x", roads=demo_roads(), elevation=demo_elevation(), vehicles=make_pool()
    )
    folder = save_region(saved, tmp_path / "saved")
    box = Bounds(south_deg=44.99, north_deg=45.01, west_deg=-30.02, east_deg=-29.98)
    region = build_region(
        name="center",
        roads=folder / "roads.graphml",
        elevation=folder / "elevation.tif",
        vehicles=make_pool(),
        bounds=box,
    )
    assert region.bounds == box
    assert 20 < region.roads.n_nodes < saved.roads.n_nodes
    assert box.contains(region.roads.node_lat_deg, region.roads.node_lon_deg).all()


def test_a_box_elsewhere_is_an_error(three_edge_region: Region):
    box = Bounds(south_deg=10.0, north_deg=11.0, west_deg=10.0, east_deg=11.0)
    with pytest.raises(InputDataError, match="Expected junctions inside"):
        build_region(
            name="x",
            roads=three_edge_region.roads,
            elevation=three_edge_region.elevation,
            vehicles=make_pool(),
            bounds=box,
        )


def test_heights_elsewhere_are_an_error_and_a_margin_is_logged(caplog: pytest.LogCaptureFixture):
    roads = demo_roads()
    with pytest.raises(InputDataError, match="heights that cover the roads"):
        build_region(name="x", roads=roads, elevation=make_elevation(), vehicles=make_pool())
    whole = demo_elevation()
    part = replace(whole, height_m=whole.height_m[:, :120])
    with caplog.at_level(logging.WARNING):
        build_region(name="x", roads=roads, elevation=part, vehicles=make_pool())
    assert "outside the elevation raster" in caplog.text


def test_no_vehicle_file_is_an_error():
    with pytest.raises(InputDataError, match="at least one vehicle file"):
        build_region(name="x", roads=demo_roads(), elevation=demo_elevation(), vehicles=[])


@pytest.mark.realdata
def test_ann_arbor_is_built_from_files(reference_data: Path, tmp_path: Path):
    files = sorted((reference_data / "epa").glob("1[0-6]tstcar.csv"))
    region = build_region(
        name="Ann Arbor",
        roads=reference_data / "ann-arbor" / "roads.graphml",
        elevation=reference_data / "ann-arbor" / "elevation.tif",
        vehicles=files,
        pool_size=32,
    )
    assert region.roads.n_nodes > 3_200
    assert len(region.vehicles) == 32
    assert 200.0 < region.elevation.height_m.min() < region.elevation.height_m.max() < 350.0
    assert save_region(region, tmp_path / "ann-arbor").is_dir()
