"""`prisma synthesize`: a private release, or what a budget can pay for."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.cli.console import (
    note,
    print_facts,
    print_json,
    print_table,
    progress_bar,
    results,
    tracker,
    wrote,
)
from prisma_sbi.cli.options import Force, Json, RegionOption
from prisma_sbi.cli.output import RELEASE, fresh_output
from prisma_sbi.descriptors import (
    DEFAULT_WEIGHT_TOTAL,
    is_weighted,
    make_layout,
    table_from_draws,
)
from prisma_sbi.encoding import FitStatus, Method, descriptor_table, load_fit
from prisma_sbi.pipeline.budget_book import BudgetBook, path_sources
from prisma_sbi.privacy import (
    Mechanism,
    PrivacyUnit,
    Release,
    SynthesisSettings,
    plan_synthesis,
    rho_from_epsilon_delta,
    save_release,
)
from prisma_sbi.privacy import synthesize as synthesize_table
from prisma_sbi.region import Region, load_region
from prisma_sbi.telemetry import load_traces

PLAN_ROWS = 10_000
"""Rows that ``--explain`` assumes if none are given."""


class Rows(StrEnum):
    """What of a trip enters the table."""

    MAP = "map"
    """Its best descriptors, as one row."""
    POSTERIOR = "posterior"
    """The draws of its posterior, as weighted rows that together weigh one trip."""


def synthesize(
    region: RegionOption,
    fit: Annotated[
        Path | None, typer.Argument(help="Fit from encode; not needed with --explain.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder of the release; not needed with --explain."),
    ] = None,
    mechanism: Annotated[
        str, typer.Option(help="aim, mst, independent, or none (no guarantee).")
    ] = "aim",
    epsilon: Annotated[float, typer.Option(help="Privacy budget of this release.")] = 0.5,
    delta: Annotated[float, typer.Option(help="Probability that the guarantee fails.")] = 1e-5,
    workload: Annotated[str, typer.Option(help="pairs or triples.")] = "pairs",
    table: Annotated[str, typer.Option(help="route or published.")] = "route",
    rows: Annotated[
        str, typer.Option(help="map: one row per trip. posterior: its draws, weighted.")
    ] = "map",
    n_rows: Annotated[
        str | None,
        typer.Option(
            help="Rows to release, a public number; or private: measured under the budget.",
            show_default="number of trips",
        ),
    ] = None,
    neighbors: Annotated[
        str, typer.Option(help="add-remove or replace: tables that look alike.")
    ] = "add-remove",
    unit: Annotated[str, typer.Option(help="trip or vehicle: what one record is.")] = "trip",
    max_trips_per_vehicle: Annotated[
        int | None, typer.Option(help="Trips of one vehicle that enter; for --unit vehicle.")
    ] = None,
    traces: Annotated[
        Path | None, typer.Option(help="Traces that name the vehicle of each trip; same use.")
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="Budget book of the data: the release is written into it before it is made, and "
            "all releases in it add up."
        ),
    ] = None,
    total_epsilon: Annotated[
        float | None,
        typer.Option(help="With --ledger: refuse what would take the total above this."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what the budget can pay for; read no data.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Release a synthetic table of descriptors under differential privacy.

    Every release from the same trips spends its own epsilon; they add up.
    """
    _validate.one_of([item.value for item in Rows], rows=rows)
    settings = _settings(
        mechanism=mechanism,
        epsilon=epsilon,
        delta=delta,
        workload=workload,
        table=table,
        n_rows=_count(n_rows),
        neighbors=neighbors,
        unit=unit,
        max_trips_per_vehicle=max_trips_per_vehicle,
    )
    if explain:
        given = settings.n_rows
        planned = given if isinstance(given, int) else PLAN_ROWS
        _explain(region, settings, Rows(rows), n_rows=planned, as_json=as_json)
        return
    if fit is None or output is None:
        raise ValueError(
            "Expected a fit to read and a folder for the release; got only one of them, or none. "
            "Give FIT and -o, or --explain to read no data."
        )
    if total_epsilon is not None and ledger is None:
        raise ValueError(
            "Expected --ledger with --total-epsilon; got a limit alone. Name the book that the "
            "releases from this data are written into."
        )
    fresh_output(output, force=force, mark=RELEASE)
    public = load_region(region)
    fitted = load_fit(fit)
    if settings.mechanism != Mechanism.NONE:
        _require_separate(fitted, Rows(rows))
    private = _private_table(public, fitted, Rows(rows))
    if settings.unit == PrivacyUnit.VEHICLE:
        private = _with_owners(private, _owners(fitted, traces))
    if ledger is not None and settings.mechanism != Mechanism.NONE:
        book = BudgetBook(ledger)
        book.spend(
            settings,
            release=str(output),
            mode=f"{settings.mechanism} epsilon={settings.epsilon:g}",
            sources=path_sources([fit]),
            total_epsilon=total_epsilon,
        )
        note(f"{len(book.entries())} releases in {ledger}.")
    with progress_bar() as bars:
        move = tracker(bars, "budget spent, %")
        release = synthesize_table(
            private, public, settings, progress=lambda share, _: move(round(100 * share), 100)
        )
    save_release(release, output)
    _show_release(release, output, as_json=as_json)


