"""Density and coverage: a plain oracle, expected values for equal laws, known failures."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi.evaluation import density_coverage, expected_coverage, precision_recall


def by_loops(real: np.ndarray, synthetic: np.ndarray, k: int) -> tuple[float, float]:
    """Definition, point by point."""
    inside = np.zeros((len(real), len(synthetic)), dtype=bool)
    for i, center in enumerate(real):
        others = [np.sqrt(np.sum((center - p) ** 2)) for j, p in enumerate(real) if j != i]
        radius = sorted(others)[k - 1]
        for j, point in enumerate(synthetic):
            inside[i, j] = np.sqrt(np.sum((center - point) ** 2)) <= radius
    return inside.sum() / (k * len(synthetic)), np.mean(inside.sum(axis=1) > 0)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_real=st.integers(5, 14),
    n_synthetic=st.integers(1, 14),
    k=st.integers(1, 4),
    on_grid=st.booleans(),
)
def test_density_coverage_agrees_with_loops(seed, n_real, n_synthetic, k, on_grid):
    generator = np.random.default_rng(seed)
    real = generator.normal(size=(n_real, 3))
    synthetic = 0.7 + generator.normal(size=(n_synthetic, 3))
    if on_grid:
        real, synthetic = np.round(real), np.round(synthetic)
    found = density_coverage(real, synthetic, n_neighbors=k)
    assert tuple(found) == pytest.approx(by_loops(real, synthetic, k))


@pytest.mark.parametrize(("n_real", "n_synthetic", "k"), [(30, 30, 5), (40, 15, 3), (12, 60, 1)])
def test_density_coverage_expected_values_for_equal_laws(n_real, n_synthetic, k):
    generator = np.random.default_rng(n_real)
    found = np.array(
        [
            density_coverage(
                generator.standard_t(3, size=(n_real, 4)),
                generator.standard_t(3, size=(n_synthetic, 4)),
                n_neighbors=k,
            )
            for _ in range(600)
        ]
    )
    error = found.std(axis=0) / np.sqrt(len(found))
    expected = 1.0, expected_coverage(n_real, n_synthetic, n_neighbors=k)
    assert np.all(np.abs(found.mean(axis=0) - expected) < 4.0 * error)
    # Precise enough to tell the right formula from one without the point itself left out.
    assert np.all(error < 0.02)


def test_density_coverage_of_copies():
    points = np.random.default_rng(0).normal(size=(50, 6))
    assert density_coverage(points, points.copy()) == (pytest.approx(1.2), 1.0)
    assert density_coverage(points, points + 1e3) == (0.0, 0.0)


def test_density_coverage_tells_collapse_and_is_not_fooled_by_an_outlier():
    generator = np.random.default_rng(1)
    real = generator.normal(size=(300, 4))
    collapsed = 0.05 * generator.normal(size=(300, 4))
    density, coverage = density_coverage(real, collapsed)
    assert 0.8 < density < 1.5
    assert coverage < 0.4
    # Recall counts everything within the huge balls of a few scattered points; coverage does not.
    scattered = 30.0 * generator.normal(size=(300, 4))
    assert precision_recall(real, scattered).recall > 0.9
    assert density_coverage(real, scattered).coverage < 0.05


def test_density_coverage_blocks_do_not_change_the_result(monkeypatch):
    generator = np.random.default_rng(2)
    real, synthetic = generator.normal(size=(90, 5)), 0.5 + generator.normal(size=(70, 5))
    whole = density_coverage(real, synthetic)
    monkeypatch.setattr(sys.modules[precision_recall.__module__], "BLOCK_ENTRIES", 7 * 90)
    assert density_coverage(real, synthetic) == whole


def test_density_coverage_rejects_too_few_points():
    with pytest.raises(ValueError, match="more than 5 real"):
        density_coverage(np.zeros((5, 2)), np.zeros((5, 2)))
    with pytest.raises(ValueError, match="n_neighbors >= 1"):
        density_coverage(np.zeros((10, 2)), np.zeros((10, 2)), n_neighbors=0)
