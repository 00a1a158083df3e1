"""One command per stage: telemetry import, encode, synthesize, decode, evaluate."""

import json
from pathlib import Path
from typing import Annotated

import typer

from prisma_sbi.cli.console import (
    messages,
    print_json,
    print_scores,
    print_table,
    progress_bar,
    tracker,
)
from prisma_sbi.cli.output import fresh_output
from prisma_sbi.decoding import decode as decode_release
from prisma_sbi.descriptors import make_layout
from prisma_sbi.encoding import FitStatus, descriptor_table, load_fit, save_fit, status_counts
from prisma_sbi.encoding import encode as encode_traces
from prisma_sbi.evaluation import compute_floors, metrics_json
from prisma_sbi.evaluation import evaluate as evaluate_traces
from prisma_sbi.pipeline.figures import draw_figures
from prisma_sbi.privacy import (
    SynthesisSettings,
    load_release,
    plan_synthesis,
    save_release,
)
from prisma_sbi.privacy import synthesize as synthesize_table
from prisma_sbi.region import load_region
from prisma_sbi.telemetry import import_trips, load_traces, save_traces

telemetry_app = typer.Typer(no_args_is_help=True, help="Read recorded trips.")
RegionOption = Annotated[Path, typer.Option("--region", help="Folder of the region.")]
OutputOption = Annotated[Path, typer.Option("-o", "--output", help="Where the result goes.")]
Force = Annotated[bool, typer.Option(help="Replace an existing result.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@telemetry_app.command(
    "import",
    epilog="Example: prisma telemetry import weeks/*.parquet --region city -o traces.zarr",
)
def import_command(
    files: Annotated[list[Path], typer.Argument(help="Trip files or folders.")],
    region: RegionOption,
    output: OutputOption,
    vehicle_tables: Annotated[
        list[Path] | None, typer.Option(help="Tables of vehicle types and engines (repeat).")
    ] = None,
    vehicle_types: Annotated[
        str, typer.Option(help="Types to keep, with commas between; or all.")
    ] = "ICE,HEV",
    file_format: Annotated[
        str, typer.Option("--format", help="auto, ved, eved or table.")
    ] = "auto",
    max_trips: Annotated[int | None, typer.Option(help="Stop after so many.", min=1)] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Turn recorded trips into power traces; list every trip that is set aside, and why."""
    fresh_output(output, force=force)
    public = load_region(region)
    with progress_bar() as bars:
        move = tracker(bars, "files")
        imported = import_trips(
            files,
            bounds=public.bounds,
            horizon_s=public.constants.horizon_s,
            time_step_s=public.constants.time_step_s,
            vehicle_tables=vehicle_tables,
            vehicle_types=None if vehicle_types == "all" else vehicle_types.split(","),
            max_trips=max_trips,
            progress=lambda done, total, _: move(done, total),
            region_fingerprint=public.fingerprint,
            file_format=file_format,
        )
    save_traces(imported.traces, output)
    table = output.with_name(output.stem + "-set_aside.csv")
    imported.set_aside.to_csv(table, index=False)
    counts = imported.set_aside["reason"].value_counts()
    if as_json:
        print_json(
            {
                "traces": str(output),
                "set_aside_table": str(table),
                "n_trips": imported.traces.sizes["trip"],
                "set_aside": {str(key): int(value) for key, value in counts.items()},
            }
        )
        return
    messages.print(f"[green]wrote[/] {output}: {imported.traces.sizes['trip']:,} trips")
    messages.print(f"[green]wrote[/] {table}: {len(imported.set_aside):,} set aside")
    rows = [{"reason": str(k), "trips": f"{v:,}"} for k, v in counts.items()]
    if rows:
        print_table("Set aside", {"reason": "reason", "trips": "trips"}, rows)


def encode(
    traces: Annotated[Path, typer.Argument(help="Traces from telemetry import.")],
    region: RegionOption,
    output: OutputOption,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find the descriptors of every trip: how aggressive, how much detour, which vehicle."""
    fresh_output(output, force=force)
    public = load_region(region)
    with progress_bar() as bars:
        fit = encode_traces(public, load_traces(traces), progress=tracker(bars, "trips"))
    save_fit(fit, output)
    counts = status_counts(fit)
    if as_json:
        print_json({"fit": str(output), "status": counts})
        return
    messages.print(f"[green]wrote[/] {output} (private: it describes the real trips)")
    rows = [
        {
            "status": item.name.lower(),
            "trips": f"{counts[item.name.lower()]:,}",
            "meaning": item.text,
        }
        for item in FitStatus
    ]
    print_table("Fits", {"status": "status", "trips": "trips", "meaning": "meaning"}, rows)


def synthesize(
    fit: Annotated[Path, typer.Argument(help="Fit from encode.")],
    region: RegionOption,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder of the release.")
    ] = None,
    mechanism: Annotated[
        str, typer.Option(help="aim, independent, or none (no guarantee).")
    ] = "aim",
    epsilon: Annotated[float, typer.Option(help="Privacy budget of this release.")] = 0.5,
    delta: Annotated[float, typer.Option(help="Probability that the guarantee fails.")] = 1e-5,
    workload: Annotated[str, typer.Option(help="pairs or triples.")] = "pairs",
    table: Annotated[str, typer.Option(help="route or published.")] = "route",
    rows: Annotated[
        int | None,
        typer.Option(help="Rows to release, a public number; the number of fits if not given."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what the budget can pay for; read no data.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Release a synthetic table of descriptors under differential privacy."""
    public = load_region(region)
    settings = SynthesisSettings(
        mechanism=mechanism,
        epsilon=epsilon,
        delta=delta,
        workload=workload,
        table=table,
        n_rows=None if mechanism == "none" else rows,
    )
    if explain:
        plan = plan_synthesis(make_layout(table, public), settings, n_rows=rows or 10_000)
        _show_plan(plan, settings, n_rows=rows or 10_000, as_json=as_json)
        return
    if output is None:
        raise ValueError("Expected a folder for the release; got none. Name one with -o.")
    fresh_output(output, force=force)
    private = descriptor_table(public, load_fit(fit))
    with progress_bar() as bars:
        move = tracker(bars, "budget spent, %")
        release = synthesize_table(
            private, public, settings, progress=lambda share, _: move(round(100 * share), 100)
        )
    save_release(release, output)
    if as_json:
        print_json(
            {
                "release": str(output),
                "is_private": release.is_private,
                "n_rows": release.n_rows,
                "statement": release.guarantee_text(),
                "warnings": list(release.warnings),
            }
        )
        return
    messages.print(f"[green]wrote[/] {output}: {release.n_rows:,} rows")
    messages.print(release.guarantee_text())


def _show_plan(plan, settings: SynthesisSettings, *, n_rows: int, as_json: bool) -> None:
    """What a budget can pay for."""
    records = [
        {
            "columns": " x ".join(row.columns),
            "cells": f"{row.n_cells:,}",
            "noise": f"{row.noise_share_best:.2f}",
            "fits": "yes" if row.fits else "no",
            "affordable": "yes" if row.affordable else "no",
        }
        for row in plan.itertuples()
    ]
    if as_json:
        print_json({"n_rows": n_rows, **settings.to_dict(), "plan": records})
        return
    print_table(
        f"What epsilon = {settings.epsilon:g} can pay for with {n_rows:,} rows",
        {
            "columns": "marginal",
            "cells": "cells",
            "noise": "noise / rows, at best",
            "fits": "fits in memory",
            "affordable": "affordable",
        },
        records,
    )


def decode(
    release: Annotated[Path, typer.Argument(help="Release from synthesize.")],
    region: RegionOption,
    output: OutputOption,
    n_traces: Annotated[
        int | None,
        typer.Option("-n", "--traces", help="How many; one per row if not given.", min=1),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the draws inside bins.")] = None,
    allow_unprotected: Annotated[
        bool, typer.Option(help="Take a release that has no guarantee.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Simulate a trace for every row of a release."""
    fresh_output(output, force=force)
    public = load_region(region)
    with progress_bar() as bars:
        traces = decode_release(
            load_release(release, public),
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
    messages.print(
        f"[green]wrote[/] {output}: {facts['n_traces']:,} traces, {facts['n_redrawn']} redrawn, "
        f"{facts['n_replaced']} replaced"
    )


def evaluate(
    real: Annotated[Path, typer.Argument(help="Real traces that were held out.")],
    synthetic: Annotated[list[Path], typer.Argument(help="One or several synthetic sets.")],
    region: Annotated[
        Path | None, typer.Option("--region", help="For the roads in the figures.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for metrics.json and figures.")
    ] = None,
    splits: Annotated[int, typer.Option(help="Random halves behind the floors.", min=2)] = 15,
    seed: Annotated[int, typer.Option(help="Of the halves.")] = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compare synthetic traces with real ones, in multiples of real against real."""
    if output is not None:
        fresh_output(output, force=force)
    held_out = load_traces(real)
    sets = {path.name.removesuffix(".zarr"): load_traces(path) for path in synthetic}
    with progress_bar() as bars:
        move = tracker(bars, "sets")
        floors = compute_floors(held_out, seed=seed, n_splits=splits)
        scores = {}
        for index, (name, traces) in enumerate(sets.items()):
            scores[name] = evaluate_traces(held_out, traces, floors=floors)
            move(index + 1, len(sets))
    content = metrics_json(scores)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        (output / "metrics.json").write_text(json.dumps(content, indent=1))
        if region is not None:
            draw_figures(load_region(region), held_out, sets, None, output / "figures")
        messages.print(f"[green]wrote[/] {output}")
    if as_json:
        print_json(content)
        return
    print_scores(content)
