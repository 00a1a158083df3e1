"""Axes along which a posterior lies, so that a grid need not follow an oblique ridge in steps."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from prisma_sbi import _validate
from prisma_sbi.inference.box import Box
from prisma_sbi.inference.population import PopulationSettings, survey
from prisma_sbi.inference.quadrature import GridPosterior, GridSettings, integrate
from prisma_sbi.inference.target import Target

_WARMER = (1.0, 2.0, 4.0, 8.0)
_LEAST_POINTS = 24.0
"""A covariance is taken from as many effective points or more."""


@dataclass(frozen=True, kw_only=True)
class AlignSettings:
    """Work of finding the axes of a posterior.

    Attributes
    ----------
    population
        Points by which they are found.
    reach
        How far the axes reach to either side, in standard deviations.
    """

    population: PopulationSettings = PopulationSettings(heat=4.0)
    reach: float = 6.0

    def __post_init__(self) -> None:
        _validate.positive(reach=self.reach)


class Frame(eqx.Module):
    """Axes of a posterior in the plane behind a box.

    Attributes
    ----------
    box
        Domain of the point.
    center, root
        A position along the axes is the place ``center + root @ position`` of the plane.
    reach
        Positions go from minus this to this.
    """

    box: Box
    center: Float[Array, "*trip 2"]
    root: Float[Array, "*trip 2 2"]
    reach: float = eqx.field(static=True)

    @property
    def domain(self) -> Box:
        """Box of the positions."""
        edge = jnp.full(2, self.reach, self.center.dtype)
        return Box(-edge, edge)

    def point(self, position: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
        """From positions to points in the box; for one trip."""
        return self.box.inside(self.center + position @ self.root.T)

    def log_jacobian(self, position: Float[Array, "2"]) -> Float[Array, ""]:
        """Log of the area of the box per area of positions; for one trip."""
        place = self.center + self.root @ position
        return self.box.log_jacobian(place) + jnp.log(self.root[0, 0] * self.root[1, 1])


class Aligned(eqx.Module):
    """A target as a function of positions in a frame."""

    target: Target
    frame: Frame

    def log_weights(self, point: Float[Array, "2"], *, stride: int = 1) -> Float[Array, " choice"]:
        """Log joint density of a position and every choice."""
        weights = self.target.log_weights(self.frame.point(point), stride=stride)
        return weights + self.frame.log_jacobian(point)


def integrate_aligned(
    key: jax.Array,
    target: Target,
    box: Box,
    start: Float[Array, "2"],
    settings: AlignSettings,
    grid: GridSettings,
) -> tuple[Frame, GridPosterior]:
    """Integrate a posterior on a grid along its own axes.

    Parameters
    ----------
    key, target, box, start, settings
        As for :func:`align`.
    grid
        Amount of work for the grid.

    Returns
    -------
    frame
        The axes.
    posterior
        Its positions are in the frame: ``frame.point`` takes them to the box.
    """
    frame = align(key, target, box, start, settings)
    middle = jnp.zeros_like(start)
    return frame, integrate(Aligned(target, frame), frame.domain, middle, grid)


def align(
    key: jax.Array,
    target: Target,
    box: Box,
    start: Float[Array, "2"],
    settings: AlignSettings,
) -> Frame:
    """Find the axes of a posterior and its widths along them.

    Parameters
    ----------
    key
        Of the points by which it is found.
    target
        Posterior of one trip.
    box
        Domain of the point.
    start : (2,)
        A point of high density, if one is known; any point otherwise.
    settings
        Amount of work.

    Returns
    -------
    Frame
        In which the posterior is about as wide as a standard normal.

    Notes
    -----
    Mean and covariance of weighed points need not be exact: a grid over the domain puts right
    what they miss. They are those of flattened weights (``population.heat``), and if few points
    carry all the weight, of weights flattened further until enough of them count. So the frame is
    wide enough for heaps that only the grid can tell from the highest one; one too narrow would
    cut the posterior off.
    """
    found = survey(key, target, box, start, settings.population)
    log_share = jnp.log(found.share)
    warmer = settings.population.heat * jnp.asarray(_WARMER, log_share.dtype)
    shares = jax.nn.softmax(log_share / warmer[:, None], axis=-1)
    enough = 1.0 / jnp.sum(shares**2, axis=-1) >= _LEAST_POINTS
    share = shares[jnp.where(jnp.any(enough), jnp.argmax(enough), len(_WARMER) - 1)]
    center = share @ found.position
    offset = found.position - center
    covariance = (offset * share[:, None]).T @ offset
    floor = 1e-12 + 1e-6 * jnp.diag(covariance)
    root = jnp.linalg.cholesky(covariance + jnp.diag(floor))
    return Frame(box, center, root, settings.reach)
