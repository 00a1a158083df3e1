"""Candidates of a round, and their scores as exact integers."""

import math
from dataclasses import dataclass

import numpy as np

from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.graphical import GraphicalModel, model_size_mib
from prisma_sbi.privacy.workload import Columns

FIXED_POINT = 1024
"""Counts of the model are rounded to this fraction of a record before they are compared."""
_LARGEST_PENALTY = 2.0**52
"""Penalties beyond this exclude a candidate anyway; the limit keeps sums within 64 bits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """Quality of every candidate.

    Attributes
    ----------
    values : (candidate,) int64
        Scores in units of ``1 / FIXED_POINT`` records.
    sensitivity
        Most by which adding or removing one record moves any score; exact.
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
        Noise that a measurement in this round would have.

    Returns
    -------
    scores
        In the order of ``weights``.

    Notes
    -----
    .. math:: q_r = w_r \left(\|M_r(D) - M_r(p)\|_1 - \sqrt{2/\pi}\,\sigma\,n_r\right)

    [1]_. The second norm and the penalty do not depend on the data. Everything is rounded to
    multiples of ``1 / FIXED_POINT`` before the data enters, so the comparison is exact
    integer arithmetic and the sensitivity is exactly ``FIXED_POINT * max(w_r)``: a record
    moves one cell by one.

    References
    ----------
    .. [1] McKenna, Mullins, Sheldon and Miklau, AIM: An Adaptive and Iterative Mechanism for
       Differentially Private Synthetic Data, 2022. https://doi.org/10.14778/3551793.3551817
    """
    values = np.zeros(len(weights), dtype=np.int64)
    for index, (columns, weight) in enumerate(weights.items()):
        expected = np.rint(FIXED_POINT * model.count(columns)).astype(np.int64)
        counted = FIXED_POINT * table.count(columns)
        penalty = min(FIXED_POINT * expected_noise(stddev, len(expected)), _LARGEST_PENALTY)
        values[index] = weight * (int(np.abs(counted - expected).sum()) - round(penalty))
    return Scores(values=values, sensitivity=FIXED_POINT * max(weights.values(), default=0))
