"""Energy, duration and power levels of traces, and the distance between laws of one number."""

import numpy as np
from jaxtyping import Float


def trace_durations(
    power_w: Float[np.ndarray, "trip time"], *, time_step_s: float = 1.0
) -> Float[np.ndarray, " trip"]:
    """Time in s until the last sample that is not zero; 0 for a trace of zeros.

    Parameters
    ----------
    power_w : (trip, time)
        Finite traces, zero after the end of a trip.
    time_step_s
        Time between samples.

    Returns
    -------
    duration_s : (trip,)
        At most the horizon: a trip that goes on is cut there.

    Examples
    --------
    >>> import numpy as np
    >>> trace_durations(np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    array([3., 0.])
    """
    drawn = power_w != 0
    last = power_w.shape[1] - np.argmax(drawn[:, ::-1], axis=1)
    return np.where(drawn.any(axis=1), last, 0) * float(time_step_s)


def trace_energies(
    power_w: Float[np.ndarray, "trip time"], *, time_step_s: float = 1.0
) -> Float[np.ndarray, " trip"]:
    """Energy in J that each trace draws within the horizon."""
    return power_w.sum(axis=1) * float(time_step_s)


def power_levels(power_w: Float[np.ndarray, "trip time"]) -> Float[np.ndarray, " sample"]:
    """All samples up to the end of each trace, pooled and sorted.

    The zeros after the end are left out: how long trips take is another question. Traces that
    draw no power at all leave nothing; a population of them has the single level 0.
    """
    running = np.arange(power_w.shape[1]) < trace_durations(power_w)[:, None]
    levels = np.sort(power_w[running])
    return levels if levels.size else np.zeros(1)


def wasserstein(first: Float[np.ndarray, " a"], second: Float[np.ndarray, " b"]) -> float:
    r"""Wasserstein-1 distance between two samples of one number.

    Parameters
    ----------
    first, second : (a,), (b,)
        At least one value each; the numbers of values may differ.

    Returns
    -------
    distance
        In the unit of the values; symmetric; 0 for equal samples.

    Notes
    -----
    With :math:`F, G` the two empirical distribution functions,

    .. math:: W_1 = \int \lvert F(x) - G(x) \rvert \, dx,

    the mean way by which the values of one sample must be moved to become the other.

    Examples
    --------
    >>> import numpy as np
    >>> wasserstein(np.array([0.0, 1.0]), np.array([3.0]))
    2.5
    """
    # Two sorted runs: a stable sort only merges them.
    values = np.concatenate([np.sort(first), np.sort(second)])
    order = np.argsort(values, kind="stable")
    ahead = np.cumsum(np.where(order < len(first), len(second), -len(first)))
    gaps = np.diff(values[order])
    return float(np.abs(ahead[:-1]) @ gaps) / (len(first) * len(second))
