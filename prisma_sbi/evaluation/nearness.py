"""Membership inference: do released traces lie nearer to the trips they were made from."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation.features import trace_features
from prisma_sbi.evaluation.population import Traces, power_array, require_comparable
from prisma_sbi.evaluation.precision_recall import standardize_features

_BLOCK_ENTRIES = 4_000_000
MINIMUM_TRIPS = 10
FALSE_POSITIVE_RATES = (0.01, 0.1)


class Interval(NamedTuple):
    """An estimate and its bootstrap limits."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Nearness:
    """How much the distance to the nearest released trace tells about membership.

    Attributes
    ----------
    auc
        Probability that a member lies nearer to the release than a trip that was held out;
        0.5 by chance.
    true_positive_at_1, true_positive_at_10
        Share of members found where 1 % and 10 % of the others are taken for members; 0.01
        and 0.1 by chance.
    distance_ratio
        Median distance of the members to the nearest released trace over that of the others;
        1 by chance.
    n_copied, n_copied_held_out
        Members, and others, whose features a released trace has exactly.
    n_members, n_held_out, n_released
        Numbers of traces.
    confidence
        Of the intervals; they cover the choice of the trips, not that of the release.
    """

    auc: Interval
    true_positive_at_1: Interval
    true_positive_at_10: Interval
    distance_ratio: Interval
    n_copied: int
    n_copied_held_out: int
    n_members: int
    n_held_out: int
    n_released: int
    confidence: float

    @property
    def is_telling(self) -> bool:
        """Whether the attack does better than chance: the interval of ``auc`` is above 1/2."""
        return self.auc.low > 0.5

    @property
    def text(self) -> str:
        """The finding in words."""
        verdict = (
            "Released traces lie nearer to the trips they were made from than to others."
            if self.is_telling
            else "Released traces lie as near to the trips they were made from as to others."
        )
        return (
            f"{verdict} AUC {self.auc.value:.3f} ({self.auc.low:.3f} to {self.auc.high:.3f}), "
            f"{self.n_copied:,} of {self.n_members:,} members copied. One release, one attack: "
            "a value near chance is no guarantee."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        found = asdict(self)
        for name, value in found.items():
            if isinstance(value, Interval):
                found[name] = value._asdict()
        return found | {"is_telling": self.is_telling, "text": self.text}

    def rows(self) -> list[dict[str, str]]:
        """Rows of text for a table: name, value, low, high, chance."""
        measures = {
            "AUC": (self.auc, "0.5"),
            "members found at 1 % false alarms": (self.true_positive_at_1, "0.01"),
            "members found at 10 % false alarms": (self.true_positive_at_10, "0.1"),
            "distance of members / of others": (self.distance_ratio, "1"),
        }
        return [
            {
                "name": name,
                "value": f"{found.value:.3f}",
                "low": f"{found.low:.3f}",
                "high": f"{found.high:.3f}",
                "chance": chance,
            }
            for name, (found, chance) in measures.items()
        ]


def nearness(
    members: Traces,
    held_out: Traces,
    released: Traces,
    *,
    seed: int = 0,
    n_bootstrap: int = 500,
    confidence: float = 0.95,
) -> Nearness:
    """Infer membership from the distance to the nearest released trace.

    Parameters
    ----------
    members
        Traces that the release was made from: dataset with ``power_w (trip, time)`` or array.
        Private, and so is the result.
    held_out
        Traces of the same kind that it was not made from; private.
    released
        The release.
    seed
        Of the bootstrap.
    n_bootstrap
        Samples behind the intervals; trips are drawn anew in each of the two sets.
    confidence
        Of the intervals.

    Returns
    -------
    nearness

    Raises
    ------
    InputDataError
        If a trace is not finite, the sets do not fit together, or one of the first two has
        fewer than 10 traces.
    ValueError
        If an option is outside its range.

    Notes
    -----
    Distances are Euclidean among the features of
    :func:`~prisma_sbi.evaluation.trace_features`, in units of their spread among the held-out
    traces. An attack by distance alone [1]_ is weaker than one that knows how traces are
    made, so it can prove a leak and never its absence. Rates at few false alarms say more
    about single people than the area does [2]_.

    ======================= =====================================================
    Case                    Result
    ======================= =====================================================
    release copies members  AUC near 1, ratio 0
    members = held out      AUC 0.5, ratio 1
    all distances are 0     AUC 0.5 (ties count half), rates 0, ratio 1
    ======================= =====================================================

    References
    ----------
    .. [1] Hayes, Melis, Danezis and De Cristofaro, LOGAN: Membership Inference Attacks Against
       Generative Models, 2019. https://doi.org/10.2478/popets-2019-0008
    .. [2] Carlini, Chien, Nasr, Song, Terzis and Tramèr, Membership Inference Attacks From First
       Principles, 2022. https://doi.org/10.1109/SP46214.2022.9833649
    """
    _validate.at_least(1, n_bootstrap=n_bootstrap)
    _validate.in_range(0.5, 1.0, confidence=confidence)
    near, far = nearest_distances(members, held_out, released)
    found = _measures(near, far)
    rng = np.random.default_rng(seed)
    samples = np.array(
        [
            _measures(rng.choice(near, len(near)), rng.choice(far, len(far)))
            for _ in range(n_bootstrap)
        ]
    )
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(samples, [tail, 1.0 - tail], axis=0)
    intervals = [Interval(*map(float, each)) for each in zip(found, low, high, strict=True)]
    return Nearness(
        auc=intervals[0],
        true_positive_at_1=intervals[1],
        true_positive_at_10=intervals[2],
        distance_ratio=intervals[3],
        n_copied=int(np.sum(near == 0)),
        n_copied_held_out=int(np.sum(far == 0)),
        n_members=len(near),
        n_held_out=len(far),
        n_released=len(power_array(released, name="released")),
        confidence=confidence,
    )


def nearest_distances(
    members: Traces, held_out: Traces, released: Traces
) -> tuple[np.ndarray, np.ndarray]:
    """Distance ``(trip,)`` to the nearest released trace, of members and of held-out trips."""
    features = {}
    for name, traces in (("member", members), ("held-out", held_out), ("released", released)):
        require_comparable(held_out, traces)
        features[name] = trace_features(power_array(traces, name=name))
    for name in ("member", "held-out"):
        if len(features[name]) < MINIMUM_TRIPS:
            raise InputDataError(
                f"Expected at least {MINIMUM_TRIPS} {name} traces; got {len(features[name])}. "
                "A rate of false alarms is not defined below that."
            )
    others, release = standardize_features(features["held-out"], features["released"])
    _, inside = standardize_features(features["held-out"], features["member"])
    return _nearest(inside, release), _nearest(others, release)


def _nearest(points: np.ndarray, release: np.ndarray) -> np.ndarray:
    """Distance of each point to the nearest one of the release."""
    size = max(1, _BLOCK_ENTRIES // len(release))
    blocks = [points[start : start + size] for start in range(0, len(points), size)]
    return np.concatenate([cdist(block, release).min(axis=1) for block in blocks])


def _measures(near: np.ndarray, far: np.ndarray) -> list[float]:
    """AUC, the two rates, and the ratio of medians."""
    ordered = np.sort(far)
    below = np.searchsorted(ordered, near, side="left")
    ties = np.searchsorted(ordered, near, side="right") - below
    auc = float(np.mean(len(far) - below - ties / 2.0) / len(far))
    rates = []
    for rate in FALSE_POSITIVE_RATES:
        allowed = int(rate * len(far))
        # Members nearer than all but the allowed number of others; ties are no members.
        rates.append(float(np.mean(near < ordered[allowed])))
    return [auc, *rates, _ratio(float(np.median(near)), float(np.median(far)))]


def _ratio(near: float, far: float) -> float:
    """Quotient of two distances; two zeros are equal."""
    if far > 0:
        return near / far
    return 1.0 if near == 0 else float("inf")
