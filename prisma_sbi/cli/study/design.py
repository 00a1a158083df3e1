"""`prisma study design`."""

import math
from typing import Annotated

import typer
import xarray as xr

from prisma_sbi.cli.console import note, print_json, print_table, progress_bar, tracker
from prisma_sbi.cli.options import Force, Json
from prisma_sbi.cli.study.options import PUBLIC, Folder, Seed, StudyRegion
from prisma_sbi.cli.study.output import StudyFolder, plain_numbers, study_region
from prisma_sbi.evaluation.plot_design import plot_constants, plot_design, plot_route_character
from prisma_sbi.study.atlas import draw_routes
from prisma_sbi.study.design import OF_REGION, DesignSettings, best_designs, information_design

_DEFAULT = DesignSettings()
_BUDGETS = (10, 50, 100, 500)
_BUDGET_NOTE = "Of recordings with so many samples or fewer, the one that tells most in all."


def design(
    region: StudyRegion = None,
    routes: Annotated[int, typer.Option(help="Random routes.", min=1)] = 40,
    horizons: Annotated[
        str, typer.Option(help="Seconds recorded, rising, comma between.")
    ] = ",".join(map(str, _DEFAULT.horizon_s)),
    periods: Annotated[
        str, typer.Option(help="Seconds that a sample averages, rising.")
    ] = ",".join(map(str, _DEFAULT.period_s)),
    noise: Annotated[str, typer.Option(help="Factors on the scale of the noise.")] = ",".join(
        f"{each:g}" for each in _DEFAULT.noise
    ),
    memory: Annotated[
        str, typer.Option(help="Autocorrelations of the noise over a second; 0 is white.")
    ] = ",".join(f"{each:g}" for each in _DEFAULT.memory),
    realistic: Annotated[
        bool, typer.Option("--realistic", help="Compare with the realistic preset.")
    ] = False,
    truths: Annotated[
        int, typer.Option(help="Drivers and vehicles to average over.", min=1)
    ] = _DEFAULT.n_truths,
    seed: Seed = 0,
    output: Folder = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """How long, how often, how precisely to record? Expected information of designs.

    Every combination of horizon, sampling period and noise on random routes, for
    drivers and vehicles from the prior. Samples are means over their period, and
    noise with memory does not average out as white noise does.
    """
    folder = StudyFolder.fresh(output, "design.zarr", force=force)
    settings = DesignSettings(
        horizon_s=tuple(_whole(horizons, "--horizons")),
        period_s=tuple(_whole(periods, "--periods")),
        noise=tuple(_numbers(noise, "--noise")),
        memory=tuple(_numbers(memory, "--memory")),
        constants=(OF_REGION, "realistic") if realistic else (OF_REGION,),
        n_truths=truths,
        seed=seed,
    )
    public = study_region(region)
    profiles = draw_routes(public, routes, seed=seed)
    with progress_bar() as bars:
        found = information_design(
            public, profiles, settings=settings, progress=tracker(bars, "drives")
        )
    means = found["gain"].mean("route").to_dataset("descriptor").assign(
        total=found["total_gain"].mean("route"), n_samples=found["n_samples"]
    )  # fmt: skip
    best = best_designs(found, _BUDGETS)
    folder.keep(found)
    folder.table(means.to_dataframe().reset_index(), "designs.csv")
    folder.table(found["claimed_gain"].to_dataframe().reset_index(), "likelihoods.csv")
    folder.table(best, "budgets.csv")
    figures = {"design": plot_design, "routes": plot_route_character}
    if realistic:
        figures["constants"] = plot_constants
    folder.draw(lambda: {name: make(found) for name, make in figures.items()})
    if as_json:
        rows = means.to_dataframe().reset_index().to_dict("records")
        print_json(
            {"n_routes": routes, "designs": [plain_numbers(row) for row in rows],
             "budgets": [plain_numbers(row) for row in best.to_dict("records")]}
        )  # fmt: skip
        return
    _print_periods(means, settings)
    columns = {
        "constants": "constants",
        "memory": "memory",
        "budget": "samples",
        "horizon_s": "record (s)",
        "period_s": "every (s)",
        "total_gain": "nats",
        "shortest_gain": f"at {settings.period_s[0]} s",
    }
    shown = [
        {name: str(row[name]) for name in columns}
        | {"memory": f"{row['memory']:g}", "total_gain": f"{row['total_gain']:.1f}"}
        | {"shortest_gain": _or_dash(row["shortest_gain"])}
        for row in best.to_dict("records")
        if row["noise"] == _middle(settings)
    ]
    print_table("Best spending of samples", columns, shown)
    note(_BUDGET_NOTE)
    note(PUBLIC)


def _print_periods(means: xr.Dataset, settings: DesignSettings) -> None:
    """Nats by sampling period, at the longest horizon and the middle noise."""
    rows = []
    for memory in settings.memory:
        for period in settings.period_s:
            one = means.isel(constants=0, horizon=-1).sel(
                memory=memory, period=period, noise=_middle(settings)
            )
            names = ("aggressiveness", "detour", "vehicle", "total")
            rows.append(
                {"memory": f"{memory:g}", "period": f"{period} s"}
                | {name: f"{one[name].item():.2f}" for name in names}
            )
    title = f"Nats from {settings.horizon_s[-1]} s by seconds a sample averages"
    print_table(title, {name: name for name in rows[0]}, rows)


def _middle(settings: DesignSettings) -> float:
    """The factor on the noise that is shown."""
    return min(settings.noise, key=lambda each: abs(each - 1.0))


def _or_dash(nats: float) -> str:
    """A number, or a dash if there is none."""
    return "-" if math.isnan(nats) else f"{nats:.1f}"


def _numbers(text: str, option: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"Expected {option} as numbers with commas between, such as 1,2,5; got {text!r}."
        ) from None


def _whole(text: str, option: str) -> list[int]:
    """Whole numbers likewise."""
    values = _numbers(text, option)
    if any(value != int(value) for value in values):
        raise ValueError(f"Expected {option} in whole seconds; got {text!r}.")
    return [int(value) for value in values]
