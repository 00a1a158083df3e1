"""Noisy marginals, and the merging of repeated ones."""

from dataclasses import dataclass

import numpy as np

from prisma_sbi.privacy.workload import Columns


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """One noisy marginal; already private.

    Attributes
    ----------
    columns
        Rising positions of its columns.
    values : (cell,) float64
        Noisy counts, the last column running fastest.
    stddev
        Standard deviation of the noise.
    n_merged
        How many rounds went into it.
    """

    columns: Columns
    values: np.ndarray
    stddev: float
    n_merged: int = 1


def merge(measurements: list[Measurement], new: Measurement) -> list[Measurement]:
    r"""Add a measurement; one of the same marginal is averaged in.

    Averages are weighted by inverse variance. For a squared loss the average is a
    sufficient statistic, so nothing is lost, and the shape of the estimation problem (which
    is what has to be compiled) stays the same when a marginal is measured again.
    """
    kept = [item for item in measurements if item.columns != new.columns]
    old = [item for item in measurements if item.columns == new.columns]
    merged = new
    if old:
        weights = np.array([old[0].stddev, new.stddev]) ** -2.0
        merged = Measurement(
            columns=new.columns,
            values=(weights[0] * old[0].values + weights[1] * new.values) / weights.sum(),
            stddev=float(weights.sum() ** -0.5),
            n_merged=old[0].n_merged + new.n_merged,
        )
    return sorted([*kept, merged], key=lambda item: (len(item.columns), item.columns))
