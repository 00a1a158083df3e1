"""Finished chunks on disk: what was computed before an interrupt is not computed again."""

import hashlib
import json
import shutil
import zipfile
from os import PathLike
from pathlib import Path

import numpy as np

from prisma_sbi._files import replacing

_KEY = "key.json"


class ChunkFolder:
    """Chunks of one run in a folder; chunks of another run are thrown away.

    Parameters
    ----------
    folder
        Made if it is missing.
    key
        Whatever the chunks depend on, in words or digests.
    """

    def __init__(self, folder: str | PathLike[str], key: dict[str, str]) -> None:
        self.folder = Path(folder)
        mark = self.folder / _KEY
        text = json.dumps(key, sort_keys=True, indent=1)
        if mark.is_file() and mark.read_text() == text:
            return
        if self.folder.exists():
            # Nothing but chunks may be deleted here.
            if not mark.is_file():
                raise FileExistsError(
                    f"Expected {str(self.folder)!r} to be absent or to hold chunks of a run; got "
                    "something else. Choose another folder for the checkpoint."
                )
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True)
        with replacing(mark) as partial:
            partial.write_text(text)

    def get(self, start: int) -> dict[str, np.ndarray] | None:
        """Arrays of the chunk that begins with a trip; None if it is not there or damaged."""
        file = self._file(start)
        if not file.is_file():
            return None
        try:
            # Opened here, since a damaged archive would leave the file open there.
            with file.open("rb") as opened, np.load(opened, allow_pickle=False) as content:
                return {name: content[name] for name in content.files}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def put(self, start: int, arrays: dict[str, np.ndarray]) -> None:
        """Keep the arrays of a chunk, whole or not at all."""
        with replacing(self._file(start)) as partial, partial.open("wb") as file:
            np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]

    def remove(self) -> None:
        """Delete the folder, once the result is safe."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, start: int) -> Path:
        return self.folder / f"chunk-{start:08d}.npz"


def digest(*arrays: np.ndarray) -> str:
    """Digest of arrays, their shapes and types."""
    state = hashlib.blake2b(digest_size=16)
    for array in arrays:
        content = np.ascontiguousarray(array)
        state.update(f"{content.dtype}{content.shape}".encode())
        state.update(content.tobytes())
    return state.hexdigest()


def trip_seeds(names: np.ndarray) -> np.ndarray:
    """A seed ``(trip,)`` uint32 for each trip, from its name alone."""
    digests = [hashlib.blake2b(str(name).encode(), digest_size=4).digest() for name in names]
    return np.frombuffer(b"".join(digests), dtype=">u4").astype(np.uint32)
