"""SRTM tiles: one degree by one degree, named after their south-western corner."""

import gzip
import math
import re
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from prisma_sbi._errors import InputDataError
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.elevation import Elevation
from prisma_sbi.region.voids import fill_voids, mark_voids

HGT_SUFFIXES = (".hgt", ".hgt.zip", ".hgt.gz")

_NAME = re.compile(r"([NS])(\d{2})([EW])(\d{3})", re.IGNORECASE)
_CELLS_PER_DEGREE = {1201 * 1201 * 2: 1200, 3601 * 3601 * 2: 3600}  # by bytes: SRTM3, SRTM1
_MARGIN_CELLS = 16  # beyond the box, so that voids at its edge are filled from both sides


class _Window(NamedTuple):
    """Grid lines of a mosaic, counted in cells from latitude 0 and longitude 0, inclusive."""

    south: int
    north: int
    west: int
    east: int


def tile_name(south_deg: int, west_deg: int) -> str:
    """Name of the tile with this south-western corner, such as ``N42W084``."""
    latitude = f"{'N' if south_deg >= 0 else 'S'}{abs(south_deg):02d}"
    return f"{latitude}{'E' if west_deg >= 0 else 'W'}{abs(west_deg):03d}"


def tile_corner(path: Path) -> tuple[int, int]:
    """South-western corner (latitude, longitude) in degrees, from the name of a tile."""
    match = _NAME.match(path.name)
    if match is None:
        raise InputDataError(
            f"Expected a tile named after its south-western corner, such as N42W084.hgt; "
            f"got {path.name!r}. Rename it."
        )
    hemisphere, lat, side, lon = match.groups()
    south = int(lat) * (1 if hemisphere.upper() == "N" else -1)
    return south, int(lon) * (1 if side.upper() == "E" else -1)


def tiles_over(bounds: Bounds) -> list[tuple[int, int]]:
    """South-western corners of the tiles that a box needs, from south to north."""
    # A tile includes its outer lines, so a box that ends on one needs no further tile.
    return [
        (south, west)
        for south in _degrees(bounds.south_deg, bounds.north_deg)
        for west in _degrees(bounds.west_deg, bounds.east_deg)
    ]


def read_tiles(paths: Sequence[Path], *, bounds: Bounds | None = None) -> Elevation:
    """Merge SRTM tiles into one raster with voids filled.

    Parameters
    ----------
    paths
        Files ``.hgt``, ``.hgt.zip`` or ``.hgt.gz``.
    bounds
        Cut to this box and a narrow margin; tiles that lie apart from it are not opened.

    Returns
    -------
    elevation : Elevation

    Raises
    ------
    InputDataError
        If a tile is missing, cannot be read, has another size than SRTM1 or SRTM3, or tiles
        of both are mixed.
    """
    if not paths:
        raise InputDataError("Expected at least one SRTM tile; got none. Name the files.")
    found = {tile_corner(path): path for path in paths}
    corners = sorted(found) if bounds is None else tiles_over(bounds)
    wanted = _full_rectangle(corners)
    missing = [tile_name(*corner) for corner in wanted if corner not in found]
    if missing:
        present = ", ".join(sorted(path.name for path in paths)) or "none"
        raise InputDataError(
            f"Expected the tiles {', '.join(missing)} to cover the region; got {present}. "
            "Add them, or choose a smaller box."
        )
    first = _read_tile(found[wanted[0]])
    window = _window(wanted, len(first) - 1, bounds)
    mosaic = np.full(
        (window.north - window.south + 1, window.east - window.west + 1), np.nan, dtype=np.float32
    )
    for corner in wanted:
        tile = first if corner == wanted[0] else _read_tile(found[corner])
        if len(tile) != len(first):
            raise InputDataError(
                f"Expected tiles of one resolution; got {found[wanted[0]].name} with "
                f"{len(first)} rows and {found[corner].name} with {len(tile)}. Use one kind."
            )
        _paste(mosaic, window, mark_voids(tile), corner)
    cells = len(first) - 1
    names = ", ".join(tile_name(*corner) for corner in wanted)
    return Elevation(
        height_m=fill_voids(mosaic, source=names),
        north_deg=window.north / cells,
        west_deg=window.west / cells,
        lat_step_deg=1.0 / cells,
        lon_step_deg=1.0 / cells,
        source=f"SRTM tiles {names}",
    )


def _degrees(low: float, high: float) -> range:
    """Whole degrees at which tiles begin that together cover [low, high]."""
    first = math.floor(low)
    return range(first, max(math.ceil(high), first + 1))


def _full_rectangle(corners: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """All corners of the smallest rectangle of tiles around those given."""
    souths, wests = zip(*corners, strict=True)
    return [
        (south, west)
        for south in range(min(souths), max(souths) + 1)
        for west in range(min(wests), max(wests) + 1)
    ]


def _window(corners: Sequence[tuple[int, int]], cells: int, bounds: Bounds | None) -> _Window:
    """Grid lines to keep."""
    souths, wests = zip(*corners, strict=True)
    whole = _Window(
        min(souths) * cells, (max(souths) + 1) * cells, min(wests) * cells, (max(wests) + 1) * cells
    )
    if bounds is None:
        return whole
    return _Window(
        max(whole.south, math.floor(bounds.south_deg * cells) - _MARGIN_CELLS),
        min(whole.north, math.ceil(bounds.north_deg * cells) + _MARGIN_CELLS),
        max(whole.west, math.floor(bounds.west_deg * cells) - _MARGIN_CELLS),
        min(whole.east, math.ceil(bounds.east_deg * cells) + _MARGIN_CELLS),
    )


def _paste(mosaic: np.ndarray, window: _Window, tile: np.ndarray, corner: tuple[int, int]) -> None:
    """Copy the part of a tile that lies in the window; a known height beats a void."""
    cells = len(tile) - 1
    south, west = corner[0] * cells, corner[1] * cells
    low, high = max(south, window.south), min(south + cells, window.north)
    left, right = max(west, window.west), min(west + cells, window.east)
    source = tile[south + cells - high : south + cells - low + 1, left - west : right - west + 1]
    target = mosaic[
        window.north - high : window.north - low + 1, left - window.west : right - window.west + 1
    ]
    np.copyto(target, source, where=np.isnan(target))


def _read_tile(path: Path) -> np.ndarray:
    """Raw heights (row, column), first row northernmost."""
    try:
        content = _tile_bytes(path)
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputDataError(
            f"Expected a readable tile; got {path.name}: {error}. Delete it and fetch it again."
        ) from error
    cells = _CELLS_PER_DEGREE.get(len(content))
    if cells is None:
        sizes = " or ".join(str(size) for size in _CELLS_PER_DEGREE)
        raise InputDataError(
            f"Expected {sizes} bytes of heights in a tile; got {len(content)} in {path.name}. "
            "Delete it and fetch it again."
        )
    return np.frombuffer(content, dtype=">i2").reshape(cells + 1, cells + 1)


def _tile_bytes(path: Path) -> bytes:
    """Content of a tile, unpacked."""
    if path.name.lower().endswith(".gz"):
        with gzip.open(path) as packed:
            return packed.read()
    if path.name.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if name.lower().endswith(".hgt")]
            if len(members) != 1:
                raise zipfile.BadZipFile(f"{len(members)} members end in .hgt, not one")
            return archive.read(members[0])
    return path.read_bytes()
