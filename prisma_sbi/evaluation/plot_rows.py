"""What figures of long tables share: checked columns, and mean and spread over seeds."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from prisma_sbi._errors import InputDataError

MUTED_COLOR = "#606060"
NOT_RUN = "not run"


class Spread(NamedTuple):
    """Mean and standard deviation over seeds of the values that are defined."""

    mean: float
    sd: float
    values: np.ndarray
    n_rows: int

    @property
    def is_defined(self) -> bool:
        """Whether any value is."""
        return len(self.values) > 0

    @property
    def note(self) -> str:
        """Why there is no point, or how many seeds it lacks; empty if it is whole."""
        if not self.n_rows:
            return NOT_RUN
        if not self.is_defined:
            return "not defined"
        missing = self.n_rows - len(self.values)
        return f"{len(self.values)} of {self.n_rows} seeds" if missing else ""


def require_columns(rows: pd.DataFrame, columns: Iterable[str]) -> None:
    """Raise :class:`InputDataError` unless the table has these columns."""
    missing = [name for name in columns if name not in rows.columns]
    if missing:
        found = ", ".join(map(str, rows.columns)) or "none"
        raise InputDataError(
            f"Expected the columns {', '.join(missing)} in the table to draw; got {found}. "
            "Pass one row per run, a column per quantity."
        )


def spread(values: Any) -> Spread:
    """Mean and sample standard deviation; values that are not finite are left out.

    The deviation of a single value is 0: it draws no bar.
    """
    every = np.asarray(values, dtype=np.float64).ravel()
    finite = every[np.isfinite(every)]
    mean = float(finite.mean()) if finite.size else float("nan")
    sd = float(finite.std(ddof=1)) if finite.size > 1 else 0.0
    return Spread(mean, sd, finite, len(every))


def spans_decades(values: Iterable[float], *, ratio: float = 8.0) -> bool:
    """Whether positive values spread so far that a logarithmic axis shows them better."""
    finite = [value for value in values if np.isfinite(value)]
    return bool(finite) and min(finite) > 0.0 and max(finite) > ratio * min(finite)


def plain_log_axis(axis: Any, direction: str, limits: tuple[float, float]) -> None:
    """Make an axis logarithmic with plain numbers at 1, 2, 5 or, over many decades, at 1."""
    low, high = limits
    factors = (1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,)
    exponents = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [factor * 10.0**power for power in exponents for factor in factors]
    shown = [tick for tick in ticks if low <= tick <= high]
    {"x": axis.set_xscale, "y": axis.set_yscale}[direction]("log")
    {"x": axis.set_xlim, "y": axis.set_ylim}[direction](low, high)
    {"x": axis.set_xticks, "y": axis.set_yticks}[direction](
        shown, labels=[f"{tick:g}" for tick in shown]
    )
    {"x": axis.xaxis, "y": axis.yaxis}[direction].set_minor_formatter("")
