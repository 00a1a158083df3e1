"""Maps of what traces of the routes of a city would tell, and what it depends on."""

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from prisma_sbi._optional import optional_import
from prisma_sbi.evaluation.plot_style import SYNTHETIC_COLORS, figure_style, new_figure, plain
from prisma_sbi.region.roads import RoadNetwork

if TYPE_CHECKING:
    import matplotlib.figure

_EMPTY_COLOR = "#d8d8d8"
_METERS_PER_KM = 1000.0


def plot_atlas(
    atlas: xr.Dataset, roads: RoadNetwork, *, best: np.ndarray | None = None
) -> "matplotlib.figure.Figure":
    """Roads colored by what the routes that use them tell, a map a descriptor.

    Parameters
    ----------
    atlas
        Along ``route``: ``gain (route, descriptor)`` in nats; ``step_route`` and ``step_edge``
        along ``step``.
    roads
        The network that ``step_edge`` points into.
    best : (n,) int
        Routes drawn on top of every map.

    Returns
    -------
    figure
        Roads that no route uses are gray. Public inputs only went in.
    """
    names = atlas["descriptor"].values.tolist()
    route, edge = atlas["step_route"].values, atlas["step_edge"].values
    count = np.bincount(edge, minlength=len(roads.edge_from))
    points = np.column_stack([roads.geometry_lon_deg, roads.geometry_lat_deg])
    lines = np.split(points, roads.geometry_offset[1:-1])
    used = np.flatnonzero(count)
    collections = optional_import("matplotlib.collections", extra="plots")
    stretch = float(1.0 / np.cos(np.deg2rad(roads.node_lat_deg.mean())))
    width, height = np.ptp(roads.node_lon_deg), np.ptp(roads.node_lat_deg) * stretch
    with figure_style():
        panel_in = 4.6
        tall_in = panel_in * min(1.6, height / width) + 1.2
        figure = new_figure(width_in=panel_in * len(names), height_in=tall_in)
        axes = np.atleast_1d(figure.subplots(1, len(names), sharex=True, sharey=True))
        for axis, name in zip(axes, names, strict=True):
            gain = atlas["gain"].sel(descriptor=name).values
            total = np.bincount(edge, weights=gain[route], minlength=len(count))
            mean = total[used] / count[used]
            order = np.argsort(mean)
            axis.add_collection(
                collections.LineCollection(lines, colors=_EMPTY_COLOR, linewidths=0.4),
                autolim=False,
            )
            colored = collections.LineCollection(
                [lines[i] for i in used[order]], array=mean[order], cmap="viridis", linewidths=1.1
            )
            colored.set_clim(*np.quantile(mean, [0.02, 0.98]))
            axis.add_collection(colored, autolim=False)
            for rank, row in enumerate(() if best is None else best):
                path = np.concatenate([lines[i] for i in edge[route == row]])
                label = "best routes" if rank == 0 else None
                axis.plot(*path.T, color=SYNTHETIC_COLORS[1], lw=1.6, label=label)
                axis.plot(*path[0], "o", color=SYNTHETIC_COLORS[1], ms=3.5)
            axis.set_title(plain(name), loc="left")
            axis.set_xlim(roads.node_lon_deg.min(), roads.node_lon_deg.max())
            axis.set_ylim(roads.node_lat_deg.min(), roads.node_lat_deg.max())
            axis.set_aspect(stretch)
            axis.grid(visible=False)
            axis.locator_params(nbins=4)
            axis.ticklabel_format(useOffset=False, style="plain")
            bar = figure.colorbar(colored, ax=axis, orientation="horizontal", shrink=0.8, pad=0.02)
            bar.set_label("mean gain of routes that pass (nats)")
            bar.ax.grid(visible=False)
        if best is not None:
            axes[0].legend(loc="upper left", frameon=True, framealpha=0.8)
        figure.supxlabel("longitude (°)", fontsize=10)
        figure.supylabel("latitude (°)", fontsize=10)
        figure.suptitle(f"What traces of {atlas.sizes['route']:,} routes would tell")
    return figure


def plot_route_gain(atlas: xr.Dataset) -> "matplotlib.figure.Figure":
    """Gain of each route against its length, height range and speed limit, stops in color.

    Parameters
    ----------
    atlas
        Along ``route``: ``gain (route, descriptor)``, ``length_m``, ``n_stops``,
        ``height_range_m`` and ``speed_limit_mps``.
    """
    names = atlas["descriptor"].values.tolist()
    causes = {
        "length (km)": atlas["length_m"].values / _METERS_PER_KM,
        "height range (m)": atlas["height_range_m"].values,
        "mean speed limit (m/s)": atlas["speed_limit_mps"].values,
    }
    stops = atlas["n_stops"].values
    with figure_style():
        figure = new_figure(width_in=10.0, height_in=2.3 * len(names) + 1.0)
        axes = figure.subplots(len(names), len(causes), squeeze=False, sharey="row", sharex="col")
        dots = None
        for row, name in enumerate(names):
            gain = atlas["gain"].sel(descriptor=name).values
            for column, (cause, value) in enumerate(causes.items()):
                dots = axes[row, column].scatter(
                    value, gain, c=stops, s=7, cmap="viridis", alpha=0.7, linewidths=0
                )
                dots.set_clim(0.0, max(1.0, float(np.quantile(stops, 0.98))))
                axes[-1, column].set_xlabel(cause)
            axes[row, 0].set_ylabel(f"{plain(name)}\ngain (nats)")
        bar = figure.colorbar(dots, ax=axes, shrink=0.7)
        bar.set_label("signals and stop signs on the way")
        bar.locator = optional_import("matplotlib.ticker", extra="plots").MaxNLocator(integer=True)
        bar.update_ticks()
        bar.ax.grid(visible=False)
        bar.solids.set_alpha(1.0)
        figure.suptitle("What makes a route tell more")
    return figure
