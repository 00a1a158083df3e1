"""Fréchet distance: closed forms, an independent matrix square root, and laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from prisma_sbi.evaluation import (
    GaussianFit,
    fit_gaussian,
    frechet_distance,
    gaussian_frechet_distance,
    gaussian_from_covariance,
)


def by_matrix_root(a: np.ndarray, b: np.ndarray) -> float:
    """Textbook formula through scipy's general matrix square root."""
    cov_a, cov_b = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    shift = a.mean(axis=0) - b.mean(axis=0)
    root = linalg.sqrtm(cov_a @ cov_b)
    return float(shift @ shift + np.trace(cov_a) + np.trace(cov_b) - 2 * np.trace(root).real)


def random_covariance(size: int, *, seed: int, rank: int | None = None) -> np.ndarray:
    factor = np.random.default_rng(seed).normal(size=(rank or 2 * size, size))
    return factor.T @ factor / len(factor)


def test_frechet_one_dimension_closed_form():
    a = gaussian_from_covariance(np.array([1.0]), np.array([[4.0]]))
    b = gaussian_from_covariance(np.array([4.0]), np.array([[0.25]]))
    assert gaussian_frechet_distance(a, b) == pytest.approx(3.0**2 + (2.0 - 0.5) ** 2, rel=1e-12)


def test_frechet_diagonal_closed_form():
    generator = np.random.default_rng(0)
    sd_a, sd_b = generator.uniform(0.1, 5.0, size=(2, 12))
    mean_a, mean_b = generator.normal(size=(2, 12))
    a = gaussian_from_covariance(mean_a, np.diag(sd_a**2))
    b = gaussian_from_covariance(mean_b, np.diag(sd_b**2))
    expected = np.sum((mean_a - mean_b) ** 2) + np.sum((sd_a - sd_b) ** 2)
    assert gaussian_frechet_distance(a, b) == pytest.approx(expected, rel=1e-12)


def test_frechet_agrees_with_general_matrix_root():
    generator = np.random.default_rng(3)
    a = generator.normal(size=(400, 40)) @ generator.normal(size=(40, 40))
    b = generator.normal(size=(300, 40)) @ generator.normal(size=(40, 40)) + 0.3
    assert frechet_distance(a, b) == pytest.approx(by_matrix_root(a, b), rel=1e-8)


def test_frechet_fit_has_the_sample_covariance():
    for shape in ((50, 8), (8, 8), (5, 8)):
        values = np.random.default_rng(1).normal(size=shape)
        fit = fit_gaussian(values)
        np.testing.assert_allclose(fit.covariance, np.cov(values, rowvar=False), atol=1e-12)
        np.testing.assert_allclose(fit.mean, values.mean(axis=0))
        assert len(fit.factor) <= shape[1]


@pytest.mark.parametrize("n_trips", [10, 30, 200])
def test_frechet_zero_on_identical(n_trips):
    values = 1e5 * np.random.default_rng(0).normal(size=(n_trips, 30))
    assert frechet_distance(values, values) == 0.0
    assert frechet_distance(values, values[::-1].copy()) == 0.0


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_a=st.integers(2, 25),
    n_b=st.integers(2, 25),
    n_samples=st.integers(1, 12),
)
def test_frechet_symmetric_and_not_negative(seed, n_a, n_b, n_samples):
    generator = np.random.default_rng(seed)
    a, b = generator.normal(size=(n_a, n_samples)), generator.normal(size=(n_b, n_samples))
    there, back = frechet_distance(a, b), frechet_distance(b, a)
    assert there >= 0.0
    assert there == pytest.approx(back, rel=1e-9, abs=1e-12)


def test_frechet_mean_shift_adds_its_squared_norm():
    generator = np.random.default_rng(5)
    a, b = generator.normal(size=(80, 10)), 2.0 * generator.normal(size=(90, 10))
    b = b - b.mean(axis=0) + a.mean(axis=0)
    shift = generator.normal(size=10)
    moved = frechet_distance(a, b + shift)
    assert moved == pytest.approx(frechet_distance(a, b) + shift @ shift, rel=1e-10)


def test_frechet_scale_covariance():
    generator = np.random.default_rng(6)
    a, b = generator.normal(size=(80, 10)), 0.5 + generator.normal(size=(90, 10))
    plain = frechet_distance(a, b)
    assert frechet_distance(1e4 * a, 1e4 * b) == pytest.approx(1e8 * plain, rel=1e-10)
    assert frechet_distance(1e4 * a, 1e4 * b, scale=1e4) == pytest.approx(plain, rel=1e-10)


def test_frechet_invariant_under_rotation():
    generator = np.random.default_rng(7)
    a, b = generator.normal(size=(60, 9)), 1.0 + 3.0 * generator.normal(size=(60, 9))
    rotation, _ = np.linalg.qr(generator.normal(size=(9, 9)))
    rotated = frechet_distance(a @ rotation, b @ rotation)
    assert rotated == pytest.approx(frechet_distance(a, b), rel=1e-10)


def test_frechet_exact_where_the_covariance_is_singular():
    # Variance only along one direction each, at an angle: closed form |u|^2 + |v|^2 - 2 |u.v|.
    u, v = np.zeros(50), np.zeros(50)
    u[0], v[0], v[1] = 3.0, 1.0, 1.0
    a = gaussian_from_covariance(np.zeros(50), np.outer(u, u))
    b = gaussian_from_covariance(np.zeros(50), np.outer(v, v))
    assert gaussian_frechet_distance(a, b) == pytest.approx(9.0 + 2.0 - 2 * 3.0, rel=1e-7)


