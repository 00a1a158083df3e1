"""Whole runs: `prisma demo` and `prisma run`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from prisma_sbi.cli.console import (
    RichReporter,
    messages,
    print_json,
    print_scores,
    print_table,
    progress_bar,
    results,
)
from prisma_sbi.pipeline import (
    PipelineConfig,
    RunResult,
    demo_config,
    load_config,
    run_pipeline,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Force = Annotated[
    bool, typer.Option(help="Run finished stages again. A release made again is a second spend.")
]


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for results.")] = Path(
        "out/demo"
    ),
    trips: Annotated[int, typer.Option(help="Simulated trips to encode.", min=16)] = 2_000,
    seed: Annotated[int, typer.Option(help="Of the simulated fleet.")] = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show everything at once, without any download.

    Simulates a fleet with known descriptors in an embedded city, encodes it, releases a private
    table, decodes it, and says how well the descriptors and the traces come back.
    """
    _run(demo_config(n_trips=trips, seed=seed), output, force=force, as_json=as_json)


def run(
    config: Annotated[Path, typer.Argument(help="TOML file; see examples/ann_arbor.toml.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for results.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run everything that a configuration names; finished stages are taken up again."""
    _run(load_config(config), output, force=force, as_json=as_json)


def _run(config: PipelineConfig, output: Path, *, force: bool, as_json: bool) -> None:
    """Run, with bars on stderr, and show the tables on stdout."""
    if as_json:
        found = run_pipeline(config, output, force=force)
        print_json(
            {
                "folder": str(found.folder),
                **found.metrics,
                "recovery": found.recovery,
                "stages": [asdict(record) for record in found.stages],
                "warnings": found.warnings,
            }
        )
        return
    with progress_bar() as bars:
        found = run_pipeline(config, output, reporter=RichReporter(bars), force=force)
    _show(found)


def _show(found: RunResult) -> None:
    """The metric table, the recovery table, and where everything is."""
    results.print()
    print_scores(found.metrics)
    if found.recovery is not None:
        names = {key: key for key in found.recovery["rows"][0]}
        print_table("Recovery of the known descriptors", names, found.recovery["rows"])
    messages.print(f"[green]wrote[/] {found.folder}: metrics.json, log.json, *.zarr, releases")
    for figure in sorted((found.folder / "figures").glob("*.png")):
        messages.print(f"       {figure}")
