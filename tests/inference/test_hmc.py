"""Lockstep Hamiltonian Monte Carlo: exact whatever the force, and only with the accept step."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from prisma_sbi.inference import HmcSettings, lockstep_hmc
from prisma_sbi.inference.transport import normal_force
from tests.inference.chains import effective, thinned

SETTINGS = HmcSettings(n_chains=4, n_warmup=30, n_draws=1_500)
START = 1.5 * np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)


def gaussian(position):
    """Correlated, off center, and not of unit width."""
    offset = position - jnp.asarray([0.3, -0.2])
    precision = jnp.asarray([[1.6, -0.7], [-0.7, 0.9]])
    return -0.5 * offset @ precision @ offset, position[0]


GAUSSIAN_COVARIANCE = np.linalg.inv([[1.6, -0.7], [-0.7, 0.9]])


def banana(position):
    """A normal first coordinate; the second follows its square."""
    bent = position[1] - 0.5 * (position[0] ** 2 - 1.0)
    return -0.5 * position[0] ** 2 - 0.5 * (bent / 0.6) ** 2, position[0]


def wrong_force(position):
    """Neither the gradient of any of these nor of anything: it has a curl."""
    return -position + 0.4 * jnp.stack([-position[1], position[0]])


FORCES = {
    "gradient of a Gaussian": lambda position: jax.grad(lambda x: gaussian(x)[0])(position),
    "gradient of the standard normal": normal_force,
    "no gradient at all": wrong_force,
}


@partial(jax.jit, static_argnums=(1, 2, 3))
def run(key, log_density, force, settings, start):
    return lockstep_hmc(key, log_density, force, start, settings)


@pytest.mark.parametrize("name", FORCES)
def test_gaussian_is_sampled_whatever_the_force(name):
    draws = run(jax.random.key(1), gaussian, FORCES[name], SETTINGS, jnp.asarray(START))
    assert draws.position.shape == (4, 1_500, 2)
    for axis, center in enumerate((0.3, -0.2)):
        law = stats.norm(center, np.sqrt(GAUSSIAN_COVARIANCE[axis, axis]))
        chain = draws.position[..., axis]
        assert effective(chain) > 400
        assert stats.kstest(thinned(chain), law.cdf).pvalue > 1e-3
    covariance = np.cov(np.asarray(draws.position, float).reshape(-1, 2).T)
    # Four standard errors of the larger variance.
    error = 1.7 * np.sqrt(2 / min(effective(draws.position[..., axis]) for axis in range(2)))
    np.testing.assert_allclose(covariance, GAUSSIAN_COVARIANCE, atol=4 * error)
    assert 4 * error < 0.5


@pytest.mark.parametrize("name", ["gradient of the standard normal", "no gradient at all"])
def test_banana_is_sampled_by_a_force_that_knows_nothing_of_it(name):
    draws = run(jax.random.key(2), banana, FORCES[name], SETTINGS, jnp.asarray(START))
    first, second = draws.position[..., 0], draws.position[..., 1]
    assert stats.kstest(thinned(first), "norm").pvalue > 1e-3
    bent = second - 0.5 * (first**2 - 1.0)
    assert stats.kstest(thinned(bent), stats.norm(scale=0.6).cdf).pvalue > 1e-3
    assert min(effective(first), effective(second)) > 300


def test_without_the_accept_step_the_answer_is_wrong(monkeypatch):
    def always(key, shape, dtype, low=0.0, high=1.0):
        # What decides on a proposal has one number a chain; a length is a scalar.
        return uniform(key, shape, dtype, low, high) if shape == () else jnp.full(shape, -1.0)

    uniform = jax.random.uniform
    monkeypatch.setattr(jax.random, "uniform", always)
    draws = lockstep_hmc(jax.random.key(1), gaussian, normal_force, jnp.asarray(START), SETTINGS)
    first = draws.position[..., 0]
    law = stats.norm(0.3, np.sqrt(GAUSSIAN_COVARIANCE[0, 0]))
    assert stats.kstest(thinned(first), law.cdf).pvalue < 1e-6


def test_one_transition_leaves_the_law_as_it_is():
    n = 20_000
    exact = np.random.default_rng(5).multivariate_normal([0.3, -0.2], GAUSSIAN_COVARIANCE, n)
    settings = HmcSettings(n_chains=n, n_warmup=0, n_draws=1)
    start = jnp.asarray(exact, jnp.float32)
    draws = run(jax.random.key(3), gaussian, wrong_force, settings, start)
    after = np.asarray(draws.position[:, 0], float)
    moved = np.any(after != np.asarray(start), axis=1)
    assert 0.3 < moved.mean() < 0.999
    for axis, center in enumerate((0.3, -0.2)):
        law = stats.norm(center, np.sqrt(GAUSSIAN_COVARIANCE[axis, axis]))
        assert stats.kstest(after[:, axis], law.cdf).pvalue > 1e-3
    np.testing.assert_allclose(np.cov(after.T), GAUSSIAN_COVARIANCE, atol=0.03)
    # Those that moved and those that stayed are not by themselves distributed so.
    assert stats.kstest(after[~moved, 0], stats.norm(0.3, 1.0).cdf).pvalue < 1e-3


def test_quarter_turns_on_the_target_itself_give_independent_draws():
    def normal(position):
        return -0.5 * jnp.sum(position**2), ()

    draws = run(jax.random.key(4), normal, normal_force, SETTINGS, jnp.asarray(START))
    assert effective(draws.position[..., 0]) > 0.7 * 4 * 1_500
    assert float(jnp.mean(draws.acceptance)) > 0.9
    assert float(draws.step_scale) == 1.0
    assert not draws.diverging.any()


def test_step_falls_on_a_stiff_target_and_each_trip_has_its_own():
    def stiff(width):
        def log_density(position):
            return -0.5 * jnp.sum((position / width) ** 2), ()

        return log_density

    @jax.jit
    def both(widths, keys):
        return jax.vmap(
            lambda width, key: lockstep_hmc(
                key, stiff(width), normal_force, jnp.asarray(START), SETTINGS
            )
        )(widths, keys)

    draws = both(jnp.asarray([1.0, 0.25]), jax.random.split(jax.random.key(0), 2))
    assert draws.position.shape == (2, 4, 1_500, 2)
    assert float(draws.step_scale[0]) == 1.0
    assert float(draws.step_scale[1]) < 0.6
    # Still right, if slow.
    for row, width in enumerate((1.0, 0.25)):
        chain = draws.position[row, ..., 0]
        assert stats.kstest(thinned(chain), stats.norm(scale=width).cdf).pvalue > 1e-3


def test_what_is_kept_belongs_to_the_draw():
    draws = run(jax.random.key(1), gaussian, normal_force, SETTINGS, jnp.asarray(START))
    np.testing.assert_array_equal(draws.kept, draws.position[..., 0])
    value = jax.vmap(jax.vmap(lambda x: gaussian(x)[0]))(draws.position)
    np.testing.assert_allclose(draws.log_density, value, atol=1e-4)
    # A refused proposal repeats the draw before; about as many as the acceptance says.
    stayed = jnp.all(draws.position[:, 1:] == draws.position[:, :-1], axis=-1)
    assert float(jnp.mean(stayed)) == pytest.approx(1 - float(jnp.mean(draws.acceptance)), abs=0.03)


def test_same_key_same_draws_and_another_key_others():
    one, again, other = (
        run(jax.random.key(seed), gaussian, normal_force, SETTINGS, jnp.asarray(START))
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.position, again.position)
    assert not np.array_equal(one.position, other.position)


def test_cliffs_and_numbers_that_are_none_are_refused_and_reported():
    def half(position):
        inside = position[0] > 0.0
        value = -0.5 * jnp.sum(position**2)
        return jnp.where(inside, value, jnp.where(position[1] > 0, jnp.nan, -jnp.inf)), ()

    start = jnp.abs(jnp.asarray(START)) * jnp.asarray([1.0, -1.0])
    draws = run(jax.random.key(6), half, normal_force, SETTINGS, start)
    assert np.all(draws.position[..., 0] > 0)
    assert np.all(np.isfinite(draws.log_density))
    assert 0.05 < float(jnp.mean(draws.diverging)) < 0.95
    assert stats.kstest(thinned(draws.position[..., 0]), stats.halfnorm.cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_chains": 0}, "n_chains >= 1"),
        ({"n_draws": 0}, "n_draws >= 1"),
        ({"n_steps": 0}, "n_steps >= 1"),
        ({"n_warmup": -1}, "n_warmup >= 0"),
        ({"trajectory": (2.0, 1.0)}, "0 < shortest <= longest"),
        ({"trajectory": (0.0, 1.0)}, "0 < shortest <= longest"),
        ({"target_acceptance": 1.5}, "target_acceptance"),
    ],
)
def test_impossible_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=f"Expected .*{message}"):
        HmcSettings(**wrong)
