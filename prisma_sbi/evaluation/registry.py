"""Every metric that is computed from traces, with what a reader needs to know about it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

FID_AT_EQUAL_SIZES = 0.5
"""Multiple of the floor of a squared distance between two equal laws, as many traces each."""
ROOT_AT_EQUAL_SIZES = 0.71
"""The same for a distance that falls as the square root of the number of traces."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One number about a synthetic population.

    Attributes
    ----------
    key
        Name in tables, in JSON and in code.
    label
        Heading for a person.
    group
        What the number is about; metrics of a group stand together.
    unit
        Of the number; empty for a plain number.
    better
        ``"lower"`` or ``"higher"`` is better, or the nearer to ``ideal`` (``"target"``).
    ideal
        Value for equal laws: for a distance 0, which no finite sample reaches; for a multiple of
        a floor what two populations of equal size and law reach. ``None`` where there is none.
    meaning
        One sentence for a person.
    """

    key: str
    label: str
    group: str
    unit: str
    better: Literal["lower", "higher", "target"]
    ideal: float | None
    meaning: str


def _distance(
    key: str, label: str, group: str, unit: str, meaning: str, *, at_floor: float
) -> Iterator[Metric]:
    """A distance and its multiple of the floor."""
    yield Metric(
        key=key, label=label, group=group, unit=unit, better="lower", ideal=0.0, meaning=meaning
    )
    yield Metric(
        key=f"{key}_x_floor",
        label=f"{label}, multiple of its floor",
        group=group,
        unit="× floor",
        better="lower",
        ideal=at_floor,
        meaning="The same over the distance between random halves of the real traces.",
    )


def _share(key: str, label: str, meaning: str) -> Metric:
    """A share in [0, 1] that a good synthesizer makes large."""
    return Metric(
        key=key,
        label=label,
        group="coverage",
        unit="",
        better="higher",
        ideal=1.0,
        meaning=meaning,
    )


def _metrics() -> Iterator[Metric]:
    """All of them, in the order of tables."""
    yield from _distance(
        "acf",
        "Autocorrelation distance",
        "texture",
        "",
        "Mean absolute difference of the average autocorrelation curves over lags of 1 to 32 "
        "samples.",
        at_floor=ROOT_AT_EQUAL_SIZES,
    )
    yield from _distance(
        "fid",
        "Fréchet distance",
        "levels",
        "",
        "Squared Fréchet distance of the traces as one Gaussian each, over the squared power "
        "range of the real ones.",
        at_floor=FID_AT_EQUAL_SIZES,
    )
    for kind, features in (
        ("standardized", "features in units of their real spread"),
        ("raw", "plain features, as published: nearly always high"),
    ):
        yield _share(
            f"precision_{kind}",
            f"Precision ({kind})",
            f"Share of synthetic traces among the real ones; {features}.",
        )
        yield _share(
            f"recall_{kind}",
            f"Recall ({kind})",
            f"Share of real traces among the synthetic ones; {features}.",
        )


METRICS: Mapping[str, Metric] = MappingProxyType({each.key: each for each in _metrics()})
"""Key -> metric, in the order of tables; groups are contiguous."""
