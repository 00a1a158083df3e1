"""`prisma study calibrate`."""

from typing import Annotated

import typer

from prisma_sbi.cli.console import note, print_facts, print_json, print_table, progress_bar, tracker
from prisma_sbi.cli.encode_command import LikelihoodName
from prisma_sbi.cli.options import Force, Json
from prisma_sbi.cli.study.options import PUBLIC, Folder, Seed, StudyRegion
from prisma_sbi.cli.study.output import (
    StudyFolder,
    plain_numbers,
    study_region,
)
from prisma_sbi.evaluation.plot_study import (
    plot_contraction,
    plot_coverage,
    plot_rank_ecdf,
)
from prisma_sbi.models import TripModel
from prisma_sbi.study import (
    calibrate,
    calibration_pit,
    calibration_table,
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
    method: Annotated[str, typer.Option(help="grid, quadrature, hmc, laplace or nuts.")] = "grid",
    likelihood: Annotated[
        LikelihoodName, typer.Option(help="trace or summary.")
    ] = LikelihoodName.TRACE,
    seed: Seed = 0,
    output: Folder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Are posteriors as wide as they should be? Simulation-based calibration.

    Truths are drawn from the prior and traces from the truths; among draws from
    each posterior the truth must then have any rank equally often. Says nothing
    about recorded trips, which the simulator did not make.
    """
    folder = StudyFolder.fresh(output, "calibration.zarr", force=force)
    public = study_region(region)
    with progress_bar() as bars:
        found = calibrate(
            public,
            draw_routes(public, routes, seed=seed),
            model=TripModel.of(public, likelihood=str(likelihood)),
            n_simulations=simulations,
            sampler=method,
            seed=seed,
            progress=tracker(bars, "simulations"),
        )
    table = calibration_table(found, seed=seed)
    pit = {str(name): values.values for name, values in calibration_pit(found, seed=seed).items()}
    folder.keep(found)
    folder.table(table.rename_axis("quantity").reset_index(), "calibration.csv")
    folder.draw(
        lambda: {
            "ranks": plot_rank_ecdf(pit),
            "coverage": plot_coverage(pit),
            "contraction": plot_contraction(found),
        }
    )
    gain = found["gain"].mean("simulation").to_series()
    vehicle = vehicle_test(found)
    if as_json:
        rows = {name: plain_numbers(row) for name, row in table.to_dict("index").items()}
        print_json(
            {
                "quantities": rows,
                "gain": plain_numbers(gain.to_dict()),
                "vehicle": plain_numbers(vehicle),
            }
        )
        return
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
    print_table(f"Ranks of {simulations:,} truths, by {method}", columns, rows)
    facts = {f"about the {name}": f"{value:.2f} nats" for name, value in gain.items()}
    facts["probabilities of vehicles"] = f"p = {vehicle['log_p']:.3f} (log score)"
    print_facts("What a trace tells, on average", facts)
    note(PUBLIC)
