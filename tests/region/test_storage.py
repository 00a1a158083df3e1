"""Saved regions: equal after loading, whole or not at all, and refused when altered."""

import json
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import osmnx
import pyarrow.parquet as pq
import pytest
import rasterio

from prisma_sbi._errors import InputDataError
from prisma_sbi.region import storage
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.osm import read_roads
from prisma_sbi.region.record import Region
from prisma_sbi.region.storage import load_region, save_region
from tests.region.conftest import both_ways, make_elevation, make_network, make_region


@pytest.fixture
def region(three_edge_region: Region) -> Region:
    """A region whose numbers are anything but round."""
    roads = three_edge_region.roads
    generator = np.random.Generator(np.random.PCG64(3))
    n_points = np.arange(2, 2 + roads.n_edges)
    roads = replace(
        roads,
        node_control=np.array([0, 1, 2, 3], dtype=np.uint8),
        edge_length_m=roads.edge_length_m * np.pi / 3,
        edge_class=np.array([f"classé {i}" for i in range(roads.n_edges)]),
        geometry_offset=np.concatenate([[0], np.cumsum(n_points)]),
        geometry_lat_deg=generator.random(n_points.sum()),
        geometry_lon_deg=generator.random(n_points.sum()),
        attribution="© somebody",
    )
    elevation = replace(
        make_elevation(rise_east=0.0123), north_deg=1 / 3, lon_step_deg=1 / 700, source="hills"
    )
    return Region(
        name="Straße",
        bounds=Bounds(south_deg=-1, north_deg=1 / 7, west_deg=-0.1, east_deg=0.3),
        roads=roads,
        elevation=elevation,
        vehicles=three_edge_region.vehicles,
        constants=Constants(creep_speed_mps=2.7, aggressiveness_bounds=(0.1, 0.9)),
    )


def _same(left: object, right: object) -> None:
    for item in fields(left):  # pyright: ignore[reportArgumentType]
        a, b = getattr(left, item.name), getattr(right, item.name)
        if isinstance(a, np.ndarray) and a.dtype.kind not in "OUT":
            assert a.dtype == b.dtype, item.name
        np.testing.assert_array_equal(a, b, err_msg=item.name)


def test_round_trip_keeps_everything(region: Region, tmp_path: Path):
    folder = save_region(region, tmp_path / "deep" / "saved")
    loaded = load_region(folder)
    assert loaded.fingerprint == region.fingerprint
    assert (loaded.name, loaded.bounds, loaded.constants) == (
        region.name,
        region.bounds,
        region.constants,
    )
    for part in ("roads", "elevation", "vehicles"):
        _same(getattr(region, part), getattr(loaded, part))
    again = load_region(save_region(loaded, tmp_path / "again"))
    assert again.fingerprint == region.fingerprint
    assert {path.name for path in (tmp_path / "deep").iterdir()} == {"saved"}


def test_folder_holds_plain_formats(region: Region, tmp_path: Path):
    folder = save_region(region, tmp_path / "saved")
    header = json.loads((folder / "region.json").read_text("utf-8"))
    assert header["fingerprint"] == region.fingerprint
    assert header["attribution"] == "© somebody"
    assert header["versions"]["numpy"] == np.__version__
    edges = pq.read_table(folder / "edges.parquet").to_pylist()
    assert len(edges[3]["geometry_lat_deg"]) == 5
    with rasterio.open(folder / "elevation.tif") as raster:
        lon_deg, lat_deg = raster.xy(0, 0)
        assert (lat_deg, lon_deg) == pytest.approx(
            (region.elevation.north_deg, region.elevation.west_deg)
        )


def test_graphml_is_loaded_by_osmnx_and_by_the_reader(tmp_path: Path):
    nodes = [(0.0, 0.0), (400.0, 0.0), (600.0, 50.0)]
    edges = both_ways((0, 1, 410.0, 11.111), (1, 2, 210.0, 20.117))
    network = make_network(nodes, edges, control={1: 1, 2: 2})
    path = save_region(make_region(network), tmp_path / "saved") / "roads.graphml"
    graph = osmnx.io.load_graphml(path)
    assert graph.number_of_edges() == 4
    assert graph.edges[100, 101, 0]["length"] == 410.0
    roads = read_roads(path)
    order = np.lexsort((network.edge_to, network.edge_from))
    np.testing.assert_array_equal(roads.node_control, network.node_control)
    np.testing.assert_array_equal(roads.node_lon_deg, network.node_lon_deg)
    np.testing.assert_array_equal(roads.edge_length_m, network.edge_length_m[order])
    np.testing.assert_allclose(roads.edge_speed_mps, network.edge_speed_mps[order], rtol=1e-12)


def test_saving_twice_replaces(region: Region, three_edge_region: Region, tmp_path: Path):
    save_region(region, tmp_path / "saved")
    save_region(three_edge_region, tmp_path / "saved")
    assert load_region(tmp_path / "saved").fingerprint == three_edge_region.fingerprint
    assert {path.name for path in tmp_path.iterdir()} == {"saved"}


