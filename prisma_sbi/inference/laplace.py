"""Second-order refinement of a maximum, and the Gaussian it leaves behind."""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from prisma_sbi import _validate

_SOFTEST, _STIFFEST = 0.15, 25.0
"""Curvatures per step that one iteration believes; beyond them it changes the step instead."""
_FARTHEST = 3.0
"""Longest move of an iteration, in steps."""


@dataclass(frozen=True, kw_only=True)
class LaplaceSettings:
    """Work of the refinement.

    Attributes
    ----------
    n_iterations
        Fits of a quadratic.
    first_step
        Distance between the points of the first fit.
    """

    n_iterations: int = 12
    first_step: float = 0.1

    def __post_init__(self) -> None:
        _validate.at_least(1, n_iterations=self.n_iterations)
        _validate.positive(first_step=self.first_step)


class Gaussian(eqx.Module):
    """A maximum and a quadratic around it.

    Attributes
    ----------
    mode : (dim,)
        Best position found.
    log_density
        There.
    gradient : (dim,)
        Of the last quadratic, per step. No test of convergence: where the density is jagged it
        stays away from zero.
    root : (dim, dim)
        Covariance = root @ root.T.
    """

    mode: Float[Array, "*trip dim"]
    log_density: Float[Array, "*trip"]
    gradient: Float[Array, "*trip dim"]
    root: Float[Array, "*trip dim dim"]

    @property
    def covariance(self) -> Float[Array, "*trip dim dim"]:
        """Inverse curvature at the mode."""
        return self.root @ jnp.swapaxes(self.root, -1, -2)

    def log_evidence(self) -> Float[Array, "*trip"]:
        """Laplace's approximation of the log of the integral of the density."""
        _, log_volume = jnp.linalg.slogdet(self.root)
        half_log = 0.5 * self.mode.shape[-1] * jnp.log(2.0 * jnp.pi)
        return self.log_density + half_log + log_volume


def laplace(
    log_density: Callable[[Float[Array, " dim"]], Float[Array, ""]],
    start: Float[Array, " dim"],
    settings: LaplaceSettings,
) -> Gaussian:
    """Climb to a maximum and fit a Gaussian to it; jit it, and ``vmap`` it over trips.

    Parameters
    ----------
    log_density
        Unnormalized; need not be smooth on scales below its own width.
    start : (dim,)
        First position.
    settings
        Amount of work.

    Notes
    -----
    Derivatives at a point mislead where a density is jagged, as simulators that step through
    time make it. So a quadratic is fitted to values one step away in all directions and all
    pairs of them, a Newton move on it is tried, and the steps are rescaled and turned until
    the density falls by half a unit over each. Then the fit spans the width of the
    posterior, which is what a Gaussian approximation should match.
    """
    n_dims = start.shape[0]
    eye = jnp.eye(n_dims, dtype=start.dtype)
    pairs = [(i, j) for i in range(n_dims) for j in range(i)]
    both = jnp.stack([eye[i] + eye[j] for i, j in pairs]) if pairs else jnp.zeros((0, n_dims))
    offsets = jnp.concatenate([eye, -eye, both, -both])
    evaluate = jax.vmap(lambda position: _finite(log_density(position)))

    def quadratic(center, values):
        """Gradient and curvature of the parabola, per step."""
        up, down = values[:n_dims], values[n_dims : 2 * n_dims]
        curvature = jnp.diag(2.0 * center - up - down)
        for index, (i, j) in enumerate(pairs):
            plus = values[2 * n_dims + index]
            minus = values[2 * n_dims + len(pairs) + index]
            mixed = 0.5 * (plus + minus - up[i] - down[i] - up[j] - down[j] + 2.0 * center)
            curvature = curvature.at[i, j].set(-mixed).at[j, i].set(-mixed)
        return 0.5 * (up - down), curvature

    def iterate(carry, _):
        position, value, steps = carry
        values = evaluate(position + offsets @ steps.T)
        gradient, curvature = quadratic(value, values)
        stiffness, axes = jnp.linalg.eigh(curvature)
        stiffness = jnp.clip(stiffness, _SOFTEST, _STIFFEST)
        move = axes @ ((axes.T @ gradient) / stiffness)
        move = move * jnp.minimum(1.0, _FARTHEST / (jnp.linalg.norm(move) + 1e-12))
        moves = jnp.stack([move, 0.5 * move])
        candidates = position + jnp.concatenate([offsets, moves]) @ steps.T
        values = jnp.concatenate([values, evaluate(candidates[-2:])])
        best = jnp.argmax(values)
        better = values[best] > value
        root = steps @ axes @ jnp.diag(stiffness**-0.5)
        found = Gaussian(position, value, gradient, root)
        position = jnp.where(better, candidates[best], position)
        return (position, jnp.maximum(values[best], value), root), found

    value = _finite(log_density(start))
    steps = settings.first_step * eye
    (position, value, _), history = lax.scan(
        iterate, (start, value, steps), length=settings.n_iterations
    )
    last = jax.tree.map(lambda leaf: leaf[-1], history)
    return Gaussian(position, value, last.gradient, last.root)


def _finite(value: Float[Array, ""]) -> Float[Array, ""]:
    """A log density with which one can calculate."""
    return jnp.where(jnp.isfinite(value), jnp.maximum(value, -1e12), -1e12)
