"""The stage that needs no private data: decode."""

from pathlib import Path
from typing import Annotated

import typer

from prisma_sbi._errors import GuaranteeError
from prisma_sbi.cli.console import (
    note,
    print_json,
    progress_bar,
    tracker,
    wrote,
)
from prisma_sbi.cli.options import Force, Json, OutputOption, RegionOption
from prisma_sbi.cli.output import ZARR, fresh_output
from prisma_sbi.decoding import decode as decode_release
from prisma_sbi.privacy import load_release
from prisma_sbi.region import load_region
from prisma_sbi.telemetry import save_traces


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