def test_saving_over_something_else_is_refused(region: Region, tmp_path: Path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputDataError, match="holds something else"):
        save_region(region, tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    save_region(region, tmp_path / "empty")


def test_full_disk_leaves_the_old_region(
    region: Region, three_edge_region: Region, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    save_region(three_edge_region, tmp_path / "saved")

    def fail(*args: object):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "write_pool", fail)
    with pytest.raises(OSError, match="No space left"):
        save_region(region, tmp_path / "saved")
    with pytest.raises(OSError, match="No space left"):
        save_region(region, tmp_path / "new")
    assert load_region(tmp_path / "saved").fingerprint == three_edge_region.fingerprint
    assert {path.name for path in tmp_path.iterdir()} == {"saved"}


_KILLED = """
import os, sys
from prisma_sbi.region import storage
from prisma_sbi.region.storage import load_region, save_region
def die(*args):
    os._exit(9)
setattr(storage, "{where}", die) if "{where}" else setattr(storage.Path, "rename", {rename})
save_region(load_region(sys.argv[1]), sys.argv[2])
"""
_DIE_AFTER_FIRST = "lambda self, to: (os.rename(self, to), os._exit(9))"


@pytest.mark.parametrize(("where", "rename"), [("write_raster", "None"), ("", _DIE_AFTER_FIRST)])
def test_killed_process_leaves_a_whole_region(
    region: Region, three_edge_region: Region, tmp_path: Path, where: str, rename: str
):
    source = save_region(region, tmp_path / "source")
    target = save_region(three_edge_region, tmp_path / "saved")
    script = _KILLED.format(where=where, rename=rename)
    command = [sys.executable, "-c", script, str(source), str(target)]
    assert subprocess.run(command, check=False).returncode == 9
    assert load_region(target).fingerprint == three_edge_region.fingerprint
    save_region(region, target)
    assert load_region(target).fingerprint == region.fingerprint
    assert {path.name for path in tmp_path.iterdir()} == {"saved", "source"}


def test_killed_process_leaves_no_new_region(region: Region, tmp_path: Path):
    source = save_region(region, tmp_path / "source")
    script = _KILLED.format(where="write_raster", rename="None")
    command = [sys.executable, "-c", script, str(source), str(tmp_path / "new")]
    assert subprocess.run(command, check=False).returncode == 9
    with pytest.raises(InputDataError, match=r"without region\.json"):
        load_region(tmp_path / "new")


@pytest.mark.parametrize(
    "change",
    [
        ("bounds", "south_deg", -1.5),
        ("constants", "creep_speed_mps", 2.8),
        ("elevation", "lat_step_deg", 0.001),
        ("fingerprint", None, "0" * 16),
    ],
)
def test_altered_header_is_refused(region: Region, tmp_path: Path, change: tuple):
    folder = save_region(region, tmp_path / "saved")
    header = json.loads((folder / "region.json").read_text("utf-8"))
    part, key, value = change
    if key is None:
        header[part] = value
    else:
        header[part][key] = value
    (folder / "region.json").write_text(json.dumps(header), "utf-8")
    with pytest.raises(InputDataError, match="saved"):
        load_region(folder)


def test_altered_table_is_refused(region: Region, tmp_path: Path):
    folder = save_region(region, tmp_path / "saved")
    table = pq.read_table(folder / "nodes.parquet")
    control = np.array([1, 1, 2, 3], dtype=np.uint8)
    index = table.column_names.index("node_control")
    pq.write_table(table.set_column(index, "node_control", [control]), folder / "nodes.parquet")
    with pytest.raises(InputDataError, match="A file was altered"):
        load_region(folder)


@pytest.mark.parametrize(
    "name",
    ["region.json", "nodes.parquet", "edges.parquet", "vehicles.parquet", "elevation.tif"],
)
def test_missing_or_broken_file_is_refused(region: Region, tmp_path: Path, name: str):
    folder = save_region(region, tmp_path / "saved")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(InputDataError, match="saved"):
        load_region(folder)
    (folder / name).unlink()
    with pytest.raises(InputDataError, match=f"without {name}"):
        load_region(folder)


def test_other_format_version_is_refused(region: Region, tmp_path: Path):
    folder = save_region(region, tmp_path / "saved")
    header = json.loads((folder / "region.json").read_text("utf-8"))
    (folder / "region.json").write_text(json.dumps(header | {"format_version": 99}), "utf-8")
    with pytest.raises(InputDataError, match="format version 1"):
        load_region(folder)
    (folder / "region.json").write_text("[]", "utf-8")
    with pytest.raises(InputDataError, match="format version 1"):
        load_region(folder)


def test_missing_rasterio_names_the_extra(
    region: Region, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = save_region(region, tmp_path / "saved")
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(ImportError, match=r"prisma_sbi\[geo\]"):
        load_region(folder)
