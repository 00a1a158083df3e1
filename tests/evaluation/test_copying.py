"""Copies: loops, scale, what equal laws reach, edges."""

import math

import numpy as np
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation import copying


def test_copying_agrees_with_loops():
    generator = np.random.default_rng(0)
    real, synthetic = generator.normal(size=(30, 3)), generator.normal(size=(21, 3))
    synthetic[:4] = real[5:9]
    to_real = [min(np.linalg.norm(s - r) for r in real) for s in synthetic]
    among = [
        min(np.linalg.norm(r - q) for j, q in enumerate(real) if j != i) for i, r in enumerate(real)
    ]
    found = copying(real, synthetic)
    assert found.nearest_ratio == pytest.approx(np.median(to_real) / np.median(among))
    assert found.copied == 4 / 21


def test_copying_of_equal_laws_is_one_and_falls_with_copies():
    generator = np.random.default_rng(1)
    real, other = generator.normal(size=(2, 2000, 5))
    assert copying(real, other).nearest_ratio == pytest.approx(1.0, abs=0.05)
    ratios = []
    for share in (0.0, 0.3, 0.6):
        n_copied = int(share * 2000)
        mixed = np.concatenate([real[:n_copied], other[n_copied:]])
        ratios.append(copying(real, mixed).nearest_ratio)
        assert copying(real, mixed).copied == share
    assert ratios[0] > ratios[1] > ratios[2] == 0.0


def test_copying_sees_traces_apart_and_near_copies():
    generator = np.random.default_rng(2)
    real = generator.normal(size=(500, 5))
    assert copying(real, 3.0 * generator.normal(size=(500, 5))).nearest_ratio > 2.0
    nearly = real + 0.01 * generator.normal(size=(500, 5))
    assert copying(real, nearly).nearest_ratio < 0.05
    assert copying(real, nearly).copied == 0.0


def test_copying_of_equal_real_traces():
    same = np.ones((10, 3))
    assert copying(same, same.copy()) == (1.0, 1.0)
    assert copying(same, same + 1.0) == (math.inf, 0.0)
    with pytest.raises(InputDataError, match="two real traces"):
        copying(same[:1], same)
