"""What a simulated driver lacks: a foot that is never still."""

import numpy as np
from jaxtyping import Float
from scipy.signal import lfilter

from prisma_sbi.region.constants import Constants


def restless_power(
    power_w: Float[np.ndarray, "trip time"], constants: Constants, rng: np.random.Generator
) -> Float[np.ndarray, "trip time"]:
    r"""Traces as a draw around the simulator's own, some calm and some restless.

    Parameters
    ----------
    power_w : (trip, time)
        From the simulator.
    constants
        ``restlessness`` and ``restlessness_memory_s``; at a restlessness of 0 the traces come
        back as they are and nothing is drawn.
    rng
        Of the draw; the result is a function of the traces, the constants and its state.

    Returns
    -------
    power_w : (trip, time)
        Same mean; what is zero stays zero.

    Notes
    -----
    Power is multiplied by :math:`\\exp(s z_t - s^2 / 2)`, with :math:`z` a stationary first-order
    autoregression of unit variance and :math:`s = r u^2`, :math:`u` uniform, for each trip: most
    drivers are calm. Pedal, gears, wind and traffic all end up in it.
    """
    if constants.restlessness == 0.0:
        return power_w
    scale = constants.restlessness * rng.uniform(size=len(power_w)) ** 2
    memory = float(np.exp(-constants.time_step_s / constants.restlessness_memory_s))
    return multiplied_by_noise(power_w, scale, memory, rng)


def multiplied_by_noise(
    power_w: Float[np.ndarray, "trip time"],
    scale: float | Float[np.ndarray, " trip"],
    memory: float,
    rng: np.random.Generator,
) -> Float[np.ndarray, "trip time"]:
    """Multiply by a positive stationary process with mean one; what is zero stays zero.

    Parameters
    ----------
    power_w : (trip, time)
        Traces.
    scale
        Standard deviation of the log, for all trips or for each.
    memory
        Correlation of the log from one sample to the next.
    rng
        Of the process.
    """
    white = rng.normal(size=power_w.shape) * np.sqrt(1.0 - memory**2)
    white[:, 0] /= np.sqrt(1.0 - memory**2)
    process = np.asarray(lfilter([1.0], [1.0, -memory], white, axis=1))
    scale = np.reshape(scale, (-1, 1))
    return (power_w * np.exp(scale * process - 0.5 * scale**2)).astype(np.float32)
