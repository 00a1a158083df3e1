"""Figures inside a page: vector graphics in the colors of the page, maps as pictures."""

import base64
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prisma_sbi._optional import optional_import
from prisma_sbi.evaluation.plot_rows import MUTED_COLOR
from prisma_sbi.evaluation.plot_style import (
    GRID_COLOR,
    REAL_COLOR,
    SYNTHETIC_COLORS,
    figure_style,
)
from prisma_sbi.report.markup import Markup, scroll_box, tag

if TYPE_CHECKING:
    import matplotlib.figure

_MAP_DPI = 110
_MAP_COLORS = 96
_VARIABLES = {
    "#000000": "--ink",
    REAL_COLOR: "--real",
    MUTED_COLOR: "--muted",
    "#909090": "--muted",
    GRID_COLOR: "--grid",
    **{color.lower(): f"--series-{number}" for number, color in enumerate(SYNTHETIC_COLORS, 1)},
}
"""Color in a figure -> variable of the style sheet, which knows light and dark."""


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A figure of the page.

    Attributes
    ----------
    name
        Unique on the page; letters, digits and hyphens.
    alt
        What it shows, for those who do not see it.
    caption
        How to read it.
    figure
        Drawn.
    as_picture
        As pixels on a light card: for maps, which would be large and dark as vectors.
    """

    name: str
    alt: str
    caption: str
    figure: "matplotlib.figure.Figure"
    as_picture: bool = False

    def markup(self) -> Markup:
        """The figure with its caption."""
        inside = _picture(self.figure, self.alt) if self.as_picture else self._vectors()
        box = scroll_box(inside, self.alt, class_="plot card" if self.as_picture else "plot")
        return tag("figure", box, tag("figcaption", self.caption), id=self.name)

    def _vectors(self) -> Markup:
        """SVG that takes its colors and fonts from the page."""
        drawing = _svg(self.figure, self.name)
        return Markup(drawing.replace("<svg ", f'<svg role="img" {_label(self.alt)} ', 1))


def _label(alt: str) -> str:
    """The attribute that names a drawing."""
    return tag("i", aria_label=alt)[len("<i ") : -len("></i>")]


def _svg(figure: "matplotlib.figure.Figure", name: str) -> str:
    """SVG text without what would differ between runs or act on the rest of the page."""
    matplotlib = optional_import("matplotlib", extra="plots")
    buffer = io.StringIO()
    # With a fixed salt the same figure gets the same names of its parts.
    with figure_style(), matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    drawing = buffer.getvalue()
    drawing = drawing[drawing.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r"<style.*?</style>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r'\bid="', f'id="{name}-', drawing)
    drawing = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", drawing)
    drawing = re.sub(r"font:([^;\"]*?)\s*'[^;\"]*", r"font:\1 var(--sans)", drawing)
    drawing = re.sub(r"#[0-9a-f]{6}\b", _variable, drawing)
    return _sized(drawing)


def _sized(drawing: str) -> str:
    """As wide as the page, at most 1.25 times and at least 0.9 times its own size."""
    width = float(_found(r'<svg[^>]*\bwidth="([\d.]+)pt"', drawing))
    drawing = re.sub(r'(<svg[^>]*?)\s+height="[\d.]+pt"', r"\1", drawing, count=1)
    size = f"width:100%;min-width:{0.9 * width:.0f}px;max-width:{1.4 * width:.0f}px"
    return re.sub(r'\bwidth="[\d.]+pt"', f'style="{size}"', drawing, count=1)


def _found(pattern: str, content: str) -> str:
    """First group of a pattern that is there."""
    match = re.search(pattern, content)
    assert match is not None
    return match.group(1)


def _variable(match: "re.Match[str]") -> str:
    """Variable of the style sheet for a color of the figures; other colors stay."""
    name = _VARIABLES.get(match.group(0))
    return match.group(0) if name is None else f"var({name})"


def _picture(figure: "matplotlib.figure.Figure", alt: str) -> Markup:
    """PNG of few colors inside the page."""
    image: Any = optional_import("PIL.Image", extra="plots")
    buffer, small = io.BytesIO(), io.BytesIO()
    with figure_style():
        figure.savefig(buffer, format="png", dpi=_MAP_DPI, facecolor="white")
    pixels = image.open(buffer).convert("RGB")
    pixels.quantize(_MAP_COLORS).save(small, format="PNG", optimize=True)
    content = base64.b64encode(small.getvalue()).decode("ascii")
    # Half size in CSS pixels of a fine screen would be too small for the labels.
    return tag(
        "img",
        src=f"data:image/png;base64,{content}",
        alt=alt,
        width=pixels.width,
        height=pixels.height,
        style=f"min-width:{min(560, pixels.width)}px",
    )
