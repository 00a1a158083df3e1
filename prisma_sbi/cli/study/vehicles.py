"""`prisma study vehicles`."""

from typing import Annotated

import numpy as np
import pandas as pd
import typer

from prisma_sbi.cli.console import note, print_facts, print_json, print_table, progress_bar, tracker
from prisma_sbi.cli.options import Force, Json
from prisma_sbi.cli.study.options import PUBLIC, Aggressiveness, Detour, Folder, Seed, StudyRegion
from prisma_sbi.cli.study.output import (
    StudyFolder,
    study_region,
)
from prisma_sbi.evaluation.plot_study import (
    plot_confusion,
)
from prisma_sbi.study import (
    expected_confusion,
    vehicle_classes,
    vehicle_distances,
)
from prisma_sbi.study.atlas import (
    DRIVER,
    draw_routes,
)


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
