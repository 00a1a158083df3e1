"""The map from the normal: it is the Knothe-Rosenblatt map of the cells, Jacobian included."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from prisma_sbi.inference import GridSettings, GridTransport, integrate
from prisma_sbi.inference.transport import normal_force, start_positions
from tests.inference.targets import Decay, bells, make_box, truth_of

SETTINGS = GridSettings(grid_shape=(6, 6), n_levels=4, n_split=6)
TARGETS = {
    "correlated": lambda: bells([[0.45, 1.6]], [0.1, 0.2], correlation=0.8),
    "two modes": lambda: bells([[0.2, 1.3], [0.8, 2.2]], [0.05, 0.1], weights=[0.3, 0.7]),
    "at an edge": lambda: Decay(jnp.asarray([20.0, 5.0])),
}


@eqx.filter_jit
def build(target, warm_share=0.0, flat_share=0.0):
    grid = integrate(target, make_box(), jnp.asarray([0.4, 1.5]), SETTINGS)
    return grid, GridTransport.of(grid, warm_share=warm_share, flat_share=flat_share)


@eqx.filter_jit
def push(transport, positions):
    return jax.vmap(transport.point)(positions)


def unit_of(point):
    """Back to the unit square, where the cells are."""
    box = make_box()
    share = np.asarray((point - box.lower) / (box.upper - box.lower), float)
    return 0.5 - np.sin(np.arcsin(np.clip(1.0 - 2.0 * share, -1.0, 1.0)) / 3.0)


def cell_of(grid, unit):
    """The cell a point lies in."""
    inside = np.all(
        np.abs(unit[:, None] - np.asarray(grid.center)) <= np.asarray(grid.half_width) + 1e-9, 2
    )
    assert inside.any(axis=1).all()
    return inside.argmax(axis=1)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", TARGETS)
def test_normals_land_in_the_cells_with_their_masses(name):
    grid, transport = build(TARGETS[name]())
    n = 20_000
    points, _ = push(transport, jax.random.normal(jax.random.key(0), (n, 2)))
    cells = cell_of(grid, unit_of(points))
    mass = np.asarray(grid.mass)
    # Cells of little mass are taken together, so that the chi-square law holds.
    big = mass * n > 10
    seen = np.append(np.bincount(cells, minlength=len(mass))[big], 0)
    expected = np.append(mass[big] * n, mass[~big].sum() * n)
    seen[-1] = n - seen.sum()
    keep = expected > 5
    assert stats.chisquare(seen[keep], expected[keep] * seen[keep].sum() / expected[keep].sum())[
        1
    ] > (1e-4)
    # The same count tells the flat law from this one.
    flat = np.full(big.sum(), n / len(mass))
    assert np.abs(seen[:-1] - flat).sum() > 0.3 * n


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", TARGETS)
def test_jacobian_is_that_of_the_map_and_the_map_is_triangular_and_rising(name):
    _, transport = build(TARGETS[name]())
    positions = jax.random.normal(jax.random.key(1), (400, 2))
    step = 1e-7
    point, log_jacobian = push(transport, positions)
    columns = []
    for axis in range(2):
        offset = step * jnp.eye(2)[axis]
        ahead, _ = push(transport, positions + offset)
        behind, _ = push(transport, positions - offset)
        columns.append(np.asarray(ahead - behind) / (2 * step))
    jacobian = np.stack(columns, axis=-1)
    # The first coordinate does not hear of the second, and both rise with their own.
    np.testing.assert_allclose(jacobian[:, 0, 1], 0.0, atol=1e-9)
    determinant = jacobian[:, 0, 0] * jacobian[:, 1, 1]
    good = np.abs(np.log(determinant) - np.asarray(log_jacobian)) < 1e-4
    # Differences fail where they straddle an edge of the piecewise map, which is rare.
    assert good.mean() > 0.99
    assert np.all(determinant[good] > 0)
    assert np.std(log_jacobian) > 0.1
    assert np.isfinite(point).all()


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", TARGETS)
def test_density_of_the_pushforward_is_the_one_of_the_cells(name):
    grid, transport = build(TARGETS[name]())
    positions = jax.random.normal(jax.random.key(2), (500, 2))
    point, log_jacobian = push(transport, positions)
    unit = unit_of(point)
    cell, box = cell_of(grid, unit), make_box()
    area = np.prod(2.0 * np.asarray(grid.half_width), axis=1)
    of_cells = np.log(np.asarray(grid.mass) / area)[cell] - np.asarray(
        box.log_unfold_jacobian(jnp.asarray(unit))
    )
    of_normals = stats.norm.logpdf(positions).sum(axis=1) - np.asarray(log_jacobian)
    good = np.abs(of_cells - of_normals) < 1e-5
    assert good.mean() > 0.99


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", TARGETS)
def test_evidence_comes_back_through_the_map(name):
    """The integral of the target over the normal side is its evidence, whatever the cells."""
    target = TARGETS[name]()
    _, transport = build(target, 0.15, 0.02)
    n = 240
    share = (jnp.arange(n) + 0.5) / n
    normal = jax.scipy.special.ndtri(share)
    positions = jnp.stack(jnp.meshgrid(normal, normal, indexing="ij"), axis=-1).reshape(-1, 2)

    @jax.jit
    def ratio(position):
        point, log_jacobian = transport.point(position)
        log_normal = -0.5 * jnp.sum(position**2) - jnp.log(2 * jnp.pi)
        return jnp.exp(jax.nn.logsumexp(target.log_weights(point)) + log_jacobian - log_normal)

    found = np.log(np.mean(jax.vmap(ratio)(positions)))
    assert found == pytest.approx(truth_of(target).log_evidence, abs=0.01)


@pytest.mark.usefixtures("x64")
def test_mixture_is_wider_and_by_default_what_it_says():
    target = TARGETS["correlated"]()
    grid, narrow = build(target)
    _, mixed = build(target, 0.15, 0.02)
    positions = jax.random.normal(jax.random.key(3), (4_000, 2))
    spreads = [np.std(push(transport, positions)[0], axis=0) for transport in (narrow, mixed)]
    assert np.all(spreads[1] > 1.05 * spreads[0])
    flat = np.prod(2.0 * np.asarray(grid.half_width), axis=1)
    warm = np.sqrt(np.asarray(grid.mass) * flat)
    expected = 0.83 * np.asarray(grid.mass) + 0.15 * warm / warm.sum() + 0.02 * flat
    order = np.argsort(np.asarray(grid.center - grid.half_width)[:, 1], kind="stable")
    np.testing.assert_allclose(mixed.mass, expected[order], rtol=1e-9)
    np.testing.assert_allclose(GridTransport.of(grid).mass, mixed.mass, rtol=1e-9)


def test_single_precision_and_far_positions_stay_in_the_box():
    target = TARGETS["at an edge"]()
    _, transport = build(target, 0.15, 0.02)
    box = make_box()
    far = jnp.asarray([[9.0, 9.0], [-9.0, -9.0], [9.0, -9.0], [-40.0, 40.0], [0.0, 0.0]])
    positions = jnp.concatenate([far, jax.random.normal(jax.random.key(4), (3_000, 2))])
    point, log_jacobian = push(transport, positions)
    assert np.all((point >= box.lower) & (point <= box.upper))
    assert np.all(np.isfinite(log_jacobian[4:]))
    # As a chain would see it: the density at any position is a number, however far it is.
    assert not np.any(np.isnan(log_jacobian))


def test_force_and_starts():
    at = jnp.asarray([0.3, -2.0])
    slope = jax.grad(lambda x: jax.scipy.stats.norm.logpdf(x).sum())(at)
    np.testing.assert_allclose(normal_force(at), slope, rtol=1e-6)
    starts = start_positions(jax.random.key(0), 4_000)
    assert float(jnp.std(starts)) == pytest.approx(1.5, rel=0.03)
