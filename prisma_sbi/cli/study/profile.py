"""`prisma study profile`."""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from prisma_sbi.cli.console import note, print_json, print_table, progress_bar, tracker
from prisma_sbi.cli.options import Force, Json
from prisma_sbi.cli.study.options import (
    PRIVATE,
    PUBLIC,
    Folder,
    Seed,
    StudyRegion,
)
from prisma_sbi.cli.study.output import (
    StudyFolder,
    interval_row,
    plain_numbers,
    study_region,
    study_trips,
)
from prisma_sbi.evaluation.plot_study import (
    plot_profiles,
    plot_ridge,
)
from prisma_sbi.study import (
    GridSampler,
    ProfileSettings,
    local_information,
    profile_likelihood,
)


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
    public = study_region(region, traces)
    given = study_trips(public, traces, trips, seed)
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
