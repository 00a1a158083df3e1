"""Point masses by annealed descent: the mode of a conjugate model, for many data sets at once."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from prisma_sbi.inference.svi import SviSettings, svi_map

PRIOR_MEAN, PRIOR_SCALE, NOISE_SCALE = 1.0, 2.0, 0.5


def conjugate(data, temperature=None):
    """A normal mean with a normal prior; the temperature widens the noise."""
    scale = NOISE_SCALE if temperature is None else NOISE_SCALE * jnp.sqrt(temperature)
    mean = numpyro.sample("mean", dist.Normal(PRIOR_MEAN, PRIOR_SCALE))
    numpyro.sample("data", dist.Normal(mean, scale).expand([len(data)]).to_event(1), obs=data)


def mode_of(data, temperature):
    """In closed form."""
    variance = temperature * NOISE_SCALE**2
    precision = 1 / PRIOR_SCALE**2 + data.shape[-1] / variance
    return (PRIOR_MEAN / PRIOR_SCALE**2 + data.sum(axis=-1) / variance) / precision


@partial(jax.jit, static_argnums=2)
def solve(key, data, settings):
    return svi_map(key, conjugate, data, settings)


DATA = np.random.default_rng(0).normal([[-3.0], [0.0], [2.0], [7.0]], 0.5, (4, 6))
LONG = SviSettings(n_steps=800, step_size=0.05, temperature=(1.0, 1.0))


def test_modes_of_several_data_sets_at_once():
    values, loss = solve(jax.random.key(0), jnp.asarray(DATA), LONG)
    assert set(values) == {"mean"}
    assert loss.shape == (4,)
    np.testing.assert_allclose(values["mean"], mode_of(DATA, 1.0), atol=2e-3)
    # The loss is minus the log joint density there.
    joint = dist.Normal(PRIOR_MEAN, PRIOR_SCALE).log_prob(values["mean"]) + jnp.sum(
        dist.Normal(values["mean"][:, None], NOISE_SCALE).log_prob(jnp.asarray(DATA)), axis=1
    )
    np.testing.assert_allclose(loss, -joint, rtol=1e-3)


@pytest.mark.slow
def test_last_temperature_is_the_one_that_counts():
    hot, cold = (
        solve(jax.random.key(0), jnp.asarray(DATA), SviSettings(n_steps=800, temperature=pair))[0]
        for pair in ((40.0, 40.0), (40.0, 1.0))
    )
    np.testing.assert_allclose(hot["mean"], mode_of(DATA, 40.0), atol=0.05)
    np.testing.assert_allclose(cold["mean"], mode_of(DATA, 1.0), atol=0.01)
    # They differ by more than that: the temperature arrives in the model.
    assert np.max(np.abs(mode_of(DATA, 40.0) - mode_of(DATA, 1.0))) > 1.0


def test_a_data_set_is_fitted_the_same_alone_and_among_others():
    values, _ = solve(jax.random.key(0), jnp.asarray(DATA), LONG)
    alone, _ = solve(jax.random.key(0), jnp.asarray(DATA[2:3]), LONG)
    np.testing.assert_allclose(alone["mean"][0], values["mean"][2], atol=1e-4)


def test_too_few_steps_do_not_get_there():
    values, _ = solve(jax.random.key(0), jnp.asarray(DATA), SviSettings(n_steps=5))
    assert np.max(np.abs(values["mean"] - mode_of(DATA, 0.1))) > 1.0


@pytest.mark.slow
def test_bounded_sites_stay_inside_and_reach_their_mode():
    def bounded(data, temperature=None):
        del temperature
        share = numpyro.sample("share", dist.Beta(2.0, 2.0))
        numpyro.sample("data", dist.Binomial(10, probs=share), obs=data)

    counts = jnp.asarray([0.0, 3.0, 10.0])
    values, _ = jax.jit(lambda key: svi_map(key, bounded, counts, LONG))(jax.random.key(1))
    np.testing.assert_allclose(values["share"], (counts + 1) / 12, atol=5e-3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_steps": 0}, "n_steps >= 1"),
        ({"step_size": 0.0}, "step_size"),
        ({"temperature": (1.0, 0.0)}, "temperatures > 0"),
        ({"temperature": (1.0, float("nan"))}, "temperatures > 0"),
    ],
)
def test_impossible_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=f"Expected .*{message}"):
        SviSettings(**wrong)
