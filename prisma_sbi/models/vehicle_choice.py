"""Three treatments of the unknown vehicle: summed out, relaxed, or fixed."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from prisma_sbi.simulator.vehicle import Vehicle

LogLikelihoods = Callable[[Vehicle], Float[Array, " choice"]]
"""From vehicles with a leading axis to one log likelihood each."""


@runtime_checkable
class VehicleChoice(Protocol):
    """How a trip model treats the vehicle."""

    def condition(
        self,
        log_likelihoods: LogLikelihoods,
        pool: Vehicle,
        log_prior: Float[Array, " vehicle"],
    ) -> None:
        """Add sites and the log likelihood to the NumPyro model at hand."""
        ...


class MarginalVehicle(eqx.Module):
    """Every vehicle of the pool summed out exactly; the drive is run once for all of them.

    The deterministic site ``vehicle_log_weight (vehicle,)`` holds the log of prior times
    likelihood, from which the posterior of the vehicle is a softmax.
    """

    def condition(
        self,
        log_likelihoods: LogLikelihoods,
        pool: Vehicle,
        log_prior: Float[Array, " vehicle"],
    ) -> None:
        """Add the log-sum-exp over the pool."""
        weight = log_prior + log_likelihoods(pool)
        numpyro.deterministic("vehicle_log_weight", weight)
        numpyro.factor("log_likelihood", jax.nn.logsumexp(weight))


class GumbelVehicle(eqx.Module):
    r"""A relaxed one-hot vehicle: Gumbel noise, softmax, coefficients mixed.

    A mixture of vehicles is a vehicle that does not exist, so posteriors under this choice
    are biased, the more the warmer; see the documentation for figures. Site
    ``vehicle_gumbel (vehicle,)``; deterministic site ``vehicle``, the heaviest.

    Attributes
    ----------
    temperature
        Of the softmax.
    straight_through
        Simulate the heaviest vehicle alone and take the derivative of the mixture.

    Notes
    -----
    Weights are :math:`\mathrm{softmax}((\log \pi + g) / \tau)` with standard Gumbel
    :math:`g` [1]_, [2]_.

    References
    ----------
    .. [1] Jang, Gu and Poole, Categorical reparameterization with Gumbel-softmax, 2017.
       https://doi.org/10.48550/arXiv.1611.01144
    .. [2] Maddison, Mnih and Teh, The concrete distribution, 2017.
       https://doi.org/10.48550/arXiv.1611.00712
    """

    temperature: float | Float[Array, ""] = 0.5
    straight_through: bool = eqx.field(static=True, default=False)

    def condition(
        self,
        log_likelihoods: LogLikelihoods,
        pool: Vehicle,
        log_prior: Float[Array, " vehicle"],
    ) -> None:
        """Sample the noise and add the log likelihood of the mixed vehicle."""
        noise = dist.Gumbel(jnp.zeros_like(log_prior), 1.0).to_event(1)
        gumbel = jnp.asarray(numpyro.sample("vehicle_gumbel", noise))
        weights = relaxed_one_hot(log_prior + gumbel, self.temperature)
        if self.straight_through:
            hard = jax.nn.one_hot(jnp.argmax(weights), weights.shape[-1], dtype=weights.dtype)
            weights = hard + weights - jax.lax.stop_gradient(weights)
        numpyro.deterministic("vehicle", jnp.argmax(weights))
        numpyro.factor("log_likelihood", log_likelihoods(pool.mix(weights[None]))[0])


class FixedVehicle(eqx.Module):
    """The vehicle is known.

    Attributes
    ----------
    vehicle
        Position in the pool.
    """

    vehicle: int | Int[Array, ""] = 0

    def condition(
        self,
        log_likelihoods: LogLikelihoods,
        pool: Vehicle,
        log_prior: Float[Array, " vehicle"],
    ) -> None:
        """Add the log likelihood of the one vehicle."""
        vehicle = jnp.asarray(self.vehicle)
        numpyro.deterministic("vehicle", vehicle)
        numpyro.factor(
            "log_likelihood", log_prior[vehicle] + log_likelihoods(pool[vehicle[None]])[0]
        )


def relaxed_one_hot(
    logits: Float[Array, " vehicle"], temperature: float | Float[Array, ""]
) -> Float[Array, " vehicle"]:
    """Weights on the simplex that tend to the one-hot of the largest logit as it cools."""
    return jax.nn.softmax(logits / temperature)
