"""What is compared between a trace and its replicates: fifteen numbers of each."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from prisma_sbi.evaluation.features import FEATURE_NAMES, trace_features

QUIET_W = 3_000.0
"""Power from which on a car is at work: three times the noise of a standing car under the default
law, and below the idle of most engines."""
IDLE_W = 8_000.0
"""Power up to which a running engine counts as idling."""
FALL_W = 5_000.0
"""Loss of power from one second to the next that counts as braking."""
_PATIENCE = 0.04
"""Share of full activity that the seconds to come must have for the trip to be going on."""
_FEWEST = 2
_LAGS = (1, 3, 8)
_LOWEST_W2 = 1.0


class Discrepancy(NamedTuple):
    """One number of a trace, and words for what it is too much or too little of.

    Attributes
    ----------
    title
        For figures and tables.
    resolution
        A difference that nobody would mind; predictions vary by at least as much.
    high, low
        What a trace does whose number is above or below its prediction.
    """

    title: str
    resolution: float
    high: str
    low: str


DISCREPANCIES: Mapping[str, Discrepancy] = MappingProxyType(
    {
        "energy_j": Discrepancy("energy", 20_000.0, "spends more energy", "spends less energy"),
        "duration_s": Discrepancy("duration", 2.0, "lasts longer", "ends sooner"),
        "first_second_w": Discrepancy(
            "power in the first second", 500.0, "begins at more power", "begins at less power"
        ),
        "level_10_w": Discrepancy(
            "low power (10 %)", 300.0, "low power is higher", "low power is lower"
        ),
        "level_50_w": Discrepancy(
            "middle power (50 %)", 500.0, "middle power is higher", "middle power is lower"
        ),
        "level_90_w": Discrepancy(
            "high power (90 %)", 1_000.0, "high power is higher", "high power is lower"
        ),
        "log_variance": Discrepancy("log variance", 0.05, "varies more", "varies less"),
        "autocorrelation_1": Discrepancy(
            "autocorrelation, 1 s",
            0.02,
            "smoother from second to second",
            "rougher second by second",
        ),
        "autocorrelation_3": Discrepancy(
            "autocorrelation, 3 s", 0.02, "smoother over 3 s", "rougher over 3 s"
        ),
        "autocorrelation_8": Discrepancy(
            "autocorrelation, 8 s", 0.02, "smoother over 8 s", "rougher over 8 s"
        ),
        "zero_share": Discrepancy(
            "share at zero mid-trip", 0.01, "engine off more often", "engine off less often"
        ),
        "idle_share": Discrepancy("share at idle", 0.01, "idles more", "idles less"),
        "braking_share": Discrepancy(
            "share braking", 0.01, "power falls more often", "power falls less often"
        ),
        "n_starts": Discrepancy("starts", 1.0, "more starts", "fewer starts"),
        "fast_energy": Discrepancy(
            "log energy above 1/4 Hz", 0.05, "more fast fluctuation", "less fast fluctuation"
        ),
    }
)
"""By name; the order of the columns of :func:`discrepancies`."""


def discrepancies(
    power_w: Float[np.ndarray, "trip time"],
    *,
    time_step_s: float = 1.0,
    quiet_w: float = QUIET_W,
) -> Float[np.ndarray, "trip discrepancy"]:
    r"""Fifteen numbers of each trace that a good fit of it does not settle.

    Parameters
    ----------
    power_w : (trip, time)
        Finite traces.
    time_step_s
        Time between samples.
    quiet_w
        See :func:`trip_end`; a third of it counts as zero.

    Returns
    -------
    values : (trip, discrepancy)
        Columns as in :data:`DISCREPANCIES`.

    Notes
    -----
    All but the energy are taken over the trip, up to :func:`trip_end`, so that noise after
    arrival, which recordings do not have, does not enter. Shares are shares of its seconds: at
    zero, power within ``quiet_w / 3`` of it; at idle, between that and 8 kW; braking, power that
    has fallen by more than 5 kW since the sample before. A start is a rise of the mean of three
    samples from below half to above one and a half of the mean power of the trip.
    Autocorrelations and the energy of the fast bands are those of
    :func:`~prisma_sbi.evaluation.features.trace_features`.
    """
    power_w = np.asarray(power_w, np.float64)
    end = trip_end(power_w, quiet_w=quiet_w)
    inside = np.arange(power_w.shape[1]) < end[:, None]
    mean = np.sum(np.where(inside, power_w, 0.0), axis=1) / end
    # Outside the trip its own mean: nothing there counts in any central moment.
    filled = np.where(inside, power_w, mean[:, None])
    feature = dict(zip(FEATURE_NAMES, trace_features(filled).T, strict=True))
    variance = feature["variance_w2"] * power_w.shape[1] / end
    fast = feature["band_energy_3_w2"] + feature["band_energy_4_w2"]
    zero = inside & (np.abs(power_w) < quiet_w / 3.0)
    idle = inside & (power_w >= quiet_w / 3.0) & (power_w < IDLE_W)
    falling = inside[:, 1:] & (np.diff(power_w, axis=1) < -FALL_W)
    columns = {
        "energy_j": time_step_s * power_w.sum(axis=1),
        "duration_s": time_step_s * end,
        "first_second_w": power_w[:, 0],
        **_levels(power_w, inside, end),
        "log_variance": np.log(variance + _LOWEST_W2),
        **{f"autocorrelation_{lag}": feature[f"autocorrelation_{lag}"] for lag in _LAGS},
        "zero_share": zero.sum(axis=1) / end,
        "idle_share": idle.sum(axis=1) / end,
        "braking_share": falling.sum(axis=1) / end,
        "n_starts": _starts(filled, mean),
        "fast_energy": np.log(fast + _LOWEST_W2),
    }
    return np.stack([columns[name] for name in DISCREPANCIES], axis=1)


def trip_end(
    power_w: Float[np.ndarray, "trip time"], *, quiet_w: float = QUIET_W
) -> Int[np.ndarray, " trip"]:
    r"""Number of samples until a trip is over, noise and pauses notwithstanding.

    Parameters
    ----------
    power_w : (trip, time)
        Finite traces.
    quiet_w
        Power, of whatever sign, from which on a sample begins to count as driving.

    Returns
    -------
    end : (trip,) int
        At least 2.

    Notes
    -----
    With activity :math:`a_t = \min(\max(|p_t| / q - 1, 0), 1)` the end is the
    :math:`n` that maximizes :math:`\sum_{t < n} (a_t - 0.04)`: a change point by cumulative
    sums [1]_. 24 seconds with the engine off are made up for by one of full activity.

    References
    ----------
    .. [1] Page, Continuous inspection schemes, 1954. https://doi.org/10.1093/biomet/41.1-2.100
    """
    activity = np.clip(np.abs(power_w) / quiet_w - 1.0, 0.0, 1.0)
    return np.maximum(1 + np.argmax(np.cumsum(activity - _PATIENCE, axis=1), axis=1), _FEWEST)


def _levels(power_w: np.ndarray, inside: np.ndarray, end: np.ndarray) -> dict[str, np.ndarray]:
    """Deciles 1, 5 and 9 of the power during the trip."""
    ordered = np.sort(np.where(inside, power_w, np.inf), axis=1)
    found = {}
    for percent in (10, 50, 90):
        place = percent / 100.0 * (end - 1)
        below = np.floor(place).astype(int)
        left, right = (
            np.take_along_axis(ordered, np.minimum(index, end - 1)[:, None], axis=1)[:, 0]
            for index in (below, below + 1)
        )
        found[f"level_{percent}_w"] = left + (place - below) * (right - left)
    return found


def _starts(power_w: np.ndarray, mean_w: np.ndarray) -> np.ndarray:
    """Rises from low to high, whatever happens between the two."""
    padded = np.pad(power_w, ((0, 0), (1, 1)), mode="edge")
    smooth = (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3.0
    low, high = smooth < 0.5 * mean_w[:, None], smooth > 1.5 * mean_w[:, None]
    # The place of the latest sample that was low or high; what it was is the state.
    marked = np.where(low | high, np.arange(power_w.shape[1]), 0)
    state = np.take_along_axis(high, np.maximum.accumulate(marked, axis=1), axis=1)
    return np.sum(state[:, 1:] & ~state[:, :-1], axis=1).astype(np.float64)
