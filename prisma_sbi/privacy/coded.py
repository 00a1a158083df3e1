"""A private table of small integers, and exact counts of its marginals."""

from dataclasses import dataclass

import numpy as np

from prisma_sbi._errors import InputDataError


@dataclass(frozen=True, kw_only=True, eq=False)
class CodedTable:
    """Rows of codes. Private: only mechanisms may look at it.

    Attributes
    ----------
    shape
        Number of bins per column.
    codes : (row, column) int
        Column ``j`` holds whole numbers in ``[0, shape[j])``.

    Raises
    ------
    InputDataError
        If the codes are not integers, or one lies outside its domain.
    """

    shape: tuple[int, ...]
    codes: np.ndarray

    def __post_init__(self) -> None:
        codes = self.codes
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

    @property
    def n_rows(self) -> int:
        """Number of records."""
        return len(self.codes)

    def count(self, columns: tuple[int, ...]) -> np.ndarray:
        """Exact counts of one marginal, flat, the last column running fastest.

        One record adds one to one cell, so L1 and L2 sensitivity to adding or removing it
        are both 1.
        """
        sizes = tuple(self.shape[column] for column in columns)
        cells = np.ravel_multi_index(self.codes[:, list(columns)].T.astype(np.int64), sizes)
        return np.bincount(cells, minlength=int(np.prod(sizes))).astype(np.int64)
