"""Figures of a recovery study: truth against estimate, coverage, vehicles, time against error."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.stats import binom

from prisma_sbi import _validate
from prisma_sbi.diagnostics import rank_pit
from prisma_sbi.evaluation.plot_rows import plain_log_axis
from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    SYNTHETIC_COLORS,
    figure_style,
    new_figure,
    synthetic_color,
)

if TYPE_CHECKING:
    import matplotlib.figure

_BLUE, _ORANGE = SYNTHETIC_COLORS[:2]
_LINES = {"trace": "-", "summary": "--", "texture": ":"}
_MARKERS = {"trace": "o", "summary": "s", "texture": "^"}
_METHODS = ("map", "quadrature", "hmc", "laplace", "svi", "nuts")


def plot_estimates(
    fleet: xr.Dataset, cells: Mapping[str, xr.Dataset], *, level: float = 0.9
) -> "matplotlib.figure.Figure":
    """Estimates against truths with central intervals, a row a cell.

    Parameters
    ----------
    fleet
        With the truth along ``trip``.
    cells
        Name -> ``estimate (trip, parameter)`` and, from methods with draws,
        ``draws (trip, draw, parameter)`` and ``rank (trip, parameter)`` of the truth.
    level
        Of the intervals.

    Returns
    -------
    figure
        Intervals that miss the truth are orange; there should be ``1 - level`` of them.
        A point without a bar is all that a method says.
    """
    _validate.in_range(0.0, 1.0, level=level)
    names = next(iter(cells.values()))["parameter"].values.tolist()
    with figure_style():
        figure = new_figure(width_in=3.9 * len(names) + 0.4, height_in=3.5 * len(cells) + 0.7)
        axes = figure.subplots(len(cells), len(names), squeeze=False, sharex="col", sharey="col")
        for row, (title, cell) in enumerate(cells.items()):
            for column, name in enumerate(names):
                panel = axes[row, column]
                truth = fleet[name].values
                caption = _draw_estimates(panel, truth, cell.sel(parameter=name), level)
                panel.set_title(f"{title}: {caption}", loc="left")
                if column == 0:
                    panel.set_ylabel("estimate")
        for column, name in enumerate(names):
            axes[-1, column].set_xlabel(f"true {name}")
        figure.suptitle(f"Estimates and central {100 * level:g} % intervals against the truth")
    return figure


def plot_cell_coverage(
    pit: Mapping[str, Mapping[str, np.ndarray]], *, confidence: float = 0.99
) -> "matplotlib.figure.Figure":
    """How often central intervals of every level held the truth, beyond what they promise.

    Parameters
    ----------
    pit
        Cell (``likelihood-method``) -> descriptor -> place of the truth in its posterior,
        uniform if calibrated.
    confidence
        Of the band within which chance moves the coverage, each level on its own.

    Returns
    -------
    figure
        A panel a descriptor. Below zero: intervals are too narrow; above: too wide.
    """
    names = list(next(iter(pit.values())))
    level = np.linspace(0.0, 1.0, 101)
    sizes = [len(values) for places in pit.values() for values in places.values()]
    n = min(sizes)
    with figure_style():
        figure = new_figure(width_in=4.3 * len(names) + 0.4, height_in=4.0)
        axes = np.atleast_1d(figure.subplots(1, len(names), sharey=True))
        for panel, name in zip(axes, names, strict=True):
            low, high = _bounds(confidence, n, level)
            panel.fill_between(
                100 * level, 100 * low, 100 * high, color=REAL_COLOR, alpha=0.12, lw=0
            )
            panel.axhline(0.0, color=REAL_COLOR, lw=0.8)
            for cell, places in pit.items():
                distance = np.sort(2.0 * np.abs(places[name] - 0.5))
                covered = np.searchsorted(distance, level, side="right") / len(distance)
                panel.plot(100 * level, 100 * (covered - level), label=cell, **_look(cell, "line"))
            panel.set_title(name, loc="left")
            panel.set_xlabel("level of the interval (%)")
            panel.set_xlim(0.0, 100.0)
        axes[0].set_ylabel("held the truth,\nbeyond the level (percentage points)")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)))
        figure.suptitle(
            f"Coverage of central intervals, {n:,} trips; band: {100 * confidence:g} % of chance"
        )
    return figure


def plot_vehicle_shares(shares: Mapping[str, np.ndarray]) -> "matplotlib.figure.Figure":
    """How often the true vehicle is among the most probable ones.

    Parameters
    ----------
    shares
        Cell -> share of trips whose true vehicle is among the 1, 2, ... most probable ones
        ``(vehicle,)``.

    Returns
    -------
    figure
        One panel, with what guessing would reach.
    """
    n_vehicles = len(next(iter(shares.values())))
    count = np.arange(1, n_vehicles + 1)
    with figure_style():
        figure = new_figure(width_in=6.4, height_in=4.2)
        panel = figure.subplots()
        for cell, share in shares.items():
            panel.plot(count, 100 * share, label=cell, **_look(cell, "line"))
        panel.plot(count, 100 * count / n_vehicles, color=REAL_COLOR, lw=0.9, ls=":", label="guess")
        plain_log_axis(panel, "x", (1.0, float(max(n_vehicles, 2))))
        panel.set_ylim(0.0, 102.0)
        panel.set_xlabel("most probable vehicles looked at")
        panel.set_ylabel("true vehicle among them (% of trips)")
        panel.legend(loc="lower right")
        panel.set_title(f"The true vehicle among {n_vehicles:,}", loc="left")
    return figure


def plot_time_error(summary: xr.Dataset) -> "matplotlib.figure.Figure":
    """What a method costs against how far it is off.

    Parameters
    ----------
    summary
        Along ``cell`` and ``descriptor``: ``rmse``, ``top_1``; ``seconds_per_trip``,
        ``likelihood``, ``method``.

    Returns
    -------
    figure
        Panels of aggressiveness, detour and vehicle; down and to the left is better.
    """
    names = summary["descriptor"].values.tolist()
    seconds = summary["seconds_per_trip"].values
    wrong = {
        name: (1.0 - summary["top_1"] if name == "vehicle" else summary["rmse"])
        .sel(descriptor=name)
        .values
        for name in names
    }
    timed = np.isfinite(seconds) & (seconds > 0.0)
    with figure_style():
        figure = new_figure(width_in=3.5 * len(names) + 0.4, height_in=3.9)
        axes = figure.subplots(1, len(names), squeeze=False)[0]
        for panel, name in zip(axes, names, strict=True):
            for row in np.flatnonzero(timed & np.isfinite(wrong[name])):
                cell = str(summary["cell"].values[row])
                panel.plot(seconds[row], wrong[name][row], label=cell, **_look(cell, "point"))
            if timed.any():
                limits = 0.6 * seconds[timed].min(), 1.7 * seconds[timed].max()
                plain_log_axis(panel, "x", limits)
            vehicle = name == "vehicle"
            top = 1.0 if vehicle else 1.2 * np.nanmax(wrong[name], initial=1e-9)
            panel.set_ylim(0.0, top)
            panel.set_title(name, loc="left")
            panel.set_xlabel("seconds a trip, compiled")
            panel.set_ylabel("share with a wrong best vehicle" if vehicle else "RMSE")
        handles, labels = axes[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)))
        figure.suptitle("Time against error: down and to the left is better")
    return figure


def _draw_estimates(panel: Any, truth: np.ndarray, cell: xr.Dataset, level: float) -> str:
    """One panel, and what its title says."""
    estimate = cell["estimate"].values
    known = np.isfinite(estimate)
    low, high = float(truth.min()), float(truth.max())
    panel.plot([low, high], [low, high], color="#909090", lw=1.0, zorder=1)
    off = estimate[known] - truth[known]
    caption = f"RMSE {np.sqrt(np.mean(off**2)):.2g}" if known.any() else "no estimates"
    missed = np.zeros(len(truth), bool)
    if "draws" in cell:
        tail = 0.5 * (1.0 - level)
        bounds = np.quantile(cell["draws"].values[known], [tail, 1.0 - tail], axis=1)
        # By ranks, as coverage is counted, so that the figure says the same as the table.
        place = rank_pit(cell["rank"].values[known], cell.sizes["draw"])
        missed[known] = np.abs(place - 0.5) >= 0.5 * level
        for group, color in ((known & ~missed, _BLUE), (missed, _ORANGE)):
            chosen = group[known]
            panel.vlines(truth[group], *bounds[:, chosen], color=color, lw=1.1, alpha=0.7, zorder=2)
        caption += f", {100 * np.mean(~missed[known]):.0f} % held"
    else:
        caption += ", points alone"
    for group, color in ((known & ~missed, _BLUE), (missed, _ORANGE)):
        panel.plot(truth[group], estimate[group], "o", ms=3.2, mew=0, color=color, zorder=3)
    return caption


def _bounds(confidence: float, n: int, level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coverage beyond the level that chance allows, nothing at the ends."""
    low, high = np.zeros(len(level)), np.zeros(len(level))
    inner = (level > 0.0) & (level < 1.0)
    below, above = binom.interval(confidence, n, level[inner])
    low[inner], high[inner] = below / n - level[inner], above / n - level[inner]
    return low, high


def _look(cell: str, kind: str) -> dict[str, Any]:
    """Color by method, line and marker by likelihood; the same in every figure."""
    likelihood, _, method = cell.partition("-")
    color = synthetic_color(_number_of(method))
    if kind == "line":
        return {"color": color, "ls": _LINES.get(likelihood, "-")}
    return {"color": color, "marker": _MARKERS.get(likelihood, "o"), "ls": "none", "ms": 7}


def _number_of(method: str) -> int:
    """A number for each method, so that it keeps its color."""
    return _METHODS.index(method) if method in _METHODS else sum(map(ord, method))
