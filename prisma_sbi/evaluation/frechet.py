"""Fréchet distance between two populations, each taken as one Gaussian in R^T."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianFit:
    """A Gaussian whose covariance is kept as a factor.

    Attributes
    ----------
    mean : (time,)
    factor : (rank, time)
        Any matrix with ``factor.T @ factor`` equal to the covariance. The covariance itself
        is never formed, so its condition number is never squared.
    """

    mean: np.ndarray
    factor: np.ndarray

    @property
    def covariance(self) -> np.ndarray:
        """Covariance ``(time, time)``."""
        return self.factor.T @ self.factor


def fit_gaussian(values: Float[np.ndarray, "trip time"]) -> GaussianFit:
    """Mean and unbiased covariance of a population.

    Parameters
    ----------
    values : (trip, time)
        At least two rows.

    Returns
    -------
    fit
        Rank-deficient where there are fewer rows than samples; that is no obstacle.

    Raises
    ------
    ValueError
        If there are fewer than two rows.
    """
    n_trips = len(values)
    if n_trips < 2:
        raise ValueError(
            f"Expected at least 2 traces to fit a covariance; got {n_trips}. Add traces."
        )
    mean = values.mean(axis=0)
    centered = (values - mean) / np.sqrt(n_trips - 1)
    if n_trips > values.shape[1]:
        centered = np.linalg.qr(centered, mode="r")
    return GaussianFit(mean=mean, factor=centered)


def gaussian_from_covariance(
    mean: Float[np.ndarray, " time"], covariance: Float[np.ndarray, "time time"]
) -> GaussianFit:
    """Make the fit with a given covariance; eigenvalues below 0 (rounding) count as 0.

    Parameters
    ----------
    mean : (time,)
    covariance : (time, time)
        Symmetric, positive semi-definite up to rounding.

    Returns
    -------
    fit
        Its factor is the scaled transpose of the eigenvectors.

    Raises
    ------
    ValueError
        If the covariance is not symmetric or has an eigenvalue clearly below 0.
    """
    size = np.abs(covariance).max(initial=0.0)
    if not np.allclose(covariance, covariance.T, rtol=0.0, atol=1e-8 * size):
        raise ValueError("Expected a symmetric covariance; got an asymmetric one. Symmetrize it.")
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    if values[0] < -1e-6 * max(values[-1], 0.0) - 1e-300:
        raise ValueError(
            "Expected a positive semi-definite covariance; got the eigenvalue "
            f"{float(values[0])!r} beside {float(values[-1])!r}. Check how it was estimated."
        )
    root = np.sqrt(np.clip(values, 0.0, None))
    return GaussianFit(mean=mean, factor=root[:, None] * vectors.T)


def gaussian_frechet_distance(fit_a: GaussianFit, fit_b: GaussianFit) -> float:
    r"""Squared Fréchet (2-Wasserstein) distance between two Gaussians.

    Parameters
    ----------
    fit_a, fit_b
        Over the same samples.

    Returns
    -------
    distance
        In the squared unit of the values; not negative; 0 where the difference is below
        the rounding error of its terms.

    Notes
    -----
    The closed form [1]_ is

    .. math::
       d^2 = \lVert \mu_a - \mu_b \rVert^2 + \operatorname{tr}(\Sigma_a + \Sigma_b)
             - 2 \operatorname{tr}\bigl(\Sigma_a^{1/2} \Sigma_b \Sigma_a^{1/2}\bigr)^{1/2}.

    With any factors :math:`F_a^\top F_a = \Sigma_a` and :math:`F_b^\top F_b = \Sigma_b` the last
    trace is the sum of the singular values of :math:`F_a F_b^\top`: real by construction,
    and exact to rounding where a square root of a nearly singular product is not.

    References
    ----------
    .. [1] Dowson and Landau, The Fréchet distance between multivariate normal
       distributions, 1982. https://doi.org/10.1016/0047-259X(82)90077-X
    """
    shift = fit_a.mean - fit_b.mean
    spread = float(np.sum(fit_a.factor**2) + np.sum(fit_b.factor**2))
    product = fit_a.factor @ fit_b.factor.T
    overlap = float(np.linalg.svdvals(product).sum()) if product.size else 0.0
    distance = float(shift @ shift) + spread - 2.0 * overlap
    terms = spread + float(fit_a.mean @ fit_a.mean + fit_b.mean @ fit_b.mean)
    rounding = 8.0 * np.sqrt(len(shift)) * np.finfo(np.float64).eps * terms
    return distance if distance > rounding else 0.0


def frechet_distance(
    values_a: Float[np.ndarray, "trip_a time"],
    values_b: Float[np.ndarray, "trip_b time"],
    *,
    scale: float = 1.0,
) -> float:
    """Fréchet distance between two populations of traces.

    Parameters
    ----------
    values_a, values_b : (trip, time)
        At least two rows each; the numbers of rows may differ.
    scale
        Amplitude of the real population, same unit as the values; the distance is divided
        by its square.

    Returns
    -------
    distance
        Without unit; symmetric; 0 for identical populations.

    Raises
    ------
    ValueError
        If a population has fewer than two rows.

    See Also
    --------
    gaussian_frechet_distance : the closed form.
    """
    fit_a = fit_gaussian(values_a / scale)
    fit_b = fit_gaussian(values_b / scale)
    return gaussian_frechet_distance(fit_a, fit_b)
