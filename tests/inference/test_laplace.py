"""Refinement by fitted quadratics: exact on Gaussians, unmoved by teeth, a climber of ridges."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate as scipy_integrate

from prisma_sbi.inference.laplace import LaplaceSettings, laplace

refine = partial(jax.jit, static_argnums=(0, 2))(laplace)


def quadratic(n_dims, seed=0):
    """A Gaussian log density with its mode, covariance and height."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n_dims, n_dims)) + 1.5 * np.eye(n_dims)
    covariance = 0.3 * root @ root.T
    mode, height = rng.normal(size=n_dims), 2.5
    precision = np.linalg.inv(covariance)

    def log_density(x):
        offset = x - jnp.asarray(mode)
        return height - 0.5 * offset @ jnp.asarray(precision) @ offset

    return log_density, mode, covariance, height


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("n_dims", [1, 2, 5])
def test_gaussian_is_found_exactly_with_its_evidence(n_dims):
    log_density, mode, covariance, height = quadratic(n_dims)
    found = refine(log_density, jnp.zeros(n_dims), LaplaceSettings(n_iterations=25))
    np.testing.assert_allclose(found.mode, mode, atol=1e-5)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-5, atol=1e-7)
    assert float(found.log_density) == pytest.approx(height, abs=1e-8)
    evidence = height + 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    assert float(found.log_evidence()) == pytest.approx(evidence, abs=1e-5)
    np.testing.assert_allclose(found.gradient, 0.0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("n_dims", [2, 5])
def test_single_precision(n_dims):
    log_density, mode, covariance, _ = quadratic(n_dims, seed=1)
    found = refine(log_density, jnp.zeros(n_dims), LaplaceSettings(n_iterations=25))
    np.testing.assert_allclose(found.mode, mode, atol=0.02)
    np.testing.assert_allclose(found.covariance, covariance, rtol=0.02, atol=0.02)


@pytest.mark.usefixtures("x64")
def test_widths_a_thousand_times_apart_and_far_from_the_first_step():
    widths = jnp.asarray([1e-3, 1.0])

    def log_density(x):
        return -0.5 * jnp.sum((x / widths) ** 2)

    found = refine(log_density, jnp.asarray([0.01, 2.0]), LaplaceSettings(n_iterations=25))
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), widths, rtol=1e-4)


def jagged(x):
    """A Gaussian with teeth a hundredth of a unit wide, as a simulator in time steps has."""
    smooth = -0.5 * (x[0] ** 2 + x[0] * x[1] + 2.0 * x[1] ** 2)
    teeth = jnp.sum(jnp.abs(jnp.mod(x / 0.01, 1.0) - 0.5))
    return smooth - 0.05 * teeth


@pytest.mark.usefixtures("x64")
def test_teeth_mislead_derivatives_and_not_the_fit():
    truth = np.linalg.inv([[1.0, 0.5], [0.5, 2.0]])
    found = refine(jagged, jnp.asarray([1.5, -1.0]), LaplaceSettings(n_iterations=20))
    np.testing.assert_allclose(found.mode, 0.0, atol=0.25)
    np.testing.assert_allclose(found.covariance, truth, rtol=0.35, atol=0.05)
    evidence = np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(truth)[1]
    assert float(found.log_evidence()) == pytest.approx(evidence, abs=0.3)
    # The gradient a hundredth of a unit away is a hundred times that of the smooth part.
    slopes = jax.vmap(jax.grad(jagged))(jnp.asarray([[0.003, 0.003], [0.007, 0.003]]))
    assert np.all(np.abs(slopes) > 3.0)


@pytest.mark.usefixtures("x64")
def test_derivatives_mislead_where_the_fit_does_not():
    def rippled(x):
        return -0.5 * jnp.sum(x**2) + 1e-3 * jnp.sum(jnp.cos(x / 5e-3))

    hessian = jax.hessian(rippled)(jnp.zeros(2))
    assert np.linalg.inv(-hessian)[0, 0] < 0.05
    found = refine(rippled, jnp.asarray([0.8, 0.5]), LaplaceSettings(n_iterations=20))
    np.testing.assert_allclose(found.covariance, np.eye(2), atol=0.02)
    np.testing.assert_allclose(found.mode, 0.0, atol=0.1)


def ridge(x):
    """Minus Rosenbrock's banana: a narrow bent ridge that rises slowly to (1, 1)."""
    return -0.5 * ((1.0 - x[0]) ** 2 + 30.0 * (x[1] - x[0] ** 2) ** 2)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("start", [(-1.0, 1.0), (0.0, 2.0), (-0.5, -1.0)])
def test_bent_ridge_is_climbed(start):
    found = refine(ridge, jnp.asarray(start), LaplaceSettings(n_iterations=60))
    assert float(found.log_density) > -1e-3
    np.testing.assert_allclose(found.mode, 1.0, atol=0.05)
    few = refine(ridge, jnp.asarray(start), LaplaceSettings(n_iterations=3))
    assert float(few.log_density) < float(found.log_density)


@pytest.mark.usefixtures("x64")
def test_evidence_of_what_is_no_gaussian_is_near():
    def log_density(x):
        return -jnp.sum(jnp.log(jnp.cosh(x)))

    found = refine(log_density, jnp.asarray([0.5]), LaplaceSettings(n_iterations=20))
    truth, _ = scipy_integrate.quad(lambda x: 1 / np.cosh(x), -30, 30)
    assert float(found.log_evidence()) == pytest.approx(np.log(truth), abs=0.15)
    # The fit spans the width of the posterior, not the curvature at its top alone.
    assert float(found.covariance[0, 0]) > 1.1


@pytest.mark.slow
def test_the_value_never_falls_and_cliffs_do_no_harm():
    def cliff(x):
        value = -0.5 * jnp.sum((x - 0.5) ** 2)
        return jnp.where(x[0] > 0.6, jnp.nan, jnp.where(x[1] > 0.9, -jnp.inf, value))

    for n_iterations in (1, 12):
        start = jnp.asarray([-2.0, -1.5])
        found = refine(cliff, start, LaplaceSettings(n_iterations=n_iterations))
        assert float(found.log_density) >= float(cliff(start))
        assert np.all(np.isfinite(found.mode))
        assert np.all(np.isfinite(found.root))
    np.testing.assert_allclose(found.mode, 0.5, atol=0.05)


def test_nowhere_finite_is_reported_by_its_height():
    found = refine(lambda x: jnp.sum(x) * jnp.nan, jnp.zeros(2), LaplaceSettings())
    assert float(found.log_density) <= -1e11
    assert np.all(np.isfinite(found.mode))


@pytest.mark.usefixtures("x64")
def test_many_at_once_are_each_as_alone():
    widths = jnp.asarray([[0.1, 1.0], [2.0, 0.3]])

    def solve(width):
        def log_density(x):
            return -0.5 * jnp.sum(((x - width) / width) ** 2)

        return laplace(log_density, jnp.zeros(2), LaplaceSettings(n_iterations=20))

    many = jax.jit(jax.vmap(solve))(widths)
    np.testing.assert_allclose(many.mode, widths, rtol=1e-4)
    assert many.covariance.shape == (2, 2, 2)
    expected = np.log(2 * np.pi) + np.log(np.prod(widths, axis=1))
    np.testing.assert_allclose(many.log_evidence(), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"n_iterations": 0}, "n_iterations >= 1"), ({"first_step": 0.0}, "first_step")],
)
def test_impossible_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=f"Expected .*{message}"):
        LaplaceSettings(**wrong)
