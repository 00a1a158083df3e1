"""Traces on disk: a Zarr folder or a netCDF file, whole or not at all.

NetCDF is written in its classic format (64-bit offsets), which SciPy and every other reader of
netCDF know.
"""

from os import PathLike
from pathlib import Path

import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi._files import replacing, write_zarr
from prisma_sbi.telemetry.traces import require_traces

_NETCDF = ".nc"


def save_traces(traces: xr.Dataset, path: str | PathLike[str]) -> Path:
    """Write traces as Zarr, or as netCDF if the name ends in ``.nc``.

    Parameters
    ----------
    traces
        Dataset of kind ``traces``.
    path
        Where to; what is there already is replaced.

    Returns
    -------
    path
        Where the traces are.

    Raises
    ------
    InputDataError
        If the dataset is not one of traces.

    Notes
    -----
    Everything is written beside the target, to ``<path>.partial``, and renamed at the end:
    a process that dies or a disk that fills leaves what was there before.
    """
    require_traces(traces, what="the dataset to save")
    target = Path(path)
    is_file = target.suffix.lower() == _NETCDF
    with replacing(target) as partial:
        if is_file:
            traces.to_netcdf(partial, engine="scipy")
        else:
            write_zarr(traces.drop_encoding(), partial)
    return target


def load_traces(path: str | PathLike[str]) -> xr.Dataset:
    """Read traces that :func:`save_traces` wrote.

    Parameters
    ----------
    path
        A Zarr folder or a netCDF file.

    Returns
    -------
    traces
        In memory, equal to what was saved.

    Raises
    ------
    InputDataError
        If there is nothing, it cannot be read, or it holds something else.
    """
    source = Path(path)
    if not source.exists():
        raise InputDataError(f"Expected traces at {str(source)!r}; got nothing. Import them first.")
    try:
        if source.suffix.lower() == _NETCDF:
            traces = xr.load_dataset(source, engine="scipy")
        else:
            traces = _read_zarr(source)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise InputDataError(
            f"Expected traces at {str(source)!r}; got {type(error).__name__}: {error}. "
            "The file is damaged or of another kind; import again."
        ) from error
    require_traces(traces, what=str(source))
    return _plain(traces)


def _read_zarr(path: Path) -> xr.Dataset:
    """The whole store in memory."""
    with xr.open_zarr(path, consolidated=False) as opened:
        return opened.load()


def _plain(traces: xr.Dataset) -> xr.Dataset:
    """Texts as fixed-width unicode and no traces of the file format."""
    loaded = traces.drop_encoding()
    for name, variable in list(loaded.variables.items()):
        if variable.dtype.kind in "OT":
            loaded[name] = (variable.dims, variable.values.astype(str), variable.attrs)
    return loaded
