"""Figures of curves averaged over a population: autocorrelation and power spectrum."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from prisma_sbi.evaluation.autocorrelation import autocorrelation, autocorrelation_distance
from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    figure_style,
    new_figure,
    plain,
    synthetic_color,
)
from prisma_sbi.evaluation.population import Traces, power_array, require_comparable

if TYPE_CHECKING:
    import matplotlib.figure

BAND_PERCENTILES = (5.0, 95.0)
BAND_NOTE = "band: 5th to 95th percentile over trips"
MAXIMUM_COLUMNS = 3
MAXIMUM_LEGEND_COLUMNS = 6


class _Summary(NamedTuple):
    """Center and band of the curves of one population."""

    center: np.ndarray
    low: np.ndarray
    high: np.ndarray


def plot_mean_acf(
    real: Traces | None, synthetic: Mapping[str, Traces]
) -> "matplotlib.figure.Figure":
    """Mean autocorrelation of real and synthetic traces, with bands over trips.

    Parameters
    ----------
    real
        Real population, or None for a figure of the synthetic ones alone.
    synthetic
        Name -> synthetic population; each gets a panel of its own beside the real one.

    Returns
    -------
    figure
        Line: mean curve over trips. Band: 5th to 95th percentile over trips. Panel titles
        give the distance between the mean curves where there is a real one.

    Raises
    ------
    InputDataError
        If the populations cannot be compared.
    """
    curves = {label: autocorrelation(power_w) for label, power_w in _powers(real, synthetic)}
    lags = np.arange(1, next(iter(curves.values())).shape[1] + 1)
    summaries = {label: _summary(values, np.mean) for label, values in curves.items()}
    with figure_style():
        figure, axes = _panels(lags, summaries, x_label="lag (samples)", y_label="autocorrelation")
        for axis, label in zip(axes, synthetic, strict=True):
            title = plain(label)
            if "" in curves:
                distance = autocorrelation_distance(curves[""], curves[label])
                title += f"\nmean difference {distance:.3f}"
            axis.set_title(title)
            axis.axhline(0.0, color="#909090", linewidth=0.8, zorder=1)
        axes[0].set_xlim(lags[0], lags[-1])
        figure.suptitle(f"Mean autocorrelation of power ({BAND_NOTE})")
    return figure


def plot_power_spectrum(
    real: Traces | None, synthetic: Mapping[str, Traces], *, time_step_s: float = 1.0
) -> "matplotlib.figure.Figure":
    """Power spectral density of real and synthetic traces, with bands over trips.

    Parameters
    ----------
    real
        Real population, or None for a figure of the synthetic ones alone.
    synthetic
        Name -> synthetic population; each gets a panel of its own beside the real one.
    time_step_s
        Time between two samples.

    Returns
    -------
    figure
        Line: median periodogram over trips. Band: 5th to 95th percentile. Both axes are
        logarithmic; where no trace varies the density is 0 and its axis is linear.

    Raises
    ------
    InputDataError
        If the populations cannot be compared.
    """
    powers = dict(_powers(real, synthetic))
    n_samples = next(iter(powers.values())).shape[1]
    frequency_hz = np.fft.rfftfreq(n_samples, time_step_s)[_two_sided(n_samples)]
    bins = _octave_bins(len(frequency_hz))
    summaries = {
        label: _summary(_periodogram(power_w, time_step_s, bins), np.median)
        for label, power_w in powers.items()
    }
    center_hz = np.array([np.exp(np.log(frequency_hz[part]).mean()) for part in bins])
    with figure_style():
        figure, axes = _panels(
            center_hz, summaries, x_label="frequency (Hz)", y_label="density (kW²/Hz)"
        )
        for axis, label in zip(axes, synthetic, strict=True):
            axis.set_title(plain(label))
        axes[0].set_xscale("log")
        if any(summary.high.max() > 0.0 for summary in summaries.values()):
            axes[0].set_yscale("log")
        axes[0].set_xlim(frequency_hz[0], 0.5 / time_step_s)
        figure.suptitle(f"Median spectral density of power ({BAND_NOTE})")
    return figure


def _powers(real: Traces | None, synthetic: Mapping[str, Traces]) -> list[tuple[str, np.ndarray]]:
    """Check all populations; the real population, if there is one, has the empty label."""
    if not synthetic:
        raise ValueError("Expected at least one synthetic population; got none. Pass one.")
    first = next(iter(synthetic.values())) if real is None else real
    for traces in synthetic.values():
        require_comparable(first, traces)
    found = [] if real is None else [("", power_array(real, name="real"))]
    return found + [(label, power_array(traces, name=label)) for label, traces in synthetic.items()]


def _summary(curves: np.ndarray, center: Any) -> _Summary:
    """Center and percentile band over trips."""
    low, high = np.percentile(curves, BAND_PERCENTILES, axis=0)
    return _Summary(center(curves, axis=0), low, high)


def _panels(
    x: np.ndarray, summaries: Mapping[str, _Summary], *, x_label: str, y_label: str
) -> tuple[Any, list[Any]]:
    """One panel per synthetic population, each with the real one behind it."""
    labels = [label for label in summaries if label]
    n_columns = 2 if len(labels) == 4 else min(MAXIMUM_COLUMNS, len(labels))
    n_rows = -(-len(labels) // n_columns)
    width_in = 6.4 if n_columns == 1 else 1.2 + 3.6 * n_columns
    figure = new_figure(width_in=width_in, height_in=1.3 + 3.0 * n_rows)
    grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    axes = list(grid.flat)
    for spare in axes[len(labels) :]:
        spare.remove()
    for number, (axis, label) in enumerate(zip(axes, labels, strict=False)):
        if "" in summaries:
            _draw_summary(axis, x, summaries[""], color=REAL_COLOR, label="real")
        _draw_summary(axis, x, summaries[label], color=synthetic_color(number), label=plain(label))
        if number + n_columns >= len(labels):  # nothing below that shows the shared labels
            axis.tick_params(labelbottom=True)
            axis.set_xlabel(x_label)
        if number % n_columns == 0:
            axis.set_ylabel(y_label)
    names = ["real", *map(plain, labels)] if "" in summaries else [*map(plain, labels)]
    handles = axes[0].get_legend_handles_labels()[0][: len(names) - len(labels)]
    handles += [axis.get_legend_handles_labels()[0][-1] for axis in axes[: len(labels)]]
    figure.legend(
        handles, names, loc="outside lower center", ncols=min(MAXIMUM_LEGEND_COLUMNS, len(names))
    )
    return figure, axes[: len(labels)]


def _draw_summary(axis: Any, x: np.ndarray, summary: _Summary, *, color: str, label: str) -> None:
    """Draw a line with a band."""
    axis.fill_between(x, summary.low, summary.high, color=color, alpha=0.18, linewidth=0)
    axis.plot(x, summary.center, color=color, label=label, linewidth=1.8)


def _octave_bins(n_frequencies: int, *, per_octave: int = 4) -> list[np.ndarray]:
    """Group frequencies in parts of about equal width on a logarithmic axis, none empty."""
    position = np.floor(np.log2(np.arange(1, n_frequencies + 1)) * per_octave)
    return [np.flatnonzero(position == value) for value in np.unique(position)]


def _two_sided(n_samples: int) -> slice:
    """Frequencies that occur with both signs: neither 0 nor the Nyquist frequency."""
    return slice(1, (n_samples + 1) // 2)


def _periodogram(power_w: np.ndarray, time_step_s: float, bins: list[np.ndarray]) -> np.ndarray:
    """Periodogram ``(trip, group)`` in kW^2/Hz, averaged within groups of frequencies."""
    centered_kw = (power_w - power_w.mean(axis=1, keepdims=True)) / 1000.0
    spectrum = np.abs(np.fft.rfft(centered_kw, axis=1)) ** 2
    n_samples = power_w.shape[1]
    density = 2.0 * time_step_s / n_samples * spectrum[:, _two_sided(n_samples)]
    return np.stack([density[:, part].mean(axis=1) for part in bins], axis=1)
