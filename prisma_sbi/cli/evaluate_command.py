"""`prisma evaluate`: synthetic traces against held-out ones, and the page about them."""

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from prisma_sbi._files import replacing
from prisma_sbi._optional import optional_import
from prisma_sbi.cli.console import print_json, print_scores, progress_bar, tracker, wrote
from prisma_sbi.cli.options import Force, Json
from prisma_sbi.evaluation import compute_floors, metrics_json
from prisma_sbi.evaluation import evaluate as evaluate_traces
from prisma_sbi.evaluation.metrics import measure_each
from prisma_sbi.pipeline.figures import draw_figures
from prisma_sbi.region import Region, load_region
from prisma_sbi.report import (
    SyntheticSet,
    is_report,
    read_set,
    write_released_report,
    write_report,
)
from prisma_sbi.telemetry import load_traces


def evaluate(
    traces: Annotated[
        list[Path],
        typer.Argument(
            metavar="REAL SYNTHETIC",
            help="Real traces that were held out, then one or several synthetic sets. With "
            "--released synthetic sets alone.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for metrics.json and figures.")
    ] = None,
    figures: Annotated[
        bool, typer.Option("--figures", help="Draw figures too; needs -o and --region.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="HTML file for one page with guarantee, all metrics and figures."
        ),
    ] = None,
    released: Annotated[
        bool,
        typer.Option(
            "--released",
            help="Make the page from synthetic sets alone, without REAL, so that it may be "
            "published with them; needs --report.",
        ),
    ] = False,
    region: Annotated[
        Path | None, typer.Option("--region", help="For the roads in the figures.")
    ] = None,
    splits: Annotated[int, typer.Option(help="Random halves behind the floors.", min=2)] = 15,
    seed: Annotated[int, typer.Option(help="Of the halves, and of what figures show.")] = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare synthetic traces with real ones, in multiples of real against real.

    Figures and the page show real trips and are private. With --released the page is made from
    synthetic sets and their releases alone: it reads no real trip and may be published.
    """
    if report is not None:
        _fresh_report(report, force=force)
        optional_import("matplotlib", extra="plots")
    if released:
        if report is None or output is not None or figures:
            raise ValueError(
                "Expected --report, and neither -o nor --figures, with --released; got something "
                "else. Scores and their figures need real traces, the page to publish does not."
            )
        _write_released(traces, report, region, seed=seed, as_json=as_json)
        return
    real, *synthetic = traces
    if not synthetic:
        raise ValueError(
            f"Expected real traces and at least one synthetic set; got {real} alone. Name both, "
            "or give --released for a page of synthetic sets alone."
        )
    if output is not None:
        _fresh_scores(output, force=force)
    public = _public_region(figures=figures, output=output, report=report, region=region)
    held_out = load_traces(real)
    sets = [read_set(path) for path in _of_different_names(synthetic)]
    content = _scores(held_out, sets, splits=splits, seed=seed)
    if output is not None:
        with replacing(output / "metrics.json") as partial:
            partial.write_text(json.dumps(content, indent=1))
        if figures and public is not None:
            named = {each.name: each.traces for each in sets}
            draw_figures(public, held_out, named, None, output / "figures")
        wrote(output)
    if report is not None:
        with progress_bar() as bars:
            measured = measure_each(
                held_out,
                {each.name: each.traces for each in sets},
                seed=seed,
                n_splits=splits,
                progress=tracker(bars, "metrics"),
            )
        write_report(
            report,
            held_out,
            sets,
            measured=measured,
            region=public,
            seed=seed,
            command=_command(
                *traces, "--report", report, *_region(region), "--splits", splits, "--seed", seed
            ),
        )
        wrote(report, "private: it shows recorded trips")
    if as_json:
        print_json(content if report is None else content | {"report": str(report)})
        return
    print_scores(content)


def _scores(held_out: Any, sets: list[SyntheticSet], *, splits: int, seed: int) -> dict[str, Any]:
    """Scores of all sets in the shape of metrics.json."""
    with progress_bar() as bars:
        move = tracker(bars, "sets")
        floors = compute_floors(held_out, seed=seed, n_splits=splits)
        scores = {}
        for index, each in enumerate(sets):
            scores[each.name] = evaluate_traces(held_out, each.traces, floors=floors)
            move(index + 1, len(sets))
    return metrics_json(scores)


def _write_released(
    paths: list[Path], report: Path, region: Path | None, *, seed: int, as_json: bool
) -> None:
    """The page of synthetic sets alone."""
    public = None if region is None else load_region(region)
    sets = [read_set(path) for path in _of_different_names(paths)]
    # Names without folders: where someone keeps files is nobody's business.
    names = [Path(path.resolve().name) for path in paths]
    near = _region(None if region is None else Path(region.resolve().name))
    command = _command("--released", *names, "--report", report.name, *near, "--seed", seed)
    write_released_report(report, sets, region=public, seed=seed, command=command)
    wrote(report, "may be published with its sets")
    if as_json:
        print_json({"report": str(report), "sets": [each.name for each in sets]})


def _command(*arguments: object) -> str:
    """The command as one would type it."""
    return shlex.join(["prisma", "evaluate", *map(str, arguments)])


def _region(region: Path | None) -> list[object]:
    """Option for the region, if there is one."""
    return [] if region is None else ["--region", region]


def _fresh_scores(output: Path, *, force: bool) -> None:
    """Refuse to replace scores; other files in the folder are left alone."""
    if (output / "metrics.json").exists() and not force:
        raise FileExistsError(
            f"Expected no metrics.json in {output}; got one. Choose another -o, or replace it with "
            "--force."
        )


def _fresh_report(report: Path, *, force: bool) -> None:
    """Refuse to replace a page unasked, and any other file at all."""
    if not report.exists():
        return
    if not is_report(report):
        raise FileExistsError(
            f"Expected nothing, or an earlier page, at {report}; got something else, which is left "
            "as it is. Choose another --report; --force replaces earlier pages only."
        )
    if not force:
        raise FileExistsError(
            f"Expected nothing at {report}; got an earlier page. Choose another --report, or "
            "replace it with --force."
        )


def _public_region(
    *, figures: bool, output: Path | None, report: Path | None, region: Path | None
) -> Region | None:
    """The region whose roads are drawn, or None where nothing is drawn or no roads are given."""
    if figures and (output is None or region is None):
        raise ValueError(
            "Expected -o and --region with --figures; got one of them, or none. "
            "Say where figures go and whose roads they show."
        )
    if region is None or not (figures or report is not None):
        return None
    return load_region(region)


def _of_different_names(paths: list[Path]) -> list[Path]:
    """The paths, unless tables and figures would show one name twice."""
    names = [path.resolve().name.removesuffix(".zarr").removesuffix(".nc") for path in paths]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"Expected synthetic sets of different names; got {repeated[0]!r} more than once. "
            "Rename one, or evaluate them apart."
        )
    return paths
