"""`prisma study calibrate`."""

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
import xarray as xr

from prisma_sbi.cli.console import note, print_facts, print_json, print_table, progress_bar, tracker
from prisma_sbi.cli.encode_command import LikelihoodName
from prisma_sbi.cli.options import Force, Json
from prisma_sbi.cli.study.options import PRIVATE, PUBLIC, Folder, Seed, StudyRegion
from prisma_sbi.cli.study.output import (
    StudyFolder,
    plain_numbers,
    recorded_trips,
    study_region,
)
from prisma_sbi.evaluation.plot_study import (
    plot_contraction,
    plot_coverage,
    plot_rank_ecdf,
    plot_reliability,
)
from prisma_sbi.models import TripModel
from prisma_sbi.study import (
    calibrate,
    calibration_pit,
    calibration_table,
    posterior_calibrate,
    vehicle_test,
)
from prisma_sbi.study.atlas import (
    draw_routes,
)


def calibrate_command(
    region: StudyRegion = None,
    simulations: Annotated[int, typer.Option(help="Simulated trips.", min=8)] = 100,
    routes: Annotated[
        int, typer.Option(help="Random routes that the trips take in turn.", min=1)
    ] = 1,
    around: Annotated[
        Path | None,
        typer.Option(help="Recorded traces: test around one of their trips; private."),
    ] = None,
    trip: Annotated[
        str | None,
        typer.Option(help="Name of that trip.", show_default="the first that can be routed"),
    ] = None,
    method: Annotated[str, typer.Option(help="grid, quadrature, hmc, laplace or nuts.")] = "grid",
    likelihood: Annotated[
        LikelihoodName, typer.Option(help="trace, summary or texture.")
    ] = LikelihoodName.TRACE,
    seed: Seed = 0,
    output: Folder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Are posteriors as wide as they should be? Simulation-based calibration.

    Truths are drawn from the prior and traces from the truths; among draws from
    each posterior the truth must then have any rank equally often. Says nothing
    about recorded trips, which the simulator did not make. With --around, truths
    come from the posterior of one recorded trip, and each is ranked among draws
    given that trip and one more trace.
    """
    folder = StudyFolder.fresh(output, "calibration.zarr", force=force)
    if trip is not None and around is None:
        raise ValueError("Expected --around with --trip; got none. Name the file of the trip.")
    public = study_region(region, around)
    model = TripModel.of(public, likelihood=str(likelihood))
    with progress_bar() as bars:
        options: dict[str, Any] = {
            "model": model, "n_simulations": simulations, "sampler": method, "seed": seed,
            "progress": tracker(bars, "simulations"),
        }  # fmt: skip
        if around is None:
            found = calibrate(public, draw_routes(public, routes, seed=seed), **options)
        else:
            given = recorded_trips(public, around, 1, name=trip)
            observed = given.simulations.data[0]
            found = posterior_calibrate(public, given.profiles, observed, **options)
    table = calibration_table(found, seed=seed)
    folder.keep(found)
    folder.table(table.rename_axis("quantity").reset_index(), "calibration.csv")
    folder.draw(lambda: _figures(found, seed))
    gain = found["gain"].mean("simulation").to_series()
    vehicle = vehicle_test(found)
    if as_json:
        rows = {name: plain_numbers(row) for name, row in table.to_dict("index").items()}
        print_json(
            {
                "private": around is not None,
                "quantities": rows,
                "gain": plain_numbers(gain.to_dict()),
                "vehicle": plain_numbers(vehicle),
            }
        )
        return
    _print_ranks(f"Ranks of {simulations:,} truths, by {method}", table)
    facts = {f"about the {name}": f"{value:.2f} nats" for name, value in gain.items()}
    print_facts("What a trace tells, on average", facts)
    rows = [
        {"score": name, "value": f"{vehicle[key]:.3f}", "p": f"{vehicle[f'{key}_p']:.3f}"}
        for name, key in (("Brier score", "brier"), ("log score, nats", "log"))
    ]
    columns = {"score": "", "value": "mean", "p": "p if as claimed"}
    print_table("Probabilities of vehicles", columns, rows)
    note(PUBLIC if around is None else PRIVATE)


def _figures(found: xr.Dataset, seed: int) -> dict[str, Any]:
    """Figures of a calibration."""
    pit = {str(name): values.values for name, values in calibration_pit(found, seed=seed).items()}
    return {
        "ranks": plot_rank_ecdf(pit),
        "coverage": plot_coverage(pit),
        "contraction": plot_contraction(found),
        "reliability": plot_reliability(
            found["vehicle_probability"].values, found["true_vehicle"].values
        ),
    }


def _print_ranks(title: str, table: pd.DataFrame) -> None:
    """Coverage and tests, a row a quantity."""
    columns = {
        "quantity": "", "coverage_50": "50 %", "coverage_90": "90 %", "ecdf_p": "p of ranks",
        "chi_square_p": "p of bins", "ok": "calibrated",
    }  # fmt: skip
    rows = [
        {"quantity": str(name), "ok": "yes" if row["ok"] else "NO"}
        | {key: f"{row[key]:.2f}" for key in ("coverage_50", "coverage_90")}
        | {key: f"{row[key]:.3f}" for key in ("ecdf_p", "chi_square_p")}
        for name, row in table.to_dict("index").items()
    ]
    print_table(title, columns, rows)
