"""The law of traces around a simulated one: its density, its draws and its mixtures."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density
from scipy import integrate, stats

from prisma_sbi.models import MarginalVehicle, TraceLikelihood, TraceNoise
from prisma_sbi.simulator import Vehicle

LAW: dict[str, float] = {
    "floor_w": 800.0,
    "share": 0.25,
    "memory": 0.6,
    "degrees_of_freedom": 5.0,
}
SIMULATED = np.asarray([12_000.0, 30_000.0, -9_000.0, 0.0, 0.0, 41_000.0])


def product_of_densities(observed, simulated, *, floor_w, share, memory, degrees_of_freedom):
    """Log density by the recursion, one SciPy density after the other."""
    scale = floor_w + share * np.abs(simulated)
    spread = np.sqrt(1.0 - memory**2)
    total = stats.t.logpdf(observed[0], degrees_of_freedom, simulated[0], scale[0])
    z = (observed - simulated) / scale
    for t in range(1, len(observed)):
        location = simulated[t] + scale[t] * memory * z[t - 1]
        total += stats.t.logpdf(observed[t], degrees_of_freedom, location, scale[t] * spread)
    return total


LAWS = {
    "default": LAW,
    "independent": {**LAW, "memory": 0.0},
    "negative memory": {**LAW, "memory": -0.8},
    "heavy tails": {**LAW, "degrees_of_freedom": 1.5},
    "constant scale": {**LAW, "share": 0.0},
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_density_is_the_product_of_students_densities(law):
    rng = np.random.default_rng(0)
    for _ in range(5):
        observed = SIMULATED + 5_000.0 * rng.standard_t(3, SIMULATED.shape)
        found = TraceNoise(jnp.asarray(SIMULATED), **law).log_prob(jnp.asarray(observed))
        assert float(found) == pytest.approx(
            product_of_densities(observed, SIMULATED, **law), rel=1e-10
        )


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("memory", [0.0, 0.6, -0.9])
def test_density_of_two_samples_integrates_to_one(memory):
    law = TraceNoise(jnp.asarray([3_000.0, -1_000.0]), **{**LAW, "memory": memory})
    # A substitution that maps the plane to a square; Student tails decay only as a power.
    nodes, weights = np.polynomial.legendre.leggauss(160)
    angle = 0.5 * np.pi * nodes
    axis, width = 2_000.0 * np.tan(angle), 2_000.0 * 0.5 * np.pi / np.cos(angle) ** 2 * weights
    traces = np.stack(np.meshgrid(axis + 3_000.0, axis - 1_000.0, indexing="ij"), axis=-1)
    density = np.exp(law.log_prob(jnp.asarray(traces)))
    assert width @ density @ width == pytest.approx(1.0, abs=1e-6)


@pytest.mark.usefixtures("x64")
def test_marginal_of_the_first_sample_is_students():
    law = TraceNoise(jnp.asarray([3_000.0, 500.0]), **LAW)
    for first in (-2_000.0, 3_000.0, 6_500.0):
        value, _ = integrate.quad(
            lambda angle, first=first: float(
                np.exp(law.log_prob(jnp.asarray([first, 1_000.0 * np.tan(angle)])))
                * 1_000.0
                / np.cos(angle) ** 2
            ),
            -np.pi / 2 + 1e-9,
            np.pi / 2 - 1e-9,
        )
        scale = LAW["floor_w"] + LAW["share"] * 3_000.0
        assert value == pytest.approx(stats.t.pdf(first, 5.0, 3_000.0, scale), rel=1e-6)


@pytest.mark.parametrize("memory", [0.0, 0.6, -0.5])
def test_draws_have_the_moments_of_the_law(memory):
    n, power = 4_000, np.tile([0.0, 20_000.0, -20_000.0, 5_000.0], 25)
    law = TraceNoise(jnp.asarray(power), **{**LAW, "memory": memory})
    traces = np.asarray(law.sample(jax.random.key(1), (n,)), float)
    assert traces.shape == (n, 100)
    z = (traces - power) / (LAW["floor_w"] + LAW["share"] * np.abs(power))
    # The first sample and the innovations are Student t, whose variance is nu / (nu - 2) for
    # all samples alike: nothing starts cold.
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=5 * np.sqrt(5 / 3 / n))
    assert z.var() == pytest.approx(5 / 3, rel=0.03)
    np.testing.assert_allclose(z.var(axis=0), 5 / 3, rtol=0.35)
    for lag in (1, 2, 4):
        product = np.mean(z[:, lag:] * z[:, :-lag]) / z.var()
        assert product == pytest.approx(memory**lag, abs=0.015)
    innovation = (z[:, 1:] - memory * z[:, :-1]) / np.sqrt(1 - memory**2)
    for draws in (z[:, 0], innovation[:, 40]):
        assert stats.kstest(draws, stats.t(5).cdf).pvalue > 1e-3
        assert stats.kstest(draws, stats.norm(scale=np.sqrt(5 / 3)).cdf).pvalue < 0.05


@pytest.mark.slow
def test_density_of_own_draws_is_higher_than_under_another_law():
    power = jnp.asarray(np.tile(SIMULATED, 20))
    truth = TraceNoise(power, **LAW)
    traces = truth.sample(jax.random.key(2), (200,))
    for name, other in (("floor_w", 1_600.0), ("share", 0.5), ("memory", 0.0)):
        wrong = TraceNoise(power, **{**LAW, name: other})
        assert np.mean(truth.log_prob(traces) - wrong.log_prob(traces)) > 1.0


def test_shapes_batch_and_same_key_same_draw():
    power = jnp.asarray(np.stack([SIMULATED, 2 * SIMULATED]))
    law = TraceNoise(power, **LAW)
    assert (law.batch_shape, law.event_shape) == ((2,), (6,))
    draw = law.sample(jax.random.key(0), (3,))
    assert draw.shape == (3, 2, 6)
    assert law.log_prob(draw).shape == (3, 2)
    np.testing.assert_array_equal(draw, law.sample(jax.random.key(0), (3,)))
    for row in range(2):
        alone = TraceNoise(power[row], **LAW).log_prob(draw[:, row])
        np.testing.assert_allclose(law.log_prob(draw)[:, row], alone, rtol=1e-5)


def test_law_passes_through_jit_and_vmap():
    power = jnp.asarray(np.stack([SIMULATED, 2 * SIMULATED]))
    value = power + 1_000.0
    plain = TraceNoise(power, **LAW).log_prob(value)
    through_jit = jax.jit(lambda law, value: law.log_prob(value))(TraceNoise(power, **LAW), value)
    np.testing.assert_allclose(through_jit, plain, rtol=1e-5)
    laws = jax.vmap(lambda row: TraceNoise(row, **LAW))(power)
    by_row = jax.vmap(lambda law, value: law.log_prob(value))(laws, value)
    np.testing.assert_allclose(by_row, plain, rtol=1e-5)


@pytest.mark.usefixtures("x64")
def test_mixture_over_vehicles_is_what_summing_them_out_gives():
    rng = np.random.default_rng(3)
    powers = jnp.asarray(rng.uniform(0, 40_000, (5, 30)))
    observed = jnp.asarray(rng.uniform(0, 40_000, 30))
    log_prior = jnp.log(jnp.asarray(rng.dirichlet(np.ones(5))))
    law = TraceLikelihood(**LAW).law(powers)
    mixture = dist.MixtureSameFamily(dist.CategoricalLogits(log_prior), law)

    # One stand-in for each vehicle of the pool; its simulated trace is a row of `powers`.
    pool = Vehicle(jnp.zeros((5, 4)), jnp.zeros(5))

    def program():
        MarginalVehicle().condition(lambda _: law.log_prob(observed), pool, log_prior)

    total, _ = log_density(program, (), {}, {})
    assert float(mixture.log_prob(observed)) == pytest.approx(float(total), rel=1e-10)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"memory": 1.0}, "-1 < memory < 1"),
        ({"memory": -1}, "-1 < memory < 1"),
        ({"floor_w": 0.0}, "floor_w > 0"),
        ({"degrees_of_freedom": -2}, "degrees_of_freedom > 0"),
        ({"share": -0.1}, "share >= 0"),
        ({"share": float("nan")}, "share >= 0"),
    ],
)
def test_impossible_parameters_are_refused(wrong, message):
    with pytest.raises(ValueError, match=f"Expected {message}"):
        TraceLikelihood(**wrong)
