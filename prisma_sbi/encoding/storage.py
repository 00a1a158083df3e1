"""Fits on disk: a Zarr folder, whole or not at all."""

from os import PathLike
from pathlib import Path

import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi._files import replacing, write_zarr


def save_fit(fit: xr.DataTree, path: str | PathLike[str]) -> Path:
    """Write a fit as a Zarr folder.

    Parameters
    ----------
    fit
        From :func:`~prisma_sbi.encoding.encode`. It holds private data.
    path
        Where to; what is there already is replaced once everything is written.

    Returns
    -------
    path
    """
    target = Path(path)
    with replacing(target) as partial:
        write_zarr(fit, partial)
    return target


def load_fit(path: str | PathLike[str]) -> xr.DataTree:
    """Read a fit written by :func:`save_fit`.

    Raises
    ------
    InputDataError
        If there is nothing, it cannot be read, or it holds something else.
    """
    source = Path(path)
    if not source.exists():
        raise InputDataError(f"Expected a fit at {str(source)!r}; got nothing. Encode trips first.")
    try:
        with xr.open_datatree(source, engine="zarr", consolidated=False) as opened:
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
    return fit
