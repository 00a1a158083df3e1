"""Precision and recall: a plain O(n^2) oracle, extremes, ties and invariances."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi.evaluation import precision_recall, standardize_features
from prisma_sbi.evaluation.precision_recall import neighbor_radius


def by_loops(real: np.ndarray, synthetic: np.ndarray, k: int) -> tuple[float, float]:
    """Definition, point by point."""

    def radius(points: np.ndarray, i: int) -> float:
        others = [
            np.sqrt(np.sum((points[i] - points[j]) ** 2)) for j in range(len(points)) if j != i
        ]
        return sorted(others)[k - 1]

    def share(points: np.ndarray, centers: np.ndarray) -> float:
        inside = [
            any(
                np.sqrt(np.sum((p - centers[j]) ** 2)) <= radius(centers, j)
                for j in range(len(centers))
            )
            for p in points
        ]
        return sum(inside) / len(inside)

    return share(synthetic, real), share(real, synthetic)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_real=st.integers(4, 14),
    n_synthetic=st.integers(4, 14),
    k=st.integers(1, 3),
    on_grid=st.booleans(),
)
def test_precision_recall_agrees_with_loops(seed, n_real, n_synthetic, k, on_grid):
    generator = np.random.default_rng(seed)
    real = generator.normal(size=(n_real, 3))
    synthetic = 0.7 + generator.normal(size=(n_synthetic, 3))
    if on_grid:  # many ties and duplicates
        real, synthetic = np.round(real), np.round(synthetic)
    found = precision_recall(real, synthetic, n_neighbors=k)
    assert tuple(found) == pytest.approx(by_loops(real, synthetic, k))


def test_precision_recall_hand_example():
    real = np.array([[0.0], [1.0], [2.0], [10.0]])
    synthetic = np.array([[1.5], [3.5], [30.0], [31.0]])
    # k = 1: real balls [-1,1] [0,2] [1,3] [2,18]; synthetic [-.5,3.5] [1.5,5.5] [29,31] [30,32].
    assert precision_recall(real, synthetic, n_neighbors=1) == (0.5, 0.75)


def test_precision_recall_identical_sets():
    points = 1e12 * np.random.default_rng(0).normal(size=(50, 17))
    assert precision_recall(points, points.copy()) == (1.0, 1.0)


def test_precision_recall_disjoint_sets():
    points = np.random.default_rng(0).normal(size=(50, 17))
    assert precision_recall(points, points + 1e3) == (0.0, 0.0)


def test_precision_recall_tells_collapse_from_noise():
    generator = np.random.default_rng(1)
    real = generator.normal(size=(300, 4))
    collapsed = real[0] + 0.01 * generator.normal(size=(300, 4))
    precision, recall = precision_recall(real, collapsed)
    assert precision == 1.0
    assert recall < 0.05
    spread = 6.0 * generator.normal(size=(300, 4))
    precision, recall = precision_recall(real, spread)
    assert precision < 0.2
    assert recall > 0.8


def test_precision_recall_duplicates_have_radius_zero():
    points = np.repeat(np.arange(3.0)[:, None], 5, axis=0)
    np.testing.assert_array_equal(neighbor_radius(points, 3), 0.0)
    assert precision_recall(points, points.copy()) == (1.0, 1.0)
    assert precision_recall(points, points + 1e-9) == (0.0, 0.0)


def test_precision_recall_blocks_do_not_change_the_result(monkeypatch):
    generator = np.random.default_rng(2)
    real, synthetic = generator.normal(size=(90, 5)), 0.5 + generator.normal(size=(70, 5))
    whole = precision_recall(real, synthetic)
    module = sys.modules[precision_recall.__module__]
    monkeypatch.setattr(module, "BLOCK_ENTRIES", 7 * 90)
    assert precision_recall(real, synthetic) == whole
    monkeypatch.setattr(module, "BLOCK_ENTRIES", 1)
    assert precision_recall(real, synthetic) == whole


def test_standardized_shares_do_not_depend_on_the_units_of_features():
    generator = np.random.default_rng(3)
    real, synthetic = generator.normal(size=(120, 6)), 0.4 + generator.normal(size=(120, 6))
    factor, offset = np.logspace(-3, 9, 6), generator.normal(size=6) * 100
    plain = precision_recall(*standardize_features(real, synthetic))
    rescaled = precision_recall(
        *standardize_features(factor * real + offset, factor * synthetic + offset)
    )
    assert rescaled == plain
    # The raw shares do depend on them, or the comparison above would be empty.
    assert precision_recall(factor * real, factor * synthetic) != plain


def test_standardize_uses_the_real_set_only():
    generator = np.random.default_rng(4)
    real, synthetic = generator.normal(3.0, 2.0, size=(50, 2)), generator.normal(size=(50, 2))
    first, second = standardize_features(real, synthetic)
    np.testing.assert_allclose(first.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(first.std(axis=0), 1.0)
    np.testing.assert_allclose(second, (synthetic - real.mean(axis=0)) / real.std(axis=0))


def test_standardize_keeps_a_feature_without_spread_comparable():
    real = np.column_stack([np.arange(10.0), np.full(10, 0.1)])
    shifted = real + np.array([0.0, 5.0])
    first, second = standardize_features(real, shifted)
    np.testing.assert_array_equal(first[:, 1], 0.0)
    np.testing.assert_allclose(second[:, 1], 5.0)
    assert precision_recall(first, second) == (0.0, 0.0)


def test_precision_recall_rejects_too_few_points():
    with pytest.raises(ValueError, match="more than 3 synthetic"):
        precision_recall(np.zeros((10, 2)), np.zeros((3, 2)))
    with pytest.raises(ValueError, match="n_neighbors >= 1"):
        precision_recall(np.zeros((10, 2)), np.zeros((10, 2)), n_neighbors=0)
