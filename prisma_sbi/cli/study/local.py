"""`prisma study local`."""

from typing import Annotated

import numpy as np
import typer

from prisma_sbi.cli.console import note, print_json, print_table, progress_bar, tracker
from prisma_sbi.cli.encode_command import LikelihoodName
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
    local_table,
    plain_numbers,
    study_region,
)
from prisma_sbi.evaluation.plot_study import (
    plot_ridge,
)
from prisma_sbi.models import TripModel
from prisma_sbi.study import (
    local_information,
)
from prisma_sbi.study.atlas import (
    DRIVER,
    draw_routes,
    vehicle_of_pool,
)


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
