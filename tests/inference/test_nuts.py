"""No-U-turn sampling of known posteriors, compiled once; gradients in forward mode."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

from prisma_sbi.inference.nuts import (
    NutsSettings,
    WhitenedNutsSettings,
    numpyro_nuts,
    plane_nuts,
    whitened_nuts,
    with_forward_gradient,
)
from prisma_sbi.inference.transport import normal_force
from tests.inference.chains import effective, thinned
from tests.inference.targets import LOWER, UPPER, Decay, bells, make_box, truth_of

SETTINGS = NutsSettings(n_chains=2, n_warmup=300, n_draws=600)
COUNT = []


def regression(data):
    """Intercept and slope under flat priors, whose posterior is a Gaussian by least squares."""
    COUNT.append(1)
    line = jnp.asarray(numpyro.sample("line", dist.Normal(0.0, 100.0).expand([2]).to_event(1)))
    mean = line[0] + line[1] * data["x"]
    numpyro.sample("y", dist.Normal(mean, 0.5).to_event(1), obs=data["y"])


def least_squares(data):
    """Mean and covariance in closed form."""
    x = np.column_stack([np.ones_like(data["x"]), data["x"]])
    precision = x.T @ x / 0.25 + np.eye(2) / 100.0**2
    covariance = np.linalg.inv(precision)
    return covariance @ (x.T @ data["y"]) / 0.25, covariance


def draw_data(seed):
    """Points about a line."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 2.0, 12)
    return {"x": x, "y": 1.0 + rng.normal(0, 2) * x + rng.normal(0, 0.5, 12)}


def standard_error(chain):
    """Of a mean."""
    return np.std(chain) / np.sqrt(effective(chain))


@pytest.mark.slow
def test_numpyro_recovers_a_known_posterior_and_compiles_once():
    sample, counts = numpyro_nuts(regression, SETTINGS), []
    for seed in range(3):
        data = draw_data(seed)
        draws, fields = sample(jax.random.key(seed), jax.tree.map(jnp.asarray, data))
        assert draws["line"].shape == (2, 600, 2)
        assert {"accept_prob", "diverging", "num_steps"} <= set(fields)
        assert np.mean(fields["accept_prob"]) > 0.6
        mean, covariance = least_squares(data)
        for axis in range(2):
            chain = np.asarray(draws["line"][..., axis], float)
            assert abs(chain.mean() - mean[axis]) < 4 * standard_error(chain)
            assert chain.std() == pytest.approx(np.sqrt(covariance[axis, axis]), rel=0.15)
        found = np.corrcoef(np.asarray(draws["line"], float).reshape(-1, 2).T)[0, 1]
        expected = covariance[0, 1] / np.sqrt(np.prod(np.diag(covariance)))
        assert found == pytest.approx(expected, abs=0.08)
        counts.append(len(COUNT))
    # The first run traces the program; the others run what was compiled.
    assert counts[0] > 0
    assert counts[1] == counts[2] == counts[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "build",
    [
        lambda: bells([[0.45, 1.6], [0.5, 1.8]], [0.06, 0.12], correlation=0.8, weights=[1.0, 2.0]),
        lambda: Decay(jnp.asarray([30.0, 4.0])),
    ],
    ids=["correlated, two choices", "against two edges"],
)
def test_plane_nuts_recovers_a_known_posterior(build):
    target = build()
    truth = truth_of(target)
    root = np.linalg.cholesky(truth.covariance)
    normal = np.random.default_rng(0).normal(size=(60, 2))
    start = np.clip(truth.mean + normal @ root.T, LOWER + 0.01, UPPER - 0.01)
    points, statistics = jax.jit(
        lambda key: plane_nuts(key, target, make_box(), jnp.asarray(start, jnp.float32), SETTINGS)
    )(jax.random.key(0))
    assert points.shape == (2, 600, 2)
    assert {name: value.shape for name, value in statistics.items()} == dict.fromkeys(
        ("acceptance", "diverging", "n_steps"), (2, 600)
    )
    assert np.mean(statistics["acceptance"]) > 0.6
    assert np.mean(statistics["diverging"]) < 0.02
    for axis in range(2):
        chain = np.asarray(points[..., axis], float)
        assert abs(chain.mean() - truth.mean[axis]) < 4 * standard_error(chain)
        assert effective(chain) > 150
        assert stats.kstest(thinned(chain), truth.cdf(axis)).pvalue > 1e-3


def banana(position):
    """A normal first coordinate; the second follows its square."""
    bent = position[1] - 0.5 * (position[0] ** 2 - 1.0)
    return -0.5 * position[0] ** 2 - 0.5 * (bent / 0.6) ** 2, None


@pytest.mark.slow
def test_trees_with_a_force_that_is_no_gradient_recover_a_known_posterior():
    start = 1.5 * jax.random.normal(jax.random.key(1), (4, 2))
    settings = WhitenedNutsSettings(n_draws=1_500)
    position, statistics = jax.jit(
        lambda key: whitened_nuts(key, banana, normal_force, start, settings)
    )(jax.random.key(0))
    assert position.shape == (4, 1_500, 2)
    assert {name: value.shape for name, value in statistics.items()} == dict.fromkeys(
        ("acceptance", "diverging", "n_steps"), (4, 1_500)
    )
    first, second = (np.asarray(position[..., axis], float) for axis in range(2))
    assert stats.kstest(thinned(first), "norm").pvalue > 1e-3
    bent = second - 0.5 * (first**2 - 1.0)
    assert stats.kstest(thinned(bent), stats.norm(scale=0.6).cdf).pvalue > 1e-3
    assert min(effective(first), effective(second)) > 400


def bumpy(x):
    """A function with a loop in it."""

    def step(carry, _):
        return jnp.tanh(carry @ jnp.asarray([[0.9, 0.3], [-0.2, 0.8]])) + 0.1 * x, None

    return jnp.sum(jax.lax.scan(step, x, length=20)[0] ** 2)


def test_gradient_in_forward_mode_is_the_gradient():
    wrapped = with_forward_gradient(bumpy)
    for at in np.random.default_rng(0).normal(size=(5, 2)):
        value, slope = jax.value_and_grad(wrapped)(jnp.asarray(at))
        expected_value, expected_slope = jax.value_and_grad(bumpy)(jnp.asarray(at))
        assert float(value) == pytest.approx(float(expected_value), rel=1e-5)
        np.testing.assert_allclose(slope, expected_slope, rtol=1e-4)
        assert float(wrapped(jnp.asarray(at))) == pytest.approx(float(expected_value), rel=1e-5)
    many = jax.jit(jax.vmap(jax.grad(lambda x: 3.0 * wrapped(x))))(jnp.ones((4, 2)))
    np.testing.assert_allclose(
        many, jnp.tile(3.0 * jax.grad(bumpy)(jnp.ones(2)), (4, 1)), rtol=1e-4
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_chains": 0}, "n_chains >= 1"),
        ({"n_warmup": 0}, "n_warmup >= 1"),
        ({"max_tree_depth": 0}, "max_tree_depth >= 1"),
        ({"target_acceptance": 1.0}, "0 < target_acceptance < 1"),
    ],
)
def test_impossible_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=f"Expected {message}"):
        NutsSettings(**wrong)
