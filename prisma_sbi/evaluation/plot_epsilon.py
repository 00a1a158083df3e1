"""Figure of quality over the privacy budget."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation.plot_rows import (
    plain_log_axis,
    require_columns,
    spans_decades,
    spread,
)
from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    figure_style,
    new_figure,
    plain,
    synthetic_color,
)

if TYPE_CHECKING:
    import matplotlib.figure

EPSILON_PANELS: Mapping[str, str] = {
    "acf_x_floor": "ACF × floor",
    "fid_x_floor": "FID × floor",
    "length_x_floor": "trip length × floor",
    "energy_x_floor": "trip energy × floor",
    "origin_destination_x_floor": "start and end × floor",
}
"""Column -> title of a panel."""
MAXIMUM_COLUMNS = 3


def plot_epsilon_curve(
    rows: pd.DataFrame, *, panels: Mapping[str, str] = EPSILON_PANELS
) -> "matplotlib.figure.Figure":
    """Quality over epsilon, one panel per metric and one line per table.

    Parameters
    ----------
    rows
        One row per release: ``epsilon``, ``table``, ``run`` and a column per metric. Rows
        with infinite epsilon become a dashed line across the panel.
    panels
        Column -> title, in order.

    Returns
    -------
    figure
        Points: mean over runs. Bars: one standard deviation to each side. Where a value
        is not finite it is left out.

    Raises
    ------
    InputDataError
        If a column is missing, or no row has a finite epsilon greater than 0.
    """
    require_columns(rows, ["epsilon", "table", "run", *panels])
    epsilons = sorted({float(value) for value in rows["epsilon"] if 0.0 < value < np.inf})
    if not epsilons or not panels:
        raise InputDataError(
            "Expected a release with a finite epsilon and a column to draw; got none. "
            "Pass the rows of several releases."
        )
    n_columns = min(MAXIMUM_COLUMNS, len(panels))
    n_rows = -(-len(panels) // n_columns)
    with figure_style():
        figure = new_figure(width_in=0.8 + 3.1 * n_columns, height_in=0.8 + 2.5 * n_rows)
        axes = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
        for spare in axes[len(panels) :]:
            spare.remove()
        for axis, (column, title) in zip(axes, panels.items(), strict=False):
            drawn = _draw_lines(axis, rows, column)
            _finish_panel(axis, epsilons, drawn, title)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)))
    return figure


def _draw_lines(axis: Any, rows: pd.DataFrame, column: str) -> list[float]:
    """Every table of one panel; returns the values that it must show."""
    tables = [str(name) for name in rows["table"].unique()]
    finite = rows.loc[np.isfinite(rows["epsilon"]) & (rows["epsilon"] > 0.0)]
    curves = [name for name in tables if name in set(finite["table"].astype(str))]
    shown: list[float] = []
    for number, table in enumerate(curves):
        part = finite.loc[finite["table"].astype(str) == table]
        points = {
            float(epsilon): spread(part.loc[part["epsilon"] == epsilon, column])
            for epsilon in sorted(part["epsilon"].unique())
        }
        points = {epsilon: point for epsilon, point in points.items() if point.is_defined}
        axis.errorbar(
            list(points),
            [point.mean for point in points.values()],
            yerr=[point.sd for point in points.values()],
            color=synthetic_color(number),
            marker="o",
            markersize=4,
            capsize=3,
            label=plain(table),
        )
        shown += [point.mean + step * point.sd for point in points.values() for step in (-1, 0, 1)]
    for table in tables:
        at_infinity = rows.loc[(rows["table"].astype(str) == table) & np.isposinf(rows["epsilon"])]
        level = spread(at_infinity[column])
        if level.is_defined:
            color = synthetic_color(curves.index(table)) if table in curves else REAL_COLOR
            name = plain(table) + (", epsilon = ∞" if table in curves else "")
            axis.axhline(level.mean, color=color, linestyle="--", label=name)
            shown.append(level.mean)
    return shown


def _finish_panel(axis: Any, epsilons: list[float], shown: list[float], title: str) -> None:
    """Logarithmic budget, linear or logarithmic metric."""
    axis.set_title(title)
    axis.set_xlabel("epsilon")
    axis.set_xscale("log")
    axis.set_xticks(epsilons, labels=[f"{value:g}" for value in epsilons])
    axis.xaxis.set_minor_formatter("")
    axis.tick_params(axis="x", which="minor", length=0)
    if spans_decades(shown):
        plain_log_axis(axis, "y", (min(shown) / 1.25, max(shown) * 1.25))
    elif shown:
        axis.set_ylim(min(0.0, *shown), 1.08 * max(*shown, 0.0) or 1.0)
