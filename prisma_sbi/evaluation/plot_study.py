"""Figures of studies: calibration, profiles, ridges, vehicles that look alike."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.stats import chi2

from prisma_sbi import _validate
from prisma_sbi._optional import optional_import
from prisma_sbi.diagnostics import coverage_table, ecdf_envelope, reliability_table
from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    SYNTHETIC_COLORS,
    figure_style,
    new_figure,
    plain,
)

if TYPE_CHECKING:
    import matplotlib.figure

LEVELS = (0.5, 0.8, 0.9, 0.95)
_BLUE, _ORANGE, _GREEN = SYNTHETIC_COLORS[:3]
_NARROW, _WIDE, _FINE = "#f6c9a8", "#b9d7ee", "#eef4ec"
_ELLIPSE_LEVELS = (0.5, 0.95)


def plot_rank_ecdf(
    pit: Mapping[str, np.ndarray], *, level: float = 0.95
) -> "matplotlib.figure.Figure":
    """Distribution of ranks minus the uniform one, with its simultaneous envelope.

    Parameters
    ----------
    pit
        Numbers in (0, 1) by quantity, uniform if calibrated.
    level
        Probability that a calibrated curve stays inside everywhere.

    Returns
    -------
    figure
        A panel a quantity. A curve above zero: posteriors sit too high; below: too low. First up,
        then down: too narrow; first down, then up: too wide.
    """
    with figure_style():
        figure = new_figure(width_in=3.0 * len(pit) + 0.6, height_in=3.3)
        axes = np.atleast_1d(figure.subplots(1, len(pit), sharey=True))
        for panel, (name, values) in zip(axes, pit.items(), strict=True):
            ordered = np.sort(np.asarray(values, np.float64))
            n = len(ordered)
            envelope = ecdf_envelope(n, level=level)
            place = np.concatenate([[0.0], envelope.point, [1.0]])
            bounds = [
                np.concatenate([[0.0], side - envelope.point, [0.0]])
                for side in (envelope.lower, envelope.upper)
            ]
            panel.fill_between(place, *bounds, color=_BLUE, alpha=0.2, lw=0, label="envelope")
            x = np.concatenate([[0.0], np.repeat(ordered, 2), [1.0]])
            steps = np.arange(n + 1) / n
            y = np.repeat(steps, 2) - x
            count = np.searchsorted(ordered, envelope.point, side="right") / n
            inside = np.all((count >= envelope.lower) & (count <= envelope.upper))
            panel.plot(x, y, color=REAL_COLOR if inside else _ORANGE, lw=1.1)
            panel.axhline(0.0, color=REAL_COLOR, lw=0.6)
            verdict = "" if inside else ": leaves the envelope"
            panel.set_title(f"{plain(name)}{verdict}", loc="left")
            panel.set_xlim(0.0, 1.0)
            panel.set_xlabel("rank of the truth (0 to 1)")
        axes[0].set_ylabel("ECDF minus uniform")
        n_truths = max((len(values) for values in pit.values()), default=0)
        figure.suptitle(
            f"Ranks of {n_truths:,} truths; the band holds a calibrated curve as a whole "
            f"with probability {100 * level:g} %"
        )
    return figure


def plot_coverage(
    pit: Mapping[str, np.ndarray],
    *,
    levels: Sequence[float] = LEVELS,
    confidence: float = 0.99,
) -> "matplotlib.figure.Figure":
    """How often central intervals held the truth, as a colored table.

    Parameters
    ----------
    pit
        As for :func:`plot_rank_ecdf`.
    levels
        Nominal coverages.
    confidence
        Of the bounds within which chance may move a coverage.
    """
    with figure_style():
        figure = new_figure(width_in=1.6 + 1.35 * len(levels), height_in=1.5 + 0.55 * len(pit))
        panel = figure.subplots()
        for row, (name, values) in enumerate(pit.items()):
            table = coverage_table(values, levels=tuple(levels), confidence=confidence)
            for column, line in enumerate(table.to_dict("records")):
                narrow = line["coverage"] < line["level"]
                color = _FINE if line["ok"] else _NARROW if narrow else _WIDE
                panel.add_patch(_rectangle((column, row), color))
                text = f"{100 * line['coverage']:.1f} %"
                weight = "normal" if line["ok"] else "bold"
                panel.text(column, row - 0.1, text, ha="center", va="center", weight=weight)
                between = f"{100 * line['low']:.0f} to {100 * line['high']:.0f} %"
                panel.text(
                    column, row + 0.24, between, ha="center", va="center", fontsize=7, color="#555"
                )
            panel.text(-0.6, row, plain(name), ha="right", va="center")
        panel.set_xticks(range(len(levels)), [f"{100 * level:g} %" for level in levels])
        panel.set_yticks([])
        panel.set_xlim(-0.5, len(levels) - 0.5)
        panel.set_ylim(len(pit) - 0.5, -0.5)
        panel.xaxis.tick_top()
        panel.tick_params(length=0)
        panel.grid(visible=False)
        for side in panel.spines.values():
            side.set_visible(False)
        panel.set_xlabel(
            "green: as chance allows · orange: too narrow · blue: too wide", fontsize=8
        )
        figure.suptitle("How often central intervals held the truth")
    return figure


def plot_reliability(
    probability: np.ndarray, truth: np.ndarray, *, confidence: float = 0.99
) -> "matplotlib.figure.Figure":
    """How often vehicles came true that were given a certain probability.

    Parameters
    ----------
    probability : (case, vehicle)
        Summing to one over the vehicles.
    truth : (case,) int
        The vehicle that was true.
    confidence
        Of the bars, within which chance may move a share if the probability is right.
    """
    table = reliability_table(probability, truth, confidence=confidence)
    claimed = table["claimed"].to_numpy()
    with figure_style():
        figure = new_figure(width_in=4.6, height_in=4.3)
        panel = figure.subplots()
        span = np.asarray([0.5 * claimed[claimed > 0.0].min(initial=1e-3), 1.0])
        panel.plot(span, span, color=REAL_COLOR, lw=0.8, ls=":", label="as claimed")
        label = f"chance, {100 * confidence:g} %"
        floor = 0.5 * span[0]
        panel.vlines(
            claimed,
            np.maximum(table["low"], floor),
            table["high"],
            color=_BLUE, alpha=0.3, lw=6, label=label,
        )  # fmt: skip
        for ok, color, text in ((True, _BLUE, "observed"), (False, _ORANGE, "beyond chance")):
            some = table[table["ok"] == ok]
            if len(some):
                seen = np.maximum(some["observed"], floor)
                panel.plot(some["claimed"], seen, "o", color=color, ms=5, label=text)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_ylim(floor, 1.5)
        panel.set_xlabel("probability given to a vehicle")
        panel.set_ylabel("share that came true")
        panel.legend(loc="upper left")
        figure.suptitle("Are probabilities of vehicles what they claim?")
    return figure


def plot_profiles(
    profile: xr.Dataset,
    titles: Sequence[str],
    *,
    draws: np.ndarray | None = None,
    truth: np.ndarray | None = None,
    depth: float = 6.0,
) -> "matplotlib.figure.Figure":
    """Profile likelihood curves with their intervals, over histograms of posterior draws.

    Parameters
    ----------
    profile
        Along ``trip`` and ``parameter``: ``value`` and ``drop`` along ``place``, ``low``,
        ``high``; the attribute ``level``.
    titles : (trip,)
        Names of the trips.
    draws : (trip, draw, parameter)
        From the posterior of the same trips.
    truth : (trip, parameter)
        If known.
    depth
        How far below the top curves are shown, in nats.

    Returns
    -------
    figure
        A row a trip. For recorded trips it is private.
    """
    n_trips, names = profile.sizes["trip"], profile["parameter"].values.tolist()
    level = float(profile.attrs["level"])
    with figure_style():
        figure = new_figure(width_in=4.6 * len(names), height_in=1.2 + 2.1 * n_trips)
        axes = figure.subplots(n_trips, len(names), squeeze=False, sharey=True)
        for row, column in np.ndindex(n_trips, len(names)):
            panel, one = axes[row, column], profile.isel(trip=row, parameter=column)
            value = one["value"].values
            drop = one["drop"].values - one["drop"].values.max()
            if draws is not None:
                _draw_histogram(panel, draws[row, :, column], depth)
            low, high = one["low"].item(), one["high"].item()
            panel.axvspan(
                low, high, color=_BLUE, alpha=0.13, lw=0, label=f"{100 * level:g} % interval"
            )
            panel.plot(value, np.maximum(drop, -2 * depth), color=_BLUE, label="profile")
            cut = -0.5 * chi2.ppf(level, 1)
            panel.axhline(cut, color=_BLUE, lw=0.8, ls=":", label="its cut")
            if truth is not None:
                panel.axvline(truth[row, column], color=REAL_COLOR, ls="--", lw=1.0, label="truth")
            panel.set_ylim(-depth, 0.4)
            panel.set_xlim(*_window(value, drop, depth))
            panel.set_title(f"{plain(titles[row])}: {names[column]}", loc="left")
            panel.ticklabel_format(useOffset=False)
            panel.locator_params(axis="x", nbins=5)
            if column == 0:
                panel.set_ylabel("log likelihood\nbelow its best")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        figure.suptitle("Profile likelihood: the other parameter and the vehicle at their best")
    return figure


def plot_ridge(
    information: np.ndarray,
    point: np.ndarray,
    titles: Sequence[str],
    *,
    draws: np.ndarray | None = None,
    truth: np.ndarray | None = None,
) -> "matplotlib.figure.Figure":
    """Which mixes of aggressiveness and detour a trace cannot tell apart.

    Parameters
    ----------
    information : (trip, 2, 2)
        Fisher information about both.
    point : (trip, 2)
        Where it was taken: centers of the ellipses.
    titles : (trip,)
        Names of the trips.
    draws : (trip, draw, 2)
        From the posterior.
    truth : (trip, 2)
        If known.

    Returns
    -------
    figure
        A panel a trip, with ellipses of 50 and 95 %; axes differ from panel to panel. An
        oblique ellipse says that more detour is made up for by a faster or slower driver.
    """
    n_trips = len(point)
    n_columns = min(3, n_trips)
    n_rows = -(-n_trips // n_columns)
    angle = np.linspace(0.0, 2.0 * np.pi, 181)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    with figure_style():
        figure = new_figure(width_in=3.7 * n_columns + 0.4, height_in=3.1 * n_rows + 1.0)
        axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for panel in axes[n_trips:]:
            panel.set_axis_off()
        for row, panel in enumerate(axes[:n_trips]):
            if draws is not None:
                cloud = draws[row].T
                panel.plot(*cloud, ".", color=_GREEN, ms=5, alpha=0.45, mew=0, label="posterior")
            value, vector = np.linalg.eigh(information[row])
            half_axes = vector / np.sqrt(np.maximum(value, 1e-12))
            for level in _ELLIPSE_LEVELS:
                outline = point[row][:, None] + np.sqrt(chi2.ppf(level, 2)) * half_axes @ circle
                label = "Fisher 50, 95 %" if level == _ELLIPSE_LEVELS[0] else None
                panel.plot(*outline, color=_BLUE, label=label)
            if truth is not None:
                panel.plot(*truth[row], "x", color=REAL_COLOR, ms=7, mew=1.6, label="truth")
            panel.set_title(plain(titles[row]), loc="left")
            panel.ticklabel_format(useOffset=False)
            panel.locator_params(nbins=4)
            panel.set_xlabel("aggressiveness")
        for panel in axes[::n_columns]:
            panel.set_ylabel("detour")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        figure.suptitle("The ridge between aggressiveness\nand detour, the vehicle known")
    return figure


def plot_confusion(
    confusion: np.ndarray, label: np.ndarray, names: Sequence[str] | None = None
) -> "matplotlib.figure.Figure":
    """Which vehicles are taken for which, vehicles of one class beside each other.

    Parameters
    ----------
    confusion : (vehicle, vehicle)
        Row: true, column: believed; rows sum to one, or are NaN.
    label : (vehicle,) int
        Class of each vehicle.
    names : (vehicle,)
        Shown if there are 40 or fewer.

    Returns
    -------
    figure
        One square map, classes of two or more framed.
    """
    label = np.asarray(label)
    if np.shape(confusion) != (len(label), len(label)):
        raise ValueError(
            f"Expected confusion ({len(label)}, {len(label)}), a row a vehicle; got "
            f"{np.shape(confusion)}."
        )
    order = np.argsort(label, kind="stable")
    shown = np.asarray(confusion)[np.ix_(order, order)]
    first = np.flatnonzero(np.diff(label[order], prepend=-1))
    last = np.append(first[1:], len(order))
    with figure_style():
        figure = new_figure(width_in=7.2, height_in=6.4)
        panel = figure.subplots()
        power = optional_import("matplotlib.colors", extra="plots").PowerNorm(0.5, 0.0, 1.0)
        mesh = panel.imshow(shown, cmap="Blues", norm=power, interpolation="nearest")
        for begin, end in zip(first, last, strict=True):
            if end - begin > 1:
                center = 0.5 * (begin + end - 1)
                frame = _rectangle((center, center), "none", size=float(end - begin))
                frame.set_edgecolor(_ORANGE)
                panel.add_patch(frame)
        panel.grid(visible=False)
        panel.set_xlabel("believed vehicle, by class")
        panel.set_ylabel("true vehicle, by class")
        if names is not None and len(order) <= 40:
            ticks, texts = range(len(order)), [plain(names[i])[:24] for i in order]
            panel.set_xticks(ticks, texts, rotation=90, fontsize=6)
            panel.set_yticks(ticks, texts, fontsize=6)
        bar = figure.colorbar(mesh, ax=panel, shrink=0.8, ticks=(0, 0.05, 0.1, 0.25, 0.5, 1))
        bar.set_label("mean posterior probability")
        bar.ax.grid(visible=False)
        panel.set_title(
            f"{len(order)} vehicles, {len(first)} classes (frames: classes of two or more)",
            loc="left",
        )
    return figure


def plot_contraction(calibration: xr.Dataset) -> "matplotlib.figure.Figure":
    """How much each simulated trace told against how far its posterior lies from the truth.

    Parameters
    ----------
    calibration
        With ``contraction`` and ``z_score`` along ``simulation`` and ``parameter``.

    Returns
    -------
    figure
        A panel a parameter. To the right: much was learned. Outside the lines at 2 more than
        one in twenty: posteriors too narrow, or not normal.
    """
    names = calibration["parameter"].values.tolist()
    with figure_style():
        figure = new_figure(width_in=4.2 * len(names), height_in=3.6)
        axes = np.atleast_1d(figure.subplots(1, len(names), sharey=True))
        for panel, name in zip(axes, names, strict=True):
            one = calibration.sel(parameter=name)
            left = np.maximum(1.0 - one["contraction"].values, 1e-12)
            score = np.clip(one["z_score"].values, -5.0, 5.0)
            panel.set_xscale("log")
            panel.set_xlim(1.5 * left.max(), left.min() / 1.5)
            panel.plot(left, score, ".", color=_BLUE, ms=5, alpha=0.6, mew=0)
            for line in (-2.0, 2.0):
                panel.axhline(line, color=REAL_COLOR, lw=0.8, ls=":")
            beyond = float(np.mean(np.abs(score) > 2.0))
            panel.set_ylim(-5.3, 5.3)
            panel.set_title(f"{plain(name)}: {100 * beyond:.1f} % beyond 2", loc="left")
            panel.set_xlabel("posterior over prior variance (right: learned)")
        axes[0].set_ylabel("posterior mean minus truth,\nin standard deviations")
        figure.suptitle("What was learned, and how far off it is")
    return figure


def _rectangle(center: tuple[float, float], color: str, *, size: float = 0.94) -> Any:
    """A square around a point."""
    patches = optional_import("matplotlib.patches", extra="plots")
    _validate.positive(size=size)
    corner = center[0] - 0.5 * size, center[1] - 0.5 * size
    return patches.Rectangle(corner, size, size, facecolor=color, edgecolor="none", lw=1.0)


def _draw_histogram(panel: Any, draws: np.ndarray, depth: float) -> None:
    """Log density of draws below its highest bin, on the scale of the curve."""
    counts, edges = np.histogram(draws, bins=max(8, round(np.sqrt(len(draws)))))
    with np.errstate(divide="ignore"):
        height = np.log(counts / counts.max())
    panel.stairs(
        np.maximum(height, -depth),
        edges,
        baseline=-depth,
        fill=True,
        color=_GREEN,
        alpha=0.35,
        label="posterior (log density)",
    )


def _window(value: np.ndarray, drop: np.ndarray, depth: float) -> tuple[float, float]:
    """Where a curve is not deeper than what is shown."""
    near = value[drop > -1.2 * depth]
    low, high = float(near.min()), float(near.max())
    margin = 0.08 * (high - low) + 1e-4
    return low - margin, high + margin
