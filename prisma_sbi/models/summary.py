"""What the published loss sees of a trace: energy, duration and the cumulative curve."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from prisma_sbi.region.constants import Constants


class TraceSummary(eqx.Module):
    """Three summaries of a power trace.

    Attributes
    ----------
    energy_j
        Integral of the power over the horizon.
    duration_s
        Smooth count of the seconds in which power is drawn.
    cumulative_share : (time,)
        Share of the energy drawn by the end of each second; not monotone if power is
        negative somewhere.
    """

    energy_j: Float[Array, "*trip"]
    duration_s: Float[Array, "*trip"]
    cumulative_share: Float[Array, "*trip time"]


def away_from_zero(value: Float[Array, "*n"], floor: float) -> Float[Array, "*n"]:
    """A denominator: the value, moved out of (-floor, floor) with its sign kept."""
    sign = jnp.where(value < 0.0, -1.0, 1.0)
    return sign * jnp.maximum(jnp.abs(value), floor)


def activity(power_w: Float[Array, "*n"], constants: Constants) -> Float[Array, "*n"]:
    """How much each sample counts as driving, between 0 and 1."""
    threshold_w = constants.activity_threshold * constants.power_span_w
    return 1.0 - jnp.exp(-((power_w / threshold_w) ** 2))


def summarize(power_w: Float[Array, "*trip time"], constants: Constants) -> TraceSummary:
    r"""Energy, duration and cumulative curve of power traces.

    Parameters
    ----------
    power_w : (..., time)
        Power at 1 / ``time_step_s``.
    constants
        Threshold ``theta``, power span ``P`` and the guards.

    Returns
    -------
    TraceSummary

    Notes
    -----
    :math:`E = \Delta t \sum p`, :math:`D = \Delta t \sum (1 - \exp(-(p / \theta P)^2))`,
    :math:`s_t = \Delta t \sum_{\tau \le t} p_\tau / E` [1]_.

    References
    ----------
    .. [1] Zeiseweis et al., PRISMA, 2026. https://doi.org/10.48550/arXiv.2610.35521
    """
    dt = constants.time_step_s
    cumulative_j = dt * jnp.cumsum(power_w, axis=-1)
    energy_j = cumulative_j[..., -1]
    denominator = away_from_zero(energy_j, constants.energy_floor_j)
    return TraceSummary(
        energy_j=energy_j,
        duration_s=dt * jnp.sum(activity(power_w, constants), axis=-1),
        cumulative_share=cumulative_j / denominator[..., None],
    )


def summary_residuals(
    simulated: TraceSummary, observed: TraceSummary, constants: Constants
) -> Float[Array, " residual"]:
    r"""Standardized residuals whose half squared norm is the published loss.

    Parameters
    ----------
    simulated, observed
        Summaries of one trip each.
    constants
        The three scales ``sigma`` and the guards.

    Returns
    -------
    residuals : (2 + time,)
        Energy, duration, then the cumulative curve divided by ``sqrt(time)``.

    Notes
    -----
    With :math:`\lambda = 1 / (2 \sigma^2)` the loss
    :math:`\lambda_E r_E^2 + \lambda_D r_D^2 + (\lambda_S / T) \sum_t r_{S,t}^2` is
    :math:`\tfrac12 \lVert r \rVert^2` of what is returned, which is what a
    Gauss-Newton step needs.
    """
    n_times = observed.cumulative_share.shape[-1]
    energy = (simulated.energy_j - observed.energy_j) / jnp.abs(
        away_from_zero(observed.energy_j, constants.energy_floor_j)
    )
    duration = (simulated.duration_s - observed.duration_s) / jnp.maximum(
        observed.duration_s, constants.duration_floor_s
    )
    shape = (simulated.cumulative_share - observed.cumulative_share) / jnp.sqrt(n_times)
    return jnp.concatenate(
        [
            energy[None] / constants.energy_scale,
            duration[None] / constants.duration_scale,
            shape / constants.shape_scale,
        ]
    )
