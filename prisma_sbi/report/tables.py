"""Tables of a page: what traces are like, and every metric with its meaning."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from prisma_sbi.evaluation.metrics import METRICS, Measured, Metric
from prisma_sbi.evaluation.population import power_array
from prisma_sbi.report.markup import Child, Markup, join, scroll_box, tag

_FLOOR = "_x_floor"
_BETTER = {"lower": "lower is better", "higher": "higher is better", "target": "nearer is better"}


def table(caption: str, heads: Sequence[str], rows: Sequence[tuple[Child, ...]]) -> Markup:
    """A table in its own scrolling box; the first cell of each row is its heading."""
    body = tag("tbody", *map(_row, rows))
    content = tag("table", tag("caption", caption), _head(heads), body)
    return scroll_box(content, caption, class_="table")


def _head(heads: Sequence[str]) -> Markup:
    """Headings of the columns; a nameless one is a plain cell."""
    cells = (tag("th", each, scope="col") if each else tag("td") for each in heads)
    return tag("thead", tag("tr", *cells))


def _row(cells: tuple[Child, ...]) -> Markup:
    """A heading and its values."""
    first, *others = cells
    return tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in others))


def number(value: float, *, digits: int = 3) -> str:
    """A number with so many significant digits, without exponent where that is readable."""
    if math.isnan(value):
        return "not defined"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}".replace("-", "−")
    whole = math.floor(math.log10(abs(value))) + 1 if value else 1
    return f"{value:,.{max(0, digits - whole)}f}".replace("-", "−")


def contents_table(sets: Mapping[str, xr.Dataset]) -> Markup:
    """What the traces of each set are like, each set by itself."""
    columns = {name: _contents(traces, name) for name, traces in sets.items()}
    rows = [(what, *(column[what] for column in columns.values())) for what in _contents_names()]
    return table("The traces of each set", ["", *columns], rows)


def _contents_names() -> list[str]:
    """Rows of the table of contents."""
    return [
        "traces",
        "mean energy (MJ)",
        "mean time until the last power (s)",
        "share of time with power",
        "mean power while on (kW)",
        "99th percentile of power (kW)",
    ]


def _contents(traces: xr.Dataset, name: str) -> dict[str, str]:
    """The numbers of one set."""
    power_w = power_array(traces, name=name)
    step_s = float(traces.attrs.get("time_step_s", 1.0))
    on = power_w != 0.0
    last = np.where(on.any(axis=1), on.shape[1] - on[:, ::-1].argmax(axis=1), 0)
    values = [
        power_w.sum(axis=1).mean() * step_s / 1e6,
        last.mean() * step_s,
        on.mean(),
        power_w[on].mean() / 1000.0 if on.any() else math.nan,
        np.percentile(power_w, 99.0) / 1000.0,
    ]
    shown = [f"{len(power_w):,}", *(number(float(value)) for value in values)]
    return dict(zip(_contents_names(), shown, strict=True))


def metrics_table(measured: Mapping[str, Measured]) -> Markup:
    """Every metric of the registry, group by group: one row per metric, one column per set."""
    groups = dict.fromkeys(metric.group for metric in METRICS.values())
    heads = ["", "ideal", "real halves", *measured]
    bodies = []
    for group in groups:
        members = [
            metric
            for metric in METRICS.values()
            if metric.group == group and not metric.key.endswith(_FLOOR)
        ]
        rows: list[tuple[Child, ...]] = [
            (
                _heading(metric),
                _ideal(metric),
                _halves(metric, measured),
                *(_cell(metric, each) for each in measured.values()),
            )
            for metric in members
        ]
        name = tag("th", group.capitalize(), scope="rowgroup", colspan=len(heads), class_="group")
        bodies.append(tag("tbody", tag("tr", name), *map(_row, rows)))
    caption = "All metrics"
    content = tag("table", tag("caption", caption), _head(heads), *bodies)
    return scroll_box(content, caption, class_="table")


def undefined_metrics(measured: Mapping[str, Measured]) -> list[str]:
    """A sentence per set that lacks metrics."""
    sentences = []
    for name, each in measured.items():
        missing = [METRICS[key].label for key, value in each.values.items() if math.isnan(value)]
        if missing:
            sentences.append(f"{name}: not defined for these traces: {', '.join(missing)}.")
    return sentences


def _heading(metric: Metric) -> Markup:
    """Label, unit and meaning."""
    unit = f" ({metric.unit})" if metric.unit else ""
    meaning = f"{metric.meaning} {_BETTER[metric.better].capitalize()}."
    return join(metric.label + unit, tag("span", meaning, class_="meaning"))


def _ideal(metric: Metric) -> str:
    """What equal laws reach, in multiples of the floor where there is one."""
    multiple = METRICS.get(metric.key + _FLOOR)
    ideal = metric.ideal if multiple is None else multiple.ideal
    if ideal is None:
        return "–"
    return f"{ideal:g}" + ("" if multiple is None else " × floor")


def _halves(metric: Metric, measured: Mapping[str, Measured]) -> Child:
    """What random halves of the real traces reach, with its spread over the splits."""
    floors = next(iter(measured.values())).floors.by_distance
    floor = floors.get(metric.key)
    if floor is None or math.isnan(floor.mean):
        return "–"
    return f"{number(floor.mean)} ± {number(floor.sd, digits=2)}"


def _cell(metric: Metric, measured: Measured) -> Child:
    """A value; a distance as a multiple of its floor with the plain value beneath."""
    value = number(measured.values[metric.key])
    multiple = measured.values.get(metric.key + _FLOOR)
    if multiple is None or math.isnan(multiple):
        return value
    return join(f"{number(multiple)} × floor", tag("span", value, class_="meaning"))
