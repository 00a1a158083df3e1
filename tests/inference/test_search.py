"""The search on a toy that knows nothing of trips."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from prisma_sbi.inference import SearchSettings, minimize_trips, search

LOWER, UPPER = jnp.array([0.0, 1.0]), jnp.array([1.0, 2.5])


class Jagged(eqx.Module):
    """A bowl with ripples; each choice moves the bottom and lifts it by its own amount."""

    center: jax.Array
    best: jax.Array

    def residuals(self, point, vehicle):
        gap = (vehicle - self.best) / 10.0
        ripple = 0.05 * jnp.sin(60.0 * point[0]) * jnp.cos(50.0 * point[1])
        return jnp.stack(
            [point[0] - self.center[0] - 0.3 * gap, point[1] - self.center[1], gap + ripple]
        )

    def losses(self, point, vehicles, *, stride=1):
        residuals = jax.vmap(lambda v: self.residuals(point, v))(vehicles)
        return 0.5 * jnp.sum(residuals**2, axis=1) + 1e-4 * (stride - 1)

    def promise(self, point, vehicles, *, stride=1):
        return jnp.min(self.losses(point, vehicles, stride=stride))


def brute_force(objective, n_choices):
    a, b = np.meshgrid(np.linspace(0, 1, 301), np.linspace(1, 2.5, 301), indexing="ij")
    points = jnp.asarray(np.stack([a.ravel(), b.ravel()], axis=1))
    return float(jnp.min(jax.vmap(lambda p: objective.losses(p, jnp.arange(n_choices)))(points)))


@pytest.mark.parametrize("center", [(0.2, 1.1), (0.55, 1.9), (0.97, 2.5)])
def test_search_finds_what_brute_force_finds(center):
    objective = Jagged(jnp.array(center), jnp.array(7.0))
    found = search(objective, LOWER, UPPER, jnp.arange(0, 20, 4), 20, SearchSettings())
    assert float(found.loss) <= brute_force(objective, 20) + 1e-3
    assert np.all(np.asarray(found.point) >= LOWER) & np.all(np.asarray(found.point) <= UPPER)
    residuals = objective.residuals(found.point, found.choice)
    assert float(found.loss) == pytest.approx(float(0.5 * residuals @ residuals), rel=1e-5)


def test_search_without_descent_is_worse():
    centers = np.random.default_rng(0).uniform([0.1, 1.1], [0.9, 2.4], (20, 2))
    losses = {}
    for generations in ((3, 2), (0, 0)):
        settings = SearchSettings(n_generations=generations)
        losses[generations] = [
            float(
                search(
                    Jagged(jnp.array(c), jnp.array(7.0)),
                    LOWER,
                    UPPER,
                    jnp.arange(0, 20, 4),
                    20,
                    settings,
                ).loss
            )
            for c in centers[:6]
        ]
    assert np.mean(losses[3, 2]) < 0.5 * np.mean(losses[0, 0])


def test_one_choice_and_chunks_do_not_matter():
    centers = np.random.default_rng(1).uniform([0.1, 1.1], [0.9, 2.4], (7, 2)).astype(np.float32)

    def build(rows):
        return Jagged(jnp.asarray(centers[rows]), jnp.zeros(len(rows)))

    seen = []
    found = [
        minimize_trips(
            build,
            7,
            in_axes=Jagged(0, 0),
            lower=np.asarray(LOWER),
            upper=np.asarray(UPPER),
            representatives=np.array([0]),
            n_choices=1,
            chunk_size=size,
            progress=lambda done, total: seen.append((done, total)),
        )
        for size in (3, 7)
    ]
    assert found[0].point.shape == (7, 2)
    np.testing.assert_allclose(found[0].loss, found[1].loss, rtol=1e-5)
    assert seen[-1] == (7, 7)
    assert np.all(found[0].choice == 0)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="n_seeds"):
        SearchSettings(n_seeds=0)
    with pytest.raises(ValueError, match="grid"):
        SearchSettings(grid_shape=(1, 5))
