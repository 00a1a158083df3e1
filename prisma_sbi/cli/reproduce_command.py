"""`prisma reproduce`: the tables and figures of the paper."""

from pathlib import Path
from typing import Annotated

import typer

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.cli.console import (
    RichReporter,
    note,
    print_json,
    print_table,
    progress_bar,
    results,
    wrote,
)
from prisma_sbi.cli.errors import resumable
from prisma_sbi.cli.options import Json
from prisma_sbi.pipeline import PipelineConfig, load_config
from prisma_sbi.pipeline.reproduce import (
    MISFIT,
    MisfitStudy,
    Reproduction,
    Target,
    demo_study_config,
    plan_reproduction,
    study_misfit,
    with_changes,
)
from prisma_sbi.pipeline.reproduce import reproduce as reproduce_target

_COLUMNS = {
    "name": "",
    "seeds": "seeds",
    "acf_x_floor": "ACF",
    "fid_x_floor": "FID",
    "precision_standardized": "prec",
    "recall_standardized": "rec",
}
SEEDS, DEMO_SEEDS = 5, 2


@resumable
def reproduce(
    target: Annotated[
        str,
        typer.Argument(
            help="table2: scores of all models. fig1: the same as a figure. fig4: traces in a map "
            "by t-SNE. fig5: where trips start and end. ablations: one thing left out at a time, "
            "and what each stage costs. misfit: what decoded traces lack, from finished runs."
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for results; one for all targets.")
    ],
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN",
            help="For misfit alone: folders of finished runs of the same trips, as of two presets. "
            "Their training trips are read, no other option counts.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="TOML file of a run, as examples/ann_arbor.toml.",
            show_default="a small simulated fleet",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Splits, releases and draws to average over.",
            show_default=f"{SEEDS}; {DEMO_SEEDS} without --config",
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            help="Rows to run, by name or pattern with commas: none-map,aim-*. Others are shown "
            "if they are there.",
            show_default="all",
        ),
    ] = None,
    epsilons: Annotated[
        str | None,
        typer.Option(
            "--epsilon", help="Budgets, with commas.", show_default="those of the configuration"
        ),
    ] = None,
    n_train: Annotated[
        int | None,
        typer.Option(help="Trips to encode.", min=1, show_default="by the configuration"),
    ] = None,
    n_holdout: Annotated[
        int | None,
        typer.Option(
            help="Trips to judge with, and traces to make.",
            min=12,
            show_default="by the configuration",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what is there and what is missing; run nothing.")
    ] = False,
    draw_only: Annotated[
        bool,
        typer.Option("--draw-only", help="Tables and figures from what is there; run nothing."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Repeat an experiment of the paper on your own trips, over several seeds.

    Trips are fitted once; every row and seed is kept, so that an interrupted
    command goes on where it stopped. Models that are not part of this package
    are shown as not run, beside what was published for them.

    Every private row and seed is a release of its own and spends its budget.
    They are for measuring, not for publishing: the folder is private.
    """
    _validate.one_of([*(item.value for item in Target), MISFIT], target=target)
    if target == MISFIT:
        _misfit(runs or [], output, as_json=as_json)
        return
    if runs:
        raise InputDataError(
            f"Expected finished runs after {MISFIT} only; got {target} {runs[0]}. Leave them out: "
            "other targets make their own."
        )
    changed = with_changes(
        demo_study_config() if config is None else load_config(config),
        epsilons=_numbers(epsilons),
        n_train=n_train,
        n_holdout=n_holdout,
    )
    n_seeds = seeds if seeds is not None else SEEDS if config else DEMO_SEEDS
    patterns = None if rows is None else [name.strip() for name in rows.split(",")]
    if dry_run:
        _show_plan(target, output, changed, n_seeds, patterns, as_json=as_json)
        return
    with progress_bar() as bars:
        found = reproduce_target(
            target,
            output,
            config=changed,
            n_seeds=n_seeds,
            rows=patterns,
            run=not draw_only,
            reporter=None if as_json else RichReporter(bars),
        )
    if as_json:
        print_json(_facts(found))
        return
    _show(found)


def _misfit(runs: list[Path], output: Path, *, as_json: bool) -> None:
    """What decoded traces lack, from finished runs."""
    with progress_bar() as bars:
        found = study_misfit(runs, output, reporter=None if as_json else RichReporter(bars))
    if as_json:
        print_json(
            {
                "folder": str(found.folder),
                "swaps": found.swaps.to_dict(orient="records"),
                "files": [str(path) for path in found.files],
            }
        )
        return
    _show_swaps(found)
    for path in found.files:
        wrote(path)
    note("All of this describes recorded trips and is private, like the traces.")


def _show_swaps(found: MisfitStudy) -> None:
    """What each repair would buy."""
    for run, table in found.swaps.groupby("run", sort=False):
        shown = table.loc[table["direction"] != "break"]
        lines = [
            {"title": str(row["title"])}
            | {key: f"{row[key]:.2f}" for key in _COLUMNS if key in row}
            for row in shown.to_dict(orient="records")
        ]
        columns = {"title": "from the recorded trip"} | {
            key: title for key, title in _COLUMNS.items() if key in table
        }
        print_table(f"{run}: decoded traces with one feature repaired", columns, lines)


def _numbers(text: str | None) -> tuple[float, ...] | None:
    """Numbers with commas between them."""
    if text is None:
        return None
    try:
        found = tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError as error:
        raise ValueError(
            f"Expected numbers with commas for --epsilon, as 0.5,1; got {text!r}."
        ) from error
    return found


def _show_plan(
    target: str,
    output: Path,
    config: PipelineConfig,
    n_seeds: int,
    rows: list[str] | None,
    *,
    as_json: bool,
) -> None:
    """Stages, there or missing."""
    plan = plan_reproduction(target, output, config=config, n_seeds=n_seeds, rows=rows)
    if as_json:
        print_json({"stages": [{"stage": step.title, "done": step.is_done} for step in plan]})
        return
    lines = [{"stage": step.title, "is": "there" if step.is_done else "missing"} for step in plan]
    print_table(f"Stages of {target}", {"stage": "stage", "is": ""}, lines)
    n_done = sum(step.is_done for step in plan)
    results.print(f"{n_done} of {len(plan)} stages are there. Nothing was run.", style="dim")


def _facts(found: Reproduction) -> dict[str, object]:
    """A reproduction as JSON has it."""
    return {
        "folder": str(found.folder),
        "target": str(found.target),
        "rows": found.lines,
        "files": [str(path) for path in found.files],
        "missing": found.missing,
        "spent": found.spent.to_dict() if found.spent is not None else None,
    }


def _show(found: Reproduction) -> None:
    """The table, what is missing, and where everything is."""
    if found.lines:
        _show_lines(found.lines)
    for path in found.files:
        wrote(path)
    if found.missing:
        note(f"Rows that are not complete: {', '.join(found.missing)}.")
    if found.spent is not None:
        note(f"{found.spent.text} They are for measuring: publish none of them.")


def _show_lines(lines: list[dict[str, str]]) -> None:
    """Means of all rows that can be made; the files have the rest."""
    shown = [
        {key: line[key].partition(" ±")[0] for key in _COLUMNS} for line in lines if line["name"]
    ]
    print_table("Synthetic against held-out traces, mean over seeds", _COLUMNS, shown)
    absent = dict.fromkeys(line["model"] for line in lines if not line["name"])
    results.print(
        "ACF, FID: in multiples of real against real (0.7 and 0.5 are as good as real).\n"
        "Precision, recall: on scaled features. Standard deviations and all metrics: in the files."
        + (f"\nNot part of this package: {', '.join(absent)}." if absent else ""),
        style="dim",
    )
