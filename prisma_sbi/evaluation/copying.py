"""Copies: whether synthetic traces lie nearer to real ones than real ones do to each other."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation.precision_recall import neighbor_radius, row_blocks


class Copying(NamedTuple):
    """Distance to the nearest real trace, and the share of exact copies."""

    nearest_ratio: float
    copied: float


def copying(
    real: Float[np.ndarray, "trip_real feature"],
    synthetic: Float[np.ndarray, "trip_synthetic feature"],
) -> Copying:
    """Compare the distance to the nearest real trace with that among real traces.

    Parameters
    ----------
    real, synthetic : (trip, feature)
        Standardized features; at least two real rows.

    Returns
    -------
    copying
        ``nearest_ratio``: median distance of a synthetic trace to the nearest real one over the
        median distance of a real trace to the nearest other one; 1 for equal laws, near 0 for
        copies, above 1 for traces apart from the real ones. ``copied``: share of synthetic traces
        at distance 0.

    Raises
    ------
    InputDataError
        If there are fewer than two real rows.

    Notes
    -----
    Against traces that were held out this is a measure of quality: they cannot be copied. Against
    the traces a release was made from it would show copies; see
    :func:`~prisma_sbi.evaluation.nearness` for that question with its intervals.

    ============================== ======================================
    Case                           Result
    ============================== ======================================
    most real traces equal         ratio 1 if the synthetic ones are the
                                   same trace, else infinite
    ============================== ======================================
    """
    if len(real) < 2 or not len(synthetic):
        raise InputDataError(
            f"Expected at least two real traces and a synthetic one; got {len(real)} and "
            f"{len(synthetic)}. A trace alone has no neighbor."
        )
    nearest = np.concatenate(
        [
            cdist(synthetic[block], real).min(axis=1)
            for block in row_blocks(len(synthetic), len(real))
        ]
    )
    among_synthetic, among_real = np.median(nearest), np.median(neighbor_radius(real, 1))
    copied = float(np.mean(nearest == 0))
    if among_real > 0:
        return Copying(float(among_synthetic / among_real), copied)
    return Copying(1.0 if among_synthetic == 0 else float("inf"), copied)
