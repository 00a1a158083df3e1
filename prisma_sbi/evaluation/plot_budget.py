"""Figure of the loss budget: what each stage adds to a distance."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation.plot_rows import MUTED_COLOR, Spread, require_columns, spread
from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    SYNTHETIC_COLORS,
    figure_style,
    new_figure,
    plain,
)

if TYPE_CHECKING:
    import matplotlib.figure

WORSE_COLOR, BETTER_COLOR = SYNTHETIC_COLORS[1], SYNTHETIC_COLORS[0]
MAXIMUM_COLUMNS = 3


def plot_loss_budget(
    rows: pd.DataFrame, *, titles: Mapping[str, str] | None = None
) -> "matplotlib.figure.Figure":
    """How much of each distance comes from which stage, as a waterfall per metric.

    Parameters
    ----------
    rows
        ``stage``, ``metric`` and ``value``; several rows of one stage and metric are runs.
        A value is the distance with this stage and all before it: for instance real
        against real, then encoded and decoded, then binned as well, then with the
        mechanism. Stages keep the order of their first row.
    titles
        Metric -> title of its panel; also the choice and order of panels. By default all
        metrics of the table under their own names.

    Returns
    -------
    figure
        The first bar starts at 0; every other one runs from the distance before the stage
        to the distance after it, with the difference beside it. A stage can make a
        distance smaller. A stage without a value is marked "not run", and the next bar
        then starts from the last distance that is known. Lines: one standard deviation
        over runs.

    Raises
    ------
    InputDataError
        If a column is missing or there is no row.
    """
    require_columns(rows, ["stage", "metric", "value"])
    if not len(rows):
        raise InputDataError("Expected at least one stage and metric; got no row. Measure first.")
    stages = [str(name) for name in rows["stage"].unique()]
    panels = dict(titles or {str(name): str(name) for name in rows["metric"].unique()})
    n_columns = min(MAXIMUM_COLUMNS, len(panels))
    n_rows = -(-len(panels) // n_columns)
    with figure_style():
        figure = new_figure(
            width_in=1.8 + 2.9 * n_columns, height_in=0.9 + (0.7 + 0.36 * len(stages)) * n_rows
        )
        axes = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False)
        for spare in list(axes.flat)[len(panels) :]:
            spare.remove()
        for axis, (metric, title) in zip(axes.flat, panels.items(), strict=False):
            part = rows[rows["metric"].astype(str) == metric]
            steps = [spread(part.loc[part["stage"].astype(str) == s, "value"]) for s in stages]
            _draw_waterfall(axis, steps)
            axis.set_title(plain(title))
        for row in axes:
            row[0].set_yticks(range(len(stages)), labels=[plain(stage) for stage in stages])
            row[0].set_ylim(len(stages) - 0.45, -0.55)
        figure.suptitle("What each stage adds to the distance from real traces")
    return figure


def _draw_waterfall(axis: Any, steps: list[Spread]) -> None:
    """Bars from each known distance to the next."""
    axis.grid(visible=False, axis="y")
    axis.tick_params(axis="y", length=0)
    before: float | None = None
    row_before = 0
    highest = max((step.mean + step.sd for step in steps if step.is_defined), default=0.0) or 1.0
    for row, step in enumerate(steps):
        if not step.is_defined:
            _write(axis, 0.02 * highest, row, step.note, muted=True)
            continue
        change = step.mean - (before or 0.0)
        color = REAL_COLOR if before is None else WORSE_COLOR if change > 0 else BETTER_COLOR
        axis.barh(row, change, left=before or 0.0, height=0.56, color=color, alpha=0.85)
        if step.sd:
            axis.errorbar(step.mean, row, xerr=step.sd, color="black", linewidth=1.0, capsize=2.5)
        if before is not None:
            axis.plot([before] * 2, [row_before, row], color=MUTED_COLOR, linewidth=0.7, zorder=0)
        edge = max(step.mean + step.sd, before or 0.0)
        text = f"{step.mean:.2f}" if before is None else f"{change:+.2f}".replace("-", "−")
        _write(axis, edge + 0.03 * highest, row, text)
        before, row_before = step.mean, row
    lowest = min([0.0, *(step.mean - step.sd for step in steps if step.is_defined)])
    axis.set_xlim(lowest, 1.28 * highest)
    axis.locator_params(axis="x", nbins=5)


def _write(axis: Any, x: float, row: int, text: str, *, muted: bool = False) -> None:
    """A word or number beside a bar."""
    style = {"color": MUTED_COLOR, "style": "italic"} if muted else {}
    axis.text(x, row, text, va="center", fontsize=8.5, **style)
