"""Figures of a design study: what length, sampling, noise, likelihood and route are worth."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    SYNTHETIC_COLORS,
    figure_style,
    new_figure,
    plain,
)

if TYPE_CHECKING:
    import matplotlib.figure

_BAND = (0.1, 0.9)
_CAUSES = {
    "length_m": ("length (km)", 1e-3),
    "n_stops": ("signals and stop signs", 1.0),
    "height_range_m": ("height range (m)", 1.0),
    "speed_limit_mps": ("mean speed limit (m/s)", 1.0),
}
_MARKERS = "osD^v"


def plot_design(design: xr.Dataset) -> "matplotlib.figure.Figure":
    """Expected information against horizon, sampling period, noise and likelihood.

    Parameters
    ----------
    design
        ``gain (constants, memory, noise, horizon, period, route, descriptor)`` and
        ``claimed_gain (constants, likelihood, horizon, route, descriptor)`` in nats; the first
        constants are shown.

    Returns
    -------
    figure
        A row a descriptor, a column an axis of the design, the others held at the middle noise, the
        shortest period and the horizon nearest to 500 s. Lines are medians over routes, bands
        hold the middle 80 %.
    """
    one = design.isel(constants=0)
    names = one["descriptor"].values.tolist()
    noise = one["noise"].values
    held = {
        "horizon": nearest(one["horizon"].values, 500.0),
        "period": one["period"].values[0],
        "noise": nearest(np.log(noise), 0.0, of=noise),
    }
    with figure_style():
        figure = new_figure(width_in=11.5, height_in=2.15 * len(names) + 1.5)
        axes = figure.subplots(len(names), 4, squeeze=False, sharey="row", sharex="col")
        for row, name in enumerate(names):
            trace = one["gain"].sel(descriptor=name)
            for column, along in enumerate(("horizon", "period", "noise")):
                others = {key: value for key, value in held.items() if key != along}
                for number, memory in enumerate(one["memory"].values):
                    _line(
                        axes[row, column],
                        one[along].values,
                        trace.sel(memory=memory, **others),
                        along,
                        color=SYNTHETIC_COLORS[number],
                        marker=_MARKERS[number],
                        label=f"noise with memory {memory:g}" if memory else "white noise",
                    )
            claimed = one["claimed_gain"].sel(descriptor=name)
            for number, likelihood in enumerate(one["likelihood"].values):
                _line(
                    axes[row, 3],
                    one["horizon"].values,
                    claimed.sel(likelihood=likelihood),
                    "horizon",
                    color=SYNTHETIC_COLORS[2 + number],
                    marker=_MARKERS[2 + number],
                    label=f"likelihood {likelihood}",
                )
            axes[row, 0].set_ylabel(f"{plain(name)}\ninformation (nats)")
            axes[row, 0].set_ylim(bottom=0.0)
        texts = (
            ("Horizon", "seconds recorded"),
            ("Sampling", "seconds a sample averages"),
            ("Noise", "factor on its scale"),
            ("What likelihoods claim", "seconds recorded"),
        )
        for column, (title, below) in enumerate(texts):
            axes[0, column].set_title(title, loc="left")
            axes[-1, column].set_xlabel(below)
            values = one["horizon" if column in (0, 3) else ("period", "noise")[column - 1]].values
            _log_ticks(axes[-1, column], values)
        handles, labels = axes[0, 0].get_legend_handles_labels()
        more = axes[0, 3].get_legend_handles_labels()
        figure.legend(handles + more[0], labels + more[1], loc="outside lower center", ncols=5)
        figure.suptitle(
            f"What a recording tells: {one.sizes['route']} routes, median and middle 80 %; "
            f"unless on the axis {held['horizon']:g} s, a sample every {held['period']:g} s, "
            f"noise x {held['noise']:g}",
            fontsize=11,
        )
    return figure


def plot_route_character(design: xr.Dataset, *, n_groups: int = 4) -> "matplotlib.figure.Figure":
    """Expected information by length, stops, hills and speed of the route, for two samplings.

    Parameters
    ----------
    design
        As for :func:`plot_design`, with ``length_m``, ``n_stops``, ``height_range_m`` and
        ``speed_limit_mps``; the middle noise and the last memory are shown.
    n_groups
        Most groups by rank of the cause; routes alike in it are never parted.

    Returns
    -------
    figure
        A dot a route at the shortest period; lines join medians of groups at the shortest and
        the longest period.
    """
    one = design.isel(constants=0, memory=-1)
    noise = one["noise"].values
    one = one.sel(
        noise=nearest(np.log(noise), 0.0, of=noise),
        horizon=nearest(one["horizon"].values, 500.0),
    )
    names = one["descriptor"].values.tolist()
    with figure_style():
        figure = new_figure(width_in=11.0, height_in=2.1 * len(names) + 1.5)
        axes = figure.subplots(len(names), len(_CAUSES), squeeze=False, sharey="row", sharex="col")
        for column, (cause, (text, factor)) in enumerate(_CAUSES.items()):
            value = one[cause].values * factor
            groups = _groups(value, n_groups)
            middle = [np.median(value[each]) for each in groups]
            for row, name in enumerate(names):
                gain, panel = one["gain"].sel(descriptor=name), axes[row, column]
                panel.plot(
                    value,
                    gain.isel(period=0),
                    "o",
                    color=SYNTHETIC_COLORS[0],
                    ms=3,
                    alpha=0.35,
                    mew=0,
                )
                for number, index in enumerate((0, -1)):
                    heights = gain.isel(period=index).values
                    panel.plot(
                        middle,
                        [np.median(heights[each]) for each in groups],
                        marker=_MARKERS[number],
                        ms=5,
                        color=SYNTHETIC_COLORS[number],
                        label=f"a sample every {one['period'].values[index]:g} s",
                    )
                panel.set_ylim(bottom=0.0)
            axes[-1, column].set_xlabel(text)
        for row, name in enumerate(names):
            axes[row, 0].set_ylabel(f"{plain(name)}\ninformation (nats)")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        figure.suptitle(
            f"Which routes tell more ({one['horizon'].item():g} s recorded; dots are routes, lines "
            "medians of groups)"
        )
    return figure


def plot_constants(design: xr.Dataset) -> "matplotlib.figure.Figure":
    """Information under two sets of constants against each other, a dot a route.

    Parameters
    ----------
    design
        As for :func:`plot_design`, with two or more ``constants``: the first is on the horizontal
        axis, the others on the vertical one.
    """
    one = design.isel(memory=-1, period=0)
    noise = one["noise"].values
    one = one.sel(
        noise=nearest(np.log(noise), 0.0, of=noise),
        horizon=nearest(one["horizon"].values, 500.0),
    )
    names, sets = one["descriptor"].values.tolist(), one["constants"].values.tolist()
    with figure_style():
        figure = new_figure(width_in=3.5 * len(names), height_in=3.9)
        axes = figure.subplots(1, len(names), squeeze=False)[0]
        for panel, name in zip(axes, names, strict=True):
            gain = one["gain"].sel(descriptor=name)
            first = gain.sel(constants=sets[0]).values
            for number, other in enumerate(sets[1:]):
                panel.plot(
                    first, gain.sel(constants=other), "o", ms=4, alpha=0.6, mew=0,
                    color=SYNTHETIC_COLORS[number], label=plain(other),
                )  # fmt: skip
            low, high = float(gain.min()), float(gain.max())
            margin = 0.05 * (high - low) + 0.01
            panel.axline((low, low), slope=1.0, color=REAL_COLOR, lw=0.8, ls=":")
            limits = low - margin, high + margin
            panel.set(xlim=limits, ylim=limits, aspect="equal")
            panel.locator_params(nbins=5)
            panel.set_title(plain(name), loc="left")
            panel.set_xlabel(f"nats, constants: {plain(sets[0])}")
        axes[0].set_ylabel("nats, constants:\n" + ", ".join(plain(each) for each in sets[1:]))
        if len(sets) > 2:
            axes[0].legend()
        figure.suptitle("What other constants would make of the same routes")
    return figure


def nearest(values: np.ndarray, wanted: float, *, of: np.ndarray | None = None) -> float:
    """The entry (of another array) at which values come nearest to a wanted one."""
    index = int(np.argmin(np.abs(np.asarray(values, float) - wanted)))
    return float((values if of is None else of)[index])


def _groups(value: np.ndarray, n_groups: int) -> list[np.ndarray]:
    """Positions by rank of a value, equal ones together."""
    edges = np.unique(np.quantile(value, np.linspace(0.0, 1.0, n_groups + 1)[1:-1]))
    group = np.searchsorted(edges, value, side="left")
    return [np.flatnonzero(group == number) for number in np.unique(group)]


def _line(panel: Any, x: np.ndarray, gain: xr.DataArray, along: str, **look: Any) -> None:
    """Median over routes with a band."""
    gain = gain.transpose(along, "route")
    low, high = (gain.quantile(share, "route").values for share in _BAND)
    panel.fill_between(x, low, high, color=look["color"], alpha=0.14, lw=0)
    panel.plot(x, gain.median("route").values, ms=4, **look)


def _log_ticks(panel: Any, values: np.ndarray) -> None:
    """A logarithmic axis with a tick at each value."""
    panel.set_xscale("log")
    panel.set_xticks(values, [f"{value:g}" for value in values])
    panel.minorticks_off()
