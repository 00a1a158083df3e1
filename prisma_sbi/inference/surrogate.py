"""A cheap map of a posterior: where it lies, how wide it is, which way its density rises."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from prisma_sbi import _validate
from prisma_sbi.inference.box import Box
from prisma_sbi.inference.quadrature import GridSettings, integrate
from prisma_sbi.inference.target import Target


@dataclass(frozen=True, kw_only=True)
class SurrogateSettings:
    """Work on the map.

    Attributes
    ----------
    grid
        Of the approximate integral that finds place and width.
    n_nodes
        Nodes of the map in each direction.
    half_width
        Where the map ends, in standard deviations.
    stride
        Of the approximation of the target.
    depth
        Log densities further than this below the peak are all the same.
    """

    grid: GridSettings = GridSettings(n_levels=4)
    n_nodes: int = 24
    half_width: float = 4.5
    stride: int = 5
    depth: float = 30.0

    def __post_init__(self) -> None:
        _validate.at_least(3, n_nodes=self.n_nodes)
        _validate.at_least(1, stride=self.stride)
        _validate.positive(half_width=self.half_width, depth=self.depth)


class Surrogate(eqx.Module):
    """A whitened plane and a force on it.

    Attributes
    ----------
    box
        Domain of the point.
    center : (2,)
        Of the posterior, in the plane behind the box.
    spread : (2, 2)
        Lower triangle; plane = center + spread @ whitened.
    slopes : (node, node, 2)
        Gradient of the approximate log density over the whitened plane.
    half_width
        The map covers this far in each direction; beyond it the force at its edge holds.
    """

    box: Box
    center: Float[Array, "2"]
    spread: Float[Array, "2 2"]
    slopes: Float[Array, "node node 2"]
    half_width: float = eqx.field(static=True)

    def point(self, whitened: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
        """From the whitened plane into the box."""
        return self.box.inside(self.center + whitened @ self.spread.T)

    def whiten(self, point: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
        """From the box to the whitened plane."""
        offset = self.box.outside(point) - self.center
        return jax.scipy.linalg.solve_triangular(self.spread, offset.T, lower=True).T

    def log_jacobian(self, whitened: Float[Array, "*n 2"]) -> Float[Array, "*n"]:
        """Log of the area of the box per area of the whitened plane, up to a constant."""
        return self.box.log_jacobian(self.center + whitened @ self.spread.T)

    def force(self, whitened: Float[Array, "2"]) -> Float[Array, "2"]:
        """Approximate gradient of the log density, bilinear between nodes."""
        last = self.slopes.shape[0] - 1
        place = (whitened + self.half_width) * (last / (2.0 * self.half_width))
        place = jnp.clip(place, 0.0, last)
        cell = jnp.minimum(place.astype(jnp.int32), last - 1)
        share = place - cell
        row, column = cell[0], cell[1]
        slopes = self.slopes
        near = (1.0 - share[1]) * slopes[row, column] + share[1] * slopes[row, column + 1]
        far = (1.0 - share[1]) * slopes[row + 1, column] + share[1] * slopes[row + 1, column + 1]
        return (1.0 - share[0]) * near + share[0] * far


class _Cheap(eqx.Module):
    """A target by its approximation."""

    target: Target
    stride: int = eqx.field(static=True)

    def log_weights(self, point: Float[Array, "2"], *, stride: int = 1) -> Float[Array, " choice"]:
        """Approximate log weights."""
        return self.target.log_weights(point, stride=max(stride, self.stride))


def map_posterior(
    key: jax.Array,
    target: Target,
    box: Box,
    start: Float[Array, "2"],
    n_starts: int,
    settings: SurrogateSettings,
) -> tuple[Surrogate, Float[Array, "start 2"]]:
    """Survey one posterior by its approximation.

    Parameters
    ----------
    key
        Typed key.
    target
        Posterior of one trip.
    box
        Domain of the point.
    start : (2,)
        A point of high density.
    n_starts
        How many first positions for chains to draw.
    settings
        Amount of work.

    Returns
    -------
    surrogate
    starts : (start, 2)
        Whitened positions, drawn from the approximation and spread by half again.
    """
    cheap = _Cheap(target, settings.stride)
    found = integrate(cheap, box, start, settings.grid)
    point, _ = found.sample(key, 256)
    plane = box.outside(point)
    center = jnp.mean(plane, axis=0)
    offset = plane - center
    covariance = offset.T @ offset / (plane.shape[0] - 1)
    spread = jnp.linalg.cholesky(covariance + 1e-6 * jnp.eye(2, dtype=covariance.dtype))
    empty = jnp.zeros((settings.n_nodes, settings.n_nodes, 2), plane.dtype)
    blank = Surrogate(box, center, spread, empty, settings.half_width)
    axis = jnp.linspace(-settings.half_width, settings.half_width, settings.n_nodes)
    nodes = jnp.stack(jnp.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)

    def height(rows):
        weights = jax.vmap(cheap.log_weights)(blank.point(rows))
        return jax.nn.logsumexp(weights, axis=-1) + blank.log_jacobian(rows)

    # Row by row: a block that fits the cache is several times faster than all nodes at once.
    heights = lax.map(height, nodes.reshape(settings.n_nodes, settings.n_nodes, 2))
    heights = jnp.where(jnp.isnan(heights), -jnp.inf, heights)
    heights = jnp.maximum(heights, jnp.max(heights) - settings.depth)
    spacing = axis[1] - axis[0]
    slopes = jnp.stack(jnp.gradient(heights, spacing), axis=-1)
    surrogate = eqx.tree_at(lambda s: s.slopes, blank, slopes)
    starts = jax.scipy.linalg.solve_triangular(spread, offset[:n_starts].T, lower=True).T
    return surrogate, 1.5 * starts
