"""Writing to disk: whole or not at all."""

import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import xarray as xr


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a path beside ``target`` to write a file or folder to, and rename it at the end.

    If the body raises, or the process dies, what was at ``target`` is still there, or comes
    back at the next call. A leftover of an earlier death is removed first.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    replaced = target.with_name(target.name + ".replaced")
    if replaced.exists() and not target.exists():
        os.replace(replaced, target)
    for leftover in (partial, replaced):
        remove(leftover)
    try:
        yield partial
        if target.is_dir():
            os.replace(target, replaced)
        os.replace(partial, target)
        remove(replaced)
    except BaseException:
        discard(partial)
        raise


def remove(path: Path) -> None:
    """Delete a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def discard(path: Path) -> None:
    """Delete what a broken-off body left, as far as that goes.

    A thread that still writes may hinder it; what stays is removed by the next call, and the
    error that broke the body off is the one to be seen.
    """
    with suppress(OSError):
        remove(path)


def write_zarr(content: xr.Dataset | xr.DataTree, path: Path) -> None:
    """Zarr v3 without consolidated metadata, which the format does not define yet."""
    with warnings.catch_warnings():
        # Zarr warns that its string type has no final specification; xarray reads it back.
        warnings.filterwarnings("ignore", category=FutureWarning, module="zarr")
        warnings.filterwarnings("ignore", message=".*(V3|v3|Zarr).*specification.*")
        content.to_zarr(path, mode="w", zarr_format=3, consolidated=False)