def _count(text: str | None) -> int | str | None:
    """A number if the text is one; what else it may be is for the settings to say."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return text


def _settings(**options: Any) -> SynthesisSettings:
    """Options as a record; a budget that cannot be is found here, before data is read."""
    settings = SynthesisSettings(**options)
    if settings.mechanism != Mechanism.NONE:
        rho_from_epsilon_delta(settings.epsilon, settings.delta)
    return settings


def _require_separate(fit: xr.DataTree, rows: Rows) -> None:
    """Refuse fits in which one trip more or less may change the rows of the others."""
    method = Method(fit.attrs.get("method", Method.MAP))
    # The best point of a fit by chains comes from the search, which keeps trips apart.
    if method.is_separate or (method == Method.HMC and rows == Rows.MAP):
        return
    others = ", ".join(item for item in Method if item.has_draws and item.is_separate)
    raise ValueError(
        f"Expected a fit in which the {rows} rows of a trip depend on that trip alone, as the "
        f"guarantee requires; got one by {method}, where other trips change the last digits. "
        f"Encode with --method {Method.MAP if rows == Rows.MAP else others}."
    )


def _private_table(region: Region, fit: xr.DataTree, rows: Rows) -> xr.Dataset:
    """The table that is synthesized: one row per trip, or its posterior draws."""
    if rows == Rows.MAP:
        return descriptor_table(region, fit)
    region.require_same(fit.attrs.get("region_fingerprint"), what="a fit")
    stats = fit["sample_stats"].dataset
    usable = np.flatnonzero(stats["status"].values <= FitStatus.POOR_FIT)
    return table_from_draws(
        fit["posterior"].dataset.isel(trip=usable),
        fit["constant_data"].dataset.isel(trip=usable),
        weight=stats["weight"].isel(trip=usable) if "weight" in stats else None,
        region_fingerprint=region.fingerprint,
    )


def _owners(fit: xr.DataTree, traces: Path | None) -> xr.DataArray:
    """The recorded vehicle of each trip: from the traces, or from the fit if it has them."""
    found = fit["constant_data"].dataset if traces is None else load_traces(traces)
    if "vehicle_id" not in found:
        raise InputDataError(
            "Expected the variable 'vehicle_id', the recorded vehicle of each trip, for --unit "
            f"vehicle; got none in {'the fit' if traces is None else traces}. "
            "Give the traces that were encoded with --traces."
        )
    return found["vehicle_id"].assign_coords(trip=found["trip"].values.astype(np.str_))


def _with_owners(table: xr.Dataset, owners: xr.DataArray) -> xr.Dataset:
    """The table with the vehicle of each row."""
    names = table["source" if is_weighted(table) else "trip"].values
    missing = np.setdiff1d(names, owners["trip"].values)
    if len(missing):
        raise InputDataError(
            f"Expected all trips of the fit in the traces; got {len(missing)} that are not there, "
            f"the first one is {str(missing[0])!r}. Give the traces that were encoded."
        )
    if not owners.indexes["trip"].is_unique:
        raise InputDataError(
            "Expected each trip once in the traces; got some twice. Import the files once."
        )
    return table.assign(owner=("trip", owners.sel(trip=names).values))


def _show_release(release: Release, output: Path, *, as_json: bool) -> None:
    """Where the release is, and what it guarantees."""
    if as_json:
        print_json(
            {
                "release": str(output),
                "is_private": release.is_private,
                "n_rows": release.n_rows,
                "n_measured": len(release.measured),
                "statement": release.guarantee_text(),
                "warnings": list(release.warnings),
            }
        )
        return
    wrote(output, f"{release.n_rows:,} rows, {len(release.measured)} marginals measured")
    note(release.guarantee_text())


def _explain(
    region: Path, settings: SynthesisSettings, rows: Rows, *, n_rows: int, as_json: bool
) -> None:
    """What a budget can pay for, from public numbers."""
    if settings.mechanism == Mechanism.NONE:
        raise ValueError(
            "Expected a mechanism that spends a budget with --explain; got 'none', which spends "
            "nothing and guarantees nothing. Use --mechanism aim."
        )
    plan = plan_synthesis(
        make_layout(str(settings.table), load_region(region)),
        settings,
        n_rows=n_rows,
        weight_total=DEFAULT_WEIGHT_TOTAL if rows == Rows.POSTERIOR else 1,
    )
    if as_json:
        _print_plan(plan, settings, rows, n_rows=n_rows)
        return
    print_facts("The release", _facts(plan, settings, rows))
    _show_plan(plan, settings, n_rows=n_rows)
    note(f"It would say: {plan.attrs['statement']}")


def _print_plan(
    plan: pd.DataFrame, settings: SynthesisSettings, rows: Rows, *, n_rows: int
) -> None:
    """The plan as one JSON object."""
    records = [
        {
            "columns": list(row["columns"]),
            "cells": int(row["n_cells"]),
            "noise": float(row["noise_share_best"]),
            "fits": bool(row["fits"]),
            "affordable": bool(row["affordable"]),
        }
        for row in plan.to_dict("records")
    ]
    names = ("rho", "hides", "stddev_first", "stddev_best", "count_stddev", "statement")
    print_json(
        {
            **settings.to_dict(),
            "rows": str(rows),
            "planned_rows": n_rows,
            **{name: plan.attrs[name] for name in names},
            "plan": records,
        }
    )


def _facts(plan: pd.DataFrame, settings: SynthesisSettings, rows: Rows) -> dict[str, str]:
    """What is promised and how it is kept, a line each."""
    spending = {
        Mechanism.AIM: "marginals are chosen one by one and measured, until all is spent",
        Mechanism.MST: "a third each for single columns, choosing pairs, and the pairs",
        Mechanism.INDEPENDENT: "single columns, in equal parts",
    }
    first, best = plan.attrs["stddev_first"], plan.attrs["stddev_best"]
    noise = f"{first:.3g}" if first == best else f"{first:.3g} at first, {best:.3g} at best"
    counted = plan.attrs["count_stddev"]
    share = f"{settings.count_share:.3g}"
    return {
        "hidden": plan.attrs["hides"],
        "mechanism": f"{settings.mechanism}: {spending[Mechanism(settings.mechanism)]}",
        "a trip is": "one row"
        if rows == Rows.MAP
        else f"its posterior draws, with weights in units of 1/{DEFAULT_WEIGHT_TOTAL}",
        "noise": f"{noise} trips on a cell of a single column",
        "rows": "a public number"
        if counted is None
        else f"measured with noise of {counted:.3g} trips, for {share} of the budget",
    }


def _show_plan(plan: pd.DataFrame, settings: SynthesisSettings, *, n_rows: int) -> None:
    """What a budget can pay for."""
    print_table(
        f"What epsilon = {settings.epsilon:g} can pay for with {n_rows:,} rows",
        {
            "columns": "marginal",
            "cells": "cells",
            "noise": "noise / rows",
            "fits": "fits",
            "affordable": "affordable",
        },
        [
            {
                "columns": " x ".join(row["columns"]),
                "cells": f"{row['n_cells']:,}",
                "noise": f"{row['noise_share_best']:.2f}",
                "fits": "yes" if row["fits"] else "no",
                "affordable": "yes" if row["affordable"] else "no",
            }
            for row in plan.to_dict("records")
        ],
    )
    best = " if one round got the whole budget" if settings.mechanism == Mechanism.AIM else ""
    results.print(
        f"rho = {plan.attrs['rho']:.4g} for epsilon = {settings.epsilon:g}, delta = "
        f"{settings.delta:g}. No data was read.\n"
        f"Noise: expected L1 error{best};\n"
        "below 1 is affordable. Fits: the model stays small enough.",
        style="dim",
    )
