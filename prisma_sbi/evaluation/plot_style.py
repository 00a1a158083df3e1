"""What all figures share: colors, fonts, and figures without global state."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prisma_sbi import _validate
from prisma_sbi._optional import optional_import

if TYPE_CHECKING:
    import matplotlib.figure

REAL_COLOR = "#404040"
SYNTHETIC_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Hues of Okabe and Ito, told apart with any color vision; real data is gray."""
GRID_COLOR = "#e4e4e4"
FILE_FORMATS = ("png", "pdf", "svg")
DOTS_PER_INCH = 150

_SETTINGS = {
    "font.size": 10.0,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10.0,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "legend.fontsize": 9.5,
    "figure.titlesize": 12.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#606060",
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID_COLOR,
    "grid.linewidth": 0.7,
    "xtick.color": "#606060",
    "ytick.color": "#606060",
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}


@contextmanager
def figure_style() -> Iterator[None]:
    """Our settings while artists are made; the caller's are restored afterwards."""
    matplotlib = optional_import("matplotlib", extra="plots")
    with matplotlib.rc_context(_SETTINGS):
        yield


def new_figure(*, width_in: float, height_in: float) -> Any:
    """Make an empty figure on the Agg canvas, unknown to pyplot."""
    figure_module = optional_import("matplotlib.figure", extra="plots")
    agg = optional_import("matplotlib.backends.backend_agg", extra="plots")
    figure = figure_module.Figure(figsize=(width_in, height_in), layout="constrained")
    agg.FigureCanvasAgg(figure)
    return figure


def plain(label: object) -> str:
    """A label shown as it is: a dollar sign begins no formula, an underscore hides nothing."""
    text = str(label).replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text


def synthetic_color(number: int) -> str:
    """Color of the synthetic population with this number."""
    return SYNTHETIC_COLORS[number % len(SYNTHETIC_COLORS)]


def save_figures(
    figures: "dict[str, matplotlib.figure.Figure]",
    folder: Path | str,
    *,
    formats: tuple[str, ...] = ("png",),
    dpi: int = DOTS_PER_INCH,
) -> list[Path]:
    """Write figures to a folder, one file per figure and format.

    Parameters
    ----------
    figures
        File name without ending -> figure.
    folder
        Created where absent.
    formats
        Any of ``"png"``, ``"pdf"`` and ``"svg"``.
    dpi
        Resolution of PNG files, and of bitmaps within the others.

    Returns
    -------
    paths
        The files written, in order.

    Raises
    ------
    ValueError
        If a format is unknown.
    """
    for file_format in formats:
        _validate.one_of(FILE_FORMATS, file_format=file_format)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with figure_style():
        for name, figure in figures.items():
            for file_format in formats:
                path = folder / f"{name}.{file_format}"
                figure.savefig(path, dpi=dpi, facecolor="white")
                paths.append(path)
    return paths
