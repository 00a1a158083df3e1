"""Scores of all rows and seeds as tables; what was not run is said to be so."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from prisma_sbi.evaluation.plot_rows import NOT_RUN, spread
from prisma_sbi.pipeline.reproduce.published import Published
from prisma_sbi.pipeline.reproduce.recipes import NOISELESS_EPSILON
from prisma_sbi.pipeline.reproduce.rows import Row
from prisma_sbi.pipeline.reproduce.study import REAL, Study

SHOWN: Mapping[str, str] = {
    "acf_x_floor": "ACF × floor",
    "fid_x_floor": "FID × floor",
    "precision_standardized": "precision",
    "recall_standardized": "recall",
    "precision_raw": "precision, raw",
    "recall_raw": "recall, raw",
}
"""Metric -> heading."""

NOTES = (
    "Mean ± standard deviation over seeds: each is another split, release and draw of traces.",
    "ACF and FID are multiples of real against real; 0.7 and 0.5 are as good as real.",
    "Precision and recall are on features in units of their real spread; raw: as published.",
    "A mechanism without privacy works on exact counts, planned as for epsilon = "
    f"{NOISELESS_EPSILON:g}.",
    "Every private row and seed is a release of its own: for measuring, not for publishing.",
)

type Scores = Mapping[tuple[str, int], Mapping[str, float]]
"""Name of a row and seed -> metric -> value; NaN where a metric is not defined."""


def collect_scores(study: Study, rows: Sequence[Row], seeds: Sequence[int]) -> Scores:
    """Every score that is there.

    Parameters
    ----------
    study
        Where results lie; those made under other settings do not count.
    rows, seeds
        Which to look for.

    Returns
    -------
    scores
        Other recorded trips, ``real``, come first. What was not run is absent.
    """
    wanted = [(REAL, REAL), *((row.name, row) for row in rows if row.recipe is not None)]
    found = {}
    for name, row in wanted:
        for seed in seeds:
            values = study.values(row, seed)
            if values is not None:
                found[name, seed] = {key: _number(value) for key, value in values.items()}
    return found


def values_of(scores: Scores, name: str, metric: str) -> list[float]:
    """One metric of one row for all seeds that are there."""
    return [values[metric] for (row, _), values in scores.items() if row == name]


def long_table(scores: Scores) -> pd.DataFrame:
    """One line per row, seed and metric, for a file."""
    return pd.DataFrame(
        [
            {"row": row, "seed": seed, "metric": metric, "value": value}
            for (row, seed), values in scores.items()
            for metric, value in values.items()
        ],
        columns=["row", "seed", "metric", "value"],
    )


def wide_table(scores: Scores, rows: Sequence[Row], *, full: bool = False) -> pd.DataFrame:
    """One line per row and seed, as figures take it.

    Parameters
    ----------
    scores
        Of these rows and others.
    rows
        Which to keep, in this order.
    full
        Whether the budget is part of the name of the model.

    Returns
    -------
    table
        ``model``, ``privacy``, ``seed`` and the shown metrics.
    """
    lines = [
        {"model": row.label if full else row.model, "privacy": row.privacy, "seed": seed, **values}
        for row in rows
        for (name, seed), values in scores.items()
        if name == row.name
    ]
    return pd.DataFrame(lines, columns=["model", "privacy", "seed", *SHOWN])


def summary(scores: Scores, rows: Sequence[Row]) -> list[dict[str, str]]:
    """Mean and standard deviation over seeds as texts, a line per row, ``real`` first.

    A row without any seed is marked "not run" and has no number.
    """
    lines = [{"name": REAL, "model": "other recorded trips", "privacy": "", "published": ""}]
    lines += [
        {
            "name": row.name if row.recipe is not None else "",
            "model": row.model,
            "privacy": row.privacy,
            "published": _published(row.published),
        }
        for row in rows
    ]
    for line in lines:
        n_seeds = sum(name == line["name"] for name, _ in scores)
        line["seeds"] = str(n_seeds) if n_seeds else NOT_RUN
        for metric in SHOWN:
            line[metric] = spread_text(values_of(scores, line["name"], metric)) if n_seeds else ""
    return lines


def markdown(lines: Sequence[Mapping[str, str]]) -> str:
    """A summary as a table for a page, with notes.

    Published numbers stand in a column of their own, under the name of their data set.
    """
    columns = {"model": "model", "privacy": "privacy", "seeds": "seeds", **SHOWN}
    if any(line["published"] for line in lines):
        columns["published"] = "published, on eVED: ACF / FID / raw precision / recall"
    text = [
        "| " + " | ".join(columns.values()) + " |",
        "|" + "---|" * len(columns),
        *("| " + " | ".join(line[key] for key in columns) + " |" for line in lines),
    ]
    return "\n".join([*text, "", *NOTES, ""])


def _number(value: float | None) -> float:
    """A value of a JSON file."""
    return math.nan if value is None else float(value)


def _published(scores: Published | None) -> str:
    """Four published numbers in one cell."""
    if scores is None:
        return ""
    acf, fid, precision, recall = scores
    return f"{acf:g} / {fid:g} / {precision:.3f} / {recall:.3f}"


def spread_text(values: Sequence[float]) -> str:
    """Mean and sample standard deviation of the seeds that have a finite value."""
    found = spread(values)
    if not found.is_defined:
        return "not defined"
    mean = f"{found.mean:.2f}"
    return mean if len(found.values) == 1 else f"{mean} ± {found.sd:.2f}"
