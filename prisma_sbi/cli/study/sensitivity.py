"""`prisma study sensitivity`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from prisma_sbi.cli.console import note, print_json, print_table, progress_bar, tracker
from prisma_sbi.cli.options import Force, Json
from prisma_sbi.cli.study.options import PRIVATE, PUBLIC, Folder, Seed, StudyRegion
from prisma_sbi.cli.study.output import (
    StudyFolder,
    plain_numbers,
    study_region,
    study_trips,
)
from prisma_sbi.evaluation.plot_sensitivity import plot_prior_roles, plot_tornado
from prisma_sbi.models import TripModel, beta_prior, uniform_prior
from prisma_sbi.study.power_scaling import PriorRole
from prisma_sbi.study.sensitivity import (
    CONSTANTS,
    PARAMETERS,
    SensitivitySettings,
    constant_sensitivity,
    constant_table,
)

_FEW_POINTS = 30.0


class PriorName(StrEnum):
    """Priors that can be named."""

    BETA = "beta"
    FLAT = "flat"


_PRIORS = {PriorName.BETA: beta_prior, PriorName.FLAT: uniform_prior}


def sensitivity(
    traces: Annotated[
        Path | None,
        typer.Argument(help="Recorded traces; private.", show_default="simulated trips"),
    ] = None,
    region: StudyRegion = None,
    trips: Annotated[int, typer.Option(help="How many, from the first on.", min=1)] = 8,
    prior: Annotated[
        PriorName, typer.Option(help="beta or flat; a flat one has nothing to scale.")
    ] = PriorName.BETA,
    change: Annotated[float, typer.Option(help="Share by which each constant is changed.")] = 0.1,
    seed: Seed = 0,
    output: Folder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """What do fits owe to public constants and to the prior? Refits, power scaling.

    Every trip is fitted thirteen times: as it is, and with each of six constants
    lowered and raised. With recorded traces everything is private; choose no
    constant by trips that are held out.
    """
    folder = StudyFolder.fresh(output, "sensitivity.zarr", force=force)
    public = study_region(region, traces)
    given = study_trips(public, traces, trips, seed)
    model = TripModel.of(public, likelihood="trace", prior=_PRIORS[prior](public.constants))
    with progress_bar() as bars:
        found = constant_sensitivity(
            public,
            given.profiles,
            given.simulations.data,
            model=model,
            settings=SensitivitySettings(change=change, seed=seed),
            progress=tracker(bars, "refits"),
        ).assign_coords(trip=given.names)
    found.attrs |= {"region_fingerprint": public.fingerprint, "prior": str(prior)}
    table = constant_table(found)
    roles = found["role"].values
    counts = {
        str(name): {str(role): int(np.sum(roles[:, column] == str(role))) for role in PriorRole}
        for column, name in enumerate(PARAMETERS)
    }
    folder.keep(found)
    folder.table(table.reset_index(), "constants.csv")
    folder.table(found[["sensitivity"]].to_dataframe().reset_index(), "prior.csv")
    folder.draw(
        lambda: {"tornado": plot_tornado(found, CONSTANTS), "prior": plot_prior_roles(found)}
    )
    doubtful = int(np.sum(found["n_effective"].values < _FEW_POINTS))
    if as_json:
        rows = {str(key): plain_numbers(row) for key, row in table.to_dict("index").items()}
        print_json(
            {
                "private": traces is not None, "n_trips": len(given.names), "change": change,
                "constants": rows, "roles": counts, "n_rough": doubtful,
            }
        )  # fmt: skip
        return
    columns = {"constant": "", "a": "aggr.", "d": "detour", "m": "mass", "t": "trace",
               "lower": "rather lower", "higher": "rather higher"}  # fmt: skip
    rows = [
        {
            "constant": CONSTANTS[str(name)],
            **{
                key: f"{row[f'shift_sd_{parameter}']:.1f}"
                for key, parameter in zip("adm", PARAMETERS, strict=True)
            },
            "t": f"{row['trace_change']:.2f}",
            **{side: f"{100 * row[f'prefer_{side}']:.0f} %" for side in ("lower", "higher")},
        }
        for name, row in table.to_dict("index").items()
    ]
    print_table(f"Shifts per {100 * change:g} %, in posterior standard deviations", columns, rows)
    note("trace: change of the trace in units of its noise; rather: trips more probable so.")
    texts = [
        {"parameter": name.replace("_kg", "").replace("_", " ")}
        | {role: str(count) for role, count in found_roles.items()}
        for name, found_roles in counts.items()
    ]
    headings = {"parameter": ""} | {str(role): str(role) for role in PriorRole}
    print_table(f"What the {prior} prior does, number of trips", headings, texts)
    if doubtful:
        note(f"{doubtful} of {len(given.names)} trips have rough fits; their shifts are noisy.")
    note(PUBLIC if traces is None else PRIVATE)
