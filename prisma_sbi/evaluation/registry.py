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
    key: str,
    label: str,
    group: str,
    unit: str,
    meaning: str,
    *,
    at_floor: float = ROOT_AT_EQUAL_SIZES,
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
    yield from _texture()
    yield from _levels()
    yield from _trips()
    yield from _coverage()
    yield from _tests()
    yield from _usefulness()
    yield from _privacy()


def _texture() -> Iterator[Metric]:
    """How power fluctuates within a trip."""
    yield from _distance(
        "acf",
        "Autocorrelation distance",
        "texture",
        "",
        "Mean absolute difference of the average autocorrelation curves over lags of 1 to 32 "
        "samples.",
    )
    yield from _distance(
        "spectrum",
        "Spectral distance",
        "texture",
        "dB",
        "Root mean square difference of the mean spectral densities over all frequencies.",
    )


def _levels() -> Iterator[Metric]:
    """How much power is drawn, and when."""
    yield from _distance(
        "fid",
        "Fréchet distance",
        "levels",
        "",
        "Squared Fréchet distance of the traces as one Gaussian each, over the squared power "
        "range of the real ones.",
        at_floor=FID_AT_EQUAL_SIZES,
    )
    yield from _distance(
        "levels_w1",
        "Power-level distance",
        "levels",
        "kW",
        "Wasserstein distance of the power in all samples until the end of each trip.",
    )


def _trips() -> Iterator[Metric]:
    """What a trip is as a whole."""
    yield from _distance(
        "energy_w1",
        "Energy distance",
        "trips",
        "MJ",
        "Wasserstein distance of the energy of a trace within the horizon.",
    )
    yield from _distance(
        "duration_w1",
        "Duration distance",
        "trips",
        "s",
        "Wasserstein distance of the time until the last sample that is not zero.",
    )
    yield from _distance(
        "start_end",
        "Start and end distance",
        "trips",
        "√km",
        "Energy statistic of the places where trips start and end, jointly; needs the places.",
    )


def _coverage() -> Iterator[Metric]:
    """Whether single traces lie among the real ones, and reach all of them."""
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
    yield Metric(
        key="density",
        label="Density",
        group="coverage",
        unit="",
        better="target",
        ideal=1.0,
        meaning="Real neighborhoods that a synthetic trace lies in, in units of what a real one "
        "does.",
    )
    yield _share(
        "coverage",
        "Coverage",
        "Share of real traces with a synthetic one in their neighborhood.",
    )


def _tests() -> Iterator[Metric]:
    """Whether both populations could come from one law."""
    group = "two-sample tests"
    yield Metric(
        key="mmd2",
        label="Maximum mean discrepancy, squared",
        group=group,
        unit="",
        better="lower",
        ideal=0.0,
        meaning="Unbiased kernel distance of the features of traces; may fall below 0 by chance.",
    )
    yield _p_value("mmd", "mean discrepancy")
    yield Metric(
        key="classifier_auc",
        label="Classifier AUC",
        group=group,
        unit="",
        better="lower",
        ideal=0.5,
        meaning="Probability that a classifier ranks an unseen synthetic trace above an unseen "
        "real one.",
    )
    yield Metric(
        key="classifier_accuracy",
        label="Classifier accuracy",
        group=group,
        unit="",
        better="lower",
        ideal=0.5,
        meaning="Share of unseen traces recognized as synthetic or real, mean of both sides.",
    )
    yield _p_value("classifier", "classifier")


def _p_value(test: str, name: str) -> Metric:
    """The p-value of a test."""
    return Metric(
        key=f"{test}_p_value",
        label=f"p-value, {name}",
        group="two-sample tests",
        unit="",
        better="higher",
        ideal=None,
        meaning="Probability of a value as large by chance if both laws were equal; 1 / 500 at "
        "least.",
    )


def _usefulness() -> Iterator[Metric]:
    """Whether models made from synthetic traces work on real ones."""
    for key, label, task in (
        ("next_step", "Next-step error", "power from the ten samples before"),
        ("energy", "Remaining-energy error", "the energy to come from the first 60 samples"),
    ):
        yield Metric(
            key=f"tstr_{key}",
            label=f"{label}, synthetic over real training",
            group="usefulness",
            unit="× real",
            better="lower",
            ideal=1.0,
            meaning=f"Error on real traces in predicting {task}, trained on synthetic over "
            "trained on real traces.",
        )


def _privacy() -> Iterator[Metric]:
    """Whether synthetic traces lie too near to the real ones at hand."""
    yield Metric(
        key="nearest_ratio",
        label="Distance to the nearest real trace",
        group="privacy",
        unit="× real",
        better="target",
        ideal=1.0,
        meaning="Median distance of a synthetic trace to the nearest real one, over that among "
        "real ones.",
    )
    yield Metric(
        key="copied",
        label="Exact copies",
        group="privacy",
        unit="",
        better="lower",
        ideal=0.0,
        meaning="Share of synthetic traces whose features equal those of a real one.",
    )


METRICS: Mapping[str, Metric] = MappingProxyType({each.key: each for each in _metrics()})
"""Key -> metric, in the order of tables; groups are contiguous."""
