"""Products as mantissa and exponent against sums of logarithms in double precision."""

import math

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from jax import lax

from prisma_sbi.models.log_product import LogProduct

factors = st.lists(st.floats(2.0**-100, 2.0**100, width=32), min_size=1, max_size=20)


@jax.jit
def product(values):
    def times(carry, value):
        return carry.times(value), None

    return lax.scan(times, LogProduct.one(values[0]), values)[0]


@given(factors)
@settings(deadline=None)  # compiled for every new length
def test_log_of_a_product_is_the_sum_of_logs(values):
    values = np.asarray(values, np.float32)
    found = product(jnp.asarray(values))
    exact = [math.log(float(value)) for value in values]
    # One rounding in each product, and the last logarithm.
    slack = len(values) * 2.0**-24 + 2.0**-23 * (1.0 + abs(math.fsum(exact)))
    assert float(found.log()) == pytest.approx(math.fsum(exact), abs=2.0 * slack)
    assert 1.0 <= float(found.mantissa) < 2.0


def test_a_product_far_beyond_the_largest_number_stays_finite():
    values = jnp.full(5_000, 3.0e37, jnp.float32)
    exact = 5_000 * math.log(float(values[0]))
    assert not np.isfinite(float(jnp.prod(values)))
    assert float(product(values).log()) == pytest.approx(exact, rel=1e-6)


def test_thousands_of_factors_lose_less_than_a_running_sum_of_logs():
    values = np.random.default_rng(3).lognormal(7.0, 1.0, 20_000).astype(np.float32)
    exact = math.fsum(math.log(float(value)) for value in values)

    def add(total, value):
        return total + jnp.log(value), None

    summed = lax.scan(add, jnp.float32(0.0), jnp.asarray(values))[0]
    lost = abs(float(product(jnp.asarray(values)).log()) - exact)
    assert lost < 0.1 * abs(float(summed) - exact)


@pytest.mark.parametrize("derive", [jax.jacfwd, jax.jacrev])
def test_derivative_is_that_of_the_sum(derive):
    values = jnp.asarray([0.3, 7.0, 1e20, 2e-12, 1.0, 2.0], jnp.float32)
    gradient = derive(lambda x: product(x).log())(values)
    np.testing.assert_allclose(gradient, 1.0 / values, rtol=1e-6)


def test_double_precision_keeps_its_digits():
    with jax.enable_x64(True):
        values = jnp.asarray(np.random.default_rng(4).lognormal(0.0, 100.0, 500))
        assert values.dtype == jnp.float64
        exact = math.fsum(map(math.log, np.asarray(values)))
        assert float(product(values).log()) == pytest.approx(exact, rel=1e-13)
