"""Many trips in chunks: order, padding, progress, resuming and failures."""

import threading
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from prisma_sbi.inference import ChunkStore, SearchSettings, map_trips, search
from tests.inference.test_search import LOWER, UPPER, Jagged

N = 7


class Memory:
    """Chunks kept in a dictionary, and a count of how they were asked for."""

    def __init__(self, kept=None):
        self.kept = dict(kept or {})

    def get(self, start):
        return self.kept.get(start)

    def put(self, start, arrays):
        self.kept[start] = arrays


class Recorder:
    """Squares positions, remembers which it was given, and may refuse one."""

    def __init__(self, refuse=(), pause_s=0.0):
        self.pause_s = pause_s
        self.calls, self.refuse, self.lock = [], set(refuse), threading.Lock()

    def __call__(self, rows):
        with self.lock:
            self.calls.append(rows.tolist())
        time.sleep(self.pause_s)
        if self.refuse & set(rows.tolist()):
            raise ArithmeticError(f"row {min(self.refuse)}")
        return {"square": rows**2, "pair": jnp.stack([rows, -rows], axis=-1)}


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 6, 7, 8, 50])
@pytest.mark.parametrize("n_trips", [1, 6, 7])
def test_answers_come_in_the_order_of_the_trips_once_each(chunk_size, n_trips):
    found = map_trips(Recorder(), n_trips, chunk_size=chunk_size)
    rows = np.arange(n_trips)
    np.testing.assert_array_equal(found["square"], rows**2)
    np.testing.assert_array_equal(found["pair"], np.column_stack([rows, -rows]))
    assert all(isinstance(array, np.ndarray) for array in found.values())


def test_every_call_has_as_many_rows_and_the_last_one_is_filled_up():
    recorder = Recorder()
    map_trips(recorder, N, chunk_size=3)
    assert sorted(recorder.calls) == [[0, 1, 2], [3, 4, 5], [6, 6, 6]]


def test_compiled_function_is_traced_once():
    traces = []

    @jax.jit
    def solve(rows):
        traces.append(1)
        return {"twice": 2 * rows}

    found = map_trips(solve, 100, chunk_size=7)
    np.testing.assert_array_equal(found["twice"], 2 * np.arange(100))
    # Threads may begin the same compilation beside each other, but no call after them.
    assert len(traces) <= 2


def test_progress_counts_trips_in_the_calling_thread():
    seen = []
    map_trips(
        Recorder(), N, chunk_size=3, progress=lambda *at: seen.append((*at, threading.get_ident()))
    )
    assert seen == [(done, N, threading.get_ident()) for done in (3, 6, 7)]


def test_kept_chunks_are_not_computed_again():
    store = Memory()
    assert isinstance(store, ChunkStore)
    whole = map_trips(Recorder(), N, chunk_size=3, store=store)
    assert sorted(store.kept) == [0, 3, 6]
    del store.kept[3]
    recorder, seen = Recorder(), []
    again = map_trips(recorder, N, chunk_size=3, store=store, progress=lambda *at: seen.append(at))
    assert recorder.calls == [[3, 4, 5]]
    assert seen[-1] == (N, N)
    for name, array in whole.items():
        np.testing.assert_array_equal(array, again[name])


def test_what_was_kept_is_what_is_returned():
    store = Memory({0: {"square": np.full(4, -1), "pair": np.zeros((4, 2))}})
    found = map_trips(Recorder(), N, chunk_size=4, store=store)
    np.testing.assert_array_equal(found["square"], [-1, -1, -1, -1, 16, 25, 36])


def test_an_error_comes_through_and_finished_chunks_stay():
    store = Memory()
    with pytest.raises(ArithmeticError, match="row 5"):
        map_trips(Recorder(refuse=[5], pause_s=0.005), 400, chunk_size=2, store=store)
    assert {0, 2} <= set(store.kept)
    assert 4 not in store.kept
    # The queue was given up: only chunks begun before the error came through are there.
    assert len(store.kept) < 150
    recorder = Recorder()
    found = map_trips(recorder, 400, chunk_size=2, store=store)
    np.testing.assert_array_equal(found["square"], np.arange(400) ** 2)
    assert [4, 5] in recorder.calls
    assert [0, 1] not in recorder.calls


CENTERS = np.random.default_rng(1).uniform([0.1, 1.1], [0.9, 2.4], (N, 2)).astype(np.float32)


@partial(jax.jit, static_argnames="settings")
def search_toys(centers, rows, settings):
    toys = Jagged(centers[rows], rows % 3, jnp.zeros(rows.shape))
    few = jnp.asarray([0, 2])
    found = jax.vmap(lambda toy: search(toy, LOWER, UPPER, few, 3, settings))(toys)
    return {"point": found.point, "choice": found.choice, "loss": found.loss}


def minimize(centers=CENTERS, *, settings=SearchSettings(), chunk_size=3):  # noqa: B008  frozen
    def solve(rows):
        return search_toys(jnp.asarray(centers), jnp.asarray(rows), settings)

    return map_trips(solve, N, chunk_size=chunk_size)


def test_search_in_chunks_finds_the_bottoms_whatever_the_chunk():
    whole, chunked = minimize(chunk_size=N), minimize(chunk_size=3)
    np.testing.assert_array_equal(chunked["choice"], np.arange(N) % 3)
    np.testing.assert_allclose(chunked["point"], CENTERS, atol=0.03)
    for name, array in whole.items():
        np.testing.assert_allclose(array, chunked[name], rtol=1e-4, atol=1e-5)


def test_settings_reach_the_search():
    few = SearchSettings(grid_shape=(2, 2), n_seeds=1, n_climbers=1, n_generations=(1, 1))
    assert np.mean(minimize(settings=few)["loss"]) > 2 * np.mean(minimize()["loss"])


def test_one_failing_trip_does_not_stop_the_others():
    broken = CENTERS.copy()
    broken[2] = np.nan
    found, good = minimize(broken), np.arange(N) != 2
    assert np.isnan(found["loss"][2])
    np.testing.assert_allclose(found["loss"][good], minimize()["loss"][good], atol=1e-6)


@pytest.mark.parametrize("name", ["chunk_size", "n_trips"])
def test_counts_below_one_are_refused(name):
    options: dict[str, Any] = {"n_trips": N, "chunk_size": 2, name: 0}
    with pytest.raises(ValueError, match=f"Expected {name} >= 1"):
        map_trips(Recorder(), **options)
