"""Figures of sensitivity: which constants move descriptors, and what the prior decides."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from prisma_sbi.evaluation.plot_style import (
    GRID_COLOR,
    REAL_COLOR,
    SYNTHETIC_COLORS,
    figure_style,
    new_figure,
    plain,
)

if TYPE_CHECKING:
    import matplotlib.figure

_BLUE, _ORANGE = SYNTHETIC_COLORS[:2]
_SMALLEST = 1e-3
_LINEAR = 1.0


def plot_tornado(
    found: xr.Dataset, titles: Mapping[str, str], *, variable: str = "shift_sd"
) -> "matplotlib.figure.Figure":
    """What posterior means move by if a constant is lowered or raised.

    Parameters
    ----------
    found
        ``variable`` along ``trip``, ``constant``, ``side`` (lower, higher) and ``parameter``; the
        attribute ``change``.
    titles
        Of the constants; in their order of importance the figure shows them.
    variable
        ``shift_sd``, in posterior standard deviations, or ``shift``.

    Returns
    -------
    figure
        A panel a parameter. Bars end at the median trip, lines hold the middle half of the trips.
        Standard deviations are on an axis that is logarithmic beyond one. For recorded trips it
        is private.
    """
    values = found[variable]
    names = values["parameter"].values.tolist()
    largest = abs(found["shift_sd"]).max(dim="side").median(dim="trip")
    strength = largest.max(dim="parameter").values
    order = np.argsort(strength, kind="stable")
    labels = [titles[str(found["constant"].values[place])] for place in order]
    change = float(found.attrs["change"])
    unit = "posterior standard deviations" if variable == "shift_sd" else "its unit"
    with figure_style():
        figure = new_figure(
            width_in=3.1 * len(names) + 1.8, height_in=1.5 + 0.5 * len(order)
        )  # fmt: skip
        axes = np.atleast_1d(figure.subplots(1, len(names), sharey=True))
        for panel, name in zip(axes, names, strict=True):
            for side, color, offset in (("lower", _BLUE, 0.19), ("higher", _ORANGE, -0.19)):
                moved = values.sel(parameter=name, side=side).values[:, order]
                low, middle, high = np.quantile(moved, [0.25, 0.5, 0.75], axis=0)
                place = np.arange(len(order)) + offset
                sign = "−" if side == "lower" else "+"
                panel.barh(
                    place, middle, 0.36, color=color, label=f"constant {sign} {100 * change:g} %"
                )
                panel.hlines(place, low, high, color=REAL_COLOR, lw=1.0)
            panel.axvline(0.0, color=REAL_COLOR, lw=0.8)
            if variable == "shift_sd":
                panel.set_xscale("symlog", linthresh=_LINEAR)
                panel.xaxis.set_major_formatter("{x:g}")
                for edge in (-1.0, 1.0):
                    panel.axvline(edge, color=REAL_COLOR, lw=0.7, ls=":")
            kept = " (kg)" if variable == "shift" else ""
            panel.set_title(plain(name.replace("_kg", kept).replace("_", " ")), loc="left")
            panel.grid(axis="y", visible=False)
        axes[0].set_yticks(range(len(order)), [plain(label) for label in labels])
        axes[0].tick_params(axis="y", length=0)
        axes[len(names) // 2].set_xlabel(f"shift of the posterior mean in {unit}")
        handles, texts = axes[0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=2)
        figure.suptitle(
            f"What public constants decide: median of {found.sizes['trip']:,} trips and the "
            "middle half"
        )
    return figure


def plot_prior_roles(found: xr.Dataset) -> "matplotlib.figure.Figure":
    """Sensitivity of every trip to its prior and to its likelihood, a panel a parameter.

    Parameters
    ----------
    found
        ``sensitivity (trip, parameter, component)`` to prior and likelihood; the attribute
        ``threshold``.

    Returns
    -------
    figure
        Upper left: the prior decides; upper right: prior and trace disagree; below: fine.
    """
    limit = float(found.attrs["threshold"])
    values = found["sensitivity"]
    names = values["parameter"].values.tolist()
    shown = np.maximum(values.values, _SMALLEST)
    top = 2.0 * max(float(shown.max()), 1.0)
    with figure_style():
        figure = new_figure(width_in=3.3 * len(names) + 0.6, height_in=3.7)
        axes = np.atleast_1d(figure.subplots(1, len(names), sharex=True, sharey=True))
        for panel, column in zip(axes, range(len(names)), strict=True):
            prior, likelihood = shown[:, column, 0], shown[:, column, 1]
            panel.axhspan(limit, top, color=GRID_COLOR, alpha=0.6, lw=0)
            panel.axvline(limit, color=REAL_COLOR, lw=0.8, ls=":")
            panel.axhline(limit, color=REAL_COLOR, lw=0.8, ls=":")
            matters = prior >= limit
            panel.scatter(likelihood[~matters], prior[~matters], s=11, color=_BLUE, alpha=0.7)
            panel.scatter(likelihood[matters], prior[matters], s=11, color=_ORANGE, alpha=0.9)
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_xlim(0.7 * _SMALLEST, top)
            panel.set_ylim(0.7 * _SMALLEST, top)
            name = names[column].replace("_kg", "").replace("_", " ")
            panel.set_title(f"{plain(name)}: {int(matters.sum())} of {len(prior)}", loc="left")
            panel.text(0.03, 0.97, "prior decides", transform=panel.transAxes, va="top", fontsize=8)
            panel.text(
                0.97, 0.97, "disagreement", transform=panel.transAxes, va="top", ha="right",
                fontsize=8,
            )  # fmt: skip
            panel.set_xlabel("sensitivity to the likelihood")
        axes[0].set_ylabel("sensitivity to the prior")
        figure.suptitle("Trips where the prior matters (power scaling)")
    return figure