def test_frechet_continuous_near_singular():
    # Eigenvalues down to 1e-14 of the largest: sqrt of the product would lose half the digits.
    sizes = np.logspace(0, -14, 40)
    vectors, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(40, 40)))
    covariance = (vectors * sizes) @ vectors.T
    a = gaussian_from_covariance(np.zeros(40), covariance)
    b = gaussian_from_covariance(np.zeros(40), 4.0 * covariance)
    assert gaussian_frechet_distance(a, b) == pytest.approx(np.trace(covariance), rel=1e-9)


def test_frechet_of_500_samples_with_singular_covariances_that_commute():
    # One set of axes, variances over 12 decades, and directions that only one side or neither has.
    generator = np.random.default_rng(9)
    axes, _ = np.linalg.qr(generator.normal(size=(500, 500)))
    sd_a, sd_b = 10.0 ** generator.uniform(-6.0, 0.0, size=(2, 500))
    sd_a[:200], sd_b[100:300] = 0.0, 0.0
    expected = np.sum((sd_a - sd_b) ** 2)
    factors = [
        GaussianFit(mean=np.zeros(500), factor=sd[sd > 0, None] * axes.T[sd > 0])
        for sd in (sd_a, sd_b)
    ]
    assert gaussian_frechet_distance(*factors) == pytest.approx(expected, rel=1e-12)
    # Through the covariance variances under 1e-16 of the largest are lost, not more.
    rebuilt = [gaussian_from_covariance(fit.mean, fit.covariance) for fit in factors]
    assert gaussian_frechet_distance(*rebuilt) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("rank_a", "rank_b"), [(1, 1), (2, 5), (3, 7)])
def test_frechet_of_singular_covariances_agrees_with_60_digits(rank_a, rank_b):
    mpmath = pytest.importorskip("mpmath")
    generator = np.random.default_rng(rank_a)
    factor_a, factor_b = (
        generator.normal(size=(rank, 40)) * np.logspace(0, -7, rank)[:, None]
        for rank in (rank_a, rank_b)
    )
    with mpmath.workdps(60):
        a, b = mpmath.matrix(factor_a.tolist()), mpmath.matrix(factor_b.tolist())
        product = a * b.T
        squares = mpmath.eigsy(product * product.T, eigvals_only=True)
        trace = sum(x * x for x in a) + sum(x * x for x in b)
        expected = float(trace - 2 * sum(mpmath.sqrt(abs(value)) for value in squares))
    fits = [GaussianFit(mean=np.zeros(40), factor=factor) for factor in (factor_a, factor_b)]
    assert gaussian_frechet_distance(*fits) == pytest.approx(expected, rel=1e-13)


def sampling_bias(variances: np.ndarray, n_trips: int) -> float:
    """Expected distance of two samples of one Gaussian with these variances, to first order."""
    left, right = variances[:, None], variances[None, :]
    spread = left * right * (1.0 + np.eye(len(variances))) / (left + right)
    return float(2.0 * variances.sum() + spread.sum()) / n_trips


@pytest.mark.parametrize("n_trips", [500, 1000])
def test_frechet_between_two_draws_of_one_law_is_sampling_noise_over_n(n_trips):
    variances = np.array([4.0, 1.0, 0.3, 0.01])
    generator = np.random.default_rng(10)
    found = []
    for _ in range(300):
        a, b = np.sqrt(variances) * generator.normal(size=(2, n_trips, 4))
        found.append(frechet_distance(a, b))
    error = np.std(found) / np.sqrt(len(found))
    expected = sampling_bias(variances, n_trips)
    assert error < 0.05 * expected
    assert np.mean(found) == pytest.approx(expected, abs=3.5 * error)


def test_frechet_fewer_trips_than_samples_agrees_with_a_jittered_fit():
    generator = np.random.default_rng(8)
    a, b = generator.normal(size=(20, 60)), 1.5 * generator.normal(size=(25, 60))
    jitter = 1e-10 * np.eye(60)
    fits = [
        gaussian_from_covariance(x.mean(axis=0), np.cov(x, rowvar=False) + jitter) for x in (a, b)
    ]
    assert frechet_distance(a, b) == pytest.approx(gaussian_frechet_distance(*fits), rel=1e-4)


def test_frechet_rejects_one_trace():
    with pytest.raises(ValueError, match="at least 2 traces"):
        frechet_distance(np.zeros((1, 5)), np.zeros((5, 5)))


def test_frechet_rejects_what_is_no_covariance():
    with pytest.raises(ValueError, match="symmetric"):
        gaussian_from_covariance(np.zeros(2), np.array([[1.0, 0.5], [0.0, 1.0]]))
    with pytest.raises(ValueError, match="positive semi-definite"):
        gaussian_from_covariance(np.zeros(2), np.diag([1.0, -0.5]))


def test_frechet_clips_eigenvalues_below_zero_from_rounding():
    covariance = random_covariance(6, seed=0, rank=2)
    covariance -= 1e-12 * np.eye(6)
    fit = gaussian_from_covariance(np.zeros(6), covariance)
    assert np.all(np.isfinite(fit.factor))
    np.testing.assert_allclose(fit.covariance, covariance, atol=1e-11)
