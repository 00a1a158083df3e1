"""`prisma study`: whether posteriors can be trusted, and what a trace can reveal."""

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from prisma_sbi.cli.console import note, print_facts, print_json, print_table, progress_bar, tracker
from prisma_sbi.cli.encode_command import LikelihoodName
from prisma_sbi.cli.options import Force, Json
from prisma_sbi.cli.study_output import (
    StudyFolder,
    atlas_table,
    interval_row,
    local_table,
    plain_numbers,
    recorded_trips,
    simulated_trips,
    study_region,
)
from prisma_sbi.evaluation.plot_atlas import plot_atlas, plot_route_gain
from prisma_sbi.evaluation.plot_study import (
    plot_confusion,
    plot_contraction,
    plot_coverage,
    plot_profiles,
    plot_rank_ecdf,
    plot_ridge,
)
from prisma_sbi.models import TripModel
from prisma_sbi.study import (
    GridSampler,
    ProfileSettings,
    calibrate,
    calibration_pit,
    calibration_table,
    expected_confusion,
    local_information,
    profile_likelihood,
    vehicle_classes,
    vehicle_distances,
    vehicle_test,
)
from prisma_sbi.study.atlas import (
    DRIVER,
    best_routes,
    draw_routes,
    information_atlas,
    vehicle_of_pool,
)

PUBLIC = "Made from public inputs and simulated trips only: this may be shown to anybody."
PRIVATE = "This describes recorded trips and is private, like the traces."
N_ROUTES, N_DEMO_ROUTES = 2_000, 300

app = typer.Typer(
    no_args_is_help=True,
    help="Whether posteriors can be trusted, and what a trace can reveal.",
    epilog="Example: prisma study atlas --region city -o atlas",
)

StudyRegion = Annotated[
    Path | None,
    typer.Option("--region", help="Folder of the region.", show_default="the demo city"),
]
Folder = Annotated[
    Path | None, typer.Option("-o", "--output", help="Folder for data, tables and figures.")
]
Seed = Annotated[int, typer.Option(help="Of routes, truths, noise and draws.")]
Aggressiveness = Annotated[float, typer.Option(help="Of the driver.")]
Detour = Annotated[float, typer.Option(help="Driven length over the shortest way.")]
VehicleNumber = Annotated[
    int | None,
    typer.Option("--vehicle", help="Position in the pool.", show_default="of median mass"),
]


@app.command("calibrate", epilog="Example: prisma study calibrate --simulations 1000 -o sbc")
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


