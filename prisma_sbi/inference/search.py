"""Global minimum over a box and a set of choices: coarse to fine, then second order."""

from dataclasses import dataclass
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from prisma_sbi import _validate


class Objective(Protocol):
    """Half a sum of squares over a point in the plane and one of finitely many choices."""

    def losses(
        self, point: Float[Array, "2"], vehicles: Int[Array, " choice"], *, stride: int = 1
    ) -> Float[Array, " choice"]:
        """Loss for several choices at one point; ``stride`` > 1 may approximate."""
        ...

    def residuals(
        self, point: Float[Array, "2"], vehicle: Int[Array, ""]
    ) -> Float[Array, " residual"]:
        """Residuals whose half squared norm is the loss."""
        ...


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How much work the search does per trip.

    Attributes
    ----------
    grid_shape
        Nodes of the coarse grid in the two continuous directions.
    n_seeds
        Grid points at which every choice is tried.
    n_starts
        Pairs of point and choice that are refined.
    n_refinements, n_polishes
        Levenberg-Marquardt steps on each start, and on the winners after the choice is
        resolved again.
    n_finalists
        Refined pairs for which the choice is resolved again.
    stride
        Averaging of the cheap approximation used to rank candidates.
    """

    grid_shape: tuple[int, int] = (12, 8)
    n_seeds: int = 10
    n_starts: int = 6
    n_refinements: int = 6
    n_finalists: int = 2
    n_polishes: int = 5
    stride: int = 5

    def __post_init__(self) -> None:
        for name in ("n_seeds", "n_starts", "n_finalists", "stride"):
            _validate.at_least(1, **{name: getattr(self, name)})
        if min(self.grid_shape) < 2:
            raise ValueError(f"Expected a grid of 2 x 2 or more; got {self.grid_shape!r}.")


class Minimum(eqx.Module):
    """Where the search ended.

    Attributes
    ----------
    point : (2,)
    choice
        Position among the choices.
    loss
        Loss there.
    gradient : (2,)
        Of the loss.
    curvature : (2, 2)
        Gauss-Newton approximation of the Hessian.
    converged
        Whether the projected gradient is small against curvature and loss.
    at_bound : (2,)
        Which coordinates ended on their bounds.
    """

    point: Float[Array, "*trip 2"]
    choice: Int[Array, "*trip"]
    loss: Float[Array, "*trip"]
    gradient: Float[Array, "*trip 2"]
    curvature: Float[Array, "*trip 2 2"]
    converged: Bool[Array, "*trip"]
    at_bound: Bool[Array, "*trip 2"]


class _Iterate(eqx.Module):
    """State of one Levenberg-Marquardt run."""

    point: Float[Array, "2"]
    loss: Float[Array, ""]
    gradient: Float[Array, "2"]
    curvature: Float[Array, "2 2"]
    damping: Float[Array, ""]


def _linearize(objective: Objective, point, choice):
    """Loss, gradient and Gauss-Newton curvature by forward mode: two tangents, one pass."""

    def directional(tangent):
        return jax.jvp(lambda at: objective.residuals(at, choice), (point,), (tangent,))

    values, columns = jax.vmap(directional, out_axes=(None, 1))(jnp.eye(2, dtype=point.dtype))
    return 0.5 * values @ values, columns.T @ values, columns.T @ columns


def _free(point, gradient, lower, upper):
    """Coordinates that may move: inside, or on a bound with descent pointing inward."""
    pinned = ((point <= lower) & (gradient > 0)) | ((point >= upper) & (gradient < 0))
    return ~pinned


def _lm_step(state: _Iterate, objective: Objective, choice, lower, upper) -> _Iterate:
    """One damped Gauss-Newton step inside the box; kept only if the loss falls."""
    free = _free(state.point, state.gradient, lower, upper)
    diagonal = jnp.diag(state.curvature)
    scale = state.damping * diagonal + 1e-6 * (1.0 + jnp.max(diagonal))
    matrix = jnp.where(free[:, None] & free[None, :], state.curvature, 0.0) + jnp.diag(
        jnp.where(free, scale, 1.0)
    )
    rhs = jnp.where(free, state.gradient, 0.0)
    determinant = matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0]
    step = (
        jnp.stack(
            [
                matrix[1, 1] * rhs[0] - matrix[0, 1] * rhs[1],
                matrix[0, 0] * rhs[1] - matrix[1, 0] * rhs[0],
            ]
        )
        / determinant
    )
    point = jnp.clip(state.point - step, lower, upper)
    loss, gradient, curvature = _linearize(objective, point, choice)
    better = loss < state.loss
    proposed = _Iterate(point, loss, gradient, curvature, jnp.maximum(state.damping / 5.0, 1e-6))
    rejected = eqx.tree_at(lambda s: s.damping, state, jnp.minimum(state.damping * 6.0, 1e6))
    return jax.tree.map(lambda new, old: jnp.where(better, new, old), proposed, rejected)


def _refine(objective: Objective, point, choice, lower, upper, n_steps: int) -> _Iterate:
    """Levenberg-Marquardt from one point, the choice held fixed."""
    start = _Iterate(
        point, *_linearize(objective, point, choice), jnp.asarray(1e-2, point.dtype)
    )
    return lax.fori_loop(
        0, n_steps, lambda _, state: _lm_step(state, objective, choice, lower, upper), start
    )


def coarse_grid(
    lower: Float[Array, "2"], upper: Float[Array, "2"], shape: tuple[int, int]
) -> Float[Array, "node 2"]:
    """Regular grid over the box; the first direction leaves out its lower end."""
    first = lower[0] + (upper[0] - lower[0]) * jnp.arange(1, shape[0] + 1) / shape[0]
    second = jnp.linspace(lower[1], upper[1], shape[1])
    return jnp.stack([m.ravel() for m in jnp.meshgrid(first, second, indexing="ij")], axis=-1)


def search(
    objective: Objective,
    lower: Float[Array, "2"],
    upper: Float[Array, "2"],
    representatives: Int[Array, " few"],
    n_choices: int,
    settings: SearchSettings,
) -> Minimum:
    """Minimize one objective; jit and ``vmap`` it over trips.

    Parameters
    ----------
    objective
        Loss of one trip.
    lower, upper : (2,)
        The box.
    representatives : (few,) int
        Choices that stand for all others on the coarse grid.
    n_choices
        How many choices there are.
    settings
        Amount of work.

    Returns
    -------
    Minimum

    Notes
    -----
    Four stages, each on fewer candidates than the one before: the coarse grid with the
    representatives; every choice at the best grid points; Levenberg-Marquardt in the plane
    from the best pairs; and, at the best of those, every choice once more with the exact
    loss, polished. A gradient alone gets stuck, a grid alone stays coarse.
    """
    everything = jnp.arange(n_choices)
    nodes = coarse_grid(lower, upper, settings.grid_shape)
    few = jax.vmap(
        lambda point: objective.losses(point, representatives, stride=settings.stride)
    )(nodes)
    n_seeds = min(settings.n_seeds, nodes.shape[0])
    _, seed_index = lax.top_k(-jnp.min(few, axis=1), n_seeds)
    seeds = nodes[seed_index]

    ranked = jax.vmap(lambda p: objective.losses(p, everything, stride=settings.stride))(seeds)
    per_seed = min(2, n_choices)
    best, choice = lax.top_k(-ranked, per_seed)
    _, pair = lax.top_k(best.ravel(), min(settings.n_starts, n_seeds * per_seed))
    starts, start_choice = seeds[pair // per_seed], choice.ravel()[pair]

    refined = jax.vmap(
        lambda p, c: _refine(objective, p, c, lower, upper, settings.n_refinements)
    )(starts, start_choice)
    n_finalists = min(settings.n_finalists, starts.shape[0])
    _, final = lax.top_k(-refined.loss, n_finalists)

    resolved = jax.vmap(lambda p: objective.losses(p, everything))(refined.point[final])
    resolved_choice = jnp.argmin(resolved, axis=1)
    polished = jax.vmap(
        lambda p, c: _refine(objective, p, c, lower, upper, settings.n_polishes)
    )(refined.point[final], resolved_choice)

    points = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), refined, polished)
    choices = jnp.concatenate([start_choice, resolved_choice])
    winner = jnp.argmin(points.loss)
    state = jax.tree.map(lambda leaf: leaf[winner], points)
    free = _free(state.point, state.gradient, lower, upper)
    # Predicted fall of the loss by one more step, against the loss: scale-free.
    gain = jnp.sum(jnp.where(free, state.gradient**2 / (jnp.diag(state.curvature) + 1e-12), 0.0))
    return Minimum(
        point=state.point,
        choice=choices[winner],
        loss=state.loss,
        gradient=state.gradient,
        curvature=state.curvature,
        converged=gain <= 1e-2 * state.loss + 1e-6,
        at_bound=(state.point <= lower) | (state.point >= upper),
    )
