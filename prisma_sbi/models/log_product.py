"""Logs of long products, with one logarithm at the end in place of one a factor."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int


class LogProduct(eqx.Module):
    """The product of positive factors, as a number in [1, 2) and a power of two.

    A sum of rounded logarithms loses digits with every term, and each costs some twenty
    operations; this costs five and loses only what the products round off.

    Attributes
    ----------
    mantissa
        From 1 to 2.
    exponent
        Of two.
    """

    mantissa: Float[Array, "*n"]
    exponent: Int[Array, "*n"]

    @classmethod
    def one(cls, like: Float[Array, "*n"]) -> "LogProduct":
        """No factor yet."""
        return cls(jnp.ones_like(like), jnp.zeros(like.shape, _integer(like)))

    def times(self, factor: Float[Array, "*n"]) -> "LogProduct":
        """With one more factor: above 0, finite and not subnormal."""
        product = self.mantissa * factor
        whole, kind = jnp.finfo(product.dtype), _integer(product)
        bits = lax.bitcast_convert_type(lax.stop_gradient(product), kind)
        exponent = (bits >> whole.nmant) - (whole.maxexp - 1)
        # Two to the power of minus the exponent, put together from its bits.
        scale = ((whole.maxexp - 1) - exponent) << whole.nmant
        scale = lax.bitcast_convert_type(scale.astype(kind), product.dtype)
        return LogProduct(product * scale, self.exponent + exponent)

    def log(self) -> Float[Array, "*n"]:
        """Natural logarithm of the product."""
        return jnp.log(self.mantissa) + self.exponent.astype(self.mantissa.dtype) * jnp.log(2.0)


def _integer(like: Array) -> np.dtype:
    """Signed integers as wide as these numbers."""
    return np.dtype(f"i{like.dtype.itemsize}")
