"""One feature of a trace put into another trace: what a simulator would gain by having it."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from prisma_sbi import _validate
from prisma_sbi.evaluation.marginals import trace_durations

MINUTE_S = 60
LOW_SHARE = 0.3
"""The lowest levels of a trip, as a share of its time."""
QUIET_W = 14_000.0
"""Three quarters of standing petrol cars burn less than this, and hybrids whose engine is off."""
SLOW_HZ, PULSE_HZ = 1 / 32, 1 / 8
"""Limits of the bands: stretches of road, pulses of launching and braking, texture."""
_FEWEST = 3
"""Shortest trip that has a course."""


class Swap(NamedTuple):
    """A feature, for people, and how it moves from one driven stretch to another.

    Attributes
    ----------
    title
        For figures and tables.
    move
        From the receiver's samples and the donor's, both up to their ends and in W, to the
        receiver's new samples; may be of another length.
    """

    title: str
    move: Callable[[np.ndarray, np.ndarray], np.ndarray]


def swap(
    name: str,
    receiver_w: Float[np.ndarray, "trip time"],
    donor_w: Float[np.ndarray, "donor donor_time"],
) -> Float[np.ndarray, "trip time"]:
    """Traces that have one feature from other traces, row by row, and all else of their own.

    Parameters
    ----------
    name
        A key of :data:`SWAPS`.
    receiver_w, donor_w : (trip, time)
        Samples at 1 Hz, zero after the end of a trip. With decoded traces as the receiver and
        the recorded trips that they imitate as the donor, a feature is repaired; the other way
        round it is broken.

    Returns
    -------
    swapped_w : (trip, time)
        Cut at the horizon. A row in which either trip is shorter than 3 samples stays as it is.

    Raises
    ------
    ValueError
        If the name is unknown or the shapes differ.

    Examples
    --------
    >>> import numpy as np
    >>> decoded, recorded = np.array([[1.0, 2.0, 3.0, 0.0]]), np.array([[9.0, 7.0, 8.0, 6.0]])
    >>> swap("order", decoded, recorded)
    array([[3., 2., 1., 0.]])
    """
    _validate.one_of(list(SWAPS), swap=name)
    if receiver_w.shape != donor_w.shape:
        raise ValueError(
            f"Expected as many trips and samples on both sides; got {receiver_w.shape} and "
            f"{donor_w.shape}. Pass row by row the trips that belong together."
        )
    swapped_w = np.array(receiver_w, dtype=np.float64)
    horizon = swapped_w.shape[1]
    ends = (trace_durations(side).astype(int) for side in (receiver_w, donor_w))
    for row, (own, other) in enumerate(zip(*ends, strict=True)):
        if min(own, other) < _FEWEST:
            continue
        receiver = swapped_w[row, :own].copy()
        moved = SWAPS[name].move(receiver, np.asarray(donor_w[row, :other], dtype=np.float64))
        swapped_w[row] = 0.0
        swapped_w[row, : len(moved)] = moved[:horizon]
    return swapped_w


def stretched(
    values: Float[np.ndarray, " sample"], n_samples: int
) -> Float[np.ndarray, " other_sample"]:
    """A course over another number of samples, by linear interpolation between their middles."""
    if len(values) == n_samples:
        return values.copy()
    places = (np.arange(n_samples) + 0.5) / n_samples
    return np.interp(places, (np.arange(len(values)) + 0.5) / len(values), values)


def ranks(values: Float[np.ndarray, " sample"]) -> np.ndarray:
    """Position of each sample among all, the lowest first; of equal ones the earlier."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable")


def _copy(_: np.ndarray, donor: np.ndarray) -> np.ndarray:
    return donor.copy()


def _duration(receiver: np.ndarray, donor: np.ndarray) -> np.ndarray:
    return stretched(receiver, len(donor))


def _first_minute(receiver: np.ndarray, donor: np.ndarray) -> np.ndarray:
    n_samples = min(MINUTE_S, len(receiver), len(donor))
    return np.concatenate([donor[:n_samples], receiver[n_samples:]])


