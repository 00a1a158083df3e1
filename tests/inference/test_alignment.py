"""Axes of a posterior: a needle that stands oblique is integrated as well as a round heap."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

from prisma_sbi.inference import (
    Aligned,
    AlignSettings,
    Box,
    Frame,
    GridSettings,
    PopulationSettings,
    Target,
    align,
    integrate,
)

MEAN = np.asarray([0.62, 1.41])
SD = np.asarray([0.01, 0.004])
CORRELATION = 0.99
BOX = Box(jnp.asarray([0.02, 1.0]), jnp.asarray([1.0, 2.5]))
MIDDLE = 0.5 * (BOX.lower + BOX.upper)
FEW = GridSettings(n_levels=5)


class Needle(eqx.Module):
    """A normal law of known evidence, three quarters of it with the first of two choices."""

    log_evidence: float = 2.0

    def log_weights(self, point: Float[Array, "2"], *, stride: int = 1) -> Float[Array, " choice"]:
        z = (point - jnp.asarray(MEAN)) / jnp.asarray(SD)
        rest = 1.0 - CORRELATION**2
        square = (z[0] ** 2 - 2.0 * CORRELATION * z[0] * z[1] + z[1] ** 2) / rest
        norm = jnp.log(2.0 * jnp.pi * SD[0] * SD[1]) + 0.5 * jnp.log(rest)
        return self.log_evidence - 0.5 * square - norm + jnp.log(jnp.asarray([0.75, 0.25]))


@pytest.fixture(scope="module")
def found():
    def one(key):
        frame = align(key, Needle(), BOX, MIDDLE, AlignSettings())
        grid = integrate(Aligned(Needle(), frame), frame.domain, jnp.zeros(2), FEW)
        position, choice = grid.sample(key, 2_000)
        return frame.point(position), choice, grid.log_evidence, grid.moments()

    return jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 8))


def test_a_needle_has_the_evidence_and_the_moments_of_its_law(found):
    point, choice, log_evidence, (center, covariance) = found
    assert isinstance(Needle(), Target)
    np.testing.assert_allclose(log_evidence, 2.0, atol=0.1)
    flat = np.asarray(point, np.float64).reshape(-1, 2)
    np.testing.assert_allclose(flat.mean(axis=0), MEAN, atol=0.05 * SD.min())
    np.testing.assert_allclose(flat.std(axis=0), SD, rtol=0.06)
    assert np.corrcoef(flat.T)[0, 1] == pytest.approx(CORRELATION, abs=0.003)
    assert np.mean(np.asarray(choice) == 0) == pytest.approx(0.75, abs=0.02)
    # In its own frame, which reaches 6 to all sides, the needle is round and well inside.
    spread = np.sqrt(np.diagonal(np.asarray(covariance), axis1=1, axis2=2))
    assert np.all((spread > 0.2) & (spread < 1.5))
    assert np.all(np.abs(center) + 2.0 * spread < AlignSettings().reach)


def test_draws_do_not_repeat(found):
    for one in np.asarray(found[0]):
        assert len(np.unique(one, axis=0)) == 2_000


def test_cells_along_the_box_are_too_coarse_for_it():
    """What alignment is for: as many cells along the axes of the box miss the evidence."""
    grid = jax.jit(lambda: integrate(Needle(), BOX, MIDDLE, FEW))()
    assert abs(float(grid.log_evidence) - 2.0) > 0.3


def test_areas_are_those_of_the_map():
    frame = Frame(BOX, jnp.asarray([0.3, -0.4]), jnp.asarray([[0.5, 0.0], [0.2, 0.1]]), 6.0)
    place = jnp.asarray([0.7, -1.1])
    slope = jax.jacfwd(frame.point)(place)
    expected = np.linalg.slogdet(np.asarray(slope))[1]
    assert float(frame.log_jacobian(place)) == pytest.approx(expected, abs=1e-4)


def test_flat_target_fills_the_box():
    class Flat(eqx.Module):
        def log_weights(
            self, point: Float[Array, "2"], *, stride: int = 1
        ) -> Float[Array, " choice"]:
            return jnp.zeros(1) + 0.0 * point[0]

    def run(key):
        few = AlignSettings(
            population=PopulationSettings(shares=(0.1, 1.0), n_points=64, n_kernels=32)
        )
        frame = align(key, Flat(), BOX, MIDDLE, few)
        return integrate(Aligned(Flat(), frame), frame.domain, jnp.zeros(2), FEW).log_evidence

    found = jax.jit(run)(jax.random.key(1))
    assert float(found) == pytest.approx(np.log(0.98 * 1.5), abs=0.05)


def test_wrong_reach_is_refused():
    with pytest.raises(ValueError, match="reach"):
        AlignSettings(reach=0.0)
