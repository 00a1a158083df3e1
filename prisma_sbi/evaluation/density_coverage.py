"""Density and coverage: precision and recall that single outliers do not spoil."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

from prisma_sbi import _validate
from prisma_sbi.evaluation.precision_recall import neighbor_radius, row_blocks

N_NEIGHBORS = 5


class DensityCoverage(NamedTuple):
    """How densely synthetic points lie among real ones, and the share of real ones reached."""

    density: float
    coverage: float


def density_coverage(
    real: Float[np.ndarray, "trip_real feature"],
    synthetic: Float[np.ndarray, "trip_synthetic feature"],
    *,
    n_neighbors: int = N_NEIGHBORS,
) -> DensityCoverage:
    r"""Density and coverage of a synthetic set in the neighborhoods of the real points.

    Parameters
    ----------
    real : (trip, feature)
        More than ``n_neighbors`` rows.
    synthetic : (trip, feature)
        At least one row.
    n_neighbors
        The k below.

    Returns
    -------
    found
        ``density`` (not negative, not bounded by 1) and ``coverage`` (in [0, 1]).

    Raises
    ------
    ValueError
        If there are too few rows.

    Notes
    -----
    With :math:`B_i` the ball around the real point :math:`x_i` that reaches to its k-th nearest
    other real point, and :math:`M` synthetic points :math:`y_j` [1]_,

    .. math::
       \text{density} = \frac{1}{kM} \sum_{i=1}^{N} \sum_{j=1}^{M} 1[y_j \in B_i], \qquad
       \text{coverage} = \frac{1}{N} \sum_{i=1}^{N} 1[\exists j: y_j \in B_i].

    Only real balls are used, so one far synthetic point cannot cover everything, as it can for
    recall. For equal continuous laws of any dimension the expected values are 1 and
    :func:`expected_coverage`. Balls are closed, as for precision: a copy of the real set has
    density :math:`1 + 1/k`.

    References
    ----------
    .. [1] Naeem, Oh, Uh, Choi and Yoo, Reliable fidelity and diversity metrics for generative
       models, 2020. https://doi.org/10.48550/arXiv.2002.09797

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[0.0], [1.0], [2.0], [10.0]])
    >>> density_coverage(points, np.array([[0.5], [1.5]]), n_neighbors=1)
    DensityCoverage(density=2.0, coverage=0.75)
    """
    _validate.at_least(1, n_neighbors=n_neighbors)
    if len(real) <= n_neighbors or not len(synthetic):
        raise ValueError(
            f"Expected more than {n_neighbors} real traces and a synthetic one for density and "
            f"coverage; got {len(real)} and {len(synthetic)}. Add traces or lower n_neighbors."
        )
    radius = neighbor_radius(real, n_neighbors)
    n_inside, covered = 0, np.zeros(len(real), dtype=bool)
    for block in row_blocks(len(real), len(synthetic)):
        inside = cdist(real[block], synthetic) <= radius[block, None]
        n_inside += int(np.count_nonzero(inside))
        covered[block] = inside.any(axis=1)
    return DensityCoverage(
        density=n_inside / (n_neighbors * len(synthetic)), coverage=float(covered.mean())
    )


def expected_coverage(n_real: int, n_synthetic: int, *, n_neighbors: int = N_NEIGHBORS) -> float:
    r"""Coverage that a perfect synthesizer reaches on average, whatever the law.

    Parameters
    ----------
    n_real, n_synthetic
        Numbers of points.
    n_neighbors
        The k of :func:`density_coverage`.

    Returns
    -------
    coverage
        In [0, 1].

    Notes
    -----
    A real point is missed if its k nearest among all other points are real. If all points come
    from one continuous law every order of them is equally likely, so

    .. math:: E = 1 - \prod_{j=0}^{k-1} \frac{N - 1 - j}{N + M - 1 - j},

    about :math:`1 - 2^{-k}` for equal sizes.
    """
    rank = np.arange(n_neighbors)
    return float(1.0 - np.prod((n_real - 1.0 - rank) / (n_real + n_synthetic - 1.0 - rank)))
