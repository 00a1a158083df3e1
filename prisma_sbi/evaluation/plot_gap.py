"""Figures of the gap between decoded traces and the trips that they imitate."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from prisma_sbi.evaluation.autocorrelation import autocorrelation
from prisma_sbi.evaluation.plot_rows import require_columns
from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    figure_style,
    new_figure,
    plain,
    synthetic_color,
)
from prisma_sbi.evaluation.texture_gap import (
    BAND_EDGES_HZ,
    PUBLISHED,
    Driven,
    band_variance_w2,
    quiet_lengths,
)

if TYPE_CHECKING:
    import matplotlib.figure

_KW = 1e3
_WINDOW_S = 60
_SCORES = dict(zip(PUBLISHED, ("ACF × floor", "FID × floor", "precision", "recall"), strict=True))
_LARGEST = 1.0
"""End of the color scale of :func:`plot_gap_groups`: a factor of e."""


def plot_gap(real_w: np.ndarray, decoded: Mapping[str, np.ndarray]) -> "matplotlib.figure.Figure":
    """Six views of recorded trips and of the traces of their best fits.

    Parameters
    ----------
    real_w : (trip, time)
        Recorded trips at 1 Hz, zero after the end.
    decoded
        Name -> traces ``(trip, time)`` that imitate them.

    Returns
    -------
    figure
        First and last minute, levels of power, deviation by band of frequency, lengths of
        quiet times, and the difference of mean autocorrelation.
    """
    sides = {"recorded": Driven(real_w)} | {name: Driven(side) for name, side in decoded.items()}
    colors = [REAL_COLOR, *(synthetic_color(number) for number in range(len(decoded)))]
    with figure_style():
        figure = new_figure(width_in=11.0, height_in=6.6)
        axes = figure.subplots(2, 3).ravel()
        for (name, side), color in zip(sides.items(), colors, strict=True):
            style = {"color": color, "label": plain(name)}
            _draw_start(axes[0], side, style)
            _draw_end(axes[1], side, style)
            _draw_levels(axes[2], side, style)
            _draw_bands(axes[3], side, style)
            _draw_quiet(axes[4], side, style)
        real_curve = autocorrelation(real_w).mean(axis=0)
        for side, color in zip(decoded.values(), colors[1:], strict=True):
            difference = autocorrelation(side).mean(axis=0) - real_curve
            axes[5].plot(np.arange(1, len(difference) + 1), difference, color=color)
        _name_axes(axes)
        figure.legend(
            *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(sides)
        )
        figure.suptitle(f"{len(real_w):,} recorded trips and the traces of their best fits")
    return figure


def plot_gap_groups(table: pd.DataFrame) -> "matplotlib.figure.Figure":
    """Ratio of decoded to recorded for every fact and group, as a table of colors.

    Parameters
    ----------
    table
        From :func:`~prisma_sbi.evaluation.gap_table`.

    Returns
    -------
    figure
        A row per fact, a column per group. Differences of autocorrelation are shown as they
        are, times ten; a number that is zero on one side only has the darkest color.
    """
    require_columns(table, ("grouping", "group", "fact", "title", "unit", "real", "synthetic"))
    groups = list(dict.fromkeys(zip(table["grouping"], table["group"], strict=True)))
    facts = list(dict.fromkeys(table["fact"]))
    cells = table.set_index(["fact", "grouping", "group"])
    with figure_style():
        figure = new_figure(width_in=4.3 + 0.95 * len(groups), height_in=1.6 + 0.27 * len(facts))
        axis = figure.subplots()
        values = np.full((len(facts), len(groups)), np.nan)
        for row, fact in enumerate(facts):
            for column, group in enumerate(groups):
                cell = cells.loc[(fact, *group)]
                values[row, column] = _relative(fact, cell["real"], cell["synthetic"])
                axis.text(
                    column,
                    row,
                    f"{_short(cell['synthetic'])} / {_short(cell['real'])}",
                    ha="center",
                    va="center",
                    fontsize=7.5,
                    color="white" if abs(values[row, column]) > 0.7 else "black",
                )
        image = axis.imshow(values, cmap="RdBu_r", vmin=-_LARGEST, vmax=_LARGEST, aspect="auto")
        axis.grid(visible=False)
        titles = cells.groupby(level=0)[["title", "unit"]].first()
        axis.set_yticks(range(len(facts)), labels=[_label(titles.loc[fact]) for fact in facts])
        counts = table.groupby(["grouping", "group"])["n_trips"].first()
        axis.set_xticks(
            range(len(groups)),
            labels=[f"{plain(group[1])}\n{counts[group]:,}" for group in groups],
        )
        axis.tick_params(length=0)
        figure.colorbar(image, ax=axis, label="log (decoded / recorded)", pad=0.01, aspect=40)
        axis.set_title("decoded / recorded, by vehicle and road; number of trips below")
    return figure


def plot_swaps(
    tables: Mapping[str, pd.DataFrame], *, direction: str = "repair"
) -> "matplotlib.figure.Figure":
    """What each feature buys if it is taken from the recorded trips, one panel per score.

    Parameters
    ----------
    tables
        Name -> table from :func:`~prisma_sbi.evaluation.swap_table`.
    direction
        ``"repair"``, or ``"break"`` for recorded trips with a feature of the decoded ones.

    Returns
    -------
    figure
        A dot per feature. Dashed: decoded as they are, in the color of the dots. Solid gray:
        copies of the recorded trips, the best that can be reached.
    """
    first = next(iter(tables.values()))
    require_columns(first, ("direction", "swap", "title", *PUBLISHED))
    chosen = first[(first["direction"] == direction) & (first["swap"] != "everything")]
    names = list(chosen["swap"])
    with figure_style():
        figure = new_figure(width_in=11.0, height_in=1.7 + 0.3 * len(names))
        axes = figure.subplots(1, len(PUBLISHED), sharey=True)
        for axis, (score, title) in zip(axes, _SCORES.items(), strict=True):
            for number, (label, table) in enumerate(tables.items()):
                color = synthetic_color(number)
                rows = table[table["direction"] == direction].set_index("swap")
                decoded = table.loc[table["direction"] == "none", score].iloc[0]
                best = table.loc[table["swap"] == "everything", score].iloc[0]
                axis.axvline(best, color=REAL_COLOR, linewidth=1.0)
                axis.axvline(decoded, color=color, linewidth=1.0, linestyle="--")
                offset = 0.16 * (number - 0.5 * (len(tables) - 1))
                axis.plot(
                    [rows.loc[name, score] for name in names],
                    np.arange(len(names)) + offset,
                    "o",
                    markersize=5,
                    color=color,
                    label=plain(label),
                )
            axis.set_title(title)
        axes[0].set_yticks(range(len(names)), labels=list(chosen["title"]))
        axes[0].set_ylim(len(names) - 0.5, -0.5)
        figure.legend(
            *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(tables)
        )
        what = (
            "Decoded traces with one feature of their recorded trips"
            if direction == "repair"
            else "Recorded trips with one feature of their decoded traces"
        )
        figure.suptitle(f"{what} (dashed: decoded, gray: recorded)")
    return figure


def _draw_start(axis: Any, side: Driven, style: Mapping[str, Any]) -> None:
    """Mean course of the first minute, over trips that last as long."""
    long = [trip[:_WINDOW_S] for trip in side.trips if len(trip) >= _WINDOW_S]
    if long:
        axis.plot(np.arange(_WINDOW_S), np.mean(long, axis=0) / _KW, **style)


def _draw_end(axis: Any, side: Driven, style: Mapping[str, Any]) -> None:
    """Mean course of the last minute of trips that end."""
    long = [trip[-_WINDOW_S:] for trip in side.finished if len(trip) >= _WINDOW_S]
    if long:
        axis.plot(np.arange(-_WINDOW_S, 0), np.mean(long, axis=0) / _KW, **style)


def _draw_levels(axis: Any, side: Driven, style: Mapping[str, Any]) -> None:
    """Quantiles of all levels."""
    shares = np.linspace(0.0, 0.99, 200)
    axis.plot(100 * shares, np.quantile(side.levels_w, shares) / _KW, **style)


def _draw_bands(axis: Any, side: Driven, style: Mapping[str, Any]) -> None:
    """Mean deviation of a trip by band."""
    deviation = [np.sqrt(band_variance_w2(trip)) for trip in side.trips]
    axis.plot(np.mean(deviation, axis=0) / _KW, "o-", markersize=4, **style)


def _draw_quiet(axis: Any, side: Driven, style: Mapping[str, Any]) -> None:
    """Share of the driven time that lies in quiet times at least so long."""
    lengths = np.sort(quiet_lengths(side))[::-1]
    if lengths.size:
        share = 100 * np.cumsum(lengths) / len(side.levels_w)
        axis.plot(lengths, share, drawstyle="steps-pre", **style)


def _name_axes(axes: Any) -> None:
    """Titles, units and scales of the six views."""
    axes[0].set(title="first minute", xlabel="time (s)", ylabel="mean power (kW)")
    axes[1].set(title="last minute", xlabel="time before the end (s)", ylabel="mean power (kW)")
    axes[2].set(title="levels of power", xlabel="share of driven time (%)", ylabel="power (kW)")
    ticks = [f"1/{1 / edge:.0f}" for edge in BAND_EDGES_HZ[1:]]
    axes[3].set(title="deviation by band", xlabel="upper limit of the band (Hz)", ylabel="kW")
    axes[3].set_xticks(range(len(ticks)), labels=ticks)
    axes[4].set(
        title="quiet times",
        xscale="log",
        xlabel="lasting at least (s)",
        ylabel="share of driven time (%)",
    )
    axes[5].set(title="mean autocorrelation", xlabel="lag (s)", ylabel="decoded less recorded")
    axes[5].axhline(0.0, color=REAL_COLOR, linewidth=1.0)
    for axis in axes[:5]:
        axis.set_ylim(bottom=0.0)


def _relative(fact: str, real: float, synthetic: float) -> float:
    """Color of a cell."""
    if fact.startswith("acf"):
        return 10.0 * (synthetic - real)
    if real == synthetic:
        return 0.0
    if min(real, synthetic) <= 0.0:
        return float(np.sign(synthetic - real)) * _LARGEST
    return float(np.log(synthetic / real))


def _short(value: float) -> str:
    """Three digits."""
    return "–" if np.isnan(value) else f"{value:.2g}" if abs(value) < 10 else f"{value:.0f}"


def _label(entry: pd.Series) -> str:
    """Title and unit of a fact."""
    title, unit = str(entry["title"]), str(entry["unit"])
    return f"{title} ({unit})" if unit else title
