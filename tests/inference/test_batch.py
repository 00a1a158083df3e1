"""The search over many objectives: chunks, padding and progress change nothing."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from prisma_sbi.inference import SearchSettings, minimize_trips
from tests.inference.test_search import LOWER, UPPER, Jagged

N = 7
CENTERS = np.random.default_rng(1).uniform([0.1, 1.1], [0.9, 2.4], (N, 2)).astype(np.float32)


def build(rows):
    """Toys at the given positions."""
    return Jagged(jnp.asarray(CENTERS[rows]), jnp.asarray(rows % 3), jnp.zeros(len(rows)))


def minimize(**options):
    return minimize_trips(
        build,
        N,
        in_axes=Jagged(0, 0, 0),  # pyright: ignore[reportArgumentType]
        lower=np.asarray(LOWER),
        upper=np.asarray(UPPER),
        representatives=np.array([0, 2]),
        n_choices=3,
        **options,
    )


def test_chunks_leave_no_trace_and_progress_is_counted():
    seen = []
    whole = minimize(chunk_size=N)
    chunked = minimize(chunk_size=3, progress=lambda *at: seen.append(at))
    for left, right in zip(jax.tree.leaves(whole), jax.tree.leaves(chunked), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)
    assert seen == [(3, N), (6, N), (N, N)]


def test_answers_come_in_the_order_of_the_trips():
    found = minimize(chunk_size=2)
    np.testing.assert_array_equal(found.choice, np.arange(N) % 3)
    np.testing.assert_allclose(found.point, CENTERS, atol=0.03)
    assert isinstance(found.loss, np.ndarray)


def test_settings_reach_the_search():
    few = SearchSettings(grid_shape=(2, 2), n_seeds=1, n_climbers=1, n_generations=(1, 1))
    weak, strong = minimize(settings=few), minimize()
    assert np.mean(weak.loss) > np.mean(strong.loss)


def test_one_failing_trip_does_not_stop_the_others():
    def build_with_nan(rows):
        toys = build(rows)
        broken = jnp.asarray(rows == 2)[:, None]
        return eqx.tree_at(lambda t: t.center, toys, jnp.where(broken, jnp.nan, toys.center))

    found = minimize_trips(
        build_with_nan,
        N,
        in_axes=Jagged(0, 0, 0),  # pyright: ignore[reportArgumentType]
        lower=np.asarray(LOWER),
        upper=np.asarray(UPPER),
        representatives=np.array([0, 2]),
        n_choices=3,
    )
    good = np.arange(N) != 2
    assert np.isnan(found.loss[2])
    np.testing.assert_allclose(found.loss[good], minimize().loss[good], atol=1e-6)


@pytest.mark.parametrize("name", ["chunk_size", "n_trips", "n_choices"])
def test_counts_below_one_are_refused(name):
    options: dict[str, Any] = {"n_trips": N, "n_choices": 3, "chunk_size": 2, name: 0}
    with pytest.raises(ValueError, match=f"Expected {name} >= 1"):
        minimize_trips(
            build,
            in_axes=None,
            lower=np.asarray(LOWER),
            upper=np.asarray(UPPER),
            representatives=np.array([0]),
            **options,
        )
