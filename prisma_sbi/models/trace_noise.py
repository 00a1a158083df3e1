"""A generative law of a power trace around a simulated one."""

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import lax
from jax.scipy.special import gammaln
from jaxtyping import Array, Float
from numpyro.distributions import constraints

Scalar = float | Float[Array, ""]


def log_student_t(value: Float[Array, "*n"], degrees_of_freedom: Scalar) -> Float[Array, "*n"]:
    """Log density of the standard Student t."""
    half = 0.5 * jnp.asarray(degrees_of_freedom)
    constant = gammaln(half + 0.5) - gammaln(half) - 0.5 * jnp.log(2.0 * jnp.pi * half)
    return constant - (half + 0.5) * jnp.log1p(value**2 / (2.0 * half))


def noise_scale(power_w: Float[Array, "*n"], floor_w: Scalar, share: Scalar) -> Float[Array, "*n"]:
    """Scale of the noise: a floor, and a share of the power whatever its sign."""
    return floor_w + share * jnp.abs(power_w)


class TraceNoise(dist.Distribution):
    r"""Autoregressive Student-t noise whose scale grows with the power.

    Parameters
    ----------
    power_w : (..., time)
        Simulated power.
    floor_w
        Scale of the noise at zero power.
    share
        What the scale gains per watt of power.
    memory
        Autocorrelation of the noise from one step to the next, in (-1, 1).
    degrees_of_freedom
        Of the innovations; small means heavy tails.

    Notes
    -----
    With :math:`\sigma_t = f + s\,|q_t|` and :math:`z_t = (p_t - q_t) / \sigma_t` the first
    :math:`z` is Student t and :math:`z_t = \phi z_{t-1} + \sqrt{1 - \phi^2}\,e_t` with
    Student-t innovations :math:`e_t`.
    """

    support = constraints.real_vector  # pyright: ignore  NumPyro declares a property
    arg_constraints = {}  # checked where the numbers come from; simulated values are finite
    pytree_data_fields = ("power_w", "floor_w", "share", "memory", "degrees_of_freedom")

    def __init__(
        self,
        power_w: Float[Array, "*n time"],
        *,
        floor_w: Scalar,
        share: Scalar,
        memory: Scalar,
        degrees_of_freedom: Scalar,
        validate_args: bool | None = None,
    ) -> None:
        self.power_w, self.floor_w, self.share = power_w, floor_w, share
        self.memory, self.degrees_of_freedom = memory, degrees_of_freedom
        super().__init__(
            batch_shape=power_w.shape[:-1],
            event_shape=power_w.shape[-1:],
            validate_args=validate_args,
        )

    def log_prob(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, value: Float[Array, "*n time"], intermediates: Any = None
    ) -> Float[Array, "*batch"]:
        """Log density of whole traces."""
        del intermediates
        scale = noise_scale(self.power_w, self.floor_w, self.share)
        z = (value - self.power_w) / scale
        spread = jnp.sqrt(1.0 - jnp.square(self.memory))
        innovation = (z[..., 1:] - self.memory * z[..., :-1]) / spread
        return (
            log_student_t(z[..., 0], self.degrees_of_freedom)
            + jnp.sum(log_student_t(innovation, self.degrees_of_freedom) - jnp.log(spread), axis=-1)
            - jnp.sum(jnp.log(scale), axis=-1)
        )

    def sample(  # pyright: ignore[reportIncompatibleMethodOverride]  no draw without a key
        self, key: jax.Array, sample_shape: tuple[int, ...] = ()
    ) -> Array:
        """Draw traces."""
        shape = (*sample_shape, *self.power_w.shape)
        innovation = jax.random.t(key, self.degrees_of_freedom, shape, self.power_w.dtype)
        spread = jnp.sqrt(1.0 - jnp.square(self.memory))

        def step(z, now):
            z = self.memory * z + spread * now
            return z, z

        steps = jnp.moveaxis(innovation, -1, 0)
        _, rest = lax.scan(step, steps[0], steps[1:])
        z = jnp.moveaxis(jnp.concatenate([steps[:1], rest]), 0, -1)
        return self.power_w + noise_scale(self.power_w, self.floor_w, self.share) * z
