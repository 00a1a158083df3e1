"""Importance sampling that learns where to look, for posteriors in a plane that are jagged."""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from prisma_sbi import _validate
from prisma_sbi.inference.box import Box
from prisma_sbi.inference.quadrature import GridSettings, integrate
from prisma_sbi.inference.target import Target

_FLATTENED, _N_FIRST, _N_AT_START = 8.0, 128, 8
_TAIL = 4.0
"""Degrees of freedom of the kernels: heavier tails than any posterior in the plane."""


@dataclass(frozen=True, kw_only=True)
class PopulationSettings:
    """Work of the rounds.

    Attributes
    ----------
    n_rounds, n_points
        Rounds, and points weighed in each.
    n_kernels
        Kernels that a round proposes from.
    width
        Of the kernels, as a share of the spread of all points.
    heat
        Log weights are divided by this at first, and by less from round to round, when
        kernels are placed, so that no round clings to the few points that happened to hit a
        narrow ridge.
    coldest
        No round divides by less than this. Above 1 the points stay spread over places that are
        not the best, for others to look at them more closely.
    """

    n_rounds: int = 6
    n_points: int = 128
    n_kernels: int = 64
    width: float = 0.5
    heat: float = 16.0
    coldest: float = 1.0

    def __post_init__(self) -> None:
        _validate.at_least(
            1, n_rounds=self.n_rounds, n_points=self.n_points, n_kernels=self.n_kernels
        )
        _validate.positive(width=self.width)
        if not self.heat >= self.coldest >= 1.0:
            raise ValueError(
                f"Expected heat >= coldest >= 1; got {self.heat!r} and {self.coldest!r}."
            )


class Population(eqx.Module):
    """Weighed points.

    Attributes
    ----------
    position : (point, 2)
    log_weight : (point, choice)
        Log joint density of the position and every choice.
    share : (point,)
        Importance of each point, summing to one.
    log_evidence
        Log of the integral of the joint density.
    n_effective
        One over the sum of squared shares.
    """

    position: Float[Array, "*trip point 2"]
    log_weight: Float[Array, "*trip point choice"]
    share: Float[Array, "*trip point"]
    log_evidence: Float[Array, "*trip"]
    n_effective: Float[Array, "*trip"]

    def choice_probability(self) -> Float[Array, " choice"]:
        """Posterior probability of every choice; for one trip."""
        return self.share @ jax.nn.softmax(self.log_weight, axis=-1)

    def sample(
        self, key: jax.Array, n_draws: int
    ) -> tuple[Float[Array, "draw 2"], Int[Array, " draw"]]:
        """Draws of position and choice by their weights; a heavy point comes several times."""
        pick, choose = jax.random.split(key)
        kept = systematic(pick, self.share, n_draws)
        weights = self.log_weight[kept]
        gumbel = jax.random.gumbel(choose, weights.shape, weights.dtype)
        # In order along the ticket; shuffled, any stretch of the draws is a sample.
        order = jax.random.permutation(pick, n_draws)
        return self.position[kept][order], jnp.argmax(weights + gumbel, axis=-1)[order]


def populate(
    key: jax.Array,
    log_weights: Callable[[Float[Array, "2"]], Float[Array, " choice"]],
    first: Float[Array, "start 2"],
    share: Float[Array, " start"],
    settings: PopulationSettings,
) -> Population:
    r"""Weigh points around points that weigh much, round after round.

    Parameters
    ----------
    key
        Of the proposals.
    log_weights
        From a position in the plane to the log joint density with every choice.
    first : (start, 2)
        Positions to begin with.
    share : (start,)
        Their importance, summing to one.
    settings
        Amount of work.

    Returns
    -------
    Population

    Notes
    -----
    Population Monte Carlo [1]_. A round proposes from a mixture of Student kernels, centered on
    points taken by their weights and shaped like the covariance of all of them. At the end
    every point is weighed against the mean of all mixtures, whichever it came from [2]_, so an
    unlucky round does no harm; kernels that stand on the point itself are left out, which
    without that would make heavy points too light.

    References
    ----------
    .. [1] Cappé, Guillin, Marin and Robert, Population Monte Carlo, 2004.
       https://doi.org/10.1198/106186004X12803
    .. [2] Cornuet, Marin, Mira and Robert, Adaptive multiple importance sampling, 2012.
       https://doi.org/10.1111/j.1467-9469.2011.00756.x
    """
    n_rounds, n = settings.n_rounds, settings.n_points
    n_all, n_choices = n_rounds * n, jax.eval_shape(log_weights, first[0]).shape[0]
    # Cold after two thirds of the rounds.
    cooling = np.arange(1, n_rounds + 1) / n_rounds
    heats = np.maximum(settings.heat ** np.clip(1.0 - 1.5 * cooling, 0.0, None), settings.coldest)
    heats = jnp.asarray(heats, first.dtype)

    def one_round(carry, now):
        before, weights, mixtures, places, importance = carry
        index, heat, round_key = now
        center_key, which_key, kernel_key = jax.random.split(round_key, 3)
        chosen = systematic(center_key, importance, settings.n_kernels)
        centers, owners = places[chosen], jnp.where(index > 0, chosen, -1)
        root = settings.width * _root(places, importance)
        which = jax.random.randint(which_key, (n,), 0, settings.n_kernels)
        proposed = centers[which] + _student(kernel_key, n) @ root.T
        found = jax.vmap(log_weights)(proposed)
        position = lax.dynamic_update_slice(before, proposed, (index * n, 0))
        weights = lax.dynamic_update_slice(
            weights, jnp.where(jnp.isnan(found), -jnp.inf, found), (index * n, 0)
        )
        mixtures = jax.tree.map(
            lambda all_rounds, this: all_rounds.at[index].set(this),
            mixtures,
            (centers, root, owners),
        )
        log_ratio = jax.nn.logsumexp(weights, axis=-1) - _log_mixtures(position, mixtures, index)
        importance = jax.nn.softmax(log_ratio / heat)
        return (position, weights, mixtures, position, importance), log_ratio

    # The first places stand where points will be; room that no round has filled weighs nothing.
    pick = systematic(key, share, n_all)
    room = jnp.zeros((n_all, 2), first.dtype)
    nothing = jnp.full((n_all, n_choices), -jnp.inf, first.dtype)
    mixtures = (
        jnp.zeros((n_rounds, settings.n_kernels, 2), first.dtype),
        jnp.broadcast_to(jnp.eye(2, dtype=first.dtype), (n_rounds, 2, 2)),
        jnp.full((n_rounds, settings.n_kernels), -1),
    )
    even = jnp.full(n_all, 1.0 / n_all, first.dtype)
    (position, weights, *_, importance), log_ratios = lax.scan(
        one_round,
        (room, nothing, mixtures, first[pick], even),
        (jnp.arange(n_rounds), heats, jax.random.split(key, n_rounds)),
    )
    return Population(
        position=position,
        log_weight=weights,
        share=importance,
        log_evidence=jax.nn.logsumexp(log_ratios[-1]) - jnp.log(n_all),
        n_effective=1.0 / jnp.sum(importance**2),
    )


