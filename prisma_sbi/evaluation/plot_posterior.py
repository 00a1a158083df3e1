"""Figures of posteriors: bands around observed traces, and what all trips' fits look like."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    SYNTHETIC_COLORS,
    figure_style,
    new_figure,
)

if TYPE_CHECKING:
    import matplotlib.figure

_WATTS_PER_KW = 1000.0


def plot_trace_bands(
    observed_w: np.ndarray, predicted_w: np.ndarray, titles: Sequence[str]
) -> "matplotlib.figure.Figure":
    """Observed traces over the middle 50 and 90 % of predicted ones.

    Parameters
    ----------
    observed_w : (trip, time)
        At 1 Hz.
    predicted_w : (draw, trip, time)
        Posterior prediction.
    titles : (trip,)
        What stands over each panel.

    Returns
    -------
    figure
        Power in kW against time in seconds, a panel a trip. It shows private traces.
    """
    n_trips, n_times = observed_w.shape
    seconds = np.arange(n_times)
    levels = np.quantile(predicted_w, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0) / _WATTS_PER_KW
    color = SYNTHETIC_COLORS[0]
    with figure_style():
        figure = new_figure(width_in=10.0, height_in=1.2 + 1.6 * ((n_trips + 1) // 2))
        axes = figure.subplots((n_trips + 1) // 2, 2, sharex=True, squeeze=False).ravel()
        for panel in axes[n_trips:]:
            panel.set_axis_off()
        for trip, panel in enumerate(axes[:n_trips]):
            panel.fill_between(
                seconds,
                levels[0, trip],
                levels[4, trip],
                color=color,
                alpha=0.2,
                lw=0,
                label="90 %",
            )
            panel.fill_between(
                seconds,
                levels[1, trip],
                levels[3, trip],
                color=color,
                alpha=0.35,
                lw=0,
                label="50 %",
            )
            panel.plot(seconds, levels[2, trip], color=color, lw=1.0, label="median prediction")
            seen_kw = observed_w[trip] / _WATTS_PER_KW
            panel.plot(seconds, seen_kw, color=REAL_COLOR, lw=0.8, alpha=0.8, label="observed")
            panel.set_title(titles[trip], loc="left")
            panel.set_ylabel("kW")
            panel.margins(x=0.0)
        for panel in axes[max(n_trips - 2, 0) : n_trips]:
            panel.set_xlabel("time in s")
            panel.tick_params(labelbottom=True)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        figure.suptitle("Posterior prediction and what was recorded")
    return figure


def plot_posterior_widths(
    widths: Mapping[str, np.ndarray], prior_widths: Mapping[str, float]
) -> "matplotlib.figure.Figure":
    """How wide the posteriors of all trips are, beside the prior.

    Parameters
    ----------
    widths
        Posterior standard deviations ``(trip,)`` by parameter.
    prior_widths
        Standard deviation of the prior by parameter.

    Returns
    -------
    figure
        A histogram a parameter, of the ratio to the prior. Near 1 the trace says nothing about
        the parameter.
    """
    with figure_style():
        figure = new_figure(width_in=4.2 * len(widths), height_in=3.2)
        axes = np.atleast_1d(figure.subplots(1, len(widths), sharey=True))
        edges = np.linspace(0.0, 1.25, 51)
        for panel, (name, values) in zip(axes, widths.items(), strict=True):
            ratio = values[np.isfinite(values)] / prior_widths[name]
            panel.hist(np.clip(ratio, 0.0, edges[-1]), bins=edges, color=SYNTHETIC_COLORS[0])
            panel.axvline(1.0, color=REAL_COLOR, lw=1.0, ls="--")
            panel.set_title(name, loc="left")
            panel.set_xlabel("posterior over prior standard deviation")
        axes[0].set_ylabel("trips")
        axes[0].yaxis.get_major_locator().set_params(integer=True)
        figure.suptitle("What the traces say")
    return figure


def plot_convergence(
    numbers: Mapping[str, np.ndarray], limits: Mapping[str, float]
) -> "matplotlib.figure.Figure":
    """Diagnostics of all trips with their limits, a histogram each.

    Parameters
    ----------
    numbers
        One number a trip ``(trip,)`` by name.
    limits
        Where a trip is flagged, for some of them.
    """
    with figure_style():
        figure = new_figure(width_in=3.4 * len(numbers), height_in=3.0)
        axes: Any = np.atleast_1d(figure.subplots(1, len(numbers), sharey=True))
        for panel, (name, values) in zip(axes, numbers.items(), strict=True):
            found = values[np.isfinite(values)]
            low, high = np.quantile(found, [0.0, 0.995]) if found.size else (0.0, 1.0)
            panel.hist(np.clip(found, low, high), bins=40, color=SYNTHETIC_COLORS[0])
            if name in limits:
                panel.axvline(limits[name], color=SYNTHETIC_COLORS[1], lw=1.2)
            panel.set_title(name, loc="left")
        axes[0].set_ylabel("trips")
        axes[0].yaxis.get_major_locator().set_params(integer=True)
        figure.suptitle("Diagnostics of the chains; the line is the limit")
    return figure
