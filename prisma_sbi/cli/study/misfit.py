"""`prisma study misfit`."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.cli.console import note, print_facts, print_json, print_table, progress_bar, tracker
from prisma_sbi.cli.options import Force, Json
from prisma_sbi.cli.study.options import PRIVATE, PUBLIC, Folder, Seed, StudyRegion
from prisma_sbi.cli.study.output import (
    StudyFolder,
    StudyTrips,
    plain_numbers,
    study_region,
    study_trips,
)
from prisma_sbi.encoding.status import FitStatus
from prisma_sbi.encoding.storage import load_fit
from prisma_sbi.evaluation.plot_misfit import plot_extreme_shares, plot_p_values
from prisma_sbi.evaluation.plot_posterior import plot_trace_bands
from prisma_sbi.region import Region
from prisma_sbi.study.discrepancies import DISCREPANCIES
from prisma_sbi.study.misfit import (
    EXTREME,
    Prediction,
    fit_prediction,
    misfit_by,
    misfit_table,
    trip_misfit,
    worst_trips,
)
from prisma_sbi.study.samplers import named_sampler
from prisma_sbi.telemetry import load_traces

GROUPS = ("vehicle_type", "power_source")
_N_PICTURES = 6


def misfit_command(
    traces: Annotated[
        Path | None,
        typer.Argument(help="Recorded traces; private.", show_default="simulated trips"),
    ] = None,
    region: StudyRegion = None,
    fit: Annotated[
        Path | None,
        typer.Option(help="Fit of these traces by prisma encode.", show_default="fitted here"),
    ] = None,
    trips: Annotated[int, typer.Option(help="How many, from the first on.", min=1)] = 50,
    replicates: Annotated[int, typer.Option(help="Predicted traces a trip.", min=20)] = 200,
    method: Annotated[
        str, typer.Option(help="Without --fit: grid, quadrature, hmc, laplace or nuts.")
    ] = "grid",
    worst: Annotated[int, typer.Option(help="Trips to list.", min=1)] = 8,
    seed: Seed = 0,
    output: Folder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Which trips can the simulator not explain, and how? Posterior prediction.

    Traces are compared with traces that their own fits predict, noise included,
    by fifteen numbers: levels, texture, stops. Simulated trips pass, as they
    should; with recorded traces everything is private.
    """
    folder = StudyFolder.fresh(output, "misfit.zarr", force=force)
    if traces is None and fit is not None:
        raise ValueError("Expected traces with --fit; got none. Name the traces that were fitted.")
    public = study_region(region, traces)
    given = study_trips(public, traces, trips, seed)
    with progress_bar() as bars:
        if fit is None:
            found_draws = named_sampler(method, seed=seed)(
                public, given.simulations, tracker(bars, "posteriors")
            )
            prediction = Prediction.of(
                public, given.profiles, found_draws.point, found_draws.vehicle,
                n_replicates=replicates, seed=seed,
            )  # fmt: skip
            names, power_w, n_draws = given.names, given.simulations.data, replicates
        else:
            names, power_w, prediction, n_draws = _fitted(public, fit, given, replicates, seed)
        found = trip_misfit(prediction, power_w, names=names, progress=tracker(bars, "trips"))
    table, ranked = misfit_table(found), worst_trips(found)
    groups = {} if traces is None else _groups(traces, names)
    found = found.assign({key: ("trip", values) for key, values in groups.items()})
    found.attrs["region_fingerprint"] = public.fingerprint
    folder.keep(found)
    folder.table(table.reset_index(), "discrepancies.csv")
    folder.table(ranked.drop(columns="row"), "trips.csv")
    for key, values in groups.items():
        folder.table(misfit_by(found, values).reset_index(), f"by_{key}.csv")
    folder.draw(lambda: _figures(found, ranked, prediction, power_w, groups))
    unexplained = float((found["p_score"].values < EXTREME).mean())
    if as_json:
        print_json(
            {
                "private": traces is not None,
                "n_trips": len(names),
                "share_unexplained": unexplained,
                "discrepancies": {
                    str(key): plain_numbers(row) for key, row in table.to_dict("index").items()
                },
                "worst": [
                    plain_numbers(row)
                    for row in ranked.drop(columns="row").head(worst).to_dict("records")
                ],
            }
        )
        return
    _print(table, ranked.head(worst), len(names), unexplained)
    if n_draws == 1:
        note("The fit has one point a trip, so predictions lack the spread of the posterior.")
    note(PUBLIC if traces is None else PRIVATE)


