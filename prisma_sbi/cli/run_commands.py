"""Whole runs: `prisma demo` and `prisma run`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from prisma_sbi.cli.console import (
    RichReporter,
    messages,
    print_json,
    print_recovery,
    print_scores,
    progress_bar,
    results,
    wrote,
)
from prisma_sbi.cli.errors import resumable
from prisma_sbi.cli.options import Json
from prisma_sbi.pipeline import (
    PipelineConfig,
    RunResult,
    demo_config,
    load_config,
    run_pipeline,
)

Again = Annotated[
    bool,
    typer.Option(
        "--force", help="Run finished stages again. A release made again is a second spend."
    ),
]


@resumable
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for results.")] = Path(
        "out/demo"
    ),
    trips: Annotated[int, typer.Option(help="Simulated trips to encode.", min=16)] = 2_000,
    seed: Annotated[int, typer.Option(help="Of the simulated fleet.")] = 0,
    force: Again = False,
    as_json: Json = False,
) -> None:
    """Show everything at once, without any download.

    Simulates a fleet with known descriptors in an embedded city, encodes it,
    releases a private table, decodes it, and says how well the descriptors and
    the traces come back.
    """
    _run(demo_config(n_trips=trips, seed=seed), output, force=force, as_json=as_json)


@resumable
def run(
    config: Annotated[Path, typer.Argument(help="TOML file; see examples/ann_arbor.toml.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for results.")],
    force: Again = False,
    as_json: Json = False,
) -> None:
    """Run everything that a configuration names.

    Finished stages of an earlier run are used again, unless their part of the
    configuration or their input files changed.
    """
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
        results.print()
        print_recovery(found.recovery["rows"])
    messages.print()
    wrote(found.folder, "metrics.json, log.json, real and synthetic traces, releases")
    for figure in sorted((found.folder / "figures").glob("*.png")):
        messages.print(f"      {figure}", soft_wrap=True)
