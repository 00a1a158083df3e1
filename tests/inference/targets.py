"""Posteriors over a plane and a few choices, and their truth by brute force."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from prisma_sbi.inference import Box

LOWER, UPPER = np.asarray([0.0, 1.0]), np.asarray([1.0, 2.5])


def make_box():
    """The box, in the precision that is on."""
    return Box(jnp.asarray(LOWER.tolist()), jnp.asarray(UPPER.tolist()))


class Bells(eqx.Module):
    """One bell per choice, each with its own weight; the box cuts them off."""

    center: jax.Array
    precision: jax.Array
    log_weight: jax.Array

    def log_weights(self, point, *, stride=1):
        del stride
        offset = point - self.center
        squared = jnp.einsum("ci,cij,cj->c", offset, self.precision, offset)
        return self.log_weight - 0.5 * squared


class Decay(eqx.Module):
    """Exponential decay from the lower corner; the second choice is half as likely."""

    rate: jax.Array

    def log_weights(self, point, *, stride=1):
        del stride
        value = -jnp.sum(self.rate * (point - jnp.asarray(LOWER.tolist())))
        return value + jnp.log(jnp.asarray([2.0, 1.0]) / 3.0)


def bells(centers, scales, *, correlation=0.0, weights=None):
    """Bells with standard deviations and a correlation.

    There are always five choices, those left over without weight, so one compilation serves all.
    """
    centers = np.atleast_2d(np.asarray(centers, float))
    weights = np.ones(len(centers)) if weights is None else np.asarray(weights)
    weights = np.pad(weights, (0, 5 - len(centers)), constant_values=1e-99)
    centers = np.pad(centers, ((0, 5 - len(centers)), (0, 0)), mode="edge")
    scales = np.broadcast_to(np.asarray(scales, float), centers.shape)
    covariance = np.stack(
        [[[a * a, correlation * a * b], [correlation * a * b, b * b]] for a, b in scales]
    )
    return Bells(
        jnp.asarray(centers),
        jnp.asarray(np.linalg.inv(covariance)),
        jnp.asarray(np.log(weights)),
    )


class Truth(eqx.Module):
    """Moments and distribution functions of a posterior."""

    mean: np.ndarray
    covariance: np.ndarray
    log_evidence: float
    choice: np.ndarray
    nodes: tuple[np.ndarray, np.ndarray]
    mass: np.ndarray

    def cdf(self, axis):
        """Distribution function of one coordinate."""
        marginal = self.mass.sum(axis=1 - axis)
        return partial(np.interp, xp=self.nodes[axis], fp=np.cumsum(marginal) - 0.5 * marginal)


def truth_of(target, n=400):
    """By brute force over the whole box, and once more over the part of it that matters."""
    first = _brute_force(target, LOWER, UPPER, n)
    reach = 14.0 * np.sqrt(np.diag(first.covariance))
    lower, upper = np.maximum(LOWER, first.mean - reach), np.minimum(UPPER, first.mean + reach)
    return _brute_force(target, lower, upper, n)


@eqx.filter_jit
def _over_plane(target, points):
    """Log weights at a grid of points."""
    return jax.vmap(jax.vmap(target.log_weights))(points)


def _brute_force(target, lower, upper, n):
    """A Gauss-Legendre rule in both directions."""
    x, w = np.polynomial.legendre.leggauss(n)
    axes = [low + (high - low) * (0.5 + 0.5 * x) for low, high in zip(lower, upper, strict=True)]
    width = [(high - low) * 0.5 * w for low, high in zip(lower, upper, strict=True)]
    points = jnp.stack(jnp.meshgrid(*map(jnp.asarray, axes), indexing="ij"), axis=-1)
    value = np.asarray(_over_plane(target, points), float)
    top = value.max()
    joint = np.exp(value - top) * (width[0][:, None] * width[1])[..., None]
    total = joint.sum()
    mass = joint.sum(axis=-1) / total
    mean = np.asarray([mass.sum(axis=1) @ axes[0], mass.sum(axis=0) @ axes[1]])
    offsets = axes[0] - mean[0], axes[1] - mean[1]
    cross = offsets[0] @ mass @ offsets[1]
    covariance = np.asarray(
        [
            [mass.sum(axis=1) @ offsets[0] ** 2, cross],
            [cross, mass.sum(axis=0) @ offsets[1] ** 2],
        ]
    )
    choice = joint.sum(axis=(0, 1)) / total
    return Truth(mean, covariance, np.log(total) + top, choice, tuple(axes), mass)