@app.command(epilog="Example: prisma study local --region city --routes 6 -o local")
def local(
    region: StudyRegion = None,
    routes: Annotated[int, typer.Option(help="Random routes.", min=1)] = 6,
    aggressiveness: Aggressiveness = DRIVER[0],
    detour: Detour = DRIVER[1],
    vehicle: VehicleNumber = None,
    likelihood: Annotated[
        LikelihoodName, typer.Option(help="trace or summary.")
    ] = LikelihoodName.TRACE,
    seed: Seed = 0,
    output: Folder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Which mixes of descriptors does a trace not tell apart? Fisher information.

    Derivatives of the simulated trace, weighed by the noise: Cramér-Rao bounds
    with the vehicle unknown, and how many directions are known better than from
    the prior.
    """
    folder = StudyFolder.fresh(output, "local.zarr", force=force)
    public = study_region(region)
    profiles = draw_routes(public, routes, seed=seed)
    point = np.tile([aggressiveness, detour], (routes, 1))
    with progress_bar() as bars:
        found = local_information(
            public,
            profiles,
            point,
            np.full(routes, vehicle_of_pool(public, vehicle)),
            model=TripModel.of(public, likelihood=str(likelihood)),
            with_vehicle=True,
            progress=tracker(bars, "routes"),
        )
    facts = local_table(found, profiles)
    folder.keep(found)
    folder.table(facts.reset_index(), "local.csv")
    titles = [f"route {i}, {length / 1e3:.1f} km" for i, length in enumerate(facts["length_m"][:6])]
    information = found["information"].values[:6, :2, :2]
    folder.draw(lambda: {"ridge": plot_ridge(information, point[:6], titles)})
    if as_json:
        print_json(
            {"routes": [plain_numbers(row) for row in facts.reset_index().to_dict("records")]}
        )
        return
    columns = {
        "route": "route", "km": "km", "a": "aggr.", "d": "detour", "a1": "aggr. alone",
        "d1": "detour alone", "known": "known", "decades": "decades",
    }  # fmt: skip
    rows = [
        {
            "route": str(route), "km": f"{row['length_m'] / 1e3:.1f}",
            "a": f"{row['aggressiveness_bound']:.2g}", "d": f"{row['detour_bound']:.2g}",
            "a1": f"{row['aggressiveness_bound_alone']:.2g}",
            "d1": f"{row['detour_bound_alone']:.2g}",
            "known": f"{row['n_known']:.0f}", "decades": f"{row['decades']:.1f}",
        }
        for route, row in facts.head(20).to_dict("index").items()
    ]  # fmt: skip
    print_table("Least standard deviations that a trace allows", columns, rows)
    note(
        f"known: directions of {found.sizes['mode']} that the data knows better than the prior; "
        "alone: if all else were known."
    )
    note(PUBLIC)


@app.command(epilog="Example: prisma study profile traces.zarr --region city --trips 4 -o profile")
def profile(
    traces: Annotated[
        Path | None,
        typer.Argument(help="Recorded traces; private.", show_default="simulated trips"),
    ] = None,
    region: StudyRegion = None,
    trips: Annotated[int, typer.Option(help="How many, from the first on.", min=1, max=8)] = 2,
    values: Annotated[int, typer.Option(help="Points along a curve.", min=5)] = 41,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    seed: Seed = 0,
    output: Folder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """What values of a descriptor can a trace exclude? Profile likelihood.

    At each value the other descriptor and the vehicle are put at their best.
    Beside the curves: draws from the posterior of the same trips. With recorded
    traces, everything is private.
    """
    folder = StudyFolder.fresh(output, "profile.zarr", force=force)
    if traces is not None and region is None:
        raise ValueError("Expected --region with recorded traces; got none. Name their region.")
    public = study_region(region)
    given = (
        simulated_trips(public, trips, seed)
        if traces is None
        else recorded_trips(public, traces, trips)
    )
    with progress_bar() as bars:
        found = profile_likelihood(
            public,
            given.profiles,
            given.simulations.data,
            model=given.simulations.model,
            level=level,
            settings=ProfileSettings(n_values=values, seed=seed),
            progress=tracker(bars, "trips"),
        ).assign_coords(trip=given.names)
        sampler = GridSampler(seed=seed, chunk_size=2)
        draws = sampler(public, given.simulations, tracker(bars, "posteriors")).point
    local_found = local_information(
        public,
        given.profiles,
        found["best"].values,
        found["best_vehicle"].values,
        model=given.simulations.model,
    )
    folder.keep(found)
    information = local_found["information"].values
    folder.draw(
        lambda: {
            "profiles": plot_profiles(found, given.names, draws=draws, truth=given.truth),
            "ridge": plot_ridge(
                information, found["best"].values, given.names, draws=draws, truth=given.truth
            ),
        }
    )
    rows = [
        interval_row(found.isel(trip=trip, parameter=axis), draws[trip, :, axis], level)
        for trip in range(len(given.names))
        for axis in range(2)
    ]
    folder.table(pd.DataFrame(rows), "intervals.csv")
    if as_json:
        print_json(
            {"private": traces is not None, "intervals": [plain_numbers(row) for row in rows]}
        )
        return
    texts = [
        {
            "trip": row["trip"], "parameter": row["parameter"], "best": f"{row['best']:.4f}",
            "profile": f"{row['low']:.4f} - {row['high']:.4f}",
            "posterior": f"{row['posterior_low']:.4f} - {row['posterior_high']:.4f}",
        }
        for row in rows
    ]  # fmt: skip
    headings = {"trip": "trip", "parameter": ""} | {
        name: name for name in ("best", "profile", "posterior")
    }
    print_table(f"Intervals at {100 * level:g} %", headings, texts)
    note(PUBLIC if traces is None else PRIVATE)


@app.command(epilog="Example: prisma study vehicles --region city -o vehicles")
def vehicles(
    region: StudyRegion = None,
    routes: Annotated[int, typer.Option(help="Random routes.", min=1)] = 3,
    aggressiveness: Aggressiveness = DRIVER[0],
    detour: Detour = DRIVER[1],
    threshold: Annotated[
        float, typer.Option(help="Largest d' within a class; at 1 a guess errs in 31 of 100.")
    ] = 1.0,
    draws: Annotated[int, typer.Option(help="Noisy traces of each vehicle.", min=1)] = 8,
    seed: Seed = 0,
    output: Folder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Which vehicles does no trace tell apart? Distances, classes, a smaller pool.

    A pool with one vehicle a class says as much about trips and is quicker to
    search; make it before any private trip is read.
    """
    folder = StudyFolder.fresh(output, "vehicles.zarr", force=force)
    public = study_region(region)
    profiles = draw_routes(public, routes, seed=seed)
    point = np.tile([aggressiveness, detour], (routes, 1))
    with progress_bar() as bars:
        distances = vehicle_distances(
            public, profiles, point, chunk_size=1, progress=tracker(bars, "routes")
        )
        confusion = expected_confusion(
            public, profiles, point, n_draws=draws, seed=seed, chunk_size=1,
            progress=tracker(bars, "confusion"),
        )  # fmt: skip
    classes = vehicle_classes(distances, threshold=threshold)
    mean_confusion = confusion.mean("trip").values
    label, names = classes["label"].values, public.vehicles.name
    chosen = classes["representative"].values
    folder.keep(distances.assign(confusion=confusion, label=classes["label"]))
    table = pd.DataFrame(
        {
            "vehicle": names,
            "class": label,
            "stands_for_its_class": np.isin(np.arange(len(label)), chosen),
            "right": np.diagonal(mean_confusion),
        }
    )
    folder.table(table, "vehicles.csv")
    folder.draw(lambda: {"confusion": plot_confusion(mean_confusion, label, list(names))})
    right = float(np.diagonal(mean_confusion).mean())
    facts = {
        "n_vehicles": len(label), "n_classes": len(chosen), "threshold": threshold, "right": right,
        "pool": [str(names[row]) for row in np.sort(chosen)],
    }  # fmt: skip
    if as_json:
        print_json(facts)
        return
    order = np.argsort(-classes["size"].values, kind="stable")[:10]
    rows = [
        {
            "size": str(classes["size"].values[row]),
            "diameter": f"{classes['diameter'].values[row]:.2f}",
            "name": str(names[chosen[row]]),
        }
        for row in order
    ]
    print_table("Largest classes", {"name": "stands for it", "size": "vehicles",
                                    "diameter": "largest d'"}, rows)  # fmt: skip
    print_facts(
        f"{len(label)} vehicles on {routes} routes",
        {
            "classes": f"{len(chosen)} at d' = {threshold:g}: a pool of that size says as much",
            "right vehicle": f"probability {right:.2f} on average, the driver known",
        },
    )
    note(PUBLIC)


@app.command(epilog="Example: prisma study atlas --region city --routes 2000 -o atlas")
def atlas(
    region: StudyRegion = None,
    routes: Annotated[
        int | None,
        typer.Option(
            help="Random routes.", min=1, show_default=f"{N_ROUTES}; {N_DEMO_ROUTES} in the demo"
        ),
    ] = None,
    aggressiveness: Aggressiveness = DRIVER[0],
    detour: Detour = DRIVER[1],
    vehicle: VehicleNumber = None,
    pool: Annotated[
        int, typer.Option(help="Vehicles to tell apart; 0 leaves the vehicle out.", min=0)
    ] = 32,
    best: Annotated[int, typer.Option(help="Routes to list.", min=1)] = 5,
    seed: Seed = 0,
    output: Folder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Where would a trace tell most? Expected information over a city.

    Random routes between junctions, each driven once by the same driver: what
    its trace would tell about driver, detour and vehicle, on the map and against
    length, hills and stops.
    """
    folder = StudyFolder.fresh(output, "atlas.zarr", force=force)
    public = study_region(region)
    n_routes = routes or (N_DEMO_ROUTES if region is None else N_ROUTES)
    with progress_bar() as bars:
        found = information_atlas(
            public,
            draw_routes(public, n_routes, seed=seed),
            driver=(aggressiveness, detour),
            vehicle=vehicle,
            n_vehicles=pool,
            progress=tracker(bars, "routes"),
        )
    rows = best_routes(found, best)
    table = atlas_table(found)
    folder.keep(found)
    folder.table(table, "routes.csv")
    folder.draw(
        lambda: {"map": plot_atlas(found, public.roads, best=rows[:3]),
                 "causes": plot_route_gain(found)}
    )  # fmt: skip
    mean = found["gain"].mean("route").to_series()
    if as_json:
        records = table.iloc[rows].to_dict("records")
        print_json({"n_routes": n_routes, "mean_gain": plain_numbers(mean.to_dict()),
                    "best": [plain_numbers(record) for record in records]})  # fmt: skip
        return
    names = {str(name): str(name) for name in found["descriptor"].values}
    columns = {"route": "route", "km": "km", "stops": "stops", "height": "height (m)", **names}
    shown = [
        {
            "route": str(record["route"]), "km": f"{record['length_m'] / 1e3:.1f}",
            "stops": str(record["n_stops"]), "height": f"{record['height_range_m']:.0f}",
        }
        | {name: f"{record[f'gain_{name}']:.2f}" for name in names}
        for record in table.iloc[rows].to_dict("records")
    ]  # fmt: skip
    print_table("Routes that tell most (gains in nats)", columns, shown)
    facts = {f"about the {name}": f"{value:.2f} nats" for name, value in mean.items()}
    print_facts(f"Mean of {n_routes:,} routes", facts)
    note(PUBLIC)
