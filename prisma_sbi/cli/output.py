"""Where a command may write, and what it may replace there."""

from pathlib import Path

ZARR, REGION, RELEASE = "zarr.json", "region.json", "release.json"
"""The file by which a folder is known as a result of one kind."""


def fresh_output(path: Path, *, force: bool, mark: str) -> Path:
    """The path, if nothing is there or an earlier result may be replaced.

    Parameters
    ----------
    path
        Where a result should go.
    force
        Whether an earlier result may be replaced.
    mark
        File that a folder must hold to be taken for an earlier result. Anything else is never
        replaced, so that a wrong ``-o`` with ``--force`` cannot delete a folder of other files.

    Raises
    ------
    FileExistsError
        If the path exists and may not be replaced.
    """
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return path
    is_netcdf = path.is_file() and path.suffix.lower() == ".nc" and mark == ZARR
    if not is_netcdf and not (path / mark).is_file():
        raise FileExistsError(
            f"Expected nothing, or an earlier result, at {path}; got something else, which is "
            "left as it is. Choose another -o; --force replaces earlier results only."
        )
    if not force:
        raise FileExistsError(
            f"Expected nothing at {path}; got an existing result. Choose another -o, or replace it "
            "with --force."
        )
    return path
