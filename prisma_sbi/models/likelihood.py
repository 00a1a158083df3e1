"""Likelihoods: how probable an observed trace is, for many vehicles on one drive at once."""

from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import lax
from jaxtyping import Array, Float

from prisma_sbi import _validate
from prisma_sbi.models.log_product import LogProduct
from prisma_sbi.models.objective import SummaryObjective
from prisma_sbi.models.streaming import fold_power
from prisma_sbi.models.summary import TraceSummary, summarize
from prisma_sbi.models.trace_noise import TraceNoise, log_student_t, noise_scale
from prisma_sbi.models.trip_data import TripData
from prisma_sbi.region.constants import Constants
from prisma_sbi.simulator.vehicle import Vehicle

Parameter = float | Float[Array, ""] | dist.Distribution
"""A number, or the prior of a number to infer."""
_PARAMETERS = ("floor_w", "share", "memory", "degrees_of_freedom")


@runtime_checkable
class Likelihood(Protocol):
    """One of the exchangeable likelihoods of :class:`~prisma_sbi.models.TripModel`."""

    def observe(self, power_w: Float[Array, "*trip time"], constants: Constants) -> Any:
        """Keep of observed traces what the likelihood needs."""
        ...

    def log_likelihoods(
        self,
        point: Float[Array, "2"],
        vehicles: Vehicle,
        trip: TripData,
        constants: Constants,
        *,
        stride: int = 1,
    ) -> Float[Array, " choice"]:
        """Log likelihood at (aggressiveness, detour) for every vehicle given.

        A ``stride`` above 1 allows a cheaper approximation, good enough to rank candidates.
        """
        ...

    def sampled(self) -> "Likelihood":
        """Replace priors of own parameters by samples; inside a NumPyro model only."""
        ...


@runtime_checkable
class PartialLikelihood(Protocol):
    """A likelihood of data with an order in time, which can be read up to a point of it."""

    def partial_log_likelihoods(
        self,
        point: Float[Array, "2"],
        vehicles: Vehicle,
        trip: TripData,
        constants: Constants,
        *,
        shares: tuple[float, ...],
    ) -> Float[Array, "share choice"]:
        """Log likelihoods of the first shares of the data."""
        ...


def partial_log_likelihoods(
    likelihood: Likelihood,
    point: Float[Array, "2"],
    vehicles: Vehicle,
    trip: TripData,
    constants: Constants,
    shares: tuple[float, ...],
) -> Float[Array, "share choice"]:
    """Log likelihoods of shares of the data, or powers of the likelihood for want of those.

    The powers are squares of the shares: what depends on the pace of a trip is known more than
    twice as well from twice as long a record.
    """
    if isinstance(likelihood, PartialLikelihood):
        return likelihood.partial_log_likelihoods(point, vehicles, trip, constants, shares=shares)
    values = likelihood.log_likelihoods(point, vehicles, trip, constants)
    return jnp.asarray(shares)[:, None] ** 2 * values


class SummaryLikelihood(eqx.Module):
    r"""Gaussian on the misfits of energy, duration and the cumulative curve.

    The log likelihood is minus the published loss, so under a flat prior the maximum a
    posteriori is the published encoder. It is a law of residuals, not of traces: a
    generalized (Gibbs) posterior [1]_, for which posterior prediction of a trace means the
    simulator's own trace.

    References
    ----------
    .. [1] Bissiri, Holmes and Walker, A general framework for updating belief distributions,
       2016. https://doi.org/10.1111/rssb.12158
    """

    def observe(self, power_w: Float[Array, "*trip time"], constants: Constants) -> TraceSummary:
        """Energy, duration and cumulative curve."""
        return summarize(power_w, constants)

    def log_likelihoods(
        self,
        point: Float[Array, "2"],
        vehicles: Vehicle,
        trip: TripData,
        constants: Constants,
        *,
        stride: int = 1,
    ) -> Float[Array, " choice"]:
        """Minus the published loss."""
        objective = SummaryObjective(trip.road, trip.observed, vehicles, constants)
        every = jnp.arange(vehicles.idle_power_w.shape[0])
        return -objective.losses(point, every, stride=stride)

    def sampled(self) -> "SummaryLikelihood":
        """Nothing to infer."""
        return self


