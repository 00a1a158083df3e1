"""Where decoded traces part from the trips that they imitate, and what each feature would buy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from prisma_sbi import _validate
from prisma_sbi.evaluation.autocorrelation import autocorrelation
from prisma_sbi.evaluation.floor import compute_floors
from prisma_sbi.evaluation.marginals import trace_durations
from prisma_sbi.evaluation.score import evaluate
from prisma_sbi.evaluation.swaps import SWAPS, is_quiet, swap

BAND_EDGES_HZ = (0.0, 1 / 128, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
SHOWN_LAGS_S = (4, 8, 25)
"""Where curves of autocorrelation of decoded traces were found to part most from real ones."""
PUBLISHED = ("acf_x_floor", "fid_x_floor", "precision_standardized", "recall_standardized")
"""The four scores of which the gap is explained."""
ALL_TRIPS = "all trips"
_KW = 1e3

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Driven:
    """Traces with their ends, for facts about what lies between start and end.

    Attributes
    ----------
    power_w : (trip, time)
        At 1 Hz, zero after the end.
    """

    power_w: np.ndarray

    @cached_property
    def end(self) -> Int[np.ndarray, " trip"]:
        """Samples until the end of each trip."""
        return trace_durations(self.power_w).astype(int)

    @cached_property
    def trips(self) -> list[np.ndarray]:
        """Samples of each trip up to its end, in W; trips without power are left out."""
        return [row[:end] for row, end in zip(self.power_w, self.end, strict=True) if end]

    @cached_property
    def levels_w(self) -> Float[np.ndarray, " sample"]:
        """All of them pooled."""
        return np.concatenate(self.trips) if self.trips else np.zeros(1)

    @cached_property
    def finished(self) -> list[np.ndarray]:
        """Those of trips that end within the horizon."""
        return [trip for trip in self.trips if len(trip) < self.power_w.shape[1]]


class Fact(NamedTuple):
    """A number of a population, its unit, and what it is of."""

    title: str
    unit: str
    measure: Callable[[Driven], float]


def run_lengths(mask: Bool[np.ndarray, " sample"]) -> Int[np.ndarray, " run"]:
    """Lengths of the runs of true samples, in order.

    Examples
    --------
    >>> import numpy as np
    >>> run_lengths(np.array([True, False, True, True]))
    array([1, 2])
    """
    edges = np.diff(np.concatenate([[0], np.asarray(mask, dtype=np.int8), [0]]))
    return np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)


def quiet_lengths(side: Driven) -> Int[np.ndarray, " run"]:
    """Lengths in s of all times below the quiet level."""
    return np.concatenate([run_lengths(is_quiet(trip)) for trip in side.trips] or [np.zeros(0)])


def band_variance_w2(power_w: Float[np.ndarray, " sample"]) -> Float[np.ndarray, " band"]:
    """Variance of one driven stretch by band of frequency, limits :data:`BAND_EDGES_HZ`.

    The bands add up to the variance of the stretch (Parseval); a frequency on a limit belongs
    to the lower band.
    """
    n_samples = len(power_w)
    density = np.abs(np.fft.rfft(power_w - power_w.mean())) ** 2 / n_samples**2
    density[1:] *= 2.0
    if n_samples % 2 == 0:
        density[-1] /= 2.0
    frequency_hz = np.arange(len(density)) / n_samples
    band = np.searchsorted(BAND_EDGES_HZ[1:], frequency_hz)
    found = np.bincount(band[1:], density[1:], minlength=len(BAND_EDGES_HZ) - 1)
    return found.astype(np.float64)  # of a single sample nothing is counted, in integers


def _quantile(level: float) -> Callable[[Driven], float]:
    return lambda side: float(np.quantile(side.levels_w, level)) / _KW


def _window(start: int, stop: int) -> Callable[[Driven], float]:
    """Mean power in kW of a window from the start; of trips that reach its end."""

    def measure(side: Driven) -> float:
        windows = [trip[start:stop].mean() for trip in side.trips if len(trip) >= stop]
        return float(np.mean(windows)) / _KW if windows else float("nan")

    return measure


def _ending(seconds: int) -> Callable[[Driven], float]:
    """Mean power in kW of the last seconds before the end of trips that do end."""

    def measure(side: Driven) -> float:
        windows = [trip[-seconds:].mean() for trip in side.finished if len(trip) >= seconds]
        return float(np.mean(windows)) / _KW if windows else float("nan")

    return measure


def _band(number: int) -> Callable[[Driven], float]:
    """Mean over trips of the standard deviation in a band, in kW."""

    def measure(side: Driven) -> float:
        return (
            float(np.mean([np.sqrt(band_variance_w2(trip)[number]) for trip in side.trips])) / _KW
        )

    return measure


def _curve(lag: int) -> Callable[[Driven], float]:
    return lambda side: float(autocorrelation(side.power_w, n_lags=lag)[:, -1].mean())


def _per_kilosecond(count: Callable[[np.ndarray], int]) -> Callable[[Driven], float]:
    return lambda side: 1e3 * sum(count(trip) for trip in side.trips) / len(side.levels_w)


def _quiet_quantile(level: float) -> Callable[[Driven], float]:
    def measure(side: Driven) -> float:
        lengths = quiet_lengths(side)
        return float(np.quantile(lengths, level)) if lengths.size else 0.0

    return measure


def _band_title(number: int) -> str:
    low, high = BAND_EDGES_HZ[number : number + 2]
    return f"below 1/{1 / high:.0f} Hz" if low == 0.0 else f"1/{1 / low:.0f} to 1/{1 / high:.0f} Hz"


FACTS: Mapping[str, Fact] = MappingProxyType(
    {
        "mean": Fact("mean power", "kW", lambda side: float(side.levels_w.mean()) / _KW),
        **{
            f"level_{level:g}": Fact(f"{level:g} % of levels below", "kW", _quantile(level / 100))
            for level in (5, 25, 50, 75, 95)
        },
        "zeros": Fact(
            "engine off within the trip", "%", lambda side: 100 * float(np.mean(side.levels_w == 0))
        ),
        "quiet": Fact(
            "time below 14 kW", "%", lambda side: 100 * float(np.mean(is_quiet(side.levels_w)))
        ),
        "quiet_count": Fact(
            "quiet times", "per 1000 s", _per_kilosecond(lambda t: len(run_lengths(is_quiet(t))))
        ),
        "quiet_50": Fact("a quiet time, median", "s", _quiet_quantile(0.5)),
        "quiet_90": Fact("a quiet time, 90 %", "s", _quiet_quantile(0.9)),
        "falls": Fact(
            "falls by 5 kW in 1 s",
            "per 1000 s",
            _per_kilosecond(lambda trip: int(np.sum(np.diff(trip) <= -5e3))),
        ),
        "repeats": Fact(
            "seconds that repeat the last, engine on",
            "%",
            lambda side: 100 * _repeats(side) / max(int(np.sum(side.levels_w != 0.0)), 1),
        ),
        "start_1": Fact("first second", "kW", _window(0, 1)),
        "start_20": Fact("5th to 20th second", "kW", _window(5, 20)),
        "start_60": Fact("20th to 60th second", "kW", _window(20, 60)),
        "end_20": Fact("last 20 s", "kW", _ending(20)),
        "end_5": Fact("last 5 s", "kW", _ending(5)),
        **{
            f"band_{number}": Fact(f"deviation {_band_title(number)}", "kW", _band(number))
            for number in range(len(BAND_EDGES_HZ) - 1)
        },
        **{
            f"acf_{lag}": Fact(f"autocorrelation, {lag} s", "", _curve(lag)) for lag in SHOWN_LAGS_S
        },
    }
)
"""Name -> a fact of a population of traces, in the order of tables."""


def _repeats(side: Driven) -> int:
    """Seconds with the power of the second before, engine on."""
    return sum(int(np.sum((np.diff(trip) == 0.0) & (trip[1:] != 0.0))) for trip in side.trips)


def gap_table(
    real_w: Float[np.ndarray, "trip time"],
    synthetic_w: Float[np.ndarray, "trip time"],
    groups: Mapping[str, np.ndarray] | None = None,
    *,
    fewest: int = 50,
) -> pd.DataFrame:
    """Facts of recorded trips beside those of the traces that imitate them, by group.

    Parameters
    ----------
    real_w, synthetic_w : (trip, time)
        Row by row a trip and the trace of its best fit, at 1 Hz, zero after the end.
    groups
        Name of a grouping -> label of each trip; all trips together always come first.
    fewest
        A group with fewer trips is left out: its numbers would be noise, and personal.

    Returns
    -------
    table
        Columns ``grouping group n_trips fact title unit real synthetic``.

    Raises
    ------
    ValueError
        If numbers of trips disagree, or ``fewest`` is below 1.
    """
    _validate.at_least(1, fewest=fewest)
    groups = {} if groups is None else groups
    if not all(len(side) == len(real_w) for side in (synthetic_w, *groups.values())):
        raise ValueError(
            f"Expected {len(real_w)} traces and labels, one a recorded trip; got "
            f"{[len(synthetic_w), *map(len, groups.values())]}. Pass what belongs together."
        )
    parts = [(ALL_TRIPS, ALL_TRIPS, np.ones(len(real_w), bool))]
    for grouping, labels in groups.items():
        parts += [(grouping, str(label), labels == label) for label in np.unique(labels)]
    lines = []
    for grouping, group, member in parts:
        if grouping != ALL_TRIPS and member.sum() < fewest:
            continue
        sides = [Driven(side[member]) for side in (real_w, synthetic_w)]
        for name, fact in FACTS.items():
            real, synthetic = (fact.measure(side) for side in sides)
            lines.append(
                {
                    "grouping": grouping,
                    "group": group,
                    "n_trips": int(member.sum()),
                    "fact": name,
                    "title": fact.title,
                    "unit": fact.unit,
                    "real": real,
                    "synthetic": synthetic,
                }
            )
    return pd.DataFrame(lines)


def swap_table(
    real_w: Float[np.ndarray, "trip time"],
    synthetic_w: Float[np.ndarray, "trip time"],
    judge_w: Float[np.ndarray, "other_trip time"],
    *,
    n_splits: int = 15,
    seed: int = 0,
    progress: Progress | None = None,
) -> pd.DataFrame:
    r"""Scores of decoded traces with one feature repaired, and of real ones with it broken.

    Parameters
    ----------
    real_w, synthetic_w : (trip, time)
        Row by row a trip and the trace of its best fit, at 1 Hz, zero after the end.
    judge_w : (trip, time)
        Other recorded trips, against which everything is scored.
    n_splits, seed
        Of the floors.
    progress
        Told how many populations are scored, and how many there are.

    Returns
    -------
    table
        Columns ``direction swap title``, the four scores, ``explained_*`` for each, and
        ``lag_*``, the mean autocorrelation less that of the judges. First comes the decoded
        population itself as ``direction = "none"``.

    Notes
    -----
    For a score :math:`s`, with the decoded traces at :math:`s_0` and copies of their recorded
    trips at :math:`s_1`, a repair that reaches :math:`s` explains

    .. math:: \frac{s - s_0}{s_1 - s_0}

    of the gap; for a broken feature it is :math:`(s_1 - s) / (s_1 - s_0)`. Shares do not add up
    to one: features overlap, and two errors can hide each other, so a share can be negative.
    Where the gap itself is below 0.05 the share is not given.
    """
    repairs = [("repair", name) for name in SWAPS]
    breaks = [("break", name) for name in SWAPS if name != "everything"]
    jobs = [("none", ""), *repairs, *breaks]
    floors = compute_floors(judge_w, seed=seed, n_splits=n_splits)
    curve = autocorrelation(judge_w, n_lags=max(SHOWN_LAGS_S)).mean(axis=0)
    lines = []
    for number, (direction, name) in enumerate(jobs):
        if direction == "none":
            traces = synthetic_w
        elif direction == "repair":
            traces = swap(name, synthetic_w, real_w)
        else:
            traces = swap(name, real_w, synthetic_w)
        scores = evaluate(judge_w, traces, floors=floors)
        own = autocorrelation(traces, n_lags=max(SHOWN_LAGS_S)).mean(axis=0)
        lines.append(
            {
                "direction": direction,
                "swap": name,
                "title": SWAPS[name].title if name else "decoded as it is",
                **{score: getattr(scores, score) for score in PUBLISHED},
                **{f"lag_{lag}": own[lag - 1] - curve[lag - 1] for lag in SHOWN_LAGS_S},
            }
        )
        if progress is not None:
            progress(number + 1, len(jobs))
    return _with_shares(pd.DataFrame(lines))


def _with_shares(table: pd.DataFrame) -> pd.DataFrame:
    """Add to each score the share of the gap that a swap closes, or opens."""
    is_break = table["direction"] == "break"
    for score in PUBLISHED:
        decoded = float(table.loc[table["direction"] == "none", score].iloc[0])
        best = float(table.loc[table["swap"] == "everything", score].iloc[0])
        gap = best - decoded if abs(best - decoded) >= 0.05 else float("nan")
        moved = np.where(is_break, best - table[score], table[score] - decoded)
        table[f"explained_{score}"] = moved / gap
    return table
