"""Candidates of a round, and their scores as exact integers."""

import math
from dataclasses import dataclass

import numpy as np

from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.graphical import GraphicalModel, model_size_mib
from prisma_sbi.privacy.workload import Columns

FIXED_POINT = 1024
"""Counts of the model are rounded to this fraction of a unit of weight before they are compared."""
_LARGEST_PENALTY = 2.0**52
"""Penalties beyond this exclude a candidate anyway; the limit keeps sums within 64 bits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """Quality of every candidate.

    Attributes
    ----------
    values : (candidate,) int64
        Scores in units of ``1 / (FIXED_POINT * weight_total)`` trips.
    sensitivity
        Most by which one record moves any score; exact.
    """

    values: np.ndarray
    sensitivity: int


def expected_noise(stddev: float, n_cells: int) -> float:
    r"""L1 norm of the noise on a marginal in expectation, :math:`\sqrt{2/\pi}\,\sigma\,n_r`."""
    return math.sqrt(2.0 / math.pi) * stddev * n_cells


def affordable_candidates(
    candidates: tuple[Columns, ...],
    measured: list[Columns],
    *,
    shape: tuple[int, ...],
    limit_mib: float,
) -> tuple[Columns, ...]:
    """Candidates whose measurement keeps the junction tree below a limit.

    A subset of what was measured costs nothing, so it always stays.
    """
    free = [set(columns) for columns in measured]
    return tuple(
        columns
        for columns in candidates
        if any(set(columns) <= known for known in free)
        or model_size_mib([*measured, columns], shape) <= limit_mib
    )


def score_candidates(
    table: CodedTable,
    model: GraphicalModel,
    weights: dict[Columns, int],
    *,
    stddev: float,
) -> Scores:
    r"""Score each candidate by how wrong the model is about it.

    Parameters
    ----------
    table
        The private table.
    model
        The current model; public.
    weights
        Weight :math:`w_r` of each candidate, whole numbers.
    stddev
        Noise in trips that a measurement in this round would have.

    Returns
    -------
    scores
        In the order of ``weights``.

    Notes
    -----
    .. math:: q_r = w_r \left(\|M_r(D) - M_r(p)\|_1 - \sqrt{2/\pi}\,\sigma\,n_r\right)

    [1]_. The model and the penalty do not depend on the data. Both are rounded to multiples of
    ``1 / (FIXED_POINT * W)`` trips before the data enters, so the comparison is exact integer
    arithmetic. By the triangle inequality a norm moves no further than the L1 change of the
    counts, so the sensitivity is ``FIXED_POINT * max(w_r)`` times
    :attr:`~prisma_sbi.privacy.contribution.Contribution.l1`: :math:`W` times that of a table
    of plain rows, in a unit :math:`W` times smaller.

    References
    ----------
    .. [1] McKenna, Mullins, Sheldon and Miklau, AIM: An Adaptive and Iterative Mechanism for
       Differentially Private Synthetic Data, 2022. https://doi.org/10.14778/3551793.3551817
    """
    values = np.zeros(len(weights), dtype=np.int64)
    scale = FIXED_POINT * table.contribution.weight_total
    for index, (columns, weight) in enumerate(weights.items()):
        expected = np.rint(scale * model.count(columns)).astype(np.int64)
        counted = FIXED_POINT * table.count(columns)
        penalty = min(scale * expected_noise(stddev, len(expected)), _LARGEST_PENALTY)
        values[index] = weight * (int(np.abs(counted - expected).sum()) - round(penalty))
    largest = max(weights.values(), default=0)
    return Scores(values=values, sensitivity=FIXED_POINT * table.contribution.l1 * largest)
