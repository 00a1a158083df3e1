"""Figures of misfit: p-values of discrepancies, and which kinds of trips fail which."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import binom

from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    SYNTHETIC_COLORS,
    figure_style,
    new_figure,
    plain,
)

if TYPE_CHECKING:
    import matplotlib.figure

_N_BINS = 10
_N_COLUMNS = 5
_DARK = 0.55


def plot_p_values(
    p_above: Mapping[str, np.ndarray], *, level: float = 0.95
) -> "matplotlib.figure.Figure":
    """Histogram of one-sided p-values of many trips, a panel a discrepancy.

    Parameters
    ----------
    p_above
        Share of replicates above the observation ``(trip,)`` by title.
    level
        Probability that a bar of uniform p-values ends inside the band.

    Returns
    -------
    figure
        A pile at the left: observations are too high for the model; at the right: too low; a
        heap in the middle: the discrepancy was fitted, or the noise is too large. For recorded
        trips it is private.
    """
    n_rows = -(-len(p_above) // _N_COLUMNS)
    edges = np.linspace(0.0, 1.0, _N_BINS + 1)
    tail = 0.5 * (1.0 - level)
    counts = {name: np.histogram(values, edges)[0] for name, values in p_above.items()}
    with figure_style():
        figure = new_figure(width_in=2.15 * _N_COLUMNS, height_in=1.9 * n_rows + 0.9)
        axes = figure.subplots(n_rows, _N_COLUMNS, sharex=True, sharey=True, squeeze=False)
        for panel in axes.ravel()[len(p_above) :]:
            panel.set_axis_off()
        for panel, (name, values) in zip(axes.ravel(), p_above.items(), strict=False):
            n = len(values)
            low, high = binom.ppf([tail, 1.0 - tail], n, 1.0 / _N_BINS) / n
            ends = counts[name][[0, -1]] / n
            color = SYNTHETIC_COLORS[1] if ends.max() > high else SYNTHETIC_COLORS[0]
            panel.bar(edges[:-1], counts[name] / n, 1.0 / _N_BINS, align="edge", color=color)
            panel.axhspan(low, high, color=REAL_COLOR, alpha=0.22, lw=0, zorder=3)
            panel.set_title(plain(name), loc="left", fontsize=9)
            panel.set_xlim(0.0, 1.0)
            panel.set_xticks([0.0, 0.5, 1.0], ["0", "½", "1"])
        for panel in axes[:, 0]:
            panel.set_ylabel("share of trips", fontsize=9)
        n_trips = max(map(len, p_above.values()), default=0)
        figure.supxlabel("share of replicates above the trace", fontsize=10)
        figure.suptitle(
            f"{n_trips:,} trips among their replicates; the gray band holds a bar of uniform "
            f"p-values with {100 * level:g} %\npile at the left: too high for the simulator; at "
            "the right: too low",
            fontsize=10.5,
        )
    return figure


def plot_extreme_shares(
    shares: pd.DataFrame, *, n_trips: Mapping[str, int], nominal: float
) -> "matplotlib.figure.Figure":
    """Share of trips with an extreme p-value, by discrepancy and group.

    Parameters
    ----------
    shares
        A row a discrepancy, a column a group.
    n_trips
        Trips of each group.
    nominal
        Share that a true model has.
    """
    values = shares.to_numpy(float)
    with figure_style():
        figure = new_figure(
            width_in=max(4.4, 3.2 + 1.0 * values.shape[1]), height_in=1.6 + 0.3 * len(values)
        )
        panel = figure.subplots()
        image = panel.imshow(values, cmap="Oranges", vmin=0.0, vmax=1.0, aspect="auto")
        for row, column in np.ndindex(values.shape):
            color = "white" if values[row, column] > _DARK else "black"
            panel.text(
                column, row, f"{100 * values[row, column]:.0f}", ha="center", va="center",
                color=color, fontsize=9,
            )  # fmt: skip
        labels = [f"{plain(name)}\n({n_trips[str(name)]:,})" for name in shares.columns]
        panel.set_xticks(range(len(labels)), labels)
        panel.set_yticks(range(len(values)), [plain(name) for name in shares.index])
        panel.xaxis.tick_top()
        panel.tick_params(length=0)
        panel.grid(visible=False)
        for side in panel.spines.values():
            side.set_visible(False)
        bar = figure.colorbar(image, ax=panel, shrink=0.7)
        bar.set_label(f"share with p < {nominal:g}")
        bar.ax.grid(visible=False)
        figure.suptitle(
            f"Trips in 100 with an extreme p-value\n({100 * nominal:g} if all were well)"
        )
    return figure
