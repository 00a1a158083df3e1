"""Figure of scores: several models side by side, with error bars over seeds."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation.plot_rows import (
    MUTED_COLOR,
    NOT_RUN,
    Spread,
    plain_log_axis,
    require_columns,
    spans_decades,
    spread,
)
from prisma_sbi.evaluation.plot_style import figure_style, new_figure, plain, synthetic_color

if TYPE_CHECKING:
    import matplotlib.figure

SCORE_PANELS: Mapping[str, str] = {
    "acf_x_floor": "ACF × floor",
    "fid_x_floor": "FID × floor",
    "precision_standardized": "precision",
    "recall_standardized": "recall",
}
"""Column -> title of a panel, as in the first figure of the paper."""
_SHARES = ("precision", "recall", "density", "coverage")


def plot_scores(
    scores: pd.DataFrame,
    *,
    panels: Mapping[str, str] = SCORE_PANELS,
    models: Sequence[str] | None = None,
    variant: str | None = None,
    reference: Mapping[str, float] | None = None,
    reference_label: str = "real against real",
) -> "matplotlib.figure.Figure":
    """Scores of several models, one panel per metric, with error bars over seeds.

    Parameters
    ----------
    scores
        One row per run: ``model``, ``seed`` and a column per metric.
    panels
        Column -> title, in order.
    models
        Which models are shown, from top to bottom; by default those of the table. A model
        without a row is marked "not run" and gets no point.
    variant
        Column by which the runs of a model are told apart, for instance with and without
        privacy; each value gets a color and a place of its own.
    reference, reference_label
        Column -> value drawn as a dashed line, and what it is.

    Returns
    -------
    figure
        Small dots: single seeds. Large points: mean over seeds. Bars: one standard
        deviation to each side, none where there is one seed. Axes are logarithmic where
        the values span much; precision and recall always run from 0 to 1.

    Raises
    ------
    InputDataError
        If a column is missing, or a model has the same seed twice in one variant.
    ValueError
        If there is no model to show.
    """
    keys = ["model", "seed"] + ([] if variant is None else [variant])
    require_columns(scores, [*keys, *panels])
    _require_one_row_per_seed(scores, keys)
    shown = [str(name) for name in (scores["model"].unique() if models is None else models)]
    if not shown or not panels:
        raise ValueError("Expected at least one model and one panel; got none. Name them.")
    variants = [None] if variant is None else list(scores[variant].unique()) or [None]
    with figure_style():
        figure = new_figure(
            width_in=2.0 + 2.4 * len(panels),
            height_in=1.5 + max(0.34, 0.2 * len(variants)) * len(shown),
        )
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, (column, title) in zip(axes, panels.items(), strict=True):
            points = {
                (model, name): _points(scores, column, model, variant, name)
                for model in shown
                for name in variants
            }
            _finish_axis(axis, column, title, list(points.values()), (reference or {}).get(column))
            for (model, name), point in points.items():
                place, number = shown.index(model), variants.index(name)
                never = not any(points[model, other].n_rows for other in variants)
                shift = 0.0 if never else 0.5 * ((number + 0.5) / len(variants) - 0.5)
                row = place + shift
                _draw_point(axis, row, point, number, never=never)
        axes[0].set_yticks(range(len(shown)), labels=[plain(model) for model in shown])
        axes[0].set_ylim(len(shown) - 0.45, -0.55)
        names = [] if variant is None else [plain(name) for name in variants]
        handles = _handles(axes[0], len(names))
        if reference:
            handles += axes[0].plot([], [], color=MUTED_COLOR, linestyle="--", linewidth=1.0)
            names.append(reference_label)
        if handles:
            figure.legend(handles, names, loc="outside lower center", ncols=min(5, len(names)))
        figure.suptitle(f"Scores by model ({_seeds_text(scores, shown)})")
    return figure


def _points(
    scores: pd.DataFrame, column: str, model: str, variant: str | None, value: Any
) -> Spread:
    """Mean and spread of one model, in one variant, on one metric."""
    chosen = scores["model"].astype(str) == model
    if variant is not None:
        chosen &= scores[variant] == value
    return spread(scores.loc[chosen, column])


def _draw_point(axis: Any, row: float, point: Spread, number: int, *, never: bool) -> None:
    """Seeds, mean and bar of one model; a word where there is none."""
    color = synthetic_color(number)
    if point.is_defined:
        axis.scatter(
            point.values, [row] * len(point.values), s=9, color=color, alpha=0.35, linewidths=0
        )
        axis.errorbar(point.mean, row, xerr=point.sd, color=color, marker="o", ms=5, capsize=2.5)
    if point.note:
        text = "–" if point.note == NOT_RUN and not never else point.note
        if never and number:
            return
        side = (0.02, "left") if not point.is_defined else (1.0, "right")
        axis.annotate(
            text,
            (side[0], row),
            xycoords=axis.get_yaxis_transform(),
            ha=side[1],
            va="center",
            fontsize=8.5,
            color=MUTED_COLOR,
            style="italic",
            bbox={"facecolor": axis.get_facecolor(), "edgecolor": "none", "pad": 1.0},
        )


def _finish_axis(
    axis: Any, column: str, title: str, points: list[Spread], reference: float | None
) -> None:
    """Scale, limits and reference line of one panel."""
    axis.set_title(title)
    axis.grid(visible=False, axis="y")
    axis.tick_params(axis="y", length=0)
    if reference is not None:
        axis.axvline(reference, color=MUTED_COLOR, linestyle="--", linewidth=1.0, zorder=1)
    values = [float(value) for point in points for value in point.values]
    values += [point.mean + point.sd for point in points if point.is_defined]
    values += [] if reference is None else [reference]
    if column.startswith(_SHARES):
        axis.set_xlim(-0.03, max([1.03, *values]))
        axis.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], labels=["0", "", "0.5", "", "1"])
    elif spans_decades(values):
        plain_log_axis(axis, "x", (min(values) / 1.5, max(values) * 1.5))
    else:
        axis.set_xlim(min([0.0, *values]), 1.1 * max([*values, 0.0]) or 1.0)
        axis.locator_params(axis="x", nbins=4)


def _require_one_row_per_seed(scores: pd.DataFrame, keys: list[str]) -> None:
    """Repeated seeds would make error bars too small."""
    repeated = scores[scores.duplicated(keys)]
    if len(repeated):
        first = ", ".join(f"{key}={repeated.iloc[0][key]}" for key in keys)
        raise InputDataError(
            f"Expected one row per {', '.join(keys)}; got several for {first}. "
            "Drop repeated runs, or tell them apart by variant."
        )


def _handles(axis: Any, n_variants: int) -> list[Any]:
    """One marker of each color for the legend."""
    return [
        axis.plot([], [], color=synthetic_color(number), marker="o", ms=5, linestyle="")[0]
        for number in range(n_variants)
    ]


def _seeds_text(scores: pd.DataFrame, shown: list[str]) -> str:
    """How many seeds the models have."""
    part = scores[scores["model"].astype(str).isin(shown)]
    counts = [len(set(group["seed"])) for _, group in part.groupby("model")]
    if not counts:
        return "no run yet"
    low, high = min(counts), max(counts)
    if high == 1:
        return "one seed"
    return f"mean ± standard deviation over {high if low == high else f'{low} to {high}'} seeds"
