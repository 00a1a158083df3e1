"""What the estimators of one trip ask of a posterior."""

from typing import Protocol, runtime_checkable

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
