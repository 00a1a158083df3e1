"""A report of synthetic traces as one HTML file: private with real ones, or released without."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi._files import replacing
from prisma_sbi.evaluation.floor import N_SPLITS
from prisma_sbi.evaluation.metrics import Measured, measure_each
from prisma_sbi.evaluation.population import require_comparable
from prisma_sbi.region import Region
from prisma_sbi.report.figures import curve_plots, neighbor_plots, place_plots, trace_plots
from prisma_sbi.report.markup import Markup, tag
from prisma_sbi.report.page import PRIVATE, RELEASED, Section, page
from prisma_sbi.report.plots import Plot
from prisma_sbi.report.sections import (
    data_section,
    guarantee_section,
    repeat_section,
    warnings_section,
)
from prisma_sbi.report.sets import SyntheticSet
from prisma_sbi.report.tables import metrics_table, undefined_metrics

N_NEIGHBORS_MAP = 400
"""Traces of each set in the map of neighbors: enough for its shape, seconds to compute."""


def write_report(
    path: Path | str,
    real: xr.Dataset,
    sets: Sequence[SyntheticSet],
    *,
    measured: Mapping[str, Measured] | None = None,
    region: Region | None = None,
    seed: int = 0,
    command: str = "",
    n_map_traces: int = N_NEIGHBORS_MAP,
) -> Path:
    """Write the page that compares synthetic sets with real traces. It is private.

    Parameters
    ----------
    path
        Of the HTML file; replaced if it is there.
    real
        Real traces that were held out.
    sets
        Synthetic sets of different names, from :func:`~prisma_sbi.report.read_set`.
    measured
        Name of a set -> all of its metrics, by default computed here with 15 floors.
    region
        Its roads lie under the maps.
    seed
        Of the floors, the traces that are shown, and the map of neighbors.
    command
        Shown as the way to repeat the page.
    n_map_traces
        Traces of each set in the map of neighbors; 0 leaves it out.

    Returns
    -------
    path

    Raises
    ------
    ImportError
        If matplotlib is missing.
    InputDataError
        If a set cannot be compared with the real traces.
    ValueError
        If there is no set, two have one name, or one is called like the real traces.
    """
    named = _named(sets, taken="real")
    if measured is None:
        measured = measure_each(real, named, seed=seed, n_splits=N_SPLITS)
    places, no_places = place_plots(real, named, region)
    neighbors, no_neighbors = neighbor_plots(real, named, n_traces=n_map_traces, seed=seed)
    plots = [
        *curve_plots(real, named),
        *neighbors,
        *trace_plots(real, named, seed=seed),
        *places,
    ]
    counts = {name: traces.sizes["trip"] for name, traces in named.items()}
    uneven = [
        f"{name}: {count:,} traces against {real.sizes['trip']:,} real ones. Distances depend on "
        "how many there are; the ideal values hold for equal numbers."
        for name, count in counts.items()
        if count != real.sizes["trip"]
    ]
    warnings = [*_warnings(sets), *undefined_metrics(measured), *uneven, *no_places, *no_neighbors]
    content = page(
        title="Synthetic power traces against recorded ones",
        lead=f"{', '.join(named)}: how close to {real.sizes['trip']:,} held-out recorded trips.",
        label=PRIVATE,
        sections=[
            data_section(sets, real=real),
            guarantee_section(sets),
            _metrics_section(measured),
            _figures_section(plots),
            warnings_section(warnings),
            repeat_section(command, sets),
        ],
    )
    return _write(path, content)


def write_released_report(
    path: Path | str,
    sets: Sequence[SyntheticSet],
    *,
    region: Region | None = None,
    seed: int = 0,
    command: str = "",
) -> Path:
    """Write the page about synthetic sets that may be published with them.

    *Guarantee.* Post-processing: real traces are no input, so the page carries the guarantee of
    the sets that it shows and costs nothing more. A set that states none is refused. The
    statement is believed as it stands in the traces; whoever changed them by hand broke it.

    Parameters
    ----------
    path
        Of the HTML file; replaced if it is there.
    sets
        Synthetic sets of different names, each with a guarantee.
    region
        Public; its roads lie under the maps.
    seed
        Of the traces that are shown.
    command
        Shown as the way to repeat the page.

    Returns
    -------
    path

    Raises
    ------
    GuaranteeError
        If a set has no guarantee.
    ImportError
        If matplotlib is missing.
    ValueError
        If there is no set or two have one name.
    """
    named = _named(sets)
    for each in sets:
        each.require_private()
    places, no_places = place_plots(None, named, region)
    plots = [*curve_plots(None, named), *trace_plots(None, named, seed=seed), *places]
    content = page(
        title="Synthetic power traces",
        lead=f"{', '.join(named)}: what the traces are like, and what protects the trips that "
        "they were made from.",
        label=RELEASED,
        sections=[
            data_section(sets),
            guarantee_section(sets),
            _figures_section(plots),
            warnings_section([*_warnings(sets), *no_places]),
            repeat_section(command, sets),
        ],
    )
    return _write(path, content)


def is_report(path: Path) -> bool:
    """Whether a file is a page that was written here."""
    try:
        return '<meta name="generator" content="prisma_sbi report">' in path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _named(sets: Sequence[SyntheticSet], *, taken: str = "") -> dict[str, xr.Dataset]:
    """Traces by the name of their set, all of equal length."""
    named = {each.name: each.traces for each in sets}
    if not sets or len(named) < len(sets) or (taken and taken in named):
        raise ValueError(
            "Expected at least one synthetic set, and names that differ"
            + (f" from each other and from {taken!r}" if taken else "")
            + f"; got {[each.name for each in sets]}. Name them."
        )
    for traces in named.values():
        require_comparable(sets[0].traces, traces)
        if "power_w" not in traces:
            raise InputDataError("Expected datasets of traces; got one without power_w.")
    return named


def _warnings(sets: Sequence[SyntheticSet]) -> list[str]:
    """Warnings of all sets."""
    return [sentence for each in sets for sentence in each.warnings]


def _metrics_section(measured: Mapping[str, Measured]) -> Section:
    """All tables, with how to read them."""
    floors = next(iter(measured.values())).floors
    explained = (
        "Distances are given as multiples of their floor: the distance between random halves of "
        f"the real traces ({floors.n_half:,} against {floors.n_half:,}, {floors.n_splits} splits), "
        "with the plain value beneath. The ideal is what two sets of equal law and size reach."
    )
    return Section(
        name="metrics", title="Metrics", children=(tag("p", explained), metrics_table(measured))
    )


def _figures_section(plots: Sequence[Plot]) -> Section:
    """All figures."""
    drawn: list[Markup] = [plot.markup() for plot in plots]
    return Section(name="figures", title="Figures", children=tuple(drawn))


def _write(path: Path | str, content: str) -> Path:
    """Whole or not at all."""
    target = Path(path)
    with replacing(target) as partial:
        partial.write_text(content, encoding="utf-8")
    return target
