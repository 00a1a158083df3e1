"""Elevation readers against planes, real tiles, and files that are broken."""

import gzip
import http.server
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import rasterio
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.transform import from_origin
from rasterio.warp import transform as warp_points

from prisma_sbi._errors import InputDataError
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.elevation_files import fetch_terrain_tiles, read_elevation
from prisma_sbi.region.hgt_tiles import tile_corner, tile_name, tiles_over
from prisma_sbi.region.voids import fill_voids, mark_voids


def plane(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    """Heights that an int16 tile of 1200 cells a degree holds without rounding."""
    return 1200 * (lat - 42) + 2400 * (lon + 84)


def tile_heights(south: int, west: int, cells: int = 1200) -> np.ndarray:
    lat = south + np.arange(cells, -1, -1) / cells
    lon = west + np.arange(cells + 1) / cells
    return np.rint(plane(lat[:, None], lon[None, :])).astype(">i2")


@pytest.fixture(scope="session")
def tile_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two neighbouring tiles, one plain and one packed."""
    folder = tmp_path_factory.mktemp("tiles")
    (folder / "N42W084.hgt").write_bytes(tile_heights(42, -84).tobytes())
    with zipfile.ZipFile(folder / "N42W083.hgt.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("N42W083.hgt", tile_heights(42, -83).tobytes())
    (folder / "readme.txt").write_text("not a tile")
    return folder


def write_tiff(path: Path, heights: np.ndarray, **options: Any) -> Path:
    profile = {"driver": "GTiff", "count": 1, "dtype": heights.dtype, "crs": "EPSG:4326"}
    profile |= {"height": heights.shape[0], "width": heights.shape[1]}
    profile |= {"transform": from_origin(-84.0, 43.0, 0.001, 0.001)} | options
    with rasterio.open(path, "w", **profile) as file:
        file.write(heights, 1)
    return path


def tiff_plane(rows: int = 200, columns: int = 300) -> np.ndarray:
    """The plane at the cell centres of the raster that ``write_tiff`` makes by default."""
    lat = 43.0 - (np.arange(rows) + 0.5) * 0.001
    lon = -84.0 + (np.arange(columns) + 0.5) * 0.001
    return plane(lat[:, None], lon[None, :]).astype(np.float32)


# ---------------------------------------------------------------- SRTM tiles


def test_tile_is_read_with_its_corner_and_orientation(tile_folder: Path) -> None:
    elevation = read_elevation(tile_folder / "N42W084.hgt")
    assert elevation.height_m.shape == (1201, 1201)
    lat, lon = np.random.default_rng(0).uniform((42, -84), (43, -83), (100, 2)).T
    np.testing.assert_allclose(elevation.sample(lat, lon), plane(lat, lon), atol=1e-3)


def test_neighbouring_tiles_merge_without_a_seam(tile_folder: Path) -> None:
    for path in (tile_folder, [tile_folder / "N42W083.hgt.zip", tile_folder / "N42W084.hgt"]):
        elevation = read_elevation(path)
        assert elevation.height_m.shape == (1201, 2401)
        lon = np.linspace(-83.002, -82.998, 33)
        lat = np.full_like(lon, 42.3333)
        np.testing.assert_allclose(elevation.sample(lat, lon), plane(lat, lon), atol=1e-3)


def test_bounds_cut_the_mosaic(tile_folder: Path) -> None:
    bounds = Bounds(south_deg=42.2, north_deg=42.3, west_deg=-83.05, east_deg=-82.9)
    elevation = read_elevation(tile_folder, bounds=bounds)
    assert elevation.height_m.shape == (120 + 33, 180 + 33)
    lat, lon = np.random.default_rng(0).uniform((42.2, -83.05), (42.3, -82.9), (100, 2)).T
    np.testing.assert_allclose(elevation.sample(lat, lon), plane(lat, lon), atol=1e-3)


def test_uncovered_bounds_name_the_missing_tile(tile_folder: Path) -> None:
    bounds = Bounds(south_deg=41.9, north_deg=42.3, west_deg=-83.5, east_deg=-83.2)
    with pytest.raises(InputDataError, match="N41W084"):
        read_elevation(tile_folder, bounds=bounds)


def test_gap_between_tiles_is_named(tmp_path: Path) -> None:
    for name in ("N42W084.hgt", "N42W082.hgt"):
        (tmp_path / name).write_bytes(tile_heights(*tile_corner(tmp_path / name)).tobytes())
    with pytest.raises(InputDataError, match="N42W083"):
        read_elevation(tmp_path)


def test_mixed_resolutions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "N42W084.hgt").write_bytes(tile_heights(42, -84).tobytes())
    (tmp_path / "N42W083.hgt").write_bytes(bytes(3601 * 3601 * 2))
    with pytest.raises(InputDataError, match="one resolution"):
        read_elevation(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("N42W084.hgt", b"", "empty file"),
        ("N42W084.hgt", b"\0" * 1000, "1000 in N42W084.hgt"),
        ("N42W084.hgt.zip", b"no archive", "readable tile"),
        ("N42W084.hgt.gz", b"no archive", "readable tile"),
        ("N42W084.hgt.gz", gzip.compress(bytes(5000), mtime=0)[:-10], "readable tile"),
        ("hills.hgt", b"\0" * 1000, "south-western corner"),
        ("N42W084.asc", b"x", "gdal_translate"),
        ("N42W084.tif", b"no image", "readable GeoTIFF"),
        ("N42W084.tif", b"", "empty file"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputDataError, match=message):
        read_elevation(tmp_path / name)


def test_archive_with_two_tiles_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "N42W084.hgt.zip", "w") as archive:
        archive.writestr("a.hgt", b"")
        archive.writestr("b.hgt", b"")
    with pytest.raises(InputDataError, match="2 members"):
        read_elevation(tmp_path / "N42W084.hgt.zip")


def test_missing_files_and_empty_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match="does not exist"):
        read_elevation(tmp_path / "N42W084.hgt")
    with pytest.raises(InputDataError, match="in the folder"):
        read_elevation(tmp_path)
    with pytest.raises(InputDataError, match="at least one"):
        read_elevation([])


@given(south=st.integers(-89, 89), west=st.integers(-180, 179))
def test_tile_names_round_trip(south: int, west: int) -> None:
    assert tile_corner(Path(tile_name(south, west) + ".hgt")) == (south, west)


def test_a_box_that_ends_on_a_tile_border_needs_no_further_tile() -> None:
    box = Bounds(south_deg=-1.0, north_deg=1.0, west_deg=-0.5, east_deg=0.0)
    assert tiles_over(box) == [(-1, -1), (0, -1)]


# ---------------------------------------------------------------- voids


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), slope=st.floats(-3, 3), tilt=st.floats(-3, 3))
def test_plane_is_restored_in_inner_voids(seed: int, slope: float, tilt: float) -> None:
    rng = np.random.default_rng(seed)
    truth = 100 + slope * np.arange(40)[:, None] + tilt * np.arange(30)
    void = np.zeros(truth.shape, dtype=bool)
    void[1:-1, 1:-1] = rng.random((38, 28)) < 0.6
    filled = fill_voids(np.where(void, np.nan, truth), source="test")
    np.testing.assert_allclose(filled, truth, atol=0.05)
    np.testing.assert_array_equal(filled[~void], truth.astype(np.float32)[~void])


def test_fill_stays_between_the_known_heights() -> None:
    rng = np.random.default_rng(1)
    height = rng.uniform(200, 300, (60, 60)).astype(np.float32)
    height[:, 20:] = np.nan
    filled = fill_voids(height, source="test")
    assert np.isfinite(filled).all()
    assert filled.min() >= np.nanmin(height) - 0.01
    assert filled.max() <= np.nanmax(height) + 0.01


def test_undeclared_marks_become_voids() -> None:
    marked = mark_voids(np.array([[-32768, -9999, 9999], [0, 250, -400]], dtype=np.int16))
    np.testing.assert_array_equal(np.isnan(marked), [[1, 1, 1], [0, 0, 0]])


def test_raster_of_voids_is_refused(tmp_path: Path) -> None:
    (tmp_path / "N42W084.hgt").write_bytes(np.full(1201 * 1201, -32768, dtype=">i2").tobytes())
    with pytest.raises(InputDataError, match="N42W084; got voids only"):
        read_elevation(tmp_path)


# ---------------------------------------------------------------- GeoTIFF


def test_geotiff_is_sampled_at_cell_centres(tmp_path: Path) -> None:
    elevation = read_elevation(write_tiff(tmp_path / "plane.tif", tiff_plane()))
    lat, lon = np.random.default_rng(0).uniform((42.81, -83.99), (42.99, -83.71), (100, 2)).T
    np.testing.assert_allclose(elevation.sample(lat, lon), plane(lat, lon), atol=1e-3)


@pytest.mark.parametrize("declared", [True, False])
def test_geotiff_voids_are_filled(tmp_path: Path, declared: bool) -> None:
    heights = tiff_plane()
    truth = heights.copy()
    heights[50:80, 100:140] = -32768
    options = {"nodata": -32768} if declared else {}
    elevation = read_elevation(write_tiff(tmp_path / "holes.tif", heights, **options))
    np.testing.assert_allclose(elevation.height_m, truth, atol=0.1)


def test_geotiff_is_cut_to_bounds(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "plane.tif", tiff_plane())
    bounds = Bounds(south_deg=42.85, north_deg=42.9, west_deg=-83.95, east_deg=-83.9)
    elevation = read_elevation(path, bounds=bounds)
    assert elevation.height_m.size < 60 * 60
    lat, lon = np.random.default_rng(0).uniform((42.85, -83.95), (42.9, -83.9), (100, 2)).T
    np.testing.assert_allclose(elevation.sample(lat, lon), plane(lat, lon), atol=1e-3)
    outside = Bounds(south_deg=42.5, north_deg=42.9, west_deg=-83.95, east_deg=-83.9)
    with pytest.raises(InputDataError, match="to cover"):
        read_elevation(path, bounds=outside)


def test_projected_geotiff_is_warped(tmp_path: Path) -> None:
    size, step = 300, 100.0
    left, top = 260_000.0, 4_700_000.0
    x = left + (np.arange(size) + 0.5) * step
    y = top - (np.arange(size) + 0.5) * step
    grid = np.meshgrid(x, y)
    lon, lat = warp_points("EPSG:32617", "EPSG:4326", grid[0].ravel(), grid[1].ravel())
    heights = plane(np.array(lat), np.array(lon)).reshape(size, size).astype(np.float32)
    path = write_tiff(
        tmp_path / "utm.tif",
        heights - heights.min(),
        crs="EPSG:32617",
        transform=from_origin(left, top, step, step),
    )
    inside = np.random.default_rng(0).uniform(20, 280, (2, 50)) * step
    east, north = left + inside[0], top - inside[1]
    lon, lat = map(np.array, warp_points("EPSG:32617", "EPSG:4326", east, north))
    found = read_elevation(path).sample(lat, lon)
    np.testing.assert_allclose(found, plane(lat, lon) - heights.min(), atol=0.2)


def test_south_up_geotiff_is_turned(tmp_path: Path) -> None:
    heights = tiff_plane()[::-1]
    upside = rasterio.Affine(0.001, 0.0, -84.0, 0.0, 0.001, 42.8)
    elevation = read_elevation(write_tiff(tmp_path / "up.tif", heights, transform=upside))
    lat, lon = np.random.default_rng(0).uniform((42.82, -83.98), (42.98, -83.72), (100, 2)).T
    np.testing.assert_allclose(elevation.sample(lat, lon), plane(lat, lon), atol=0.1)


def test_geotiff_without_coordinate_system_is_refused(tmp_path: Path) -> None:
    path = write_tiff(tmp_path / "nowhere.tif", tiff_plane(), crs=None)
    with pytest.raises(InputDataError, match="coordinate system in nowhere.tif"):
        read_elevation(path)


# ---------------------------------------------------------------- Terrain Tiles


class _TileServer(http.server.BaseHTTPRequestHandler):
    """Serve one SRTM3 tile and count what is asked for."""

    asked: list[str]

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        content = gzip.compress(tile_heights(42, -84).tobytes(), compresslevel=1)
        if self.path == "/skadi/N43/N43W084.hgt.gz":
            content = gzip.compress(b"short")
        elif self.path != "/skadi/N42/N42W084.hgt.gz":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def tile_server() -> Iterator[tuple[str, list[str]]]:
    """Address of the server and the list of requests."""
    handler = type("Handler", (_TileServer,), {"asked": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/skadi/", handler.asked
        server.shutdown()


def test_terrain_tiles_are_fetched_once_and_merged(
    tmp_path: Path, tile_server: tuple[str, list[str]]
) -> None:
    url, asked = tile_server
    bounds = Bounds(south_deg=42.2, north_deg=42.3, west_deg=-83.8, east_deg=-83.7)
    received: list[int] = []
    elevation = fetch_terrain_tiles(
        bounds, cache=tmp_path, base_url=url, progress=lambda done, total: received.append(done)
    )
    again = fetch_terrain_tiles(bounds, cache=tmp_path, base_url=url)
    assert asked == ["/skadi/N42/N42W084.hgt.gz"]
    assert received
    np.testing.assert_array_equal(elevation.height_m, again.height_m)
    lat, lon = np.random.default_rng(0).uniform((42.2, -83.8), (42.3, -83.7), (100, 2)).T
    np.testing.assert_allclose(elevation.sample(lat, lon), plane(lat, lon), atol=1e-3)


def test_absent_and_damaged_terrain_tiles_are_named(
    tmp_path: Path, tile_server: tuple[str, list[str]]
) -> None:
    url, _ = tile_server
    absent = Bounds(south_deg=10.2, north_deg=10.3, west_deg=-83.8, east_deg=-83.7)
    with pytest.raises(OSError, match="N10W084"):
        fetch_terrain_tiles(absent, cache=tmp_path, base_url=url)
    damaged = Bounds(south_deg=43.2, north_deg=43.3, west_deg=-83.8, east_deg=-83.7)
    with pytest.raises(InputDataError, match="got 5 in N43W084.hgt.gz"):
        fetch_terrain_tiles(damaged, cache=tmp_path, base_url=url)


# ---------------------------------------------------------------- real files


@pytest.mark.realdata
def test_ann_arbor_raster_agrees_with_independent_heights(reference_data: Path) -> None:
    folder = reference_data / "ann-arbor"
    check = pd.read_csv(folder / "elevation_check_46_nodes.csv")
    elevation = read_elevation(folder / "elevation.tif")
    found = elevation.sample(check["lat"].to_numpy(), check["lon"].to_numpy())
    south, west = elevation.north_deg, elevation.west_deg
    south -= elevation.lat_step_deg * (elevation.height_m.shape[0] - 1)
    east = west + elevation.lon_step_deg * (elevation.height_m.shape[1] - 1)
    inside = check["lat"].between(south, elevation.north_deg) & check["lon"].between(west, east)
    assert inside.sum() >= 40
    error = (found - check["elevation_skadi_m"].to_numpy())[inside]
    assert abs(error.mean()) < 2.0
    assert 2.0 < np.sqrt((error**2).mean()) < 4.0


@pytest.mark.realdata
def test_real_tile_with_voids_is_filled_and_otherwise_untouched(reference_data: Path) -> None:
    path = reference_data / "hgt" / "N42E001.hgt.zip"
    elevation = read_elevation(path)
    with zipfile.ZipFile(path) as archive:
        raw = np.frombuffer(archive.read("N42E001.hgt"), dtype=">i2").reshape(1201, 1201)
    known = raw != -32768
    assert (~known).sum() == 7652
    np.testing.assert_array_equal(elevation.height_m[known], raw[known])
    # Filled cells continue the mountains: no wall at the edge of a void beyond natural slopes.
    step = np.abs(np.diff(elevation.height_m, axis=1))
    touched = (~known[:, 1:]) | (~known[:, :-1])
    assert step[touched].max() <= step[~touched].max()
    assert (elevation.north_deg, elevation.west_deg) == (43.0, 1.0)
