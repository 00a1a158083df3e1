"""Marginals of a graphical model by variable elimination, in NumPy and in logarithms.

A mechanism asks a new model for dozens of marginals every round. Compiling each of them
costs more than computing it, so this is plain NumPy.
"""

import numpy as np

LogFactor = tuple[tuple[int, ...], np.ndarray]
"""Rising column positions and a log table with one axis per column."""


def marginal_probabilities(
    factors: list[LogFactor], shape: tuple[int, ...], keep: tuple[int, ...]
) -> np.ndarray:
    r"""Distribution of some columns under :math:`p(x) \propto \exp \sum_c f_c(x_c)`.

    Parameters
    ----------
    factors
        Finite log tables; a column without a factor is uniform.
    shape
        Number of bins of every column of the model.
    keep
        Rising positions of the columns asked for.

    Returns
    -------
    probabilities
        One axis per kept column; sums to 1.

    Notes
    -----
    The column whose elimination makes the smallest table goes first. Sums are taken in
    shifted exponentials, so potentials of any size neither overflow nor vanish together.
    """
    pending = list(factors)
    hidden = {column for columns, _ in factors for column in columns} - set(keep)
    while hidden:
        column = min(hidden, key=lambda item: (_cluster_cells(pending, shape, item), item))
        pending = _eliminate(pending, shape, column)
        hidden.remove(column)
    table = np.zeros(tuple(shape[column] for column in keep))
    for columns, values in pending:
        table = table + _aligned(columns, values, keep)
    weights = np.exp(table - table.max())
    return weights / weights.sum()


def _eliminate(pending: list[LogFactor], shape: tuple[int, ...], column: int) -> list[LogFactor]:
    """Replace all factors that hold the column by one that sums over it."""
    touched = [factor for factor in pending if column in factor[0]]
    others = [factor for factor in pending if column not in factor[0]]
    cluster = _union(touched)
    table = np.zeros(tuple(shape[item] for item in cluster))
    for columns, values in touched:
        table += _aligned(columns, values, cluster)
    axis = cluster.index(column)
    peak = table.max(axis=axis, keepdims=True)
    summed = np.log(np.exp(table - peak).sum(axis=axis)) + peak.squeeze(axis)
    rest = tuple(item for item in cluster if item != column)
    return [*others, (rest, np.asarray(summed))]


def _aligned(columns: tuple[int, ...], values: np.ndarray, target: tuple[int, ...]) -> np.ndarray:
    """View of a table with an axis of length one for every target column it lacks."""
    sizes = iter(values.shape)
    return values.reshape([next(sizes) if column in columns else 1 for column in target])


def _union(factors: list[LogFactor]) -> tuple[int, ...]:
    """Columns of all factors, rising."""
    return tuple(sorted({column for columns, _ in factors for column in columns}))


def _cluster_cells(pending: list[LogFactor], shape: tuple[int, ...], column: int) -> int:
    """Cells of the table that eliminating the column needs."""
    cluster = _union([factor for factor in pending if column in factor[0]])
    return int(np.prod([shape[item] for item in cluster], dtype=np.int64))
