"""A private table of small integers, and exact counts of its marginals."""

from dataclasses import dataclass, field

import numpy as np

from prisma_sbi._errors import InputDataError
from prisma_sbi.privacy.contribution import Contribution


@dataclass(frozen=True, kw_only=True, eq=False)
class CodedTable:
    """Rows of codes. Private: only mechanisms may look at it.

    Attributes
    ----------
    shape
        Number of bins per column.
    codes : (row, column) int
        Column ``j`` holds whole numbers in ``[0, shape[j])``.
    weights : (row,) int or None
        Units of weight per row; None for one each.
    contribution
        What one record may add. Whoever builds the table has to bound it, as
        :func:`~prisma_sbi.privacy.records.bounded_table` does.

    Raises
    ------
    InputDataError
        If the codes are not integers, or one lies outside its domain, or a weight is not a
        whole number of at least zero.
    """

    shape: tuple[int, ...]
    codes: np.ndarray
    weights: np.ndarray | None = None
    contribution: Contribution = field(default_factory=Contribution)
    _counts: dict[tuple[int, ...], np.ndarray] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        codes, weights = self.codes, self.weights
        if codes.ndim != 2 or codes.shape[1] != len(self.shape) or codes.dtype.kind not in "iu":
            raise InputDataError(
                f"Expected integer codes (row, {len(self.shape)}); "
                f"got {codes.dtype} of shape {codes.shape}."
            )
        bad = np.argwhere((codes < 0) | (codes >= np.array(self.shape)))
        if len(bad):
            row, column = (int(index) for index in bad[0])
            raise InputDataError(
                f"Expected a code from 0 to {self.shape[column] - 1} in column {column}, "
                f"row {row}; got {int(codes[row, column])}. Discretize with the table's own layout."
            )
        if weights is not None and (
            weights.shape != codes.shape[:1]
            or weights.dtype.kind not in "iu"
            or np.any(weights < 0)
        ):
            raise InputDataError(
                f"Expected one whole weight >= 0 for each of {len(codes)} rows; got "
                f"{weights.dtype} of shape {weights.shape}."
            )

    @property
    def n_rows(self) -> int:
        """Number of rows; several of them may belong to one trip."""
        return len(self.codes)

    def count(self, columns: tuple[int, ...]) -> np.ndarray:
        """Exact weights per cell of one marginal, flat, the last column running fastest.

        In units of ``1 / contribution.weight_total`` trips. Each marginal is counted once and
        kept: rounds of a mechanism then cost the same however many rows there are.
        """
        if columns not in self._counts:
            self._counts[columns] = self._counted(columns)
        return self._counts[columns].copy()

    def _counted(self, columns: tuple[int, ...]) -> np.ndarray:
        """Count a marginal; sums of whole numbers below 2**53 are exact in doubles."""
        sizes = tuple(self.shape[column] for column in columns)
        cells = np.ravel_multi_index(self.codes[:, list(columns)].T.astype(np.int64), sizes)
        n_cells = int(np.prod(sizes))
        return np.bincount(cells, weights=self.weights, minlength=n_cells).astype(np.int64)
