"""The search on toys that know nothing of trips, against brute force."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from prisma_sbi.inference import Objective, SearchSettings, coarse_grid, search

LOWER, UPPER = jnp.array([0.0, 1.0]), jnp.array([1.0, 2.5])
N_CHOICES = 20


class Jagged(eqx.Module):
    """A bowl with sharp ripples; each choice moves the bottom and lifts it by its own amount.

    The ripples have dozens of local minima in the box, and kinks at all of them.
    """

    center: jax.Array
    best: jax.Array
    ripple: jax.Array

    def residuals(self, point, vehicle):
        gap = (vehicle - self.best) / 10.0
        ripple = self.ripple * jnp.abs(jnp.sin(40.0 * point[0] + 25.0 * point[1]))
        bowl = point - self.center - 0.3 * gap * jnp.array([1.0, 0.0])
        return jnp.concatenate([bowl, jnp.stack([gap, ripple])])

    def losses(self, point, vehicles, *, stride=1):
        residuals = jax.vmap(lambda vehicle: self.residuals(point, vehicle))(vehicles)
        # As in earnest, a stride gives something that only resembles the loss.
        roughness = 0.02 * (stride - 1) * jnp.abs(jnp.sin(5.0 * vehicles + 9.0 * point[0]))
        return 0.5 * jnp.sum(residuals**2, axis=1) * (1.0 + roughness)

    def promise(self, point, vehicles, *, stride=1):
        return jnp.min(self.losses(point, vehicles, stride=stride))


def draw_toys(n):
    """Toys with random bottoms, best choices and ripples, stacked."""
    rng = np.random.default_rng(0)
    return Jagged(
        jnp.asarray(rng.uniform([0.05, 1.05], [0.95, 2.45], (n, 2)), jnp.float32),
        jnp.asarray(rng.integers(0, N_CHOICES, n)),
        jnp.asarray(rng.uniform(0.02, 0.2, n), jnp.float32),
    )


@jax.jit
def brute_force(toy):
    """Lowest loss on a grid of a quarter of a million points, all choices."""
    a, b = jnp.linspace(LOWER[0], UPPER[0], 500), jnp.linspace(LOWER[1], UPPER[1], 500)
    choices = jnp.arange(N_CHOICES)

    def row(first):
        points = jnp.stack([jnp.full_like(b, first), b], axis=1)
        return jnp.min(jax.vmap(lambda point: toy.losses(point, choices))(points))

    return jnp.min(jax.lax.map(row, a))


@partial(jax.jit, static_argnames=("settings", "n_choices"))
def search_all(toys, settings, n_choices=N_CHOICES):
    """The search on stacked toys."""
    few = jnp.arange(0, n_choices, 4)
    return jax.vmap(lambda toy: search(toy, LOWER, UPPER, few, n_choices, settings))(toys)


@pytest.fixture(scope="module")
def toys():
    return draw_toys(24)


@pytest.fixture(scope="module")
def found(toys):
    return search_all(toys, SearchSettings())


@pytest.fixture(scope="module")
def truth(toys):
    return np.asarray(jax.lax.map(brute_force, toys))


def test_toys_are_objectives():
    assert isinstance(Jagged(jnp.zeros(2), jnp.zeros(()), jnp.zeros(())), Objective)


def test_search_finds_what_brute_force_finds(found, truth):
    excess = np.asarray(found.loss) - truth
    assert np.median(excess) < 1e-4
    assert np.max(excess) < 1e-3


def test_search_finds_the_choice(found, toys):
    assert np.mean(np.asarray(found.choice) == np.asarray(toys.best)) > 0.9
    assert np.max(np.abs(np.asarray(found.choice) - np.asarray(toys.best))) <= 1


def test_search_without_descent_is_worse(found, toys, truth):
    weak = search_all(toys, SearchSettings(n_generations=(0, 0)))
    excess = np.asarray(weak.loss) - truth
    assert np.mean(excess) > 10 * np.mean(np.asarray(found.loss) - truth)
    # The checks above would notice.
    assert np.median(excess) > 1e-4


def test_search_that_tries_one_choice_a_point_is_worse(found, toys):
    weak = search_all(toys, SearchSettings(n_seeds=1, n_ranked=1, n_short=1, n_climbers=1))
    assert np.mean(weak.loss) > np.mean(found.loss)


def test_reported_loss_is_that_of_the_reported_point(found, toys):
    for i in range(5):
        toy = jax.tree.map(lambda leaf, i=i: leaf[i], toys)
        residuals = toy.residuals(found.point[i], found.choice[i])
        assert float(found.loss[i]) == pytest.approx(float(0.5 * residuals @ residuals), rel=1e-5)


def test_best_point_met_is_kept():
    # A node of the coarse grid is the bottom; every later step leads away from it.
    node = coarse_grid(LOWER, UPPER, SearchSettings().grid_shape)[37]
    toys = Jagged(node[None], jnp.zeros(1), jnp.zeros(1))
    found = search_all(toys, SearchSettings(), n_choices=1)
    np.testing.assert_allclose(found.point[0], node, atol=1e-6)
    assert float(found.loss[0]) < 1e-12


def test_bounds_are_respected_and_reported():
    # Bottoms outside of the box: two on an edge, one on a corner; and one inside.
    centers = jnp.array([[1.3, 1.7], [0.4, 0.5], [-0.2, 2.9], [0.4, 1.7]])
    toys = Jagged(centers, jnp.zeros(4), jnp.zeros(4))
    found = search_all(toys, SearchSettings(), n_choices=1)
    point = np.asarray(found.point)
    assert np.all(point >= np.asarray(LOWER))
    assert np.all(point <= np.asarray(UPPER))
    expected = [[True, False], [False, True], [True, True], [False, False]]
    np.testing.assert_array_equal(found.at_bound, expected)
    np.testing.assert_allclose(point, np.clip(centers, LOWER, UPPER), atol=0.02)


@pytest.mark.parametrize("n_choices", [1, 2, 5])
def test_few_choices_work(n_choices):
    toys = Jagged(jnp.array([[0.3, 1.4], [0.8, 2.2]]), jnp.array([0, n_choices - 1]), jnp.zeros(2))
    found = search_all(toys, SearchSettings(), n_choices=n_choices)
    np.testing.assert_array_equal(found.choice, [0, n_choices - 1])
    assert np.all(np.asarray(found.loss) < 1e-3)


def test_same_input_same_answer(found, toys):
    again = search_all(toys, SearchSettings())
    np.testing.assert_array_equal(found.point, again.point)
    np.testing.assert_array_equal(found.choice, again.choice)


def test_coarse_grid_covers_the_box_without_its_lower_end():
    nodes = np.asarray(coarse_grid(LOWER, UPPER, (4, 3)))
    assert nodes.shape == (12, 2)
    np.testing.assert_allclose(np.unique(nodes[:, 0]), [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(np.unique(nodes[:, 1]), [1.0, 1.75, 2.5])


COUNTS = ("n_seeds", "n_ranked", "n_short", "n_climbers", "n_finalists", "n_tries", "stride")


@pytest.mark.parametrize("name", COUNTS)
def test_counts_below_one_are_refused(name):
    zero: dict[str, Any] = {name: 0}
    with pytest.raises(ValueError, match=f"Expected {name} >= 1; got {name}=0"):
        SearchSettings(**zero)


def test_grid_of_one_line_is_refused():
    with pytest.raises(ValueError, match="Expected a grid of 2 x 2"):
        SearchSettings(grid_shape=(1, 5))
