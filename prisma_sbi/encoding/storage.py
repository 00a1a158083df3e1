"""Fits on disk: a Zarr folder or a NetCDF file, whole or not at all."""

import json
from os import PathLike
from pathlib import Path

import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi._files import replacing, write_zarr
from prisma_sbi._optional import optional_import
from prisma_sbi.encoding.tree import FORMAT_VERSION

_NETCDF = ".nc"


def save_fit(fit: xr.DataTree, path: str | PathLike[str]) -> Path:
    """Write a fit as a Zarr folder, or as a NetCDF file if the name ends in ``.nc``.

    Both are read by :func:`load_fit` bit for bit, and by ``xarray.open_datatree`` and ArviZ
    where this package is not installed.

    Parameters
    ----------
    fit
        From :func:`~prisma_sbi.encoding.encode`. It holds private data.
    path
        Where to; what is there already is replaced once everything is written.

    Returns
    -------
    path

    Raises
    ------
    ImportError
        If h5netcdf is missing and the name ends in ``.nc``.
    """
    target = Path(path)
    with replacing(target) as partial:
        if target.suffix == _NETCDF:
            optional_import("h5netcdf", extra="bayes")
            fit.to_netcdf(partial, engine="h5netcdf")
        else:
            write_zarr(fit, partial)
    return target


def load_fit(path: str | PathLike[str]) -> xr.DataTree:
    """Read a fit written by :func:`save_fit`, of this version of the format or an older one.

    Raises
    ------
    InputDataError
        If there is nothing, it cannot be read, it holds something else, or it was written by
        a later version of the package.
    """
    source = Path(path)
    if not source.exists():
        raise InputDataError(f"Expected a fit at {str(source)!r}; got nothing. Encode trips first.")
    try:
        if source.is_file():
            optional_import("h5netcdf", extra="bayes")
            opened = xr.open_datatree(source, engine="h5netcdf")
        else:
            opened = xr.open_datatree(source, engine="zarr", consolidated=False)
        with opened:
            fit = opened.load()
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise InputDataError(
            f"Expected a fit at {str(source)!r}; got {type(error).__name__}: {error}. "
            "The folder is damaged or of another kind; encode again."
        ) from error
    if fit.attrs.get("kind") != "fit":
        raise InputDataError(
            f"Expected a fit at {str(source)!r}; got {fit.attrs.get('kind', 'something else')!r}. "
            "Give the folder that encode wrote."
        )
    version = int(fit.attrs.get("format_version", 0))
    if version > FORMAT_VERSION:
        raise InputDataError(
            f"Expected a fit of format version {FORMAT_VERSION} or older; got version {version}. "
            "Install a later version of prisma_sbi."
        )
    return _from_version_1(fit) if version == 1 else fit


def _from_version_1(fit: xr.DataTree) -> xr.DataTree:
    """Version 1 knew points only, and kept them nowhere but in the posterior."""
    point = fit["posterior"].dataset.isel(chain=0, draw=0, drop=True)
    stats = fit["sample_stats"].to_dataset()
    for name in ("aggressiveness", "detour", "vehicle"):
        stats[f"best_{name}"] = point[name]
    stats["flags"] = ("trip", np.zeros(stats.sizes["trip"], np.int32))
    result = fit.copy()
    result["sample_stats"] = xr.DataTree(stats)
    result.attrs |= {
        "format_version": FORMAT_VERSION,
        "method": "map",
        "seed": 0,
        "model": json.dumps({"likelihood": {"name": "summary"}, "choice": {"name": "marginal"}}),
    }
    return result
