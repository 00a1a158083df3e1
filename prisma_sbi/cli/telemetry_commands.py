"""`prisma telemetry`: recorded trips."""

from pathlib import Path
from typing import Annotated

import typer

from prisma_sbi._errors import InputDataError
from prisma_sbi._files import replacing
from prisma_sbi.cli.console import print_json, print_table, progress_bar, tracker, wrote
from prisma_sbi.cli.options import Force, Json, OutputOption, RegionOption
from prisma_sbi.cli.output import ZARR, fresh_output
from prisma_sbi.region import load_region
from prisma_sbi.telemetry import Imported, import_trips, save_traces

app = typer.Typer(
    no_args_is_help=True,
    help="Read recorded trips.",
    epilog="Example: prisma telemetry import weeks/*.parquet --region city -o traces.zarr",
)


@app.callback()
def _group() -> None:
    """Keep the name of the only command."""


@app.command(
    "import",
    epilog="Example: prisma telemetry import weeks/*.parquet --region city -o traces.zarr",
)
def import_command(
    files: Annotated[
        list[Path], typer.Argument(help="Trip files (CSV, Parquet), or folders of them.")
    ],
    region: RegionOption,
    output: OutputOption,
    vehicle_tables: Annotated[
        list[Path] | None,
        typer.Option(help="Table of vehicle types and engines, CSV or XLSX (repeat for more)."),
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
    """Turn recorded trips into power traces.

    Every trip that cannot be used is listed with the reason in a table beside
    the traces.
    """
    fresh_output(output, force=force, mark=ZARR)
    public = load_region(region)
    with progress_bar() as bars:
        move = tracker(bars, "files")
        imported = import_trips(
            files,
            bounds=public.bounds,
            horizon_s=public.constants.horizon_s,
            time_step_s=public.constants.time_step_s,
            vehicle_tables=vehicle_tables,
            vehicle_types=_listed(vehicle_types),
            max_trips=max_trips,
            progress=lambda done, total, _: move(done, total),
            region_fingerprint=public.fingerprint,
            file_format=file_format,
        )
    table = output.with_name(output.stem + "-set_aside.csv")
    with replacing(table) as partial:
        imported.set_aside.to_csv(partial, index=False)
    if imported.traces.sizes["trip"] == 0:
        raise InputDataError(
            f"Expected at least one trip to keep; got {len(imported.set_aside):,} set aside and "
            f"none kept. See {table} for the reasons."
        )
    save_traces(imported.traces, output)
    _show(imported, output, table, as_json=as_json)


def _listed(text: str) -> list[str] | None:
    """Vehicle types from a text with commas; None for all."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError(
            f"Expected vehicle types with commas between, or all; got {text!r}. "
            "Leave --vehicle-types out for ICE,HEV."
        )
    return None if names == ["all"] else names


def _show(imported: Imported, output: Path, table: Path, *, as_json: bool) -> None:
    """Where the traces are, and how many trips were set aside for which reason."""
    n_trips = imported.traces.sizes["trip"]
    counts = imported.set_aside["reason"].value_counts()
    if as_json:
        print_json(
            {
                "traces": str(output),
                "set_aside_table": str(table),
                "n_trips": n_trips,
                "n_set_aside": len(imported.set_aside),
                "set_aside": {str(key): int(value) for key, value in counts.items()},
            }
        )
        return
    wrote(output, f"{n_trips:,} trips (private)")
    wrote(table, f"{len(imported.set_aside):,} set aside")
    rows = [{"reason": str(key), "trips": f"{value:,}"} for key, value in counts.items()]
    if rows:
        print_table("Set aside", {"reason": "reason", "trips": "trips"}, rows)
