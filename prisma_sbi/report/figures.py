"""The figures of a page, with and without real traces."""

from collections.abc import Mapping

import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation.plot_curves import plot_mean_acf, plot_power_spectrum
from prisma_sbi.evaluation.plot_places import ENDS, plot_places
from prisma_sbi.evaluation.plot_style import synthetic_color
from prisma_sbi.evaluation.plot_traces import plot_power_levels, plot_traces
from prisma_sbi.evaluation.plot_tsne import plot_tsne
from prisma_sbi.region import Region
from prisma_sbi.report.plots import Plot

N_EXAMPLES = 5
"""Rows of single traces."""
_COORDINATES = [f"{end}_{axis}" for end in ENDS for axis in ("lat", "lon")]


def curve_plots(real: xr.Dataset | None, sets: Mapping[str, xr.Dataset]) -> list[Plot]:
    """Autocorrelation, spectrum and power levels of all sets."""
    step_s = float(next(iter(sets.values())).attrs.get("time_step_s", 1.0))
    who = _who(real, sets)
    return [
        Plot(
            name="figure-acf",
            alt=f"Mean autocorrelation of power over the lag: {who}.",
            caption="How fast power forgets its past. Lines: mean over trips; "
            "bands: 5th to 95th percentile over trips.",
            figure=plot_mean_acf(real, sets),
        ),
        Plot(
            name="figure-spectrum",
            alt=f"Median spectral density of power over frequency: {who}.",
            caption="How strongly power swings at which pace: slow on the left, fast on the "
            "right. Both axes are logarithmic.",
            figure=plot_power_spectrum(real, sets, time_step_s=step_s),
        ),
        Plot(
            name="figure-levels",
            alt=f"Share of the time with power at each level: {who}.",
            caption="How often each level of power is held while there is any; on the right the "
            "rare ones on a logarithmic scale.",
            figure=plot_power_levels(real, sets),
        ),
    ]


def trace_plots(
    real: xr.Dataset | None, sets: Mapping[str, xr.Dataset], *, seed: int
) -> list[Plot]:
    """Single traces of each set."""
    beside = "Single traces. " if real is None else "Real traces on the left, synthetic ones "
    beside += "" if real is None else "on the right; those of one row are not the same trip. "
    return [
        Plot(
            name=f"figure-traces-{number}",
            alt=f"Random traces of power over time: {_who(real, {name: traces})}.",
            caption=f"{beside}Chosen at random and sorted by energy.",
            figure=plot_traces(
                real,
                traces,
                n_traces=N_EXAMPLES,
                seed=seed,
                label=name,
                color=synthetic_color(number - 1),
            ),
        )
        for number, (name, traces) in enumerate(sets.items(), start=1)
    ]


def place_plots(
    real: xr.Dataset | None, sets: Mapping[str, xr.Dataset], region: Region | None
) -> tuple[list[Plot], list[str]]:
    """Maps of the sets that know places, and a sentence for each that does not."""
    plots, missing = [], []
    for number, (name, traces) in enumerate(sets.items(), start=1):
        sides = [traces] if real is None else [traces, real]
        if not all(variable in side for side in sides for variable in _COORDINATES):
            missing.append(f"{name}: no map, since places where trips start and end are missing.")
            continue
        roads = None if region is None else region.roads
        plots.append(
            Plot(
                name=f"figure-places-{number}",
                alt=f"Maps of where trips start and end: {_who(real, {name: traces})}.",
                caption="Where trips start and end, as a share of all trips in each cell"
                + ("." if roads is None else ", over the roads of the region."),
                figure=plot_places(real, traces, roads=roads, label=name),
                as_picture=True,
            )
        )
    return plots, missing


def neighbor_plots(
    real: xr.Dataset, sets: Mapping[str, xr.Dataset], *, n_traces: int, seed: int
) -> tuple[list[Plot], list[str]]:
    """The map of neighbors, or a sentence why there is none."""
    if not n_traces:
        return [], []
    try:
        figure = plot_tsne(real, sets, n_traces=n_traces, seed=seed)
    except (ImportError, InputDataError) as error:
        return [], [f"No map of neighbors: {error}"]
    plot = Plot(
        name="figure-neighbors",
        alt=f"Contours of the density in a map of neighbors: {_who(real, sets)}.",
        caption=f"Similar traces lie close together (t-SNE, at most {n_traces:,} traces of each "
        "set, all in one map). Where gray shows without lines, real traces have no synthetic "
        "counterpart. Distances between groups mean nothing.",
        figure=figure,
    )
    return [plot], []


def _who(real: xr.Dataset | None, sets: Mapping[str, xr.Dataset]) -> str:
    """Which populations a figure shows."""
    names = ", ".join(sets)
    return names if real is None else f"real traces beside {names}"
