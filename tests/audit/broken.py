"""Mechanisms that promise more than they keep, each in one way."""

from fractions import Fraction

import numpy as np

from prisma_sbi.privacy import SystemNoise


class NarrowNoise(SystemNoise):
    """Noise narrower by a factor than what was paid for."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def gaussian(
        self, counts: np.ndarray, *, stddev: float, rho: Fraction, **options
    ) -> np.ndarray:
        narrow = stddev / self.factor
        return super().gaussian(counts, stddev=narrow, rho=2 * self.factor**2 * rho, **options)


class GreedySelection(SystemNoise):
    """Selects the best candidate without any noise."""

    def select(self, scores: np.ndarray, *, sensitivity: int, epsilon: float, rho: Fraction) -> int:
        return int(np.argmax(scores))


class ForgottenColumn(SystemNoise):
    """Passes the exact counts of one column on, known by its number of bins."""

    def __init__(self, n_bins: int) -> None:
        self.n_bins = n_bins

    def gaussian(
        self, counts: np.ndarray, *, stddev: float, rho: Fraction, **options
    ) -> np.ndarray:
        if len(counts) == self.n_bins:
            return counts.astype(np.int64)
        return super().gaussian(counts, stddev=stddev, rho=rho, **options)
