"""Importance sampling in the plane: moments, evidence and choices of densities that are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from prisma_sbi.inference.population import PopulationSettings, populate, systematic

RIDGE = np.asarray([[1.0, 0.995], [0.995, 1.0]])


def log_normal(position, mean, covariance):
    offset = position - jnp.asarray(mean)
    precision = jnp.asarray(np.linalg.inv(covariance))
    size = jnp.asarray(np.linalg.slogdet(covariance)[1])
    return -0.5 * offset @ precision @ offset - 0.5 * size - jnp.log(2.0 * jnp.pi)


def two_heaps(position):
    """Three quarters on an oblique ridge, a quarter on a small heap beside it; two choices."""
    ridge = log_normal(position, [0.0, 0.0], 0.01 * RIDGE) + jnp.log(0.75)
    heap = log_normal(position, [0.5, -0.5], 2e-3 * np.eye(2)) + jnp.log(0.25)
    return jnp.stack([ridge, heap]) + 3.0


@pytest.fixture(scope="module")
def found():
    settings = PopulationSettings(n_rounds=8, n_points=256)

    def run(key):
        start_key, walk_key, draw_key = jax.random.split(key, 3)
        first = 0.5 * jax.random.normal(start_key, (128, 2))
        population = populate(walk_key, two_heaps, first, jnp.full(128, 1.0 / 128), settings)
        return population, population.sample(draw_key, 400), population.choice_probability()

    return jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(0), 40))


def test_evidence_and_choices_are_those_of_the_density(found):
    population, _, probability = found
    error = np.std(population.log_evidence) / np.sqrt(40)
    assert abs(np.mean(population.log_evidence) - 3.0) < 4.0 * error
    assert error < 0.05
    np.testing.assert_allclose(np.mean(probability, axis=0), [0.75, 0.25], atol=0.02)


def test_draws_have_the_moments_of_the_density(found):
    _, (position, choice), _ = found
    position, choice = np.asarray(position).reshape(-1, 2), np.asarray(choice).ravel()
    assert np.mean(choice == 0) == pytest.approx(0.75, abs=0.02)
    # Choice and position belong together.
    np.testing.assert_allclose(position[choice == 1].mean(axis=0), [0.5, -0.5], atol=4e-3)
    ridge = position[choice == 0]
    np.testing.assert_allclose(ridge.mean(axis=0), [0.0, 0.0], atol=0.01)
    np.testing.assert_allclose(np.cov(ridge.T), 0.01 * RIDGE, atol=4e-4)


def test_first_half_of_the_draws_is_a_sample_too(found):
    _, (position, _), _ = found
    halves = np.asarray(position).reshape(40, 2, 200, 2).mean(axis=(0, 2))
    np.testing.assert_allclose(halves[0], halves[1], atol=0.01)


def test_systematic_takes_every_position_by_its_share():
    share = jnp.asarray([0.1, 0.0, 0.6, 0.3])
    counts = np.bincount(np.asarray(systematic(jax.random.key(1), share, 100)), minlength=4)
    assert np.all(np.abs(counts - 100 * np.asarray(share)) <= 1)
    assert counts[1] == 0


@pytest.mark.parametrize("wrong", [{"width": 0.0}, {"heat": 0.5}, {"n_rounds": 0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ValueError, match="Expected"):
        PopulationSettings(**wrong)
