"""A map between a posterior on a grid and the standard normal."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

from prisma_sbi.inference.box import Box
from prisma_sbi.inference.quadrature import GridPosterior


class GridTransport(eqx.Module):
    r"""The Knothe-Rosenblatt map from the standard normal to a posterior on a grid.

    Attributes
    ----------
    box
        Domain of the point.
    low, width : (cell, 2)
        Rectangles that tile the unit square behind the box, rising in the second coordinate.
    mass : (cell,)
        Probabilities of the cells.
    edge, reached : (edge,)
        Edges of cells in the first coordinate, rising, and the mass before each.

    Notes
    -----
    With cells of constant density both the distribution function of the first coordinate and
    that of the second given the first are piecewise linear. A Markov chain that moves on the
    normal side sees a target close to a standard normal, whatever the shape of the
    posterior, and what the grid got wrong is left to the accept step [1]_.

    References
    ----------
    .. [1] Parno and Marzouk, Transport map accelerated Markov chain Monte Carlo, 2018.
       https://doi.org/10.1137/17M1134640
    """

    box: Box
    low: Float[Array, "cell 2"]
    width: Float[Array, "cell 2"]
    mass: Float[Array, " cell"]
    edge: Float[Array, " edge"]
    reached: Float[Array, " edge"]

    @classmethod
    def of(
        cls, grid: GridPosterior, *, warm_share: float = 0.15, flat_share: float = 0.02
    ) -> "GridTransport":
        """From a posterior on a grid, mixed with a warmer one and with the flat law.

        The mixture is a little too wide everywhere: where a map is too narrow a chain that
        arrives from outside stays for long.
        """
        order = jnp.argsort(grid.center[:, 1] - grid.half_width[:, 1])
        half = grid.half_width[order]
        low, width = grid.center[order] - half, 2.0 * half
        flat = jnp.prod(width, axis=-1)
        warm = jnp.sqrt(grid.mass[order] * flat)
        warm = warm / jnp.sum(warm)
        mass = (
            (1.0 - warm_share - flat_share) * grid.mass[order]
            + warm_share * warm
            + flat_share * flat
        )
        mass = mass / jnp.sum(mass)
        edge = jnp.sort(jnp.concatenate([low[:, 0], low[:, 0] + width[:, 0]]))
        share = jnp.clip((edge[:, None] - low[:, 0]) / width[:, 0], 0.0, 1.0)
        return cls(grid.box, low, width, mass, edge, share @ mass)

    def point(self, position: Float[Array, "2"]) -> tuple[Float[Array, "2"], Float[Array, ""]]:
        """From the normal side into the box.

        Returns
        -------
        point : (2,)
            In the box.
        log_jacobian
            Log of the area of the box per area of the normal side.
        """
        share = jnp.clip(ndtr(position), 1e-6, 1.0 - 1e-6)
        first = self._first(share[0])
        low, width = self.low[:, 0], self.width[:, 0]
        # The cells along a line tile it, and stand in the order in which it meets them.
        along = jnp.where((first >= low) & (first < low + width), self.mass / width, 0.0)
        before = jnp.cumsum(along)
        wanted = share[1] * before[-1]
        cell = jnp.argmax((before >= wanted) & (along > 0.0))
        inner = jnp.clip(1.0 - (before[cell] - wanted) / along[cell], 0.0, 1.0)
        unit = jnp.stack([first, self.low[cell, 1] + self.width[cell, 1] * inner])
        log_grid_density = jnp.log(self.mass[cell]) - jnp.sum(jnp.log(self.width[cell]))
        log_normal = -0.5 * jnp.sum(position**2) - jnp.log(2.0 * jnp.pi)
        return self.box.unfold(unit), log_normal - log_grid_density + self.box.log_unfold_jacobian(
            unit
        )

    def _first(self, share: Float[Array, ""]) -> Float[Array, ""]:
        """Where the distribution function of the first coordinate reaches a share."""
        right = jnp.clip(jnp.searchsorted(self.reached, share), 1, self.edge.shape[0] - 1)
        below, above = self.reached[right - 1], self.reached[right]
        inner = (share - below) / jnp.where(above > below, above - below, 1.0)
        left, step = self.edge[right - 1], self.edge[right] - self.edge[right - 1]
        # Short of the right edge, which belongs to the next cells.
        return left + step * jnp.clip(inner, 0.0, 1.0 - 1e-6)


def normal_force(position: Float[Array, " dim"]) -> Float[Array, " dim"]:
    """Gradient of the log density of the standard normal."""
    return -position


def start_positions(key: jax.Array, n_chains: int) -> Float[Array, "chain 2"]:
    """First positions of chains, spread more widely than the posterior."""
    return 1.5 * jax.random.normal(key, (n_chains, 2))
