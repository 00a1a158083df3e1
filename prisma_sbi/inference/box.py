"""A box in the plane and the real plane behind it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Box(eqx.Module):
    """Bounds of two continuous parameters.

    Attributes
    ----------
    lower, upper : (2,)
        Corners.
    """

    lower: Float[Array, "2"]
    upper: Float[Array, "2"]

    def inside(self, position: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
        """From the plane into the box, by the logistic function."""
        return self.lower + (self.upper - self.lower) * jax.nn.sigmoid(position)

    def outside(self, point: Float[Array, "*n 2"], margin: float = 1e-4) -> Float[Array, "*n 2"]:
        """Inverse of :meth:`inside`; points nearer to an edge than the margin are moved off it."""
        share = (point - self.lower) / (self.upper - self.lower)
        share = jnp.clip(share, margin, 1.0 - margin)
        return jnp.log(share) - jnp.log1p(-share)

    def log_jacobian(self, position: Float[Array, "*n 2"]) -> Float[Array, "*n"]:
        """Log of the area of the box per area of the plane."""
        slope = jax.nn.log_sigmoid(position) + jax.nn.log_sigmoid(-position)
        return jnp.sum(slope + jnp.log(self.upper - self.lower), axis=-1)

    def unfold(self, unit: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
        """From the unit square into the box, slow near its edges.

        Posteriors of bounded parameters pile up at the bounds; a grid that is regular in the
        unit square is fine there.
        """
        return self.lower + (self.upper - self.lower) * unit**2 * (3.0 - 2.0 * unit)

    def fold(self, point: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
        """Inverse of :meth:`unfold`; points outside go to the nearest edge."""
        share = jnp.clip((point - self.lower) / (self.upper - self.lower), 0.0, 1.0)
        # A cubic with three real roots.
        return 0.5 - jnp.sin(jnp.arcsin(1.0 - 2.0 * share) / 3.0)

    def log_unfold_jacobian(self, unit: Float[Array, "*n 2"]) -> Float[Array, "*n"]:
        """Log of the area of the box per area of the unit square."""
        slope = 6.0 * unit * (1.0 - unit) * (self.upper - self.lower)
        return jnp.sum(jnp.log(slope), axis=-1)