class TraceLikelihood(eqx.Module):
    """A generative law of the whole trace: :class:`~prisma_sbi.models.TraceNoise`.

    Posterior prediction, leave-one-out and calibration are well defined under it.

    Attributes
    ----------
    floor_w, share, memory, degrees_of_freedom
        As for :class:`~prisma_sbi.models.TraceNoise`; each a number, or a NumPyro
        distribution that becomes its prior (sites ``noise_floor_w``, ``noise_share``,
        ``noise_memory``, ``noise_degrees_of_freedom``).
    """

    floor_w: Parameter = 1_000.0
    share: Parameter = 0.3
    memory: Parameter = 0.6
    degrees_of_freedom: Parameter = 5.0

    def __check_init__(self) -> None:
        if isinstance(self.memory, float | int) and not -1.0 < self.memory < 1.0:
            raise ValueError(f"Expected -1 < memory < 1; got {self.memory!r}.")
        for name in ("floor_w", "degrees_of_freedom"):
            value = getattr(self, name)
            if isinstance(value, float | int) and not value > 0.0:
                raise ValueError(f"Expected {name} > 0; got {value!r}.")
        if isinstance(self.share, float | int) and not self.share >= 0.0:
            raise ValueError(f"Expected share >= 0; got {self.share!r}.")

    def observe(
        self, power_w: Float[Array, "*trip time"], constants: Constants
    ) -> Float[Array, "*trip time"]:
        """The trace itself."""
        del constants
        return jnp.asarray(power_w)

    def log_likelihoods(
        self,
        point: Float[Array, "2"],
        vehicles: Vehicle,
        trip: TripData,
        constants: Constants,
        *,
        stride: int = 1,
    ) -> Float[Array, " choice"]:
        """Log density of the trace; exact whatever the stride, which suits no other law."""
        del stride
        return self.partial_log_likelihoods(point, vehicles, trip, constants, shares=(1.0,))[0]

    def partial_log_likelihoods(
        self,
        point: Float[Array, "2"],
        vehicles: Vehicle,
        trip: TripData,
        constants: Constants,
        *,
        shares: tuple[float, ...],
    ) -> Float[Array, "share choice"]:
        """Log density of beginnings of the trace, as long as these rising shares of it.

        One run of the simulator gives them all.
        """
        _validate.rising_shares(shares=shares)
        floor_w, share, memory, degrees_of_freedom = self._numbers()
        spread = jnp.sqrt(1.0 - jnp.asarray(memory) ** 2)
        zeros = jnp.zeros_like(vehicles.idle_power_w)

        def update(carry, power, now):
            z_before, tails, scales = carry
            seen, first = now
            scale = noise_scale(power, floor_w, share)
            z = (seen - power) / scale
            innovation = jnp.where(first, z, (z - memory * z_before) / spread)
            # Or the power would be worked out anew for each of these three.
            z, innovation, scale = lax.optimization_barrier((z, innovation, scale))
            tail = 1.0 + innovation**2 / degrees_of_freedom
            return z, tails.times(tail), scales.times(scale)

        stops = [max(round(part * constants.n_times), 1) for part in shares]
        carries = fold_power(
            point,
            vehicles,
            trip.road,
            constants,
            start=(zeros, LogProduct.one(zeros), LogProduct.one(zeros)),
            update=update,
            seen=(trip.observed, jnp.arange(constants.n_times) == 0),
            stops=tuple(stops),
        )
        peak = log_student_t(jnp.zeros_like(spread), degrees_of_freedom)
        tail_power = 0.5 * (degrees_of_freedom + 1.0)
        return jnp.stack(
            [
                n * peak - (n - 1) * jnp.log(spread) - tail_power * tails.log() - scales.log()
                for n, (_, tails, scales) in zip(stops, carries, strict=True)
            ]
        )

    def sampled(self) -> "TraceLikelihood":
        """Sample the parameters that have a prior."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _PARAMETERS}
        for name, value in values.items():
            if isinstance(value, dist.Distribution):
                values[name] = numpyro.sample(f"noise_{name}", value)
        return type(self)(**values)

    def law(self, power_w: Float[Array, "*n time"]) -> TraceNoise:
        """The law of traces around simulated ones, as a NumPyro distribution."""
        return TraceNoise(power_w, **dict(zip(_PARAMETERS, self._numbers(), strict=True)))

    def _numbers(self) -> tuple[Any, ...]:
        """The parameters, none of which may still be a prior."""
        values = tuple(getattr(self, name) for name in _PARAMETERS)
        for name, value in zip(_PARAMETERS, values, strict=True):
            if isinstance(value, dist.Distribution):
                raise ValueError(
                    f"Expected a number for {name} where nothing samples it; got a prior "
                    f"({type(value).__name__}). Use a method that runs the NumPyro model, or "
                    "call sampled() inside a program of your own."
                )
        return values
