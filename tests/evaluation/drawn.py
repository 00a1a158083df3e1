"""What is drawn in a figure, as arrays."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.lines import Line2D


def x_of(line: "Line2D") -> np.ndarray:
    """Horizontal places of a line, as the figure has them: categories are numbers."""
    return np.asarray(line.get_xdata(orig=False))


def y_of(line: "Line2D") -> np.ndarray:
    """Heights of a line."""
    return np.asarray(line.get_ydata(orig=False))


def segments(artist: "Artist") -> list[np.ndarray]:
    """Pieces of a collection of lines, (point, 2) each."""
    from matplotlib.collections import LineCollection

    assert isinstance(artist, LineCollection)
    return [np.asarray(piece) for piece in artist.get_segments()]


def offsets(artist: "Artist") -> np.ndarray:
    """Places of a cloud of points, (point, 2)."""
    from matplotlib.collections import Collection

    assert isinstance(artist, Collection)
    return np.asarray(artist.get_offsets())


def sum_of_values(artist: "Artist") -> float:
    """Sum of the values that the colors of a mesh stand for."""
    from matplotlib.collections import Collection

    assert isinstance(artist, Collection)
    values = artist.get_array()
    assert values is not None
    return float(values.sum())


def error_bars(axis: "Axes") -> "list[ErrorbarContainer]":
    """Points with error bars, in the order in which they were drawn."""
    from matplotlib.container import ErrorbarContainer

    return [item for item in axis.containers if isinstance(item, ErrorbarContainer)]
