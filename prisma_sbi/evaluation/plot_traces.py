"""Figures of the traces themselves: single ones, and the distribution of power."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from prisma_sbi import _validate
from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    SYNTHETIC_COLORS,
    figure_style,
    new_figure,
    plain,
    synthetic_color,
)
from prisma_sbi.evaluation.population import Traces, power_array, require_comparable

if TYPE_CHECKING:
    import matplotlib.figure

WATTS_PER_KW = 1000.0
POWER_LEVEL_KW = 1.0
"""Width of a bin in the distribution of power."""
RAREST_SHARE = 1e-3
"""Lower end of the logarithmic scale, in % per bin."""


def plot_traces(
    real: Traces | None,
    synthetic: Traces,
    *,
    n_traces: int = 6,
    seed: int = 0,
    label: str = "synthetic",
    color: str = SYNTHETIC_COLORS[0],
) -> "matplotlib.figure.Figure":
    """Random real traces in the left column, random synthetic ones in the right.

    Each column is a random sample sorted by energy, so that a row shows two trips of
    about the same rank; traces of one row are not meant to be the same trip.

    Parameters
    ----------
    real, synthetic
        Populations of traces over the same time steps. Without a real one (None) both columns
        show synthetic traces.
    n_traces
        Rows of the figure, at least 1; fewer where a population has fewer traces.
    seed
        Of the choice.
    label, color
        Name of the synthetic population, and the color of its traces.

    Returns
    -------
    figure
        Power in kW against time in seconds; all panels share both axes. With a real
        population it shows private traces and is no part of a release.

    Raises
    ------
    InputDataError
        If the populations cannot be compared.
    """
    require_comparable(synthetic if real is None else real, synthetic)
    _validate.at_least(1, n_traces=n_traces)
    other = power_array(synthetic, name="synthetic")
    if real is None:
        n_rows = min(n_traces, -(-len(other) // 2))
        sample = _sorted_sample(other, min(2 * n_rows, len(other)), seed)
        chosen = [sample[::2] / WATTS_PER_KW, sample[1::2] / WATTS_PER_KW]
    else:
        sides = power_array(real, name="real"), other
        n_rows = min(n_traces, *(len(side) for side in sides))
        chosen = [_sorted_sample(side, n_rows, seed) / WATTS_PER_KW for side in sides]
    time_s = _time_s(synthetic if real is None else real, other.shape[1])
    shown = np.concatenate(chosen)
    low, high = min(0.0, float(shown.min())), max(1.0, float(shown.max()))
    colors = color if real is None else REAL_COLOR, color
    titles = ("", "") if real is None else ("real", plain(label))
    with figure_style():
        figure = new_figure(width_in=10.0, height_in=1.2 + 1.05 * n_rows)
        axes = figure.subplots(n_rows, 2, sharex=True, sharey=True, squeeze=False)
        for column, (traces, shade) in enumerate(zip(chosen, colors, strict=True)):
            axes[0, column].set_title(titles[column])
            for spare in axes[len(traces) :, column]:
                spare.remove()
            for axis, trace in zip(axes[:, column], traces, strict=False):
                axis.fill_between(time_s, 0.0, trace, color=shade, alpha=0.18, linewidth=0)
                axis.plot(time_s, trace, color=shade, linewidth=0.9)
        axes[0, 0].locator_params(axis="y", nbins=3)
        axes[0, 0].set_xlim(time_s[0], time_s[-1])
        axes[0, 0].set_ylim(low * 1.05, high * 1.05)
        what = f"trips of {plain(label)}" if real is None else "trips of each population"
        n_trips = len(shown) if real is None else n_rows
        figure.suptitle(f"{n_trips} random {what}, least energy first")
        figure.supxlabel("time (s)", fontsize=10)
        figure.supylabel("power from the tank or battery (kW)", fontsize=10)
    return figure


def plot_power_levels(
    real: Traces | None, synthetic: Mapping[str, Traces]
) -> "matplotlib.figure.Figure":
    """Distribution of power while on, real against synthetic populations.

    Parameters
    ----------
    real
        Real population, or None for a figure of the synthetic ones alone.
    synthetic
        Name -> synthetic population.

    Returns
    -------
    figure
        Share of the time with power other than 0 in each bin of 1 kW: left on a linear
        scale, right on a logarithmic one for the rare high levels.
    """
    on_kw = {} if real is None else {"": _power_while_on_kw(real, name="real")}
    for label, traces in synthetic.items():
        on_kw[label] = _power_while_on_kw(traces, name=label)
    edges = _level_edges(list(on_kw.values()))
    with figure_style():
        figure = new_figure(width_in=10.0, height_in=3.9)
        axes = figure.subplots(1, 2, sharex=True)
        first = 1 if real is None else 0
        for number, (label, values) in enumerate(on_kw.items(), start=first):
            share = 100.0 * np.histogram(values, bins=edges)[0] / max(len(values), 1)
            for axis in axes:
                _draw_levels(axis, edges, share, label=plain(label) or "real", number=number)
        axes[0].set_title("linear scale")
        axes[0].set_ylim(bottom=0.0)
        if any(len(values) for values in on_kw.values()):
            axes[1].set_title("logarithmic scale")
            axes[1].set_yscale("log")
            axes[1].set_ylim(bottom=RAREST_SHARE)
        for axis in axes:
            axis.set_xlim(edges[0], edges[-1])
            axis.set_xlabel("power (kW)")
        axes[0].set_ylabel("share of time while on (% per kW)")
        figure.legend(
            *axes[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=min(len(on_kw), 6),
        )
        figure.suptitle("Distribution of power while on")
    return figure


def _draw_levels(
    axis: Any, edges: np.ndarray, share: np.ndarray, *, label: str, number: int
) -> None:
    """One distribution: the real one filled, the others as lines."""
    if number == 0:
        axis.stairs(share, edges, color=REAL_COLOR, fill=True, alpha=0.25, label=label)
        axis.stairs(share, edges, color=REAL_COLOR, linewidth=0.9)
    else:
        axis.stairs(share, edges, color=synthetic_color(number - 1), linewidth=1.5, label=label)


def _level_edges(populations: list[np.ndarray]) -> np.ndarray:
    """Edges of 1 kW bins that hold all but the rarest levels of every population."""
    filled = [values for values in populations if len(values)]
    low = min((float(np.percentile(values, 0.1)) for values in filled), default=0.0)
    high = max((float(np.percentile(values, 99.9)) for values in filled), default=1.0)
    first = min(0.0, np.floor(low / POWER_LEVEL_KW) * POWER_LEVEL_KW)
    last = max(POWER_LEVEL_KW, np.ceil(high / POWER_LEVEL_KW) * POWER_LEVEL_KW)
    n_bins = min(400, max(1, round((last - first) / POWER_LEVEL_KW)))
    return np.linspace(first, last, n_bins + 1)


def _power_while_on_kw(traces: Traces, *, name: str) -> np.ndarray:
    """All samples other than 0, in kW."""
    power_w = power_array(traces, name=name)
    return power_w[power_w != 0.0] / WATTS_PER_KW


def _sorted_sample(power_w: np.ndarray, n_rows: int, seed: int) -> np.ndarray:
    """Random rows, least energy first."""
    rows = np.random.default_rng(seed).choice(len(power_w), size=n_rows, replace=False)
    sample = power_w[rows]
    return sample[np.argsort(sample.sum(axis=1), kind="stable")]


def _time_s(traces: Traces, n_samples: int) -> np.ndarray:
    """Time of each sample; one per second where the traces do not say."""
    if not isinstance(traces, np.ndarray) and "time" in traces.coords:
        return traces["time"].to_numpy().astype(np.float64)
    return np.arange(n_samples, dtype=np.float64)
