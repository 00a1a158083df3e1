"""What the estimators of one trip ask of a posterior."""

from typing import Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


@runtime_checkable
class Objective(Protocol):
    """A loss over a point in the plane and one of finitely many choices."""

    def losses(
        self, point: Float[Array, "2"], vehicles: Int[Array, " choice"], *, stride: int = 1
    ) -> Float[Array, " choice"]:
        """Loss for several choices at one point; ``stride`` > 1 may approximate."""
        ...

    def promise(
        self, point: Float[Array, "2"], vehicles: Int[Array, " few"], *, stride: int = 1
    ) -> Float[Array, ""]:
        """What the best choice might reach at a point, judged by a few of them."""
        ...


@runtime_checkable
class Target(Protocol):
    """An unnormalized posterior over a point in a box and one of finitely many choices."""

    def log_weights(self, point: Float[Array, "2"], *, stride: int = 1) -> Float[Array, " choice"]:
        """Log joint density of the point and every choice; ``stride`` > 1 may approximate."""
        ...


@runtime_checkable
class PartialTarget(Target, Protocol):
    """A posterior of data with an order in time, and those given the beginnings of the data."""

    def partial_log_weights(
        self, point: Float[Array, "2"], shares: tuple[float, ...]
    ) -> Float[Array, "share choice"]:
        """Log joint densities given the first shares of the data; the share 1 is all of it."""
        ...


def partial_log_weights(
    target: Target, point: Float[Array, "2"], shares: tuple[float, ...]
) -> Float[Array, "share choice"]:
    """Log joint densities given shares of the data, or powers of the density for want of those.

    The powers are squares of the shares: what depends on the pace of a trip is known more than
    twice as well from twice as long a record.
    """
    if isinstance(target, PartialTarget):
        return target.partial_log_weights(point, shares)
    return jnp.asarray(shares)[:, None] ** 2 * target.log_weights(point)
