"""`prisma study atlas`."""

from typing import Annotated

import typer

from prisma_sbi.cli.console import note, print_facts, print_json, print_table, progress_bar, tracker
from prisma_sbi.cli.options import Force, Json
from prisma_sbi.cli.study.options import (
    PUBLIC,
    Aggressiveness,
    Detour,
    Folder,
    Seed,
    StudyRegion,
    VehicleNumber,
)
from prisma_sbi.cli.study.output import (
    StudyFolder,
    atlas_table,
    plain_numbers,
    study_region,
)
from prisma_sbi.evaluation.plot_atlas import plot_atlas, plot_route_gain
from prisma_sbi.study.atlas import (
    DRIVER,
    best_routes,
    draw_routes,
    information_atlas,
)

N_ROUTES, N_DEMO_ROUTES = 2_000, 300


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
