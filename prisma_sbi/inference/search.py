"""Global minimum over a box and a set of choices, from coarse to fine."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from prisma_sbi import _validate
from prisma_sbi.inference.target import Objective


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How much work the search does per trip.

    Attributes
    ----------
    grid_shape
        Nodes of the coarse grid in the two continuous directions.
    n_seeds
        Grid points at which every choice is tried.
    n_ranked, n_short
        Choices ranked by the exact loss at a point, and those a local search considers.
    n_climbers, n_finalists
        Local searches begun, and those continued after every choice was tried again.
    n_generations
        Steps of a local search before and after that.
    n_tries
        Points that a local search tries in a generation.
    shrink
        Factor on the step length from one generation to the next.
    stride
        Averaging of the cheap approximation used to rank candidates.
    """

    grid_shape: tuple[int, int] = (12, 8)
    n_seeds: int = 6
    n_ranked: int = 16
    n_short: int = 4
    n_climbers: int = 4
    n_finalists: int = 2
    n_generations: tuple[int, int] = (3, 2)
    n_tries: int = 8
    shrink: float = 0.6
    stride: int = 5

    def __post_init__(self) -> None:
        counts = (
            "n_seeds",
            "n_ranked",
            "n_short",
            "n_climbers",
            "n_finalists",
            "n_tries",
            "stride",
        )
        for name in counts:
            _validate.at_least(1, **{name: getattr(self, name)})
        if min(self.n_generations) < 0:
            raise ValueError(f"Expected n_generations >= 0; got {self.n_generations!r}.")
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
    at_bound : (2,)
        Which coordinates ended on their bounds.
    """

    point: Float[Array, "*trip 2"]
    choice: Int[Array, "*trip"]
    loss: Float[Array, "*trip"]
    at_bound: Bool[Array, "*trip 2"]


class _Climber(eqx.Module):
    """One local search: its best point, the loss there, and the choices it considers."""

    point: Float[Array, "*n 2"]
    loss: Float[Array, "*n"]
    choice: Int[Array, "*n"]
    shortlist: Int[Array, "*n short"]


def _spread(n: int, generation: int) -> Float[Array, "n 2"]:
    """A fixed low-discrepancy pattern on [-1, 1]^2, turned from generation to generation."""
    golden = np.array([0.7548776662466927, 0.5698402909980532])
    index = np.arange(1, n + 1)[:, None] + generation * n
    return jnp.asarray(2.0 * ((0.5 + index * golden) % 1.0) - 1.0, jnp.float32)


def _appraise(
    objective: Objective, point: Float[Array, "2"], n_choices: int, settings: SearchSettings
) -> _Climber:
    """Rank every choice at one point by the approximation, then the better ones exactly."""
    cheap = objective.losses(point, jnp.arange(n_choices), stride=settings.stride)
    _, few = lax.top_k(-cheap, min(settings.n_ranked, n_choices))
    losses, order = lax.top_k(-objective.losses(point, few), min(settings.n_short, few.shape[0]))
    shortlist = few[order]
    return _Climber(point, -losses[0], shortlist[0], shortlist)


def _advance(climber: _Climber, objective: Objective, offsets, lower, upper) -> _Climber:
    """Try points around the best one with every choice on the shortlist; keep the best."""
    points = jnp.clip(climber.point + offsets, lower, upper)
    losses = jax.vmap(lambda point: objective.losses(point, climber.shortlist))(points)
    flat = jnp.argmin(losses)
    row, column = jnp.unravel_index(flat, losses.shape)
    tried = _Climber(points[row], losses[row, column], climber.shortlist[column], climber.shortlist)
    better = tried.loss < climber.loss
    return jax.tree.map(lambda new, old: jnp.where(better, new, old), tried, climber)


def _climb(climbers: _Climber, objective: Objective, box, generations, settings) -> _Climber:
    """Shrinking random search from every climber; one compiled generation serves them all."""
    if not generations:
        return climbers
    lower, upper = box
    spacing = (upper - lower) / jnp.asarray(settings.grid_shape)
    offsets = jnp.stack(
        [
            settings.shrink**generation * spacing * _spread(settings.n_tries, generation)
            for generation in generations
        ]
    )

    def generation(now: _Climber, pattern):
        return jax.vmap(lambda one: _advance(one, objective, pattern, lower, upper))(now), None

    return lax.scan(generation, climbers, offsets)[0]


def _best(climbers: _Climber, n_keep: int) -> _Climber:
    """The climbers with the lowest loss."""
    _, order = lax.top_k(-climbers.loss, min(n_keep, climbers.loss.shape[0]))
    return jax.tree.map(lambda leaf: leaf[order], climbers)


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
    A coarse grid judged by a few representatives; every choice at its most promising nodes;
    from the best of those, local searches that shrink their steps; every choice once more
    where the best searches stand; and a last descent. Ranking uses the cheap approximation,
    what is kept is decided by the loss itself. The simulator steps through time, so its loss
    is full of small kinks: methods that follow a gradient stop at the first one (measured: a
    Levenberg-Marquardt polish lost to this search on nine trips in ten).
    """
    nodes = coarse_grid(lower, upper, settings.grid_shape)
    promise = jax.vmap(
        lambda point: objective.promise(point, representatives, stride=settings.stride)
    )(nodes)
    _, best = lax.top_k(-promise, min(settings.n_seeds, nodes.shape[0]))
    appraise = jax.vmap(lambda point: _appraise(objective, point, n_choices, settings))
    n_first, n_last = settings.n_generations
    climbers = _best(appraise(nodes[best]), settings.n_climbers)
    climbers = _climb(climbers, objective, (lower, upper), range(n_first), settings)
    climbers = _best(climbers, settings.n_finalists)
    # Where it stands now, another choice may be better than all on the old shortlist.
    climbers = appraise(climbers.point)
    last = range(n_first, n_first + n_last)
    climbers = _climb(climbers, objective, (lower, upper), last, settings)
    winner = jnp.argmin(climbers.loss)
    final = jax.tree.map(lambda leaf: leaf[winner], climbers)
    return Minimum(
        point=final.point,
        choice=final.choice,
        loss=final.loss,
        at_bound=(final.point <= lower) | (final.point >= upper),
    )
