"""The exact posterior over a plane and a set of choices, by an adaptive grid."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from prisma_sbi import _validate
from prisma_sbi.inference.box import Box
from prisma_sbi.inference.target import Target


@dataclass(frozen=True, kw_only=True)
class GridSettings:
    """How finely the plane is divided.

    Attributes
    ----------
    grid_shape
        Cells of the first grid in the two directions.
    n_levels
        Times that cells are chosen and divided.
    n_split
        Cells divided each time.
    heat
        Log densities are divided by this at first, and by less from level to level, when
        cells are chosen, so that a coarse grid does not overlook a narrow peak.
    """

    grid_shape: tuple[int, int] = (12, 12)
    n_levels: int = 8
    n_split: int = 12
    heat: float = 16.0

    def __post_init__(self) -> None:
        _validate.at_least(1, n_split=self.n_split)
        _validate.at_least(0, n_levels=self.n_levels)
        if min(self.grid_shape) < 2:
            raise ValueError(f"Expected a grid of 2 x 2 or more; got {self.grid_shape!r}.")
        if not self.heat >= 1.0:
            raise ValueError(f"Expected heat >= 1; got {self.heat!r}.")


_AROUND = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]

_DEEP = 20.0
"""Differences of log densities beyond this count no more."""
_FLAT = 0.05
"""Variation that even a flat cell is credited with."""


class GridPosterior(eqx.Module):
    """A posterior as cells of constant density, in the unit square behind the box.

    Attributes
    ----------
    box
        Domain of the point.
    center, half_width : (cell, 2)
        Rectangles that tile the unit square.
    mass : (cell,)
        Probabilities, summing to one.
    log_choice : (cell, choice)
        Log probability of every choice within each cell.
    choice_probability : (choice,)
        Over the whole plane.
    log_evidence
        Log of the integral of the joint density.
    n_effective
        Cells that carry the posterior: one over the sum of squared masses.
    """

    box: Box
    center: Float[Array, "*trip cell 2"]
    half_width: Float[Array, "*trip cell 2"]
    mass: Float[Array, "*trip cell"]
    log_choice: Float[Array, "*trip cell choice"]
    choice_probability: Float[Array, "*trip choice"]
    log_evidence: Float[Array, "*trip"]
    n_effective: Float[Array, "*trip"]

    def moments(self) -> tuple[Float[Array, "2"], Float[Array, "2 2"]]:
        """Mean and covariance of the point; for one trip."""
        # Two Gauss points a side integrate cubics exactly over every cell.
        corners = jnp.asarray([(i, j) for i in (-1, 1) for j in (-1, 1)]) / jnp.sqrt(3.0)
        unit = self.center[:, None] + corners * self.half_width[:, None]
        point = self.box.unfold(unit).reshape(-1, 2)
        weight = jnp.repeat(self.mass, len(corners)) / len(corners)
        mean = weight @ point
        offset = point - mean
        return mean, (offset * weight[:, None]).T @ offset

    def sample(
        self, key: jax.Array, n_draws: int
    ) -> tuple[Float[Array, "draw 2"], Int[Array, " draw"]]:
        """Independent draws of point and choice; for one trip."""
        pick, place, choose = jax.random.split(key, 3)
        # Inverse of the distribution function: a categorical draw would need a matrix of noise.
        cumulative = jnp.cumsum(self.mass)
        ticket = jax.random.uniform(pick, (n_draws,), self.mass.dtype) * cumulative[-1]
        cell = jnp.minimum(jnp.searchsorted(cumulative, ticket), self.mass.shape[0] - 1)
        inner = jax.random.uniform(place, (n_draws, 2), self.mass.dtype, -1.0, 1.0)
        point = self.box.unfold(self.center[cell] + inner * self.half_width[cell])
        gumbel = jax.random.gumbel(choose, (n_draws, self.log_choice.shape[1]))
        return point, jnp.argmax(self.log_choice[cell] + gumbel, axis=-1)


class _Cells(eqx.Module):
    """A tiling of the unit square, the joint density at the centers, and how it varies nearby."""

    center: Float[Array, "cell 2"]
    half_width: Float[Array, "cell 2"]
    log_weight: Float[Array, "cell choice"]
    variation: Float[Array, " cell"]

    @property
    def log_density(self) -> Float[Array, " cell"]:
        """Density of the point, choices summed out."""
        return jax.nn.logsumexp(self.log_weight, axis=-1)

    @property
    def log_mass(self) -> Float[Array, " cell"]:
        """Density times area."""
        return self.log_density + jnp.sum(jnp.log(2.0 * self.half_width), axis=-1)


def integrate(
    target: Target,
    box: Box,
    start: Float[Array, "2"],
    settings: GridSettings,
) -> GridPosterior:
    r"""Integrate one posterior; jit it, and map it over trips.

    Parameters
    ----------
    target
        Posterior of one trip.
    box
        Domain of the point.
    start : (2,)
        A point of high density, whose cell is always divided.
    settings
        Amount of work.

    Returns
    -------
    GridPosterior

    Notes
    -----
    Cells of large mass are divided into 3 x 3, whose middle one keeps the value already
    known. The value of a cell is the density at its center times its area, so errors fall
    with the square of the width of those cells that carry mass. Choices are summed out at
    every center.
    """
    cells = _first_cells(target, box, settings)
    start_unit = box.fold(start)
    # From hot to cold in the first half of the levels; the second half follows the mass.
    steps = np.clip(1.0 - 2.0 * np.arange(settings.n_levels) / settings.n_levels, 0.0, None)
    for heat in settings.heat**steps:
        cells = _divide(cells, target, box, start_unit, settings.n_split, float(heat))
    return _finish(cells, box)


def _evaluate(
    target: Target, box: Box, unit: Float[Array, "cell 2"]
) -> Float[Array, "cell choice"]:
    """Log weights at points of the unit square, per area of the square."""
    weights = jax.vmap(target.log_weights)(box.unfold(unit))
    weights = weights + box.log_unfold_jacobian(unit)[:, None]
    return jnp.where(jnp.isnan(weights), -jnp.inf, weights)


def _first_cells(target: Target, box: Box, settings: GridSettings) -> _Cells:
    """A regular grid."""
    axes = [(jnp.arange(n) + 0.5) / n for n in settings.grid_shape]
    center = jnp.stack([axis.ravel() for axis in jnp.meshgrid(*axes, indexing="ij")], axis=-1)
    half = jnp.broadcast_to(0.5 / jnp.asarray(settings.grid_shape), center.shape)
    weight = _evaluate(target, box, center)
    density = jax.nn.logsumexp(weight, axis=-1).reshape(settings.grid_shape)
    around = jnp.stack(
        [
            jnp.pad(density, 1, mode="edge")[1 + i :, 1 + j :][
                : density.shape[0], : density.shape[1]
            ]
            for i, j in _AROUND
        ]
    )
    return _Cells(
        center, half, weight, _variation(density.ravel(), around.reshape(len(_AROUND), -1).T) / 2.0
    )


def _divide(
    cells: _Cells,
    target: Target,
    box: Box,
    start: Float[Array, "2"],
    n_split: int,
    heat: float,
) -> _Cells:
    """Divide the cells of largest tempered mass, and the one around the start, into nine."""
    log_area = jnp.sum(jnp.log(2.0 * cells.half_width), axis=-1)
    around = jnp.all(jnp.abs(start - cells.center) <= cells.half_width, axis=-1)
    score = cells.log_density / heat + log_area + jnp.log(cells.variation)
    score = jnp.where(around, jnp.inf, score)
    _, chosen = lax.top_k(score, min(n_split, score.shape[0]))
    third = cells.half_width[chosen] / 3.0
    children = cells.center[chosen][:, None] + 2.0 * third[:, None] * jnp.asarray(_AROUND)
    weight = _evaluate(target, box, children.reshape(-1, 2))
    density = jax.nn.logsumexp(weight, axis=-1).reshape(-1, len(_AROUND))
    # A third of what the density did over the parent it will do over each of the nine.
    variation = _variation(cells.log_density[chosen], density) / 3.0
    return _Cells(
        center=jnp.concatenate([cells.center, children.reshape(-1, 2)]),
        half_width=jnp.concatenate(
            [cells.half_width.at[chosen].set(third), jnp.repeat(third, len(_AROUND), axis=0)]
        ),
        log_weight=jnp.concatenate([cells.log_weight, weight]),
        variation=jnp.concatenate(
            [cells.variation.at[chosen].set(variation), jnp.repeat(variation, len(_AROUND))]
        ),
    )


def _variation(
    middle: Float[Array, " cell"], around: Float[Array, "cell neighbor"]
) -> Float[Array, " cell"]:
    """Range of a log density over a place and the eight around it."""
    values = jnp.concatenate([middle[:, None], around], axis=1)
    highest = jnp.max(values, axis=1)
    return highest - jnp.maximum(jnp.min(values, axis=1), highest - _DEEP) + _FLAT


def _finish(cells: _Cells, box: Box) -> GridPosterior:
    """Normalize."""
    log_density = cells.log_density
    log_mass = log_density + jnp.sum(jnp.log(2.0 * cells.half_width), axis=-1)
    log_evidence = jax.nn.logsumexp(log_mass)
    mass = jnp.exp(log_mass - log_evidence)
    # Where the density is zero any law of the choice will do; the mass is zero too.
    log_choice = jnp.where(
        jnp.isfinite(log_density)[:, None], cells.log_weight - log_density[:, None], -jnp.inf
    )
    share = mass @ jnp.exp(log_choice)
    return GridPosterior(
        box=box,
        center=cells.center,
        half_width=cells.half_width,
        mass=mass,
        log_choice=log_choice,
        # Logs of thousands in single precision make sums that are off by some 1e-4.
        choice_probability=share / jnp.sum(share),
        log_evidence=log_evidence,
        n_effective=1.0 / jnp.sum(mass**2),
    )
