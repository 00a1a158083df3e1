"""One command per stage: decode, evaluate."""

import json
from pathlib import Path
from typing import Annotated

import typer

from prisma_sbi._errors import GuaranteeError
from prisma_sbi._files import replacing
from prisma_sbi.cli.console import (
    note,
    print_json,
    print_scores,
    progress_bar,
    tracker,
    wrote,
)
from prisma_sbi.cli.options import Force, Json, OutputOption, RegionOption
from prisma_sbi.cli.output import ZARR, fresh_output
from prisma_sbi.decoding import decode as decode_release
from prisma_sbi.evaluation import compute_floors, metrics_json
from prisma_sbi.evaluation import evaluate as evaluate_traces
from prisma_sbi.pipeline.figures import draw_figures
from prisma_sbi.privacy import load_release
from prisma_sbi.region import Region, load_region
from prisma_sbi.telemetry import load_traces, save_traces


def decode(
    release: Annotated[Path, typer.Argument(help="Release from synthesize.")],
    region: RegionOption,
    output: OutputOption,
    n_traces: Annotated[
        int | None,
        typer.Option(
            "-n", "--traces", help="How many.", min=1, show_default="one per row of the release"
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of the draws inside bins.", show_default="random")
    ] = None,
    allow_unprotected: Annotated[
        bool,
        typer.Option(
            "--allow-unprotected", help="Take a release that has no guarantee; for studies."
        ),
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Simulate synthetic traces from a release.

    Reads the release and the region only, so the traces are as private as the
    release.
    """
    fresh_output(output, force=force, mark=ZARR)
    public = load_region(region)
    table = load_release(release, public)
    if not (table.is_private or allow_unprotected):
        raise GuaranteeError(
            f"Expected a release with a guarantee; got one without: {table.no_guarantee} "
            "Give --allow-unprotected if that is what you want."
        )
    with progress_bar() as bars:
        traces = decode_release(
            table,
            public,
            n_traces=n_traces,
            seed=seed,
            allow_unprotected=allow_unprotected,
            progress=tracker(bars, "traces"),
        )
    save_traces(traces, output)
    facts = {
        "traces": str(output),
        "n_traces": traces.sizes["trip"],
        "n_redrawn": traces.attrs["n_redrawn"],
        "n_replaced": traces.attrs["n_replaced"],
        "statement": traces.attrs["guarantee"],
    }
    if as_json:
        print_json(facts)
        return
    wrote(
        output,
        f"{facts['n_traces']:,} traces, {facts['n_redrawn']} redrawn, "
        f"{facts['n_replaced']} replaced",
    )
    note(str(facts["statement"]))


def evaluate(
    real: Annotated[Path, typer.Argument(help="Real traces that were held out.")],
    synthetic: Annotated[list[Path], typer.Argument(help="One or several synthetic sets.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for metrics.json and figures.")
    ] = None,
    figures: Annotated[
        bool, typer.Option("--figures", help="Draw figures too; needs -o and --region.")
    ] = False,
    region: Annotated[
        Path | None, typer.Option("--region", help="For the roads in the figures.")
    ] = None,
    splits: Annotated[int, typer.Option(help="Random halves behind the floors.", min=2)] = 15,
    seed: Annotated[int, typer.Option(help="Of the halves.")] = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare synthetic traces with real ones, in multiples of real against real.

    Figures show real trips and are private.
    """
    if output is not None:
        _fresh_scores(output, force=force)
    public = _public_for_figures(figures=figures, output=output, region=region)
    held_out = load_traces(real)
    sets = {name: load_traces(path) for name, path in _by_name(synthetic).items()}
    with progress_bar() as bars:
        move = tracker(bars, "sets")
        floors = compute_floors(held_out, seed=seed, n_splits=splits)
        scores = {}
        for index, (name, traces) in enumerate(sets.items()):
            scores[name] = evaluate_traces(held_out, traces, floors=floors)
            move(index + 1, len(sets))
    content = metrics_json(scores)
    if output is not None:
        with replacing(output / "metrics.json") as partial:
            partial.write_text(json.dumps(content, indent=1))
        if public is not None:
            draw_figures(public, held_out, sets, None, output / "figures")
        wrote(output)
    if as_json:
        print_json(content)
        return
    print_scores(content)


def _fresh_scores(output: Path, *, force: bool) -> None:
    """Refuse to replace scores; other files in the folder are left alone."""
    if (output / "metrics.json").exists() and not force:
        raise FileExistsError(
            f"Expected no metrics.json in {output}; got one. Choose another -o, or replace it with "
            "--force."
        )


def _public_for_figures(
    *, figures: bool, output: Path | None, region: Path | None
) -> Region | None:
    """The region whose roads are drawn, or None without figures."""
    if not figures:
        return None
    if output is None or region is None:
        raise ValueError(
            "Expected -o and --region with --figures; got one of them, or none. "
            "Say where figures go and whose roads they show."
        )
    return load_region(region)


def _by_name(paths: list[Path]) -> dict[str, Path]:
    """Sets by the name that tables and figures show."""
    names = [path.resolve().name.removesuffix(".zarr").removesuffix(".nc") for path in paths]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"Expected synthetic sets of different names; got {repeated[0]!r} more than once. "
            "Rename one, or evaluate them apart."
        )
    return dict(zip(names, paths, strict=True))
