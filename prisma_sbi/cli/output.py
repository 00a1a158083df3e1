"""Where a command may write."""

from pathlib import Path


def fresh_output(path: Path, *, force: bool) -> Path:
    """The path, unless something is there already and may not be replaced.

    Raises
    ------
    FileExistsError
        If the path exists and ``force`` is not set.
    """
    if path.exists() and not force:
        raise FileExistsError(
            f"Expected nothing at {path}; got an existing result. Choose another -o, or replace it "
            "with --force."
        )
    return path
