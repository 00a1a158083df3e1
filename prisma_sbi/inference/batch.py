"""Many trips: in chunks of one size, compiled once, on all cores."""

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from prisma_sbi import _validate


@runtime_checkable
class ChunkStore(Protocol):
    """Keeps finished chunks, so that an interrupted run can go on."""

    def get(self, start: int) -> dict[str, np.ndarray] | None:
        """Arrays of the chunk that begins with a trip; None if it is not there."""
        ...

    def put(self, start: int, arrays: dict[str, np.ndarray]) -> None:
        """Keep the arrays of a chunk."""
        ...


def map_trips(
    solve: Callable[[np.ndarray], Mapping[str, ArrayLike]],
    n_trips: int,
    *,
    chunk_size: int = 16,
    store: ChunkStore | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, np.ndarray]:
    """Apply a compiled function to all trips, chunk by chunk.

    Parameters
    ----------
    solve
        From positions of trips ``(chunk_size,)`` to arrays by name, each with a leading
        trip axis. Called from several threads, once per chunk, so that memory does not grow with
        the number of trips; always with as many positions, so one compilation serves all.
    n_trips
        How many trips there are.
    chunk_size
        Trips per call; the last chunk repeats the last trip.
    store
        Finished chunks are kept there and not computed again.
    progress
        Called with trips done and trips in all, from the calling thread.

    Returns
    -------
    The arrays of ``solve`` over all trips.
    """
    _validate.at_least(1, n_trips=n_trips, chunk_size=chunk_size)

    def rows_from(start: int) -> np.ndarray:
        return np.minimum(np.arange(start, start + chunk_size), n_trips - 1)

    # The first call traces and compiles, and NumPyro's handlers are not made for two threads.
    compiling, compiled = threading.Lock(), threading.Event()

    def solve_chunk(start: int) -> dict[str, np.ndarray]:
        kept = store.get(start) if store is not None else None
        if kept is not None:
            return kept
        with nullcontext() if compiled.is_set() else compiling:
            found = {name: np.asarray(array) for name, array in solve(rows_from(start)).items()}
        compiled.set()
        if store is not None:
            store.put(start, found)
        return found

    done, chunks = 0, []
    # XLA keeps one core busy with these small arrays; threads that wait for it release the GIL.
    executor = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
    try:
        for chunk in executor.map(solve_chunk, range(0, n_trips, chunk_size)):
            chunks.append(chunk)
            done = min(done + chunk_size, n_trips)
            if progress is not None:
                progress(done, n_trips)
    finally:
        # After an error or an interrupt only the chunks in work are finished, not the queue.
        executor.shutdown(cancel_futures=True)
    return {name: np.concatenate([chunk[name] for chunk in chunks])[:n_trips] for name in chunks[0]}
