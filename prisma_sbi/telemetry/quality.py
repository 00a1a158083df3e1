"""Why a trip is set aside, and the public thresholds that decide it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np

from prisma_sbi import _validate
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.telemetry.facts import TripFacts

_Find = Callable[..., None]
"""Takes a reason, which trips it holds for, a sentence, and the values in it."""


class Reason(StrEnum):
    """Why a trip, a row or a file is set aside; the codes of the set-aside table."""

    UNREADABLE_FILE = "unreadable_file"
    CORRUPT_ROW = "corrupt_row"
    DUPLICATE_TRIP = "duplicate_trip"
    VEHICLE_TYPE = "vehicle_type"
    NEGATIVE_TIME = "negative_time"
    TOO_SHORT = "too_short"
    NO_POWER_SIGNAL = "no_power_signal"
    GAP = "gap"
    MISSING_COORDINATES = "missing_coordinates"
    OUT_OF_REGION = "out_of_region"
    STUCK_GPS = "stuck_gps"
    START_EQUALS_END = "start_equals_end"
    IMPOSSIBLE_POWER = "impossible_power"
    DISTANCE_MISMATCH = "distance_mismatch"


@dataclass(frozen=True, kw_only=True)
class QualityRules:
    """Thresholds that a trip must keep; public, fixed before any trip is read.

    Attributes
    ----------
    min_duration_s
        Shorter trips are set aside.
    max_gap_s
        Longest stretch without power on the move, and the farthest that the first (last)
        position may lie from the start (end).
    max_stop_gap_s
        Longest stretch without power while the vehicle stands.
    max_power_w
        Limit on the size of any mean over one cell of the grid.
    max_median_power_w
        Limit on the median over the cells of the trip: wrong units land here.
    max_frozen_m
        Longest distance that may be driven while the position stands still.
    min_displacement_m
        Start and end must be at least this far apart.
    max_distance_mismatch
        Largest difference between the distance by positions and by speed, over the larger.
    max_corrupt_share
        Largest share of rows that may be dropped from a trip.

    Raises
    ------
    ValueError
        If a threshold is not positive or not finite.
    """

    min_duration_s: float = 60.0
    max_gap_s: float = 10.0
    max_stop_gap_s: float = 60.0
    max_power_w: float = 500e3
    max_median_power_w: float = 300e3
    max_frozen_m: float = 1_000.0
    min_displacement_m: float = 25.0
    max_distance_mismatch: float = 0.5
    max_corrupt_share: float = 0.1

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            _validate.finite(**{field.name: value})
            _validate.positive(**{field.name: value})


@dataclass(frozen=True, kw_only=True, eq=False)
class Verdicts:
    """One verdict per trip.

    Attributes
    ----------
    reason : (n_trips,) str
        A :class:`Reason`, or empty for a trip that is kept.
    detail : (n_trips,) str
        What was found, as a sentence.
    """

    reason: np.ndarray
    detail: np.ndarray

    @property
    def kept(self) -> np.ndarray:
        """Which trips are kept."""
        return self.reason == ""


def judge_trips(
    facts: TripFacts,
    power_w: np.ndarray,
    *,
    power_source: np.ndarray,
    vehicle_type: np.ndarray,
    vehicle_types: Collection[str] | None,
    bounds: Bounds,
    rules: QualityRules,
) -> Verdicts:
    """Judge each trip by the rules; the first rule broken is the reason.

    Parameters
    ----------
    facts
        Facts of the trips.
    power_w : (n_trips, n_times)
        Traces on the grid.
    power_source, vehicle_type : (n_trips,) str
        Empty source means no power signal.
    vehicle_types
        Types to keep, or None for all. A trip of unknown type is kept.
    bounds
        Where trips must start and end.
    rules
        Thresholds.

    Returns
    -------
    verdicts
        Rules are asked in the order of :class:`Reason`.
    """
    n_trips = len(power_source)
    reason = np.full(n_trips, "", dtype="<U32")
    detail = np.full(n_trips, "", dtype=object)

    def find(code: Reason, broken: np.ndarray, sentence: str, *values: np.ndarray) -> None:
        for k in np.flatnonzero(broken & (reason == "")):
            reason[k] = code
            detail[k] = sentence.format(*(value[k] for value in values))

    share = facts.row_share_corrupt
    find(
        Reason.CORRUPT_ROW,
        share > rules.max_corrupt_share,
        f"{{:.0%}} of the rows are corrupt; at most {rules.max_corrupt_share:.0%} may be.",
        share,
    )
    if vehicle_types is not None:
        listed = ", ".join(vehicle_types)
        other = ~np.isin(vehicle_type, [*vehicle_types, "unknown"])
        find(
            Reason.VEHICLE_TYPE, other, f"The vehicle is of type {{}}, not {listed}.", vehicle_type
        )
    find(
        Reason.NEGATIVE_TIME,
        facts.first_time_s < 0,
        "Time stamps begin at {:.1f} s, before 0.",
        facts.first_time_s,
    )
    find(
        Reason.TOO_SHORT,
        facts.duration_s < rules.min_duration_s,
        f"The trip lasts {{:.1f}} s; at least {rules.min_duration_s:g} s are needed.",
        facts.duration_s,
    )
    _judge_power_signal(find, facts, power_source, rules)
    _judge_positions(find, facts, bounds, rules)
    _judge_values(find, facts, power_w, rules)
    return Verdicts(reason=reason, detail=detail.astype(str) if n_trips else detail)


def _judge_power_signal(
    find: _Find, facts: TripFacts, power_source: np.ndarray, rules: QualityRules
) -> None:
    """Whether power is known throughout."""
    find(
        Reason.NO_POWER_SIGNAL,
        power_source == "",
        "No channel tells the power: none is logged, or none is ever positive.",
    )
    find(
        Reason.GAP,
        facts.longest_gap_s > rules.max_gap_s,
        f"{{:.1f}} s without power; at most {rules.max_gap_s:g} s are allowed.",
        facts.longest_gap_s,
    )
    find(
        Reason.GAP,
        facts.longest_stop_s > rules.max_stop_gap_s,
        f"{{:.1f}} s without power at a stand; at most {rules.max_stop_gap_s:g} s are allowed.",
        facts.longest_stop_s,
    )


def _judge_positions(find: _Find, facts: TripFacts, bounds: Bounds, rules: QualityRules) -> None:
    """Whether start and end are known, inside, and apart, and the positions live."""
    ends = (facts.start_lat_deg, facts.start_lon_deg, facts.end_lat_deg, facts.end_lon_deg)
    find(
        Reason.MISSING_COORDINATES,
        ~np.isfinite(np.stack(ends)).all(axis=0),
        f"No position within {rules.max_gap_s:g} s of the start or of the end.",
    )
    inside = bounds.contains(ends[0], ends[1]) & bounds.contains(ends[2], ends[3])
    find(
        Reason.OUT_OF_REGION,
        ~inside,
        "From ({:.5f}, {:.5f}) to ({:.5f}, {:.5f}), not both inside the region.",
        *ends,
    )
    find(
        Reason.STUCK_GPS,
        facts.frozen_m > rules.max_frozen_m,
        "The position stands still while {:.0f} m are driven by speed.",
        facts.frozen_m,
    )
    find(
        Reason.START_EQUALS_END,
        ~(facts.displacement_m >= rules.min_displacement_m),
        f"Start and end are {{:.1f}} m apart; at least {rules.min_displacement_m:g} m are needed.",
        facts.displacement_m,
    )


def _judge_values(find: _Find, facts: TripFacts, power_w: np.ndarray, rules: QualityRules) -> None:
    """Whether power and distances are possible."""
    n_trips, n_times = power_w.shape
    peak_w = np.abs(power_w).max(axis=1, initial=0.0)
    on = np.clip(np.ceil(facts.duration_s), 1, n_times).astype(np.int64)
    median_w = np.array([np.median(power_w[k, : on[k]]) for k in range(n_trips)])
    find(
        Reason.IMPOSSIBLE_POWER,
        ~(peak_w <= rules.max_power_w) | ~(np.abs(median_w) <= rules.max_median_power_w),
        "Power reaches {:.3g} kW with a median of {:.3g} kW; check its unit.",
        peak_w / 1e3,
        median_w / 1e3,
    )
    larger = np.fmax(facts.gps_distance_m, facts.speed_distance_m)
    off = np.abs(facts.gps_distance_m - facts.speed_distance_m) / np.maximum(larger, 1.0)
    find(
        Reason.DISTANCE_MISMATCH,
        off > rules.max_distance_mismatch,
        "{:.0f} m by positions, {:.0f} m by speed.",
        facts.gps_distance_m,
        facts.speed_distance_m,
    )