def _last_minute(receiver: np.ndarray, donor: np.ndarray) -> np.ndarray:
    n_samples = min(MINUTE_S, len(receiver), len(donor))
    return np.concatenate([receiver[:-n_samples], donor[-n_samples:]])


def _levels(receiver: np.ndarray, donor: np.ndarray) -> np.ndarray:
    """Map the quantiles of one onto those of the other; what was highest stays highest."""
    return np.sort(stretched(np.sort(donor), len(receiver)))[ranks(receiver)]


def _low_levels(receiver: np.ndarray, donor: np.ndarray) -> np.ndarray:
    is_low = ranks(receiver) < LOW_SHARE * len(receiver)
    return np.where(is_low, _levels(receiver, donor), receiver)


def _order(receiver: np.ndarray, donor: np.ndarray) -> np.ndarray:
    """Put the receiver's own levels where the donor has its own of the same rank."""
    return np.sort(receiver)[ranks(stretched(donor, len(receiver)))]


def _zeros(receiver: np.ndarray, donor: np.ndarray) -> np.ndarray:
    n_samples = min(len(receiver), len(donor))
    moved = receiver.copy()
    moved[:n_samples][donor[:n_samples] == 0.0] = 0.0
    return moved


def _quiet_times(receiver: np.ndarray, donor: np.ndarray) -> np.ndarray:
    """Wait when and as long as the donor; the receiver's driving fills the time between."""
    return _woven(driving=receiver, waiting=donor)


def _driving(receiver: np.ndarray, donor: np.ndarray) -> np.ndarray:
    """Wait when and as long as before; the donor's driving fills the time between."""
    return _woven(driving=donor, waiting=receiver)


def _woven(*, driving: np.ndarray, waiting: np.ndarray) -> np.ndarray:
    """The quiet samples of one trip in their places, the others of another trip between them."""
    drives = driving[~is_quiet(driving)]
    is_waiting = is_quiet(waiting)
    woven = waiting.copy()
    if len(drives) and not is_waiting.all():
        woven[~is_waiting] = stretched(drives, int(np.sum(~is_waiting)))
    return woven


def is_quiet(power_w: Float[np.ndarray, "*n"]) -> Bool[np.ndarray, "*n"]:
    """Whether a car may be standing or coasting, by its power alone."""
    return np.asarray(power_w <= QUIET_W)


def _spectrum(low_hz: float, high_hz: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Amplitudes above one frequency and up to another, with the receiver's phases."""

    def move(receiver: np.ndarray, donor: np.ndarray) -> np.ndarray:
        level = receiver.mean()
        own = np.fft.rfft(receiver - level)
        other = np.abs(np.fft.rfft(stretched(donor, len(receiver)) - donor.mean()))
        frequency_hz = np.arange(len(own)) / len(receiver)
        inside = (frequency_hz > low_hz) & (frequency_hz <= high_hz)
        amplitude = np.where(inside, other, np.abs(own))
        return np.fft.irfft(amplitude * np.exp(1j * np.angle(own)), len(receiver)) + level

    return move


SWAPS: Mapping[str, Swap] = MappingProxyType(
    {
        "first minute": Swap("first minute", _first_minute),
        "last minute": Swap("last minute", _last_minute),
        "duration": Swap("duration", _duration),
        "levels": Swap("levels of power, trip by trip", _levels),
        "low levels": Swap(f"lowest {LOW_SHARE:.0%} of levels", _low_levels),
        "zeros": Swap("engine off within the trip", _zeros),
        "quiet times": Swap(f"times below {QUIET_W / 1e3:.0f} kW", _quiet_times),
        "driving": Swap("driving between them", _driving),
        "order": Swap("order of levels in time", _order),
        "slow band": Swap("amplitudes below 1/32 Hz", _spectrum(0.0, SLOW_HZ)),
        "pulse band": Swap("amplitudes 1/32 to 1/8 Hz", _spectrum(SLOW_HZ, PULSE_HZ)),
        "fast band": Swap("amplitudes above 1/8 Hz", _spectrum(PULSE_HZ, 0.5)),
        "everything": Swap("everything", _copy),
    }
)
"""Feature -> how it is swapped. The last one copies the donor: the best that any can reach."""
