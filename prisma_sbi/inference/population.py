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
from prisma_sbi.inference.target import Target, partial_log_weights

_TAIL = 4.0
"""Degrees of freedom of the kernels: heavier tails than any posterior in the plane."""


@dataclass(frozen=True, kw_only=True)
class PopulationSettings:
    """Work of the rounds.

    Attributes
    ----------
    first_shape
        Points to begin with, in the two directions of the box.
    shares
        Of the data, by which kernels are placed: one a round, the last of them 1.
    n_points
        Points weighed in each round.
    n_kernels
        Kernels that a round proposes from.
    width
        Of the kernels, as a share of the spread of all points.
    heat
        Log weights are divided by this when kernels are placed. Above 1 the points spread over
        places that are not the best, for others to look at them more closely.
    """

    first_shape: tuple[int, int] = (16, 16)
    shares: tuple[float, ...] = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 1.0)
    n_points: int = 512
    n_kernels: int = 64
    width: float = 0.5
    heat: float = 2.0

    def __post_init__(self) -> None:
        _validate.at_least(1, n_points=self.n_points, n_kernels=self.n_kernels)
        _validate.positive(width=self.width)
        if min(self.first_shape) < 2:
            raise ValueError(f"Expected 2 x 2 points or more; got {self.first_shape!r}.")
        _validate.rising_shares(shares=self.shares)
        if self.shares[-1] != 1.0:
            raise ValueError(f"Expected shares that end with 1; got {self.shares!r}.")
        if not self.heat >= 1.0:
            raise ValueError(f"Expected heat >= 1; got {self.heat!r}.")


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
    log_weights: Callable[[Float[Array, "2"]], Float[Array, "share choice"]],
    start: Float[Array, "2"],
    first: Float[Array, "first 2"],
    log_density: Callable[[Float[Array, "2"]], Float[Array, ""]],
    settings: PopulationSettings,
) -> Population:
    r"""Weigh points around points that weigh much, round after round.

    Parameters
    ----------
    key
        Of the proposals.
    log_weights
        From a position in the plane to the log joint densities with every choice, given each of
        the distinct shares of the data in rising order.
    start : (2,)
        Where kernels may stand besides; it is not among the points.
    first : (first, 2)
        Positions to begin with.
    log_density
        Log of the density that those were drawn from.
    settings
        Amount of work.

    Returns
    -------
    Population
        Of the first points and of those of all rounds, under the whole data.

    Notes
    -----
    Population Monte Carlo [1]_. A round proposes from a mixture of Student kernels, centered on
    points taken by their weights and shaped like the covariance of all of them. The weights are
    those of the posterior given the beginning of the data, more of it from round to round [2]_:
    the longer a trace, the narrower its heaps, and of many narrow ones the right one grows out of
    what the beginning has left. Every point is weighed against the mean of all mixtures,
    whichever it came from [3]_, so an unlucky round does no harm; kernels that stand on the point
    itself are left out, which without that would make heavy points too light.

    References
    ----------
    .. [1] Cappé, Guillin, Marin and Robert, Population Monte Carlo, 2004.
       https://doi.org/10.1198/106186004X12803
    .. [2] Chopin, A sequential particle filter method for static models, 2002.
       https://doi.org/10.1093/biomet/89.3.539
    .. [3] Cornuet, Marin, Mira and Robert, Adaptive multiple importance sampling, 2012.
       https://doi.org/10.1111/j.1467-9469.2011.00756.x
    """
    n_rounds, n, n_first = len(settings.shares), settings.n_points, len(first) + 1
    n_all = n_first + n_rounds * n
    share_of_round = jnp.asarray(np.unique(settings.shares, return_inverse=True)[1])

    def weigh(position):
        weights = jax.vmap(log_weights)(position)
        weights = jnp.where(jnp.isnan(weights), -jnp.inf, weights)
        return jax.nn.logsumexp(weights, axis=-1), weights[:, -1]

    def drawn_first(position):
        return jax.vmap(log_density)(position) + jnp.log(len(first))

    def room(values):
        """The first values, and room for those of the rounds."""
        empty = jnp.full((n_all - len(values), *values.shape[1:]), -jnp.inf, values.dtype)
        return jnp.concatenate([values, empty])

    def one_round(carry, now):
        """Propose from a mixture; count points by all mixtures so far."""
        position, densities, weights, log_count, mixtures = carry
        index, share, round_key = now
        center_key, which_key, kernel_key = jax.random.split(round_key, 3)
        log_ratio = jnp.take(densities, share, axis=1) - log_count
        # Room that is not filled yet weighs nothing.
        log_ratio = jnp.where(jnp.isnan(log_ratio), -jnp.inf, log_ratio)
        importance = jax.nn.softmax(log_ratio / settings.heat)
        owner = systematic(center_key, importance, settings.n_kernels)
        root = settings.width * _root(position, importance)
        mixture = (position[owner], root, owner)
        mixtures = jax.tree.map(lambda every, this: every.at[index].set(this), mixtures, mixture)
        which = jax.random.randint(which_key, (n,), 0, settings.n_kernels)
        proposed = mixture[0][which] + _student(kernel_key, n) @ root.T
        row = n_first + index * n
        found, weighed = weigh(proposed)
        position = lax.dynamic_update_slice(position, proposed, (row, 0))
        densities = lax.dynamic_update_slice(densities, found, (row, 0))
        weights = lax.dynamic_update_slice(weights, weighed, (row, 0))
        # New points by the mixtures before this one, and all points by this one.
        rows = row + jnp.arange(n)
        before = jax.vmap(lambda *each: _log_mixture(proposed, rows, *each))(*mixtures)
        before = jnp.where(jnp.arange(n_rounds)[:, None] < index, before, -jnp.inf)
        before = jnp.logaddexp(drawn_first(proposed), jax.nn.logsumexp(before, 0) + jnp.log(n))
        log_count = lax.dynamic_update_slice(log_count, before, (row,))
        by_this = _log_mixture(position, jnp.arange(n_all), *mixture) + jnp.log(n)
        return (position, densities, weights, jnp.logaddexp(log_count, by_this), mixtures), None

    begin = jnp.concatenate([start[None], first])
    densities, weights = weigh(begin)
    mixtures = (
        jnp.zeros((n_rounds, settings.n_kernels, 2), first.dtype),
        jnp.broadcast_to(jnp.eye(2, dtype=first.dtype), (n_rounds, 2, 2)),
        jnp.full((n_rounds, settings.n_kernels), -1),
    )
    position = jnp.zeros((n_all, 2), first.dtype).at[:n_first].set(begin)
    carry = (position, room(densities), room(weights), room(drawn_first(begin)), mixtures)
    (position, densities, weights, log_count, _), _ = lax.scan(
        one_round,
        carry,
        (jnp.arange(n_rounds), share_of_round, jax.random.split(key, n_rounds)),
    )
    log_ratio = (densities[:, -1] - log_count)[1:]
    importance = jax.nn.softmax(log_ratio)
    return Population(
        position=position[1:],
        log_weight=weights[1:],
        share=importance,
        log_evidence=jax.nn.logsumexp(log_ratio),
        n_effective=1.0 / jnp.sum(importance**2),
    )


