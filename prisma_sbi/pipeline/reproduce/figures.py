"""The figures of the paper, and those of the ablations, from what was run."""

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from prisma_sbi.evaluation import (
    plot_epsilon_curve,
    plot_loss_budget,
    plot_places,
    plot_scores,
    plot_tsne,
)
from prisma_sbi.evaluation.plot_rows import spread
from prisma_sbi.evaluation.plot_style import save_figures
from prisma_sbi.pipeline.reproduce.results import SHOWN, Scores, values_of, wide_table
from prisma_sbi.pipeline.reproduce.rows import TABLES, Passage, Row, Source
from prisma_sbi.pipeline.reproduce.study import REAL, Study

FORMATS = ("png", "pdf")
DOTS_PER_INCH = 110
"""Of the PNG; for print there is the PDF."""
PANELS = {
    "acf_x_floor": "ACF × floor",
    "fid_x_floor": "FID × floor",
    "energy_w1_x_floor": "energy × floor",
    "duration_w1_x_floor": "duration × floor",
    "levels_w1_x_floor": "power levels × floor",
    "spectrum_x_floor": "spectrum × floor",
}
"""Metric -> title of a panel of the loss budget and of the curve over budgets."""


def draw_scores(
    scores: Scores, rows: Sequence[Row], path: Path, *, full: bool = False
) -> list[Path]:
    """Scores side by side with error bars over seeds; the first figure of the paper.

    Parameters
    ----------
    scores
        From :func:`~prisma_sbi.pipeline.reproduce.results.collect_scores`.
    rows
        Which are shown, those that were not run as well.
    path
        Without ending.
    full
        Give every row a line of its own, instead of one color for each budget.
    """
    names = dict.fromkeys(row.label if full else row.model for row in rows)
    figure = plot_scores(
        wide_table(scores, rows, full=full),
        models=list(names),
        variant=None if full else "privacy",
        reference=reference(scores),
        reference_label="other recorded trips",
    )
    return save_figures({path.name: figure}, path.parent, formats=FORMATS, dpi=DOTS_PER_INCH)


def reference(scores: Scores) -> dict[str, float]:
    """What other recorded trips reach, mean over seeds."""
    real = {metric: spread(values_of(scores, REAL, metric)) for metric in SHOWN}
    return {metric: found.mean for metric, found in real.items() if found.is_defined}


def draw_budget(scores: Scores, rows: Sequence[Row], folder: Path) -> list[Path]:
    """What encoding, binning and the mechanism add to distances, for each table and budget."""
    written = []
    (encoded,) = [row for row in rows if row.name == "none-map"]
    for last in rows:
        recipe = last.recipe
        if recipe is None or recipe.source != Source.MAP or recipe.passage != Passage.MECHANISM:
            continue
        (binned,) = [row for row in rows if row.name == f"binned-{recipe.table}-map"]
        stages = {
            "recorded trips": REAL,
            "encoded, decoded": encoded.name,
            "binned": binned.name,
            f"mechanism, {last.privacy}": last.name,
        }
        lines = [
            {"stage": stage, "metric": metric, "value": value}
            for stage, name in stages.items()
            # A line for no panel names a stage that was not run.
            for metric in ("", *PANELS)
            for value in (values_of(scores, name, metric) if metric else [0.0])
        ]
        figure = plot_loss_budget(pd.DataFrame(lines), titles=PANELS)
        name = f"loss_budget-{recipe.table}-eps{recipe.epsilon:g}"
        written += save_figures({name: figure}, folder, formats=FORMATS, dpi=DOTS_PER_INCH)
    return written


def draw_curve(scores: Scores, rows: Sequence[Row], path: Path) -> list[Path]:
    """Distances over the budget, a line per table; nothing unless several budgets were run."""
    lines = [
        {"epsilon": row.epsilon, "table": row.recipe.table or "no mechanism", "run": seed, **values}
        for row in rows
        if row.recipe is not None and row.recipe.source == Source.MAP
        if row.recipe.is_private or row.name == "none-map"
        for (name, seed), values in scores.items()
        if name == row.name
    ]
    if len({line["epsilon"] for line in lines if math.isfinite(line["epsilon"])}) < 2:
        return []
    figure = plot_epsilon_curve(pd.DataFrame(lines), panels=PANELS)
    return save_figures({path.name: figure}, path.parent, formats=FORMATS, dpi=DOTS_PER_INCH)


def draw_map(study: Study, rows: Sequence[Row], seed: int, path: Path) -> list[Path]:
    """Held-out and synthetic traces in one map by t-SNE; the fourth figure of the paper."""
    figure = plot_tsne(
        study.shared.split(seed)[1],
        {_short_label(row): study.traces(row, seed) for row in rows},
        seed=seed,
    )
    return save_figures({path.name: figure}, path.parent, formats=FORMATS, dpi=DOTS_PER_INCH)


def draw_places(study: Study, rows: Sequence[Row], seed: int, path: Path) -> list[Path]:
    """Where held-out and synthetic trips start and end; the fifth figure of the paper."""
    real = study.shared.split(seed)[1]
    figures = {
        f"{path.name}-{row.name}": plot_places(
            real,
            study.traces(row, seed),
            roads=study.shared.region().roads,
            label=_short_label(row),
        )
        for row in rows
    }
    return save_figures(figures, path.parent, formats=FORMATS, dpi=DOTS_PER_INCH)


def place_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Rows that maps show: both tables under the mechanism, and no mechanism."""
    private = [
        row
        for table in TABLES
        for row in rows
        if row.recipe is not None
        and row.recipe.is_private
        and row.recipe.source == Source.MAP
        and row.recipe.table == table
    ]
    return (*private, *(row for row in rows if row.name == "none-map"))


def _short_label(row: Row) -> str:
    """Model and budget, short enough to stand above a map."""
    return row.label.removeprefix("PRISMA").lstrip(" +,").replace("epsilon", "ε")
