"""Checks that every layout of a table makes."""

import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError


def refuse(bad: np.ndarray, values: np.ndarray, table: xr.Dataset, name: str, rule: str) -> None:
    """Raise for the first bad row, by the name of its trip."""
    rows = np.flatnonzero(bad)
    if len(rows):
        row = int(rows[0])
        trip = str(table["trip"].values[row]) if "trip" in table.coords else str(row)
        raise InputDataError(
            f"Expected {rule} as {name} of trip {trip!r} (row {row}); got {values[row]!r}. "
            f"{len(rows)} of {len(values)} rows are affected: set them aside or encode them again."
        )


def require_codes(codes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Codes ``(row, column)`` inside a layout, or ``ValueError``."""
    codes = np.asarray(codes)
    inside = codes.ndim == 2 and codes.shape[1] == len(shape)
    if not inside or np.any(codes < 0) or np.any(codes >= np.array(shape)):
        raise ValueError(
            f"Expected codes (row, {len(shape)}) below {shape}; got shape {codes.shape}. "
            "Use the layout that made them."
        )
    return codes
