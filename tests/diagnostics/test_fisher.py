"""Fisher information: closed forms, and the curvature of the expected log likelihood."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from prisma_sbi.diagnostics import (
    gaussian_information,
    information_spectrum,
    trace_information,
)
from prisma_sbi.models import TraceNoise

N_TIMES = 12
TRUTH = np.asarray([1.0, 0.4])


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def wave(parameters):
    """A smooth power of two parameters, of both signs."""
    time = jnp.arange(N_TIMES)
    return 2.0 * parameters[0] * jnp.sin(0.6 * time + parameters[1]) + 0.3 * parameters[1] * time


def information(noise, at=TRUTH):
    parameters = jnp.asarray(at)
    return np.asarray(trace_information(wave(parameters), jax.jacfwd(wave)(parameters), **noise))


@pytest.mark.parametrize(
    ("share", "memory", "degrees_of_freedom"),
    [(0.0, 0.6, 5.0), (0.5, 0.6, 5.0), (0.5, -0.3, 30.0)],
)
def test_equals_the_curvature_of_the_expected_log_likelihood(share, memory, degrees_of_freedom):
    """Finite differences of a mean over many draws of the noise, the same at every point."""
    noise = {
        "floor_w": 0.7,
        "share": share,
        "memory": memory,
        "degrees_of_freedom": degrees_of_freedom,
    }
    draws = TraceNoise(wave(jnp.asarray(TRUTH)), **noise).sample(jax.random.key(1), (60_000,))
    step = 1e-2

    @jax.jit
    def expected(parameters):
        return -jnp.mean(TraceNoise(wave(parameters), **noise).log_prob(draws))

    hessian = np.zeros((2, 2))
    for i in range(2):
        for j in range(2):
            a, b = step * np.eye(2)[i], step * np.eye(2)[j]
            corners = [
                (sign * other, expected(jnp.asarray(TRUTH + sign * a + other * b)))
                for sign in (1.0, -1.0)
                for other in (1.0, -1.0)
            ]
            hessian[i, j] = sum(sign * float(value) for sign, value in corners) / (4.0 * step**2)
    found = information(noise)
    np.testing.assert_allclose(found, hessian, rtol=0.05, atol=0.025 * np.max(found))


def test_of_a_normal_law_is_that_of_its_covariance():
    """Nearly normal innovations without growing scale: J' C^-1 J with the dense covariance."""
    noise = {"floor_w": 0.7, "share": 0.0, "memory": 0.6, "degrees_of_freedom": 1e9}
    lag = np.abs(np.subtract.outer(np.arange(N_TIMES), np.arange(N_TIMES)))
    covariance = 0.7**2 * 0.6**lag
    jacobian = np.asarray(jax.jacfwd(wave)(jnp.asarray(TRUTH)))
    dense = jacobian.T @ np.linalg.solve(covariance, jacobian)
    np.testing.assert_allclose(information(noise), dense, rtol=1e-6)


def test_student_factor_and_white_noise_by_hand():
    noise = {"floor_w": 2.0, "share": 0.0, "memory": 0.0, "degrees_of_freedom": 5.0}
    jacobian = jax.jacfwd(wave)(jnp.asarray(TRUTH))
    white = np.asarray(gaussian_information(jacobian, 2.0))
    np.testing.assert_allclose(information(noise), 6.0 / 8.0 * white, rtol=1e-9)


def test_spectrum_of_a_known_matrix():
    """A sloppy pair: the difference is known a hundred times better than the sum."""
    scale = np.asarray([0.5, 2.0])
    rotated = np.asarray([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2.0)
    scaled = rotated @ np.diag([1e4, 1.0]) @ rotated.T
    found = information_spectrum(scaled / scale / scale[:, None], scale)
    np.testing.assert_allclose(found.eigenvalue, [1e4, 1.0])
    np.testing.assert_allclose(np.abs(found.eigenvector), np.sqrt(0.5) * np.ones((2, 2)))
    assert found.eigenvector[0, 0] * found.eigenvector[1, 0] < 0.0
    covariance = np.linalg.inv(scaled / scale / scale[:, None])
    np.testing.assert_allclose(found.bound, np.sqrt(np.diag(covariance)))
    np.testing.assert_allclose(
        found.bound_alone, 1.0 / np.sqrt(np.diag(scaled / scale / scale[:, None]))
    )
    assert np.all(found.bound_alone < found.bound)


def test_what_is_not_identified_has_no_bound():
    singular = np.asarray([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]])
    found = information_spectrum(np.stack([singular, np.zeros((3, 3))]), np.ones(3))
    assert found.bound[0].tolist() == [np.inf, np.inf, pytest.approx(0.5)]
    assert np.all(np.isinf(found.bound[1]))
    np.testing.assert_allclose(found.bound_alone[0], [1.0, 1.0, 0.5])
    with pytest.raises(ValueError, match="positive scale"):
        information_spectrum(singular, np.asarray([1.0, 0.0, 1.0]))
