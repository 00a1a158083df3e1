"""The commands that infer descriptors and look at what was inferred."""

import shutil
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from prisma_sbi import _validate
from prisma_sbi.cli.console import (
    note,
    print_facts,
    print_json,
    print_table,
    progress_bar,
    tracker,
    wrote,
)
from prisma_sbi.cli.errors import resumable
from prisma_sbi.cli.options import Force, Json, OutputOption, RegionOption
from prisma_sbi.cli.output import ZARR, fresh_output
from prisma_sbi.diagnostics import FitFlag, flag_counts
from prisma_sbi.encoding import (
    EncodeSettings,
    FitStatus,
    HmcFit,
    LaplaceFit,
    Method,
    QuadratureFit,
    load_fit,
    save_fit,
    status_counts,
)
from prisma_sbi.encoding import encode as encode_traces
from prisma_sbi.inference import HmcSettings
from prisma_sbi.inference.nuts import NutsSettings
from prisma_sbi.models import TripModel
from prisma_sbi.pipeline.diagnose import diagnose_fit, draw_diagnosis
from prisma_sbi.region import load_region
from prisma_sbi.telemetry import load_traces


class LikelihoodName(StrEnum):
    """Likelihoods by name."""

    SUMMARY = "summary"
    TEXTURE = "texture"
    TRACE = "trace"


@resumable
def encode(
    traces: Annotated[Path, typer.Argument(help="Traces from telemetry import.")],
    region: RegionOption,
    output: OutputOption,
    method: Annotated[
        Method,
        typer.Option(
            help="map: one point a trip, fast. quadrature: the exact posterior. hmc: the same by "
            "Markov chains, with diagnostics. laplace: a Gaussian. svi: the published descent. "
            "nuts: NumPyro, for a few trips."
        ),
    ] = Method.MAP,
    likelihood: Annotated[
        LikelihoodName,
        typer.Option(
            help="summary: energy, duration and their course, as published. texture: also "
            "variance and autocorrelation. trace: a law of the whole trace."
        ),
    ] = LikelihoodName.SUMMARY,
    chains: Annotated[int, typer.Option(help="Chains a trip, for methods with draws.", min=1)] = 4,
    draws: Annotated[
        int | None,
        typer.Option(help="Draws a chain.", min=1, show_default="what the method needs"),
    ] = None,
    rerun: Annotated[
        bool,
        typer.Option("--rerun", help="With hmc: flagged trips again by NUTS, some seconds each."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Infer the descriptors of every trip: how aggressive, how much detour, which vehicle.

    The result describes the real trips and is private, like the traces. If the command is
    interrupted, the same command goes on where it stopped.
    """
    fresh_output(output, force=force, mark=ZARR)
    public = load_region(region)
    settings = _settings(method, chains=chains, draws=draws, rerun=rerun, seed=seed)
    relaxed = method == Method.SVI
    model = TripModel.of(
        public, likelihood=str(likelihood), choice="gumbel" if relaxed else "marginal"
    )
    checkpoint = output.with_name(output.name + ".chunks")
    with progress_bar() as bars:
        fit = encode_traces(
            public,
            load_traces(traces),
            method=method,
            model=model,
            settings=settings,
            checkpoint=checkpoint,
            progress=tracker(bars, "trips"),
        )
    save_fit(fit, output)
    shutil.rmtree(checkpoint, ignore_errors=True)
    counts = status_counts(fit)
    flags = flag_counts(fit["sample_stats"].dataset["flags"].values)
    if as_json:
        print_json({"fit": str(output), "status": counts, "flags": flags})
        return
    wrote(output, f"{sum(counts.values()):,} trips (private)")
    _print_status(counts)
    if method.has_draws:
        _print_flags(flags)
        note(f"More with: prisma diagnose {output}")


def diagnose(
    fit: Annotated[Path, typer.Argument(help="Fit from encode.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for figures and trips.csv.")
    ] = None,
    region: Annotated[
        Path | None,
        typer.Option("--region", help="To simulate bands around some observed traces."),
    ] = None,
    bands: Annotated[int, typer.Option(help="Trips to show with bands.", min=1)] = 6,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Say whether a fit can be trusted: flags, convergence, and what the traces determine.

    Table, figures and trips.csv describe real trips and are private.
    """
    if output is not None and (output / "trips.csv").exists() and not force:
        raise FileExistsError(
            f"Expected no trips.csv in {output}; got one. Choose another -o, or replace it with "
            "--force."
        )
    public = None if region is None else load_region(region)
    fitted = load_fit(fit)
    diagnosis = diagnose_fit(fitted)
    if output is not None:
        draw_diagnosis(diagnosis, fitted, output, region=public, n_bands=bands)
        wrote(output, "figures and trips.csv (private)")
    if as_json:
        print_json(diagnosis.facts())
        return
    print_facts(f"Fit by {diagnosis.method}", diagnosis.texts())
    _print_status(status_counts(fitted))
    _print_flags(flag_counts(fitted["sample_stats"].dataset["flags"].values))
    if diagnosis.worst:
        columns = {"trip": "trip", "flags": "flags", "r_hat": "R-hat", "ess": "bulk ESS"}
        print_table("Trips to look at first", columns, diagnosis.worst)


def _settings(
    method: Method, *, chains: int, draws: int | None, rerun: bool, seed: int
) -> EncodeSettings:
    """Options as settings of the method."""
    _validate.at_least(1, chains=chains)
    lengths: dict[str, Any] = {"n_chains": chains} | ({} if draws is None else {"n_draws": draws})
    work = {
        Method.QUADRATURE: lambda: QuadratureFit(**lengths),
        Method.LAPLACE: lambda: LaplaceFit(**lengths),
        Method.HMC: lambda: HmcFit(hmc=HmcSettings(**lengths), rerun=rerun),
        Method.NUTS: lambda: NutsSettings(**lengths),
    }
    return EncodeSettings(method=method, work=work[method]() if method in work else None, seed=seed)


def _print_status(counts: dict[str, int]) -> None:
    """How the fits ended."""
    rows = [
        {
            "status": item.name.lower(),
            "trips": f"{counts[item.name.lower()]:,}",
            "meaning": item.text,
        }
        for item in FitStatus
    ]
    print_table("Fits", {"status": "status", "trips": "trips", "meaning": "meaning"}, rows)


def _print_flags(counts: dict[str, int]) -> None:
    """What is remarkable about them."""
    rows = [
        {"flag": flag.name.lower(), "trips": f"{counts[flag.name.lower()]:,}", "meaning": flag.text}
        for flag in FitFlag
        if flag.name and counts[flag.name.lower()]
    ]
    if rows:
        print_table("Flags", {"flag": "flag", "trips": "trips", "meaning": "meaning"}, rows)