def survey(
    key: jax.Array,
    target: Target,
    box: Box,
    start: Float[Array, "2"],
    settings: PopulationSettings,
) -> Population:
    """Weigh points all over a box, then ever closer around those that weigh most.

    Parameters
    ----------
    key
        Of the proposals.
    target
        Posterior of one trip. If it is no
        :class:`~prisma_sbi.inference.target.PartialTarget`, rounds go by powers of the density.
    box
        Domain of the point.
    start : (2,)
        A point of high density, if one is known; any point otherwise.
    settings
        Amount of work.

    Returns
    -------
    Population
        Positions are in the plane behind the box.
    """
    place_key, walk_key = jax.random.split(key)
    shares = tuple(sorted(set(settings.shares)))
    shape = jnp.asarray(settings.first_shape)
    corners = jnp.stack(jnp.meshgrid(*map(jnp.arange, settings.first_shape)), axis=-1)
    corners = corners.reshape(-1, 2).astype(start.dtype)
    unit = (corners + jax.random.uniform(place_key, corners.shape, start.dtype)) / shape

    def log_weights(position):
        point = box.inside(position)
        return partial_log_weights(target, point, shares) + box.log_jacobian(position)

    def log_density(position):
        unit = box.fold(box.inside(position))
        return box.log_jacobian(position) - box.log_unfold_jacobian(unit)

    first = jax.vmap(box.outside)(box.unfold(unit))
    return populate(walk_key, log_weights, box.outside(start), first, log_density, settings)


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


def _log_mixture(
    position: Float[Array, "n 2"],
    row: Int[Array, " n"],
    center: Float[Array, "kernel 2"],
    root: Float[Array, "2 2"],
    owner: Int[Array, " kernel"],
) -> Float[Array, " n"]:
    """Log density of a mixture at points, which are named by their rows.

    Kernels that are centered on a point itself are left out for it: they say that the density
    is high there because a point is there.
    """
    offset = position[:, None] - center
    first = offset[..., 0] / root[0, 0]
    second = (offset[..., 1] - root[1, 0] * first) / root[1, 1]
    log_kernel = -(0.5 * _TAIL + 1.0) * jnp.log1p((first**2 + second**2) / _TAIL)
    others = owner != row[:, None]
    log_sum = jax.nn.logsumexp(jnp.where(others, log_kernel, -jnp.inf), axis=1)
    n_others = jnp.maximum(jnp.sum(others, axis=1), 1)
    return log_sum - jnp.log(root[0, 0] * root[1, 1] * 2.0 * jnp.pi * n_others)
