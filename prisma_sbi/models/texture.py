"""A likelihood that also sees the texture of a trace: its variance and short-lag correlation."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from prisma_sbi.models.streaming import fold_power
from prisma_sbi.models.summary import TraceSummary, activity, away_from_zero, summarize
from prisma_sbi.models.trip_data import TripData
from prisma_sbi.region.constants import Constants
from prisma_sbi.simulator.vehicle import Vehicle

_VARIANCE_FLOOR = 1e-6
"""Smallest variance that counts, in units of the squared power span."""
_UNROLL = 4
"""Steps in which the recent powers are handed on without a copy."""


class TextureSummary(eqx.Module):
    """What the texture likelihood keeps of a trace.

    Attributes
    ----------
    summary
        The three published summaries.
    log_variance
        Log of the variance of the power while driving, in units of the squared power span.
    autocorrelation : (lag,)
        Autocorrelation of the power while driving.
    """

    summary: TraceSummary
    log_variance: Float[Array, "*trip"]
    autocorrelation: Float[Array, "*trip lag"]


class TextureLikelihood(eqx.Module):
    r"""The summary likelihood with two more residuals: log variance and autocorrelation.

    The published loss sees energy, duration and the cumulative curve; a smooth ramp and a
    train of spikes can agree in all three.

    Attributes
    ----------
    log_variance_scale, autocorrelation_scale
        Standard deviations of the two residuals; the second is averaged over lags.
    lags
        Time steps.

    Notes
    -----
    Moments are taken over the smooth duration :math:`D`, so that zeros after arrival do not
    count: with :math:`m = \sum p / D` the variance is :math:`\sum p^2 / D - m^2` and the
    autocovariance at lag :math:`l` is :math:`\sum p_t p_{t-l} / D - m^2`.
    """

    log_variance_scale: float = 0.2
    autocorrelation_scale: float = 0.07
    lags: tuple[int, ...] = eqx.field(static=True, default=(1, 3, 8))

    def __check_init__(self) -> None:
        if not self.lags or min(self.lags) < 1:
            raise ValueError(f"Expected lags of 1 or more steps; got {self.lags!r}.")

    def observe(self, power_w: Float[Array, "*trip time"], constants: Constants) -> TextureSummary:
        """Published summaries, log variance and autocorrelation."""
        power_w = jnp.asarray(power_w)
        summary = summarize(power_w, constants)
        scaled = power_w / constants.power_span_w
        n_times = scaled.shape[-1]
        products = jnp.stack(
            [
                jnp.sum(scaled[..., lag:] * scaled[..., : n_times - lag], axis=-1)
                for lag in (0, *self.lags)
            ],
            axis=-1,
        )
        steps = summary.duration_s / constants.time_step_s
        log_variance, autocorrelation = _texture(jnp.sum(scaled, axis=-1), products, steps)
        return TextureSummary(summary, log_variance, autocorrelation)

    def log_likelihoods(
        self,
        point: Float[Array, "2"],
        vehicles: Vehicle,
        trip: TripData,
        constants: Constants,
        *,
        stride: int = 1,
    ) -> Float[Array, " choice"]:
        """Minus the published loss and half the squares of the two residuals of texture."""
        del stride  # averaging over time is what texture does not survive
        seen, dt = trip.observed.summary, constants.time_step_s
        zeros = jnp.zeros_like(vehicles.idle_power_w)
        recent = (zeros,) * max(self.lags)
        sums = (zeros,) * (1 + len(self.lags))

        def update(carry, power, share_now):
            energy, duration, squares, products, recent, lagged = carry
            # Or the power would be worked out anew for each of the sums.
            power = lax.optimization_barrier(power)
            scaled = power / constants.power_span_w
            energy = energy + dt * power
            duration = duration + dt * activity(power, constants)
            partners = (scaled, *(recent[lag - 1] for lag in self.lags))
            return (
                energy,
                duration,
                squares + energy**2,
                products + energy * share_now,
                (scaled, *recent[:-1]),
                tuple(a + scaled * b for a, b in zip(lagged, partners, strict=True)),
            )

        energy, duration, squares, products, _, lagged = fold_power(
            point,
            vehicles,
            trip.road,
            constants,
            start=(zeros, zeros, zeros, zeros, recent, sums),
            update=update,
            seen=seen.cumulative_share,
            unroll=_UNROLL,
        )
        total = away_from_zero(energy, constants.energy_floor_j)
        share = seen.cumulative_share
        shape = jnp.maximum(
            squares / total**2 - 2.0 * products / total + jnp.sum(share**2), 0.0
        ) / len(share)
        observed_energy = away_from_zero(seen.energy_j, constants.energy_floor_j)
        observed_duration = jnp.maximum(seen.duration_s, constants.duration_floor_s)
        log_variance, autocorrelation = _texture(
            energy / (dt * constants.power_span_w), jnp.stack(lagged, axis=-1), duration / dt
        )
        residuals = (
            (energy - seen.energy_j) / observed_energy / constants.energy_scale,
            (duration - seen.duration_s) / observed_duration / constants.duration_scale,
            jnp.sqrt(shape + 1e-12) / constants.shape_scale,
            (log_variance - trip.observed.log_variance) / self.log_variance_scale,
        )
        lags = (autocorrelation - trip.observed.autocorrelation) / self.autocorrelation_scale
        return -0.5 * (sum(r**2 for r in residuals) + jnp.mean(lags**2, axis=-1))

    def sampled(self) -> "TextureLikelihood":
        """Nothing to infer."""
        return self


def _texture(
    total: Float[Array, "*n"], products: Float[Array, "*n moment"], steps: Float[Array, "*n"]
) -> tuple[Float[Array, "*n"], Float[Array, "*n lag"]]:
    """Log variance and autocorrelation from a sum, sums of lagged products and a duration."""
    steps = jnp.maximum(steps, 1.0)
    squared_mean = (total / steps) ** 2
    covariance = products / steps[..., None] - squared_mean[..., None]
    variance = jnp.maximum(covariance[..., 0], _VARIANCE_FLOOR)
    return jnp.log(variance), covariance[..., 1:] / variance[..., None]
