"""What a recovery study leaves for people: tables, figures and a page."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from prisma_sbi._files import replacing
from prisma_sbi.evaluation.plot_recovery_study import (
    plot_cell_coverage,
    plot_estimates,
    plot_time_error,
    plot_vehicle_shares,
)
from prisma_sbi.evaluation.plot_style import save_figures
from prisma_sbi.report.markup import Child
from prisma_sbi.report.page import Label, Section, page
from prisma_sbi.report.plots import Plot
from prisma_sbi.report.sections import warnings_section
from prisma_sbi.study.recovery_sections import (
    other_tables,
    parameter_tables,
    study_repeat,
    study_section,
    study_warnings,
)
from prisma_sbi.study.recovery_table import (
    among_first,
    cells_of,
    pit_of,
    recovery_table,
    trips_set_aside,
    usable,
)

if TYPE_CHECKING:
    import matplotlib.figure

PAGE, TABLE, SET_ASIDE = "report.html", "recovery.csv", "set_aside.csv"
OPEN_TO_ALL = Label(
    name="public",
    sentences=(
        "This page was made from public inputs (roads, heights, vehicles) and simulated trips "
        "alone. No recorded trip was read: it may be shown to anybody.",
    ),
)


def write_recovery(tree: xr.DataTree, folder: Path, *, command: str = "") -> list[Path]:
    """Write tables, figures and the page of a study.

    Parameters
    ----------
    tree
        From :func:`~prisma_sbi.study.recovery_study`.
    folder
        Gets ``recovery.csv``, ``set_aside.csv``, ``report.html`` and the figures as PNG; what is
        there of the same names is replaced.
    command
        Shown as the way to repeat the page.

    Returns
    -------
    paths
        Of everything that was written.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    written = []
    for name, content in (
        (TABLE, recovery_table(tree["summary"].to_dataset())),
        (SET_ASIDE, trips_set_aside(tree)),
    ):
        with replacing(folder / name) as partial:
            content.to_csv(partial, index=False)
        written.append(folder / name)
    figures = recovery_figures(tree)
    written += save_figures(figures, folder)
    with replacing(folder / PAGE) as partial:
        partial.write_text(recovery_page(tree, figures, command=command), encoding="utf-8")
    return [*written, folder / PAGE]


def recovery_figures(tree: xr.DataTree) -> "dict[str, matplotlib.figure.Figure]":
    """Figures by name: estimates under each likelihood, coverage, vehicles, time."""
    fleet = tree["fleet"].to_dataset()
    cells = cells_of(tree)
    figures = {}
    for likelihood in dict.fromkeys(cell.attrs["likelihood"] for cell in cells.values()):
        group = {n: cell for n, cell in cells.items() if cell.attrs["likelihood"] == likelihood}
        figures[f"estimates-{likelihood}"] = plot_estimates(fleet, group)
    known = {name: cell for name, cell in cells.items() if "draws" in cell}
    if known:
        figures["coverage"] = plot_cell_coverage({n: pit_of(cell) for n, cell in known.items()})
        shares = {name: _shares(fleet, cell) for name, cell in known.items()}
        figures["vehicles"] = plot_vehicle_shares(shares)
    figures["time"] = plot_time_error(tree["summary"].to_dataset())
    return figures


def recovery_page(
    tree: xr.DataTree,
    figures: "Mapping[str, matplotlib.figure.Figure]",
    *,
    command: str = "",
) -> str:
    """The page as text."""
    rows = recovery_table(tree["summary"].to_dataset())
    n_trips = int(tree.attrs["n_trips"])
    methods = ", ".join(dict.fromkeys(rows["method"]))
    return page(
        title="Recovery of known descriptors",
        lead=f"{n_trips:,} simulated trips on random routes of {tree.attrs['region_name']}, "
        f"encoded by {methods}: how near the estimates come to the truth, and whether "
        "intervals hold what they promise.",
        label=OPEN_TO_ALL,
        sections=[
            study_section(tree),
            Section(name="descriptors", title="Driver", children=parameter_tables(rows)),
            Section(name="vehicles", title="Vehicle and cost", children=other_tables(tree, rows)),
            Section(name="figures", title="Figures", children=tuple(_plots(figures, n_trips))),
            warnings_section(study_warnings(tree, rows)),
            study_repeat(command),
        ],
    )


def _plots(figures: "Mapping[str, matplotlib.figure.Figure]", n_trips: int) -> list[Child]:
    """All figures with how to read them."""
    texts = {
        "coverage": "On the zero line, intervals of every level hold the truth as often as they "
        "say. Below: too narrow. Above: too wide. Within the band: chance.",
        "vehicles": "How often the true vehicle is among the most probable ones, by how many one "
        "looks at.",
        "time": "Seconds a trip without compilation against error. A point further down and to "
        "the left is better in both.",
    }
    estimates = (
        "A perfect estimate lies on the line. Bars are central 90 % intervals; orange ones miss "
        "the truth, which one in ten should."
    )
    return [
        Plot(
            name=f"figure-{name}",
            alt=f"{name.replace('-', ' under ').capitalize()}: {n_trips:,} simulated trips.",
            caption=texts.get(name, estimates),
            figure=figure,
        ).markup()
        for name, figure in figures.items()
    ]


def _shares(fleet: xr.Dataset, cell: xr.Dataset) -> np.ndarray:
    """How often the true vehicle is among the first, over trips that have an estimate."""
    good = usable(cell)
    return among_first(cell["vehicle_probability"].values[good], fleet["vehicle"].values[good])