def _fitted(
    region: Region, path: Path, given: StudyTrips, replicates: int, seed: int
) -> tuple[list[str], np.ndarray, Prediction, int]:
    """Those of the trips that the fit has, and what it predicts of them."""
    fit = load_fit(path)
    stats = fit["sample_stats"].dataset
    place = {str(name): row for row, name in enumerate(stats["trip"].values)}
    status = stats["status"].values
    kept = [
        (row, place[name])
        for row, name in enumerate(given.names)
        if name in place and status[place[name]] <= FitStatus.POOR_FIT
    ]
    if not kept:
        raise InputDataError(
            f"Expected trips of these traces in {path}; got none among the first "
            f"{len(given.names)}. Name the fit of these traces, or take more --trips."
        )
    here, there = np.asarray(kept).T
    prediction = fit_prediction(
        region, fit, given.profiles.take(here), there, n_replicates=replicates, seed=seed
    )
    sizes = fit["posterior"].sizes
    names = [given.names[row] for row in here]
    return names, given.simulations.data[here], prediction, sizes["chain"] * sizes["draw"]


def _groups(traces: Path, names: list[str]) -> dict[str, np.ndarray]:
    """What is known of the recorded trips that might make a difference."""
    kept = load_traces(traces).sel(trip=names)
    return {key: kept[key].values.astype(str) for key in GROUPS if key in kept}


def _figures(
    found: xr.Dataset,
    ranked: Any,
    prediction: Prediction,
    power_w: np.ndarray,
    groups: dict[str, np.ndarray],
) -> dict[str, Any]:
    """Histograms, shares by group, and the trips that are explained least."""
    titles = {name: item.title for name, item in DISCREPANCIES.items()}
    p_above = {titles[name]: found["p_above"].sel(discrepancy=name).values for name in titles}
    figures = {"p_values": plot_p_values(p_above)}
    for key, values in groups.items():
        shares = misfit_by(found, values).rename(index={**titles, "any": "the trip as a whole"})
        count = {str(kind): int(np.sum(values == kind)) for kind in np.unique(values)}
        figures[f"by_{key}"] = plot_extreme_shares(shares, n_trips=count, nominal=EXTREME)
    first = ranked.head(_N_PICTURES)
    rows = first["row"].to_numpy()
    captions = [
        f"{row['trip']}: {row['how']} (z {row['z']:+.0f})" for row in first.to_dict("records")
    ]
    made = np.moveaxis(prediction.traces(rows), 1, 0)
    figures["worst"] = plot_trace_bands(power_w[rows], made, captions)
    return figures


def _print(table: Any, ranked: Any, n_trips: int, unexplained: float) -> None:
    """Tables for a person."""
    columns = {
        "discrepancy": "", "extreme": "extreme", "high": "too high", "low": "too low",
        "z": "median z",
    }  # fmt: skip
    rows = [
        {
            "discrepancy": DISCREPANCIES[str(name)].title,
            "extreme": f"{100 * row['share_extreme']:.0f} %",
            "high": f"{100 * row['share_high']:.0f} %", "low": f"{100 * row['share_low']:.0f} %",
            "z": f"{row['median_z']:.1f}",
        }
        for name, row in table.to_dict("index").items()
    ]  # fmt: skip
    print_table(f"{n_trips:,} trips; extreme: p below {EXTREME:g}", columns, rows)
    texts = [
        {"trip": row["trip"], "score": f"{row['score']:.1f}", "how": row["how"],
         "z": f"{row['z']:.1f}"}
        for row in ranked.to_dict("records")
    ]  # fmt: skip
    print_table("Explained least", {"trip": "trip", "score": "score", "how": "what it does most",
                                    "z": "z"}, texts)  # fmt: skip
    print_facts(
        "As a whole",
        {
            "unexplained": f"{100 * unexplained:.0f} % of the trips; at most about "
            f"{100 * EXTREME:g} % if the simulator were true",
        },
    )
