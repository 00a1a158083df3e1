"""Importance sampling in the plane: moments, evidence and choices of densities that are known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

from prisma_sbi.inference import Box, PartialTarget
from prisma_sbi.inference.population import PopulationSettings, populate, survey, systematic

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


def log_start(position):
    """Density that the first points are drawn from."""
    return log_normal(position, [0.0, 0.0], 0.25 * np.eye(2))


@pytest.fixture(scope="module")
def found():
    shares = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.0, 1.0)
    settings = PopulationSettings(shares=shares, n_points=256, heat=1.0)
    powers = jnp.asarray(sorted(set(shares)))

    def run(key):
        start_key, walk_key, draw_key = jax.random.split(key, 3)
        first = 0.5 * jax.random.normal(start_key, (128, 2))
        population = populate(
            walk_key,
            lambda position: jnp.outer(powers, two_heaps(position)),
            jnp.asarray([0.5, -0.5]),
            first,
            log_start,
            settings,
        )
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


class Clock(eqx.Module):
    """Where the phase of a wave is read: each second narrows the place, as one of many heaps.

    The second choice is half as likely as the first.
    """

    truth: float = 0.437
    n_times: int = eqx.field(static=True, default=256)

    def log_weights(self, point: Float[Array, "2"], *, stride: int = 1) -> Float[Array, " choice"]:
        return self.partial_log_weights(point, (1.0,))[0]

    def partial_log_weights(
        self, point: Float[Array, "2"], shares: tuple[float, ...]
    ) -> Float[Array, "share choice"]:
        time = jnp.arange(1, self.n_times + 1)
        misfit = jnp.sin(5.0 * time * point[0]) - jnp.sin(5.0 * time * self.truth)
        step = jnp.cumsum(-2.0 * misfit**2)
        ends = jnp.asarray([round(share * self.n_times) - 1 for share in shares])
        return step[ends][:, None] + jnp.log(jnp.asarray([2.0, 1.0]) / 3.0)


class TemperedClock(eqx.Module):
    """The same without a beginning: only powers of its density are to be had."""

    clock: Clock

    def log_weights(self, point: Float[Array, "2"], *, stride: int = 1) -> Float[Array, " choice"]:
        return self.clock.log_weights(point)


SQUARE = Box(jnp.zeros(2), jnp.ones(2))


def exact_log_evidence(clock):
    place = (np.arange(400_000) + 0.5) / 400_000
    points = jnp.column_stack([jnp.asarray(place, jnp.float32), jnp.full(400_000, 0.5)])
    weights = jax.jit(lambda x: jax.lax.map(clock.log_weights, x, batch_size=4_000))(points)
    return float(jax.nn.logsumexp(weights) - np.log(400_000))


def test_beginnings_of_the_data_lead_to_the_right_one_of_many_heaps():
    """The heap is 1 part in 2,000 of the square; powers of the density find it less often."""
    expected = exact_log_evidence(Clock())

    def missed(target):
        def run(key):
            found = survey(key, target, SQUARE, jnp.full(2, 0.5), PopulationSettings())
            return found.log_evidence, found.choice_probability()

        evidence, probability = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(2), 30))
        np.testing.assert_allclose(probability, np.tile([2 / 3, 1 / 3], (30, 1)), atol=1e-3)
        return int(np.sum(np.abs(evidence - expected) > 0.5))

    assert isinstance(Clock(), PartialTarget)
    assert not isinstance(TemperedClock(Clock()), PartialTarget)
    assert missed(Clock()) == 0
    assert missed(TemperedClock(Clock())) > 0


def test_systematic_takes_every_position_by_its_share():
    share = jnp.asarray([0.1, 0.0, 0.6, 0.3])
    counts = np.bincount(np.asarray(systematic(jax.random.key(1), share, 100)), minlength=4)
    assert np.all(np.abs(counts - 100 * np.asarray(share)) <= 1)
    assert counts[1] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 0.0},
        {"heat": 0.5},
        {"n_points": 0},
        {"shares": ()},
        {"shares": (0.0, 1.0)},
        {"shares": (0.5, 0.25, 1.0)},
        {"shares": (0.25, 0.5)},
        {"first_shape": (1, 8)},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ValueError, match="Expected"):
        PopulationSettings(**wrong)
