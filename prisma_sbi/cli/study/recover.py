"""`prisma study recover`."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
import xarray as xr
from rich.progress import Progress

from prisma_sbi._files import remove
from prisma_sbi.cli.console import note, print_json, print_table, progress_bar, tracker, wrote
from prisma_sbi.cli.errors import resumable
from prisma_sbi.cli.options import Force, Json
from prisma_sbi.cli.study.options import PUBLIC, Seed, StudyRegion
from prisma_sbi.cli.study.output import plain_numbers, study_region
from prisma_sbi.encoding import Method
from prisma_sbi.study import (
    Noise,
    RecoverySettings,
    recovery_study,
    recovery_table,
    trips_set_aside,
    write_recovery,
)
from prisma_sbi.study.recovery import CHUNKS, DATA
from prisma_sbi.study.recovery_cells import PARAMETERS
from prisma_sbi.study.recovery_sections import coverage_text, shown, trips_text

_DEFAULT = RecoverySettings()


@resumable
def recover_command(
    region: StudyRegion = None,
    trips: Annotated[int, typer.Option(help="Trips to simulate.", min=2)] = _DEFAULT.n_trips,
    method: Annotated[str, typer.Option(help=f"With commas: {', '.join(Method)}.")] = ",".join(
        _DEFAULT.methods
    ),
    likelihood: Annotated[
        str, typer.Option(help="With commas: summary, texture, trace.")
    ] = ",".join(_DEFAULT.likelihoods),
    noise: Annotated[
        Noise,
        typer.Option(
            help="law: of the trace likelihood, under which it must be calibrated. mild: 5 % of "
            "the power, zero where there is none. none."
        ),
    ] = Noise.LAW,
    seed: Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for data, tables, figures and the page."),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Do known descriptors come back? A simulated fleet, encoded in several ways.

    Bias, error, coverage and time of every method under every likelihood, with a
    page to show. With -o an interrupted study goes on where it stopped, and
    more methods can be added to a finished one.
    """
    settings = RecoverySettings(
        n_trips=trips,
        noise=noise,
        methods=_names(method),
        likelihoods=_names(likelihood),
        seed=seed,
    )
    if output is not None and force:
        for name in (DATA, CHUNKS):
            remove(output / name)
    with progress_bar() as bars:
        tree = recovery_study(
            study_region(region), settings, folder=output, progress=_bar_a_cell(bars)
        )
    if output is not None:
        wrote(output / DATA)
        for path in write_recovery(tree, output, command=_command(tree, region)):
            wrote(path)
    _show(tree, as_json=as_json)


def _names(text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _command(tree: xr.DataTree, region: Path | None) -> str:
    """How to repeat the study; of a path only the name, which says enough on another machine."""
    summary, at = tree["summary"].dataset, tree.attrs
    parts = ["prisma study recover"]
    if region is not None:
        parts.append(f"--region {shlex.quote(region.resolve().name)}")
    parts += [
        f"--trips {at['n_trips']}",
        f"--method {','.join(dict.fromkeys(summary['method'].values))}",
        f"--likelihood {','.join(dict.fromkeys(summary['likelihood'].values))}",
        f"--noise {at['noise']}",
        f"--seed {at['seed']}",
        "-o recovery",
    ]
    return " ".join(parts)


def _bar_a_cell(bars: Progress) -> Callable[[str, int, int], None]:
    """A bar for each method under each likelihood, from its first chunk on."""
    moves: dict[str, Callable[[int, int | None], None]] = {}

    def move(cell: str, done: int, total: int) -> None:
        if cell not in moves:
            moves[cell] = tracker(bars, cell)
        moves[cell](done, total)

    return move


def _show(tree: xr.DataTree, *, as_json: bool) -> None:
    """Tables on stdout, or one object."""
    table = recovery_table(tree["summary"].to_dataset())
    aside = trips_set_aside(tree)
    if as_json:
        rows = [plain_numbers(row) for row in table.to_dict("records")]
        print_json({"rows": rows, "set_aside": aside.to_dict("records")})
        return
    for name in PARAMETERS:
        title = f"{name.capitalize()}: {tree.attrs['n_trips']:,} known trips, noise"
        _print_parameter(f"{title} {tree.attrs['noise']}", table.loc[table["descriptor"] == name])
    _print_vehicles(table.loc[table["descriptor"] == "vehicle"])
    for cell, lost in aside.groupby("cell", sort=False):
        names = ", ".join(lost["trip"].head(8)) + (" ..." if len(lost) > 8 else "")
        note(f"{cell}: {trips_text(len(lost))} set aside: {names}")
    if np.isnan(table["coverage_50"].to_numpy()).all():
        note("These methods give points: no intervals, no probabilities, hence the dashes.")
    note(PUBLIC)


def _print_parameter(title: str, rows: pd.DataFrame) -> None:
    """Aggressiveness or detour in every cell."""
    columns = {"cell": "", "bias": "bias", "rmse": "RMSE", "r": "r", "c50": "50 %", "c90": "90 %",
               "contraction": "contr.", "z": "z sd"}  # fmt: skip
    texts = [
        {
            "cell": f"{row['likelihood']}-{row['method']}",
            "bias": shown(row["bias"], "{:.4f}"),
            "rmse": shown(row["rmse"], "{:.4f}"),
            "r": shown(row["correlation"], "{:.2f}"),
            "c50": coverage_text(row, 50),
            "c90": coverage_text(row, 90),
            "contraction": shown(row["contraction"], "{:.3f}"),
            "z": shown(row["z_sd"], "{:.2f}"),
        }
        for row in rows.to_dict("records")
    ]
    print_table(title, columns, texts)


def _print_vehicles(rows: pd.DataFrame) -> None:
    """Vehicle and cost of every cell."""
    columns = {"cell": "", "top_1": "first", "top_5": "in 5", "log": "log p", "brier": "Brier",
               "flagged": "flagged", "s": "s/trip", "compile": "compile"}  # fmt: skip
    texts = [
        {
            "cell": f"{row['likelihood']}-{row['method']}",
            "top_1": shown(row["top_1"], "{:.0%}"),
            "top_5": shown(row["top_5"], "{:.0%}"),
            "log": shown(row["log_score"], "{:.2f}"),
            "brier": shown(row["brier"], "{:.2f}"),
            "flagged": shown(row["flagged"], "{:.0%}"),
            "s": shown(row["seconds_per_trip"], "{:.3f}"),
            "compile": f"{row['compile_s']:.0f} s" if np.isfinite(row["compile_s"]) else "-",
        }
        for row in rows.to_dict("records")
    ]
    print_table("The true vehicle, flags, and time", columns, texts)
