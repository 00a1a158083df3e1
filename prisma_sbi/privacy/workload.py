"""Which marginals matter, and how much each candidate tells about them."""

from itertools import combinations

from prisma_sbi.privacy.settings import Workload

Columns = tuple[int, ...]
"""Positions of the columns of one marginal, rising."""


def workload_marginals(workload: Workload, n_columns: int) -> tuple[Columns, ...]:
    """All pairs or triples of columns; all columns at once where there are fewer."""
    size = min(workload.n_columns, n_columns)
    return tuple(combinations(range(n_columns), size))


def downward_closure(marginals: tuple[Columns, ...]) -> tuple[Columns, ...]:
    """Every nonempty subset of every marginal, small ones first."""
    found = {
        subset
        for marginal in marginals
        for size in range(1, len(marginal) + 1)
        for subset in combinations(marginal, size)
    }
    return tuple(sorted(found, key=lambda columns: (len(columns), columns)))


def overlap_weights(
    candidates: tuple[Columns, ...], marginals: tuple[Columns, ...]
) -> dict[Columns, int]:
    r"""Weight :math:`w_r = \sum_s |r \cap s|` of each candidate, every :math:`c_s = 1`."""
    return {
        candidate: sum(len(set(candidate) & set(marginal)) for marginal in marginals)
        for candidate in candidates
    }
