"""A region as a folder: Parquet, GeoTIFF, JSON and GraphML, written whole or not at all."""

import json
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from prisma_sbi._errors import InputDataError
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.record import Region
from prisma_sbi.region.storage_files import (
    read_pool,
    read_raster,
    read_roads_tables,
    write_graphml,
    write_pool,
    write_raster,
    write_roads_tables,
)

FORMAT = "prisma_sbi region"
FORMAT_VERSION = 1

_JSON, _RASTER, _VEHICLES = "region.json", "elevation.tif", "vehicles.parquet"
_NODES, _EDGES, _GRAPH = "nodes.parquet", "edges.parquet", "roads.graphml"
_NEEDED = (_JSON, _RASTER, _VEHICLES, _NODES, _EDGES)
_VERSIONED = ("prisma_sbi", "numpy", "pyarrow", "rasterio")


def save_region(region: Region, folder: str | Path) -> Path:
    """Write a region into a folder of its own.

    Parameters
    ----------
    region
        What to save.
    folder
        Folder to make. An older region there is replaced.

    Returns
    -------
    folder : pathlib.Path
        With ``nodes.parquet``, ``edges.parquet`` (shapes as lists), ``elevation.tif``,
        ``vehicles.parquet``, ``region.json`` (name, bounds, constants, versions, attribution,
        fingerprint) and ``roads.graphml``, which OSMnx loads and nothing here reads back.

    Raises
    ------
    InputDataError
        If the folder exists and is not a region; its content stays.
    ImportError
        If the extra ``geo`` is not installed.

    Notes
    -----
    Everything is written into a hidden folder beside the target, which is renamed at the
    end. A full disk or a killed process therefore leaves the old region or none, never half
    of one.
    """
    folder = Path(folder).absolute()
    partial, old = _beside(folder, "partial"), _beside(folder, "old")
    _recover(folder)
    if folder.exists() and not (folder / _JSON).is_file() and _has_content(folder):
        raise InputDataError(
            f"Expected a new folder or one that holds a region; got {folder}, which holds "
            "something else. Choose another folder."
        )
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        _write_files(region, partial)
        if folder.exists():
            folder.rename(old)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        _recover(folder)
    return folder


def load_region(folder: str | Path) -> Region:
    """Read a region back and check that nothing was altered.

    Parameters
    ----------
    folder
        As written by :func:`save_region`.

    Returns
    -------
    region : Region
        With the fingerprint it was saved with.

    Raises
    ------
    InputDataError
        If a file is missing or unreadable, or the content does not match the fingerprint.
    ImportError
        If rasterio (extra ``geo``) is not installed.
    """
    folder = Path(folder).absolute()
    _recover(folder)
    for name in _NEEDED:
        if not (folder / name).is_file():
            raise InputDataError(
                f"Expected a region with the files {', '.join(_NEEDED)}; got {folder} without "
                f"{name}. Build the region with: prisma region build"
            )
    header = _read_header(folder / _JSON)
    try:
        region = Region(
            name=header["name"],
            bounds=Bounds(**header["bounds"]),
            roads=read_roads_tables(
                folder / _NODES, folder / _EDGES, attribution=header["attribution"]
            ),
            elevation=read_raster(folder / _RASTER, **header["elevation"]),
            vehicles=read_pool(folder / _VEHICLES),
            constants=Constants.from_dict(header["constants"]),
        )
        expected = header["fingerprint"]
    except (KeyError, TypeError, ValueError, OSError, pa.ArrowException) as error:
        raise InputDataError(
            f"Expected a readable region in {folder}; got {type(error).__name__}: {error}. "
            "Build it again."
        ) from error
    if region.fingerprint != expected:
        raise InputDataError(
            f"Expected content with the fingerprint {expected} in {folder}; got "
            f"{region.fingerprint}. A file was altered, or another version of prisma_sbi "
            f"wrote it ({header.get('versions', {}).get('prisma_sbi', 'unknown')}). Build it again."
        )
    return region


def _write_files(region: Region, folder: Path) -> None:
    """Write all files of a region into an empty folder."""
    write_roads_tables(region.roads, folder / _NODES, folder / _EDGES)
    write_graphml(region.roads, folder / _GRAPH)
    write_raster(region.elevation, folder / _RASTER)
    write_pool(region.vehicles, folder / _VEHICLES)
    bounds, elevation = region.bounds, region.elevation
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "name": region.name,
        "fingerprint": region.fingerprint,
        "attribution": region.roads.attribution,
        "bounds": {
            "south_deg": bounds.south_deg,
            "north_deg": bounds.north_deg,
            "west_deg": bounds.west_deg,
            "east_deg": bounds.east_deg,
        },
        # The tags of a GeoTIFF give corners, from which centers return only up to rounding.
        "elevation": {
            "north_deg": elevation.north_deg,
            "west_deg": elevation.west_deg,
            "lat_step_deg": elevation.lat_step_deg,
            "lon_step_deg": elevation.lon_step_deg,
            "source": elevation.source,
        },
        "constants": region.constants.to_dict(),
        "counts": {
            "nodes": region.roads.n_nodes,
            "edges": region.roads.n_edges,
            "vehicles": len(region.vehicles),
        },
        "versions": _versions(),
    }
    text = json.dumps(header, indent=2, ensure_ascii=False, default=_plain)
    (folder / _JSON).write_text(text + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    """Python number of a numpy one, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"Expected a value that JSON knows; got {value!r}.")


def _read_header(path: Path) -> dict[str, Any]:
    """Content of the JSON file, if it is that of a region in a known format."""
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputDataError(f"Expected JSON in {path}; got {error}. Build it again.") from error
    found = (header.get("format"), header.get("format_version")) if isinstance(header, dict) else ()
    if found != (FORMAT, FORMAT_VERSION):
        raise InputDataError(
            f"Expected {FORMAT!r} in format version {FORMAT_VERSION} in {path}; got {found!r}. "
            "Use the version of prisma_sbi that wrote it, or build it again."
        )
    return header


def _versions() -> dict[str, str]:
    """Installed versions of what shaped the files."""
    versions = {}
    for name in _VERSIONED:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def _beside(folder: Path, suffix: str) -> Path:
    """Hidden neighbor of a folder."""
    return folder.with_name(f".{folder.name}.{suffix}")


def _has_content(folder: Path) -> bool:
    """Whether a path is a file, or a folder with anything in it."""
    return not folder.is_dir() or any(folder.iterdir())


def _recover(folder: Path) -> None:
    """Finish a replacement that was cut off between its two renames, or tidy up after it."""
    old = _beside(folder, "old")
    if old.is_dir():
        if folder.exists():
            shutil.rmtree(old)
        else:
            old.rename(folder)
