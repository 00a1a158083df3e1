"""How well a released table keeps the pairs of columns, beside two yardsticks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError


@dataclass(frozen=True, kw_only=True)
class WorkloadError:
    """Mean total-variation distance over marginals of a released table to the private rows.

    Computed from the private rows without noise: for the eyes of the data holder.

    Attributes
    ----------
    error
        Of the release; 0 is perfect, 1 the worst.
    independent
        Of the product of the real single columns: what is left without any dependence.
    bootstrap
        Of rows drawn anew from the real ones: what chance alone costs.
    by_marginal
        Error of the release for each set of columns.
    n_columns
        Columns in each marginal.
    n_real, n_released
        Numbers of rows.
    """

    error: float
    independent: float
    bootstrap: float
    by_marginal: Mapping[tuple[str, ...], float]
    n_columns: int
    n_real: int
    n_released: int

    @property
    def x_independent(self) -> float:
        """Error over that of independent columns; below 1 dependence was kept."""
        return _ratio(self.error, self.independent)

    @property
    def x_bootstrap(self) -> float:
        """Error over that of a bootstrap; 1 is as good as real rows."""
        return _ratio(self.error, self.bootstrap)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; ratios that are not finite become ``None``."""
        ratios = {"x_independent": self.x_independent, "x_bootstrap": self.x_bootstrap}
        return {
            "private": True,
            "error": self.error,
            "independent": self.independent,
            "bootstrap": self.bootstrap,
            **{name: value if np.isfinite(value) else None for name, value in ratios.items()},
            "by_marginal": {" x ".join(key): value for key, value in self.by_marginal.items()},
            "n_columns": self.n_columns,
            "n_real": self.n_real,
            "n_released": self.n_released,
        }


def workload_error(
    real: np.ndarray,
    released: np.ndarray,
    shape: Sequence[int],
    *,
    names: Sequence[str] | None = None,
    weights: np.ndarray | None = None,
    n_columns: int = 2,
    n_bootstrap: int = 5,
    seed: int = 0,
) -> WorkloadError:
    r"""Compare a released table with the private rows, pair by pair of columns.

    Parameters
    ----------
    real : (row, column)
        Bins of the private rows under a layout.
    released : (row, column)
        Bins of the released rows under the same layout; another number of rows is fine.
    shape
        Number of bins of each column.
    names
        Of the columns, by default their positions.
    weights : (row,)
        Of the private rows, where several stand for one trip; by default all equal.
    n_columns
        Columns in each marginal: 2 for pairs, 3 for triples.
    n_bootstrap
        Tables drawn anew from the real rows; their errors are averaged.
    seed
        Of these draws.

    Returns
    -------
    error

    Raises
    ------
    InputDataError
        If a table is empty, or its codes do not fit the shape.
    ValueError
        If an option is outside its range.

    Notes
    -----
    With :math:`p` the shares of the cells of one marginal, the error is the mean over all
    marginals of :math:`\tfrac12 \sum_c |p_c - q_c|`. A bootstrap draws as many rows as were
    released.

    ======================== =====================================
    Case                     Result
    ======================== =====================================
    release = real rows      error 0
    one column in the layout its single marginal, whatever is asked
    columns independent      ratios compare noise with noise
    ======================== =====================================
    """
    _validate.at_least(1, n_columns=n_columns, n_bootstrap=n_bootstrap)
    real, released = (_codes(each, shape) for each in (real, released))
    labels = [str(at) for at in range(len(shape))] if names is None else [str(n) for n in names]
    shares = np.ones(len(real)) if weights is None else np.asarray(weights, dtype=np.float64)
    if shares.shape != (len(real),) or np.any(shares < 0) or not shares.sum() > 0:
        raise InputDataError(
            f"Expected {len(real)} weights >= 0 with a positive sum; got shape {shares.shape}."
        )
    shares = shares / shares.sum()
    rng = np.random.default_rng(seed)
    drawn = [
        np.bincount(rng.choice(len(real), size=len(released), p=shares), minlength=len(real))
        / len(released)
        for _ in range(n_bootstrap)
    ]
    uniform = np.full(len(released), 1.0 / len(released))
    single = [_marginal(real, shares, (at,), shape) for at in range(len(shape))]
    errors, independent, bootstrap = {}, [], []
    for columns in combinations(range(len(shape)), min(n_columns, len(shape))):
        truth = _marginal(real, shares, columns, shape)
        key = tuple(labels[at] for at in columns)
        errors[key] = _distance(truth, _marginal(released, uniform, columns, shape))
        product = np.ones(1)
        for at in columns:
            product = np.outer(product, single[at]).ravel()
        independent.append(_distance(truth, product))
        bootstrap += [_distance(truth, _marginal(real, each, columns, shape)) for each in drawn]
    return WorkloadError(
        error=float(np.mean(list(errors.values()))),
        independent=float(np.mean(independent)),
        bootstrap=float(np.mean(bootstrap)),
        by_marginal=errors,
        n_columns=min(n_columns, len(shape)),
        n_real=len(real),
        n_released=len(released),
    )


def _codes(codes: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Whole numbers ``(row, column)`` within the shape, at least one row."""
    codes = np.asarray(codes)
    fits = codes.ndim == 2 and codes.shape[1] == len(shape) and codes.dtype.kind in "iu"
    if not fits or not len(codes) or np.any(codes < 0) or np.any(codes >= np.array(shape)):
        raise InputDataError(
            f"Expected at least one row of {len(shape)} whole numbers below {tuple(shape)}; got "
            f"{codes.dtype} of shape {codes.shape}. Use the layout of the release."
        )
    return codes.astype(np.int64)


def _marginal(
    codes: np.ndarray, shares: np.ndarray, columns: tuple[int, ...], shape: Sequence[int]
) -> np.ndarray:
    """Share of each cell, flat, the last column running fastest."""
    sizes = tuple(shape[at] for at in columns)
    cells = np.ravel_multi_index(tuple(codes[:, list(columns)].T), sizes)
    return np.bincount(cells, weights=shares, minlength=int(np.prod(sizes)))


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    """Total variation."""
    return 0.5 * float(np.abs(first - second).sum())


def _ratio(error: float, yardstick: float) -> float:
    """Quotient; NaN for 0 over 0."""
    if yardstick > 0:
        return error / yardstick
    return float("nan") if error == 0 else float("inf")
