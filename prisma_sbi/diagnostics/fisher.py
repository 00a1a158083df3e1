"""Fisher information: what data say locally about parameters, and about which combinations."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_FLAT = 1e-12
"""An eigenvalue below this share of the largest is nothing: the direction is not identified."""


def gaussian_information(
    jacobian: Float[Array, "*n data parameter"], sd: Float[Array, "*n data"] | float = 1.0
) -> Float[Array, "*n parameter parameter"]:
    r"""Information of independent normal data of known spread.

    Parameters
    ----------
    jacobian : (..., data, parameter)
        Derivatives of the means.
    sd : (..., data)
        Standard deviations; 1 for standardized residuals.

    Returns
    -------
    information : (..., parameter, parameter)
        :math:`J^\top \mathrm{diag}(\sigma^{-2}) J`.
    """
    scaled = jacobian / jnp.asarray(sd)[..., None]
    return jnp.swapaxes(scaled, -1, -2) @ scaled


def trace_information(
    power_w: Float[Array, " time"],
    jacobian: Float[Array, "time parameter"],
    *,
    floor_w: float | Float[Array, ""],
    share: float | Float[Array, ""],
    memory: float | Float[Array, ""],
    degrees_of_freedom: float | Float[Array, ""],
) -> Float[Array, "parameter parameter"]:
    r"""Information of a trace with autoregressive Student noise whose scale grows with the power.

    Parameters
    ----------
    power_w : (time,)
        Power without noise, :math:`q_t`.
    jacobian : (time, parameter)
        Its derivatives :math:`q'_t`.
    floor_w, share, memory, degrees_of_freedom
        Of the noise; more than two degrees of freedom.

    Returns
    -------
    information : (parameter, parameter)
        Variance of the score, which is the curvature of the expected log likelihood.

    Notes
    -----
    With scale :math:`\sigma_t = f + s |q_t|`, its relative derivative
    :math:`\lambda_t = \sigma'_t / \sigma_t`, memory :math:`\phi` and
    :math:`\psi = \sqrt{1 - \phi^2}` the score of step :math:`t`, given those before it, has
    variance

    .. math:: \frac{\nu + 1}{\nu + 3} \left(a_t a_t^\top
        + \frac{\nu}{\nu - 2} c_t c_t^\top\right)
        + \frac{2 \nu}{\nu + 3} \lambda_t \lambda_t^\top

    with :math:`a_t = (q'_t / \sigma_t - \phi\, q'_{t-1} / \sigma_{t-1}) / \psi`, the part of the
    location, and :math:`c_t = \phi (\lambda_t - \lambda_{t-1}) / \psi`, what a changing scale does
    to the noise that is remembered. Scores of different steps are uncorrelated, so variances
    add. The factors are the information of a Student t about its location and its scale [1]_;
    for :math:`\nu \to \infty` they are 1 and 2, those of a normal law.

    References
    ----------
    .. [1] Lange, Little and Taylor, Robust statistical modeling using the t distribution, 1989.
       https://doi.org/10.1080/01621459.1989.10478852
    """
    scale = floor_w + share * jnp.abs(power_w)
    features = noise_features(
        jacobian.T / scale,
        share * jnp.sign(power_w) * jacobian.T / scale,
        memory=memory,
        degrees_of_freedom=degrees_of_freedom,
    )
    return features @ features.T


def noise_features(
    location: Float[Array, "*n time"],
    log_scale: Float[Array, "*n time"],
    *,
    memory: float | Float[Array, ""],
    degrees_of_freedom: float | Float[Array, ""],
) -> Float[Array, "*n feature"]:
    """Small changes of a trace law as vectors, whose products are those of the Fisher metric.

    Parameters
    ----------
    location : (..., time)
        Change of the power, in units of the scale of the noise.
    log_scale : (..., time)
        Change of the logarithm of the scale.
    memory, degrees_of_freedom
        Of the noise.

    Returns
    -------
    features : (..., feature)
        Three parts, see :func:`trace_information`.
    """
    nu, phi = jnp.asarray(degrees_of_freedom), jnp.asarray(memory)
    spread = jnp.sqrt(1.0 - phi**2)
    moved = jnp.concatenate(
        [location[..., :1], (location[..., 1:] - phi * location[..., :-1]) / spread], axis=-1
    )
    changed = phi * (log_scale[..., 1:] - log_scale[..., :-1]) / spread
    about_location = jnp.sqrt((nu + 1.0) / (nu + 3.0))
    parts = [
        about_location * moved,
        about_location * jnp.sqrt(nu / (nu - 2.0)) * changed,
        jnp.sqrt(2.0 * nu / (nu + 3.0)) * log_scale,
    ]
    return jnp.concatenate(parts, axis=-1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrum:
    """Information about combinations of parameters, and bounds on what can be known.

    Attributes
    ----------
    eigenvalue : (..., parameter)
        Falling; of the information in units of the scales, so that a direction with an
        eigenvalue below 1 is known less well by the data than by scales taken for a prior.
    eigenvector : (..., parameter, mode)
        Columns belong to the eigenvalues; entries are shares of each parameter's scale, the
        largest one positive.
    bound : (..., parameter)
        Cramér-Rao bound: no unbiased estimate has a smaller standard deviation, the other
        parameters being unknown too. Infinite where a parameter is not identified.
    bound_alone : (..., parameter)
        The same if the other parameters were known.
    """

    eigenvalue: np.ndarray
    eigenvector: np.ndarray
    bound: np.ndarray
    bound_alone: np.ndarray


def information_spectrum(information: np.ndarray, scale: np.ndarray) -> Spectrum:
    r"""Eigenvalues, directions and Cramér-Rao bounds of Fisher informations.

    Parameters
    ----------
    information : (..., parameter, parameter)
        Symmetric.
    scale : (parameter,)
        Unit of each parameter, such as its standard deviation in the prior; without one,
        eigenvalues of unlike parameters mean nothing.

    Returns
    -------
    Spectrum

    Raises
    ------
    ValueError
        If a scale is not positive or the shapes disagree.

    Notes
    -----
    Sloppy models [1]_ have eigenvalues spread over many decades: few combinations of their
    parameters matter.

    References
    ----------
    .. [1] Gutenkunst et al., Universally sloppy parameter sensitivities in systems biology
       models, 2007. https://doi.org/10.1371/journal.pcbi.0030189
    """
    information = np.asarray(information, np.float64)
    scale = np.asarray(scale, np.float64)
    if information.shape[-2:] != (*scale.shape, *scale.shape) or not np.all(scale > 0.0):
        raise ValueError(
            "Expected one positive scale for each parameter of the information; got "
            f"{information.shape} and {scale}."
        )
    scaled = information * scale * scale[:, None]
    value, vector = np.linalg.eigh(0.5 * (scaled + np.swapaxes(scaled, -1, -2)))
    value, vector = np.maximum(value[..., ::-1], 0.0), vector[..., ::-1]
    largest = np.take_along_axis(vector, np.argmax(np.abs(vector), axis=-2)[..., None, :], axis=-2)
    vector = vector * np.sign(largest)
    known = value > _FLAT * np.maximum(value[..., :1], np.finfo(float).tiny)
    inverse = np.where(known, 1.0 / np.where(known, value, 1.0), 0.0)
    variance = np.sum(vector**2 * inverse[..., None, :], axis=-1)
    # A parameter with a part in a direction that is not identified is not identified.
    lost = np.sum(np.where(known[..., None, :], 0.0, vector**2), axis=-1) > 1e-9
    diagonal = np.diagonal(information, axis1=-2, axis2=-1)
    with np.errstate(divide="ignore"):
        alone = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.maximum(diagonal, 0.0)), np.inf)
    return Spectrum(
        eigenvalue=value,
        eigenvector=vector,
        bound=np.where(lost, np.inf, scale * np.sqrt(variance)),
        bound_alone=alone,
    )
