"""Heights from files and from the public Terrain Tiles."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prisma_sbi._errors import InputDataError
from prisma_sbi._optional import optional_import
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.download import Progress, fetch
from prisma_sbi.region.elevation import Elevation
from prisma_sbi.region.hgt_tiles import HGT_SUFFIXES, read_tiles, tile_name, tiles_over
from prisma_sbi.region.voids import fill_voids, mark_voids

TERRAIN_TILES_URL = "https://s3.amazonaws.com/elevation-tiles-prod/skadi"
"""Public Terrain Tiles in SRTM1 form, one gzip file for each degree by degree."""

_TIFF_SUFFIXES = (".tif", ".tiff")
_MARGIN_CELLS = 2  # beyond the box, for the interpolation between cells
_NODATA = -32768.0


def read_elevation(
    path: str | Path | Sequence[str | Path], *, bounds: Bounds | None = None
) -> Elevation:
    """Read heights from a GeoTIFF or from SRTM tiles.

    Parameters
    ----------
    path
        A GeoTIFF (``.tif``, ``.tiff``), a tile (``.hgt``, ``.hgt.zip``, ``.hgt.gz``), several
        tiles, or a folder with tiles. A GeoTIFF needs the extra ``geo``.
    bounds
        Cut to this box and a narrow margin; the file must cover it. Without it the whole
        file is read.

    Returns
    -------
    elevation : Elevation
        In EPSG:4326, voids filled.

    Raises
    ------
    InputDataError
        If a file is missing, empty or damaged, holds no heights, has no coordinate system,
        or does not cover ``bounds``.
    """
    if not isinstance(path, str | Path):
        return read_tiles([_existing(Path(part)) for part in path], bounds=bounds)
    path = Path(path)
    if path.is_dir():
        tiles = sorted(part for part in path.iterdir() if _has_suffix(part, HGT_SUFFIXES))
        if not tiles:
            raise InputDataError(
                f"Expected SRTM tiles in the folder {path}; got none that ends in "
                f"{', '.join(HGT_SUFFIXES)}. Name the file, or fetch tiles first."
            )
        return read_tiles(tiles, bounds=bounds)
    if _has_suffix(path, HGT_SUFFIXES):
        return read_tiles([_existing(path)], bounds=bounds)
    if _has_suffix(path, _TIFF_SUFFIXES):
        return _read_geotiff(_existing(path), bounds)
    raise InputDataError(
        f"Expected heights in a file that ends in {', '.join(_TIFF_SUFFIXES + HGT_SUFFIXES)}; "
        f"got {path.name!r}. Convert it, for instance with gdal_translate."
    )


def fetch_terrain_tiles(
    bounds: Bounds,
    *,
    cache: str | Path,
    base_url: str = TERRAIN_TILES_URL,
    progress: Progress | None = None,
) -> Elevation:
    """Download the Terrain Tiles under a box and merge them.

    Parameters
    ----------
    bounds
        Box to cover.
    cache
        Folder in which downloaded tiles stay; a second call reads them from there.
    base_url
        Address of the folder ``skadi``, for a mirror.
    progress
        Called with the bytes received of the current tile and its total.

    Returns
    -------
    elevation : Elevation
        1 arc-second, cut to the box.

    Raises
    ------
    prisma_sbi.region.download.DownloadError
        If a tile cannot be had.
    InputDataError
        If a tile arrives damaged.

    References
    ----------
    .. [1] Terrain Tiles, Registry of Open Data on AWS.
       https://registry.opendata.aws/terrain-tiles
    """
    paths = []
    for south, west in tiles_over(bounds):
        name = tile_name(south, west)
        url = f"{base_url.rstrip('/')}/{name[:3]}/{name}.hgt.gz"
        paths.append(fetch(url, Path(cache) / f"{name}.hgt.gz", progress=progress))
    return read_tiles(paths, bounds=bounds)


def _has_suffix(path: Path, suffixes: tuple[str, ...]) -> bool:
    """Whether a name ends in one of the suffixes, upper case or lower."""
    return path.name.lower().endswith(suffixes)


def _existing(path: Path) -> Path:
    """Return the path of a file that is there and not empty."""
    if not path.is_file():
        raise InputDataError(f"Expected a file with heights; got {path}, which does not exist.")
    if path.stat().st_size == 0:
        raise InputDataError(
            f"Expected heights in {path.name}; got an empty file. Delete it and fetch it again."
        )
    return path


def _read_geotiff(path: Path, bounds: Bounds | None) -> Elevation:
    """Read the first band, warped to EPSG:4326 where it is not so already."""
    rasterio = optional_import("rasterio", extra="geo")
    errors = optional_import("rasterio.errors", extra="geo")
    vrt = optional_import("rasterio.vrt", extra="geo")
    with warnings.catch_warnings():
        # A file without georeference has its own error below.
        warnings.simplefilter("ignore", errors.NotGeoreferencedWarning)
        try:
            with rasterio.open(path) as source:
                if source.crs is None:
                    raise InputDataError(
                        f"Expected a coordinate system in {path.name}; got none. "
                        "Assign one, for instance with gdal_edit.py -a_srs."
                    )
                if _is_plain(source):
                    return _read_window(source, path, bounds)
                nodata = _NODATA if source.nodata is None else source.nodata
                with vrt.WarpedVRT(
                    source,
                    crs="EPSG:4326",
                    resampling=rasterio.enums.Resampling.bilinear,
                    src_nodata=nodata,
                    nodata=_NODATA,
                    dtype="float32",
                ) as warped:
                    return _read_window(warped, path, bounds)
        except errors.RasterioError as error:
            raise InputDataError(
                f"Expected a readable GeoTIFF; got {path.name}: {error}. Fetch it again."
            ) from error


def _is_plain(source: Any) -> bool:
    """Whether rows run south and columns east in degrees of EPSG:4326."""
    step = source.transform
    return source.crs.to_epsg() == 4326 and step.b == step.d == 0 and step.e < 0 < step.a


def _read_window(source: Any, path: Path, bounds: Bounds | None) -> Elevation:
    """Read the cells over the box from a raster that is north-up in EPSG:4326."""
    step = source.transform
    rows, columns = (0, source.height), (0, source.width)
    if bounds is not None:
        edges = source.bounds
        if (
            bounds.south_deg < edges.bottom
            or bounds.north_deg > edges.top
            or bounds.west_deg < edges.left
            or bounds.east_deg > edges.right
        ):
            raise InputDataError(
                f"Expected {path.name} to cover {bounds}; got latitudes {edges.bottom:.4f} to "
                f"{edges.top:.4f} and longitudes {edges.left:.4f} to {edges.right:.4f}. "
                "Use a larger raster or a smaller box."
            )
        top = (step.f - bounds.north_deg) / -step.e
        bottom = (step.f - bounds.south_deg) / -step.e
        rows = _padded(top, bottom, source.height)
        columns = _padded(
            (bounds.west_deg - step.c) / step.a, (bounds.east_deg - step.c) / step.a, source.width
        )
    values = source.read(1, window=(rows, columns), masked=True)
    height = mark_voids(np.ma.filled(values.astype(np.float32), np.nan))
    return Elevation(
        height_m=fill_voids(height, source=path.name),
        north_deg=step.f + (rows[0] + 0.5) * step.e,
        west_deg=step.c + (columns[0] + 0.5) * step.a,
        lat_step_deg=-step.e,
        lon_step_deg=step.a,
        source=path.name,
    )


def _padded(low: float, high: float, n_cells: int) -> tuple[int, int]:
    """Cells from one position to another with the margin, within the raster."""
    first = max(int(np.floor(low)) - _MARGIN_CELLS, 0)
    return first, min(int(np.ceil(high)) + _MARGIN_CELLS, n_cells)
