"""Many trips: in chunks of one size, compiled once, on all cores."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, runtime_checkable

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from prisma_sbi import _validate
from prisma_sbi.inference.search import Minimum, SearchSettings, search


@runtime_checkable
class ChunkStore(Protocol):
    """Keeps finished chunks, so that an interrupted run can go on."""

    def get(self, start: int) -> list[np.ndarray] | None:
        """Arrays of the chunk that begins with a trip; None if it is not there."""
        ...

    def put(self, start: int, arrays: list[np.ndarray]) -> None:
        """Keep the arrays of a chunk."""
        ...


def map_trips(
    solve: Callable[[np.ndarray], Any],
    n_trips: int,
    *,
    chunk_size: int = 16,
    store: ChunkStore | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Apply a compiled function to all trips, chunk by chunk.

    Parameters
    ----------
    solve
        From positions of trips ``(chunk_size,)`` to a pytree of arrays with a leading trip
        axis. Called from several threads, once per chunk, so that memory does not grow with
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
    The pytree of ``solve``, as NumPy arrays over all trips.
    """
    _validate.at_least(1, n_trips=n_trips, chunk_size=chunk_size)

    def rows_from(start: int) -> np.ndarray:
        return np.minimum(np.arange(start, start + chunk_size), n_trips - 1)

    # The shape of the result, without computing it.
    structure = jax.tree.structure(jax.eval_shape(solve, rows_from(0)))

    def solve_chunk(start: int) -> list[np.ndarray]:
        kept = store.get(start) if store is not None else None
        if kept is not None:
            return kept
        found = [np.asarray(leaf) for leaf in jax.tree.leaves(solve(rows_from(start)))]
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
    leaves = [np.concatenate(parts)[:n_trips] for parts in zip(*chunks, strict=True)]
    return jax.tree.unflatten(structure, leaves)


@partial(jax.jit, static_argnames=("in_axes", "n_choices", "settings"))
def _solve(objectives, lower, upper, representatives, *, in_axes, n_choices, settings):
    """One chunk; compiled once for all calls with the same shapes and settings."""
    return jax.vmap(
        lambda one: search(one, lower, upper, representatives, n_choices, settings),
        in_axes=(in_axes,),
    )(objectives)


def minimize_trips(
    build: Callable[[np.ndarray], Any],
    n_trips: int,
    *,
    in_axes: Any,
    lower: np.ndarray,
    upper: np.ndarray,
    representatives: np.ndarray,
    n_choices: int,
    settings: SearchSettings | None = None,
    chunk_size: int = 16,
    progress: Callable[[int, int], None] | None = None,
) -> Minimum:
    """Minimize one objective per trip.

    Parameters
    ----------
    build
        From positions of trips ``(chunk_size,)`` to their objectives, stacked along a leading
        axis. Called once per chunk, so that memory does not grow with the number of trips.
    n_trips
        How many trips there are.
    in_axes
        Which leaves of an objective carry the trip axis, as for ``jax.vmap``.
    lower, upper : (2,)
        The box of the two continuous parameters.
    representatives : (few,) int
        Choices that stand for all others on the coarse grid.
    n_choices
        How many choices there are.
    settings
        Amount of work per trip.
    chunk_size
        Trips per compiled call; the last chunk is padded, so one compilation serves all.
    progress
        Called with trips done and trips in all, from the calling thread.

    Returns
    -------
    Minimum
        NumPy leaves with a leading trip axis.
    """
    _validate.at_least(1, n_trips=n_trips, chunk_size=chunk_size, n_choices=n_choices)
    settings = settings or SearchSettings()
    low, high = jnp.asarray(lower, jnp.float32), jnp.asarray(upper, jnp.float32)
    few = jnp.asarray(representatives)

    def solve_chunk(start: int) -> Minimum:
        # A chunk that sticks out repeats the last trip; the copies are cut off again.
        rows = np.minimum(np.arange(start, start + chunk_size), n_trips - 1)
        found = _solve(
            build(rows), low, high, few, in_axes=in_axes, n_choices=n_choices, settings=settings
        )
        return jax.tree.map(np.asarray, found)

    starts = range(0, n_trips, chunk_size)
    done, found = 0, []
    # XLA keeps one core busy with these small arrays; threads that wait for it release the GIL.
    executor = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
    try:
        for chunk in executor.map(solve_chunk, starts):
            found.append(chunk)
            done = min(done + chunk_size, n_trips)
            if progress is not None:
                progress(done, n_trips)
    finally:
        # After an error or an interrupt only the chunks in work are finished, not the queue.
        executor.shutdown(cancel_futures=True)
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:n_trips], *found)
