"""Heat maps of where trips start and end, over the road network."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi._optional import optional_import
from prisma_sbi.evaluation.plot_style import figure_style, new_figure, plain
from prisma_sbi.region.roads import RoadNetwork

if TYPE_CHECKING:
    import matplotlib.figure

ENDS = ("start", "end")
N_CELLS = 40
ROAD_COLOR = "#b8b8b8"
COLOR_MAP = "Blues"
LIGHTEST = 0.25
"""Start within the color map: one trip stays visible on white and does not dominate."""


def plot_places(
    real: xr.Dataset | None,
    synthetic: xr.Dataset,
    *,
    roads: RoadNetwork | None = None,
    n_cells: int = N_CELLS,
    label: str = "synthetic",
) -> "matplotlib.figure.Figure":
    """Share of trips that start and end in each cell, real beside synthetic.

    Parameters
    ----------
    real, synthetic
        Datasets with ``start_lat``, ``start_lon``, ``end_lat`` and ``end_lon`` per trip. The
        real one may be None: the figure then shows the synthetic places alone.
    roads
        Drawn as thin lines beneath; the map then covers the network.
    n_cells
        Cells along the longer side of the map.
    label
        Name of the synthetic population.

    Returns
    -------
    figure
        Two by two maps, or two beside each other without a real population, with one color
        scale; cells without a trip are transparent. The scale of both directions is the same
        on the ground. With a real population it shows private places and is no part of a
        release.

    Raises
    ------
    InputDataError
        If a position is missing or none is finite.
    """
    _validate.at_least(1, n_cells=n_cells)
    sides = [("real", real), (label, synthetic)] if real is not None else [(label, synthetic)]
    places = {
        (column, end): _positions(dataset, end, name=population)
        for column, (population, dataset) in enumerate(sides)
        for end in ENDS
    }
    west, east, south, north = _extent(list(places.values()), roads)
    stretch = 1.0 / np.cos(np.deg2rad((south + north) / 2))
    width, height = east - west, (north - south) * stretch
    cells = [max(1, round(n_cells * side / max(width, height))) for side in (width, height)]
    edges = np.linspace(west, east, cells[0] + 1), np.linspace(south, north, cells[1] + 1)
    shares = {key: _shares(*points, edges) for key, points in places.items()}
    panel_in = 4.2 * min(1.0, width / height), 4.2 * min(1.0, height / width)
    colors = optional_import("matplotlib.colors", extra="plots")
    filled = np.concatenate([share[share > 0] for share in shares.values()])
    floor, peak = (filled.min(), filled.max()) if filled.size else (1.0, 1.0)
    norm = colors.LogNorm(floor, max(peak, 2 * floor))
    shades = optional_import("matplotlib", extra="plots").colormaps[COLOR_MAP]
    color_map = colors.ListedColormap(shades(np.linspace(LIGHTEST, 1.0, 256)))
    with figure_style():
        n_rows = len(sides)  # starts above ends, or beside them where one side is there
        figure = new_figure(width_in=2 * panel_in[0] + 2.0, height_in=n_rows * panel_in[1] + 1.4)
        axes = figure.subplots(n_rows, 2, sharex=True, sharey=True)
        mesh: Any = None
        for axis, (number, end) in zip(
            axes.flat, ((n, end) for end in ENDS for n in range(len(sides))), strict=True
        ):
            _draw_roads(axis, roads)
            share = np.ma.masked_equal(shares[number, end], 0.0)
            mesh = axis.pcolormesh(*edges, share.T, cmap=color_map, norm=norm, alpha=0.85)
            _finish_map(axis, (west, east, south, north), stretch)
            n_trips = len(places[number, end][0])
            axis.set_title(f"{plain(sides[number][0])}: {end} of {n_trips:,} trips")
        _draw_color_bar(figure, axes, mesh)
        figure.supxlabel("longitude (°)", fontsize=10)
        figure.supylabel("latitude (°)", fontsize=10)
        figure.suptitle("Where trips start and end")
    return figure


def _positions(dataset: xr.Dataset, end: str, *, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Finite longitudes and latitudes of one end of the trips."""
    for variable in (f"{end}_lat", f"{end}_lon"):
        if variable not in dataset:
            raise InputDataError(
                f"Expected {variable} in the {name} traces; got no such variable. "
                "Pass a dataset from the telemetry reader or the decoder."
            )
    lon = dataset[f"{end}_lon"].to_numpy().astype(np.float64)
    lat = dataset[f"{end}_lat"].to_numpy().astype(np.float64)
    finite = np.isfinite(lon) & np.isfinite(lat)
    if not finite.any():
        raise InputDataError(
            f"Expected at least one finite {end} position in the {name} traces; got none."
        )
    return lon[finite], lat[finite]


def _extent(
    places: list[tuple[np.ndarray, np.ndarray]], roads: RoadNetwork | None
) -> tuple[float, float, float, float]:
    """West, east, south and north limit of the map: the roads, else the places."""
    if roads is not None:
        lon, lat = roads.node_lon_deg, roads.node_lat_deg
    else:
        lon = np.concatenate([place[0] for place in places])
        lat = np.concatenate([place[1] for place in places])
    limits = []
    for values in (lon, lat):
        low, high = float(values.min()), float(values.max())
        margin = 0.02 * (high - low) or 1e-3
        limits += [low - margin, high + margin]
    return limits[0], limits[1], limits[2], limits[3]


def _shares(lon: np.ndarray, lat: np.ndarray, edges: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Percentage of all places in each cell ``(lon, lat)``."""
    counts, _, _ = np.histogram2d(lon, lat, bins=list(edges))
    return 100.0 * counts / len(lon)


def _draw_roads(axis: Any, roads: RoadNetwork | None) -> None:
    """Draw the network as thin lines."""
    if roads is None:
        return
    collections = optional_import("matplotlib.collections", extra="plots")
    points = np.column_stack([roads.geometry_lon_deg, roads.geometry_lat_deg])
    lines = np.split(points, roads.geometry_offset[1:-1])
    axis.add_collection(
        collections.LineCollection(lines, colors=ROAD_COLOR, linewidths=0.35, zorder=0.5),
        autolim=False,
    )


def _draw_color_bar(figure: Any, axes: Any, mesh: Any) -> None:
    """Draw the scale that all maps share, with round percentages."""
    ticker = optional_import("matplotlib.ticker", extra="plots")
    bar = figure.colorbar(mesh, ax=axes, shrink=0.7, pad=0.02)
    bar.set_label("share of trips in the cell (%)")
    bar.ax.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    bar.ax.minorticks_off()
    bar.ax.grid(visible=False)


def _finish_map(axis: Any, extent: tuple[float, float, float, float], stretch: float) -> None:
    """Limits, equal scale on the ground, few ticks, no grid."""
    axis.set_xlim(extent[0], extent[1])
    axis.set_ylim(extent[2], extent[3])
    axis.set_aspect(stretch)
    axis.grid(visible=False)
    axis.locator_params(nbins=4)
    axis.ticklabel_format(useOffset=False, style="plain")