def survey(
    key: jax.Array,
    target: Target,
    box: Box,
    start: Float[Array, "2"],
    grid_settings: GridSettings,
    settings: PopulationSettings,
) -> Population:
    """Find a posterior over a box by the adaptive grid, then weigh points around it.

    Parameters
    ----------
    key
        Of the proposals.
    target
        Posterior of one trip.
    box
        Domain of the point.
    start : (2,)
        A point of high density, if one is known; any point otherwise.
    grid_settings
        The grid.
    settings
        The points.

    Returns
    -------
    Population
        Positions are in the plane behind the box.
    """
    cell_key, place_key, walk_key = jax.random.split(key, 3)
    grid = integrate(target, box, start, grid_settings)
    # Flattened, so that cells count whose value at the center is low by chance.
    log_area = jnp.sum(jnp.log(2.0 * grid.half_width), axis=-1)
    log_flat = (jnp.log(grid.mass) - log_area) / _FLATTENED + log_area
    cell = systematic(cell_key, jax.nn.softmax(log_flat), _N_FIRST)
    inner = jax.random.uniform(place_key, (_N_FIRST, 2), log_flat.dtype, -1.0, 1.0)
    point = box.unfold(grid.center[cell] + inner * grid.half_width[cell])
    first = box.outside(point.at[:_N_AT_START].set(start))

    def log_weights(position):
        return target.log_weights(box.inside(position)) + box.log_jacobian(position)

    even = jnp.full(_N_FIRST, 1.0 / _N_FIRST, first.dtype)
    return populate(walk_key, log_weights, first, even, settings)


def systematic(key: jax.Array, share: Float[Array, " n"], size: int) -> Int[Array, " size"]:
    """Positions by their shares, from one ticket and steps of equal length."""
    cumulative = jnp.cumsum(share)
    ticket = (jnp.arange(size) + jax.random.uniform(key, (), share.dtype)) / size
    return jnp.minimum(jnp.searchsorted(cumulative, ticket * cumulative[-1]), share.shape[0] - 1)


def _root(position: Float[Array, "n 2"], share: Float[Array, " n"]) -> Float[Array, "2 2"]:
    """Root of the covariance of weighed points, never flat."""
    offset = position - share @ position
    covariance = (offset * share[:, None]).T @ offset
    floor = 1e-4 * jnp.trace(covariance) + 1e-8
    return jnp.linalg.cholesky(covariance + floor * jnp.eye(2, dtype=covariance.dtype))


def _student(key: jax.Array, n: int) -> Float[Array, "n 2"]:
    """Standard Student pairs."""
    normal_key, scale_key = jax.random.split(key)
    scale = jax.random.chisquare(scale_key, _TAIL, (n, 1)) / _TAIL
    return jax.random.normal(normal_key, (n, 2)) / jnp.sqrt(scale)


def _log_mixtures(
    position: Float[Array, "n 2"],
    mixtures: tuple[
        Float[Array, "round kernel 2"], Float[Array, "round 2 2"], Int[Array, "round kernel"]
    ],
    last: Int[Array, ""],
) -> Float[Array, " n"]:
    """Log density of the mean of the mixtures so far; each proposed as many points.

    Kernels that are centered on a point itself are left out for it: they say that the density
    is high there because a point is there.
    """
    places = jnp.arange(len(position))[:, None]

    def one(centers, root, owners):
        offset = position[:, None] - centers
        first = offset[..., 0] / root[0, 0]
        second = (offset[..., 1] - root[1, 0] * first) / root[1, 1]
        log_kernel = -(0.5 * _TAIL + 1.0) * jnp.log1p((first**2 + second**2) / _TAIL)
        others = owners != places
        log_sum = jax.nn.logsumexp(jnp.where(others, log_kernel, -jnp.inf), axis=1)
        n_others = jnp.maximum(jnp.sum(others, axis=1), 1)
        return log_sum - jnp.log(root[0, 0] * root[1, 1] * 2.0 * jnp.pi * n_others)

    found = jax.vmap(one)(*mixtures)
    made = jnp.arange(len(found))[:, None] <= last
    return jax.nn.logsumexp(jnp.where(made, found, -jnp.inf), axis=0) - jnp.log(last + 1.0)
