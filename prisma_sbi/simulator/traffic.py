"""Traffic: why nobody drives at the limit, and nobody drives a road twice at the same speeds."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from prisma_sbi.region.constants import Constants
from prisma_sbi.region.profiles import RoadProfiles

_SLOWEST_MPS = 1.0


def road_with_traffic(
    profiles: RoadProfiles, constants: Constants, rng: np.random.Generator
) -> RoadProfiles:
    r"""Roads as somebody finds them on a day: drivable speeds that wander along the way.

    Parameters
    ----------
    profiles
        Roads, one a trip.
    constants
        ``speed_wander``, ``speed_wander_length_m`` and ``speed_wander_limit``; without wander
        the roads come back as they are and nothing is drawn.
    rng
        Of the draw; the result is a function of the roads, the constants and its state.

    Returns
    -------
    RoadProfiles
        Other speeds; lengths and slopes as before.

    Notes
    -----
    Speed is multiplied by :math:`\min(\exp(s z(x) - s^2 / 2), m)`, where :math:`z` is a smooth
    stationary Gaussian process along the road, white noise under a Gaussian window of standard
    deviation :math:`l`, so that its correlation over a distance :math:`d` is
    :math:`\exp(-d^2 / 4 l^2)`. Vehicles ahead, turns, crossings and moods all end up in it. A
    driver who follows it gathers speed and rolls again and again, which is what a simulated
    driver at the limit never does. Where the speed is already below a walking pace it stays.

    The likelihood does not know of traffic: a trip is fitted on the empty road, and a decoded row
    is one draw of what could have happened on it.
    """
    if constants.speed_wander == 0.0:
        return profiles
    n_trips, n_points = profiles.speed_mps.shape
    spacing_m = profiles.length_m.astype(np.float64) / (n_points - 1)
    z = smooth_noise(n_trips, n_points, constants.speed_wander_length_m / spacing_m, rng)
    wander = constants.speed_wander
    factor = np.minimum(np.exp(wander * z - 0.5 * wander**2), constants.speed_wander_limit)
    least_mps = np.minimum(profiles.speed_mps, _SLOWEST_MPS)
    speed_mps = np.maximum(profiles.speed_mps * factor, least_mps).astype(np.float32)
    return replace(profiles, speed_mps=speed_mps)


def smooth_noise(
    n_rows: int,
    n_points: int,
    width: Float[np.ndarray, " row"],
    rng: np.random.Generator,
) -> Float[np.ndarray, "row point"]:
    """White noise under a Gaussian window, with unit variance.

    Parameters
    ----------
    n_rows, n_points
        Shape.
    width : (row,)
        Standard deviation of the window, in points.
    rng
        Of the noise.
    """
    # Twice as long as needed: the end of a circle is next to its beginning.
    n_circle = 2 * n_points
    frequency = np.fft.rfftfreq(n_circle)
    window = np.exp(-0.5 * (2.0 * np.pi * frequency * width[:, None]) ** 2)
    white = rng.normal(size=(n_rows, n_circle))
    smooth = np.fft.irfft(np.fft.rfft(white, axis=1) * window, n_circle, axis=1)[:, :n_points]
    # Mean power of the window over the whole circle; inner frequencies stand for two.
    inner = window[:, 1:-1] ** 2
    power = (window[:, 0] ** 2 + window[:, -1] ** 2 + 2.0 * inner.sum(axis=1)) / n_circle
    return smooth / np.sqrt(power)[:, None]
