"""The driver: from a road and two descriptors to speed, acceleration and slope."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from prisma_sbi.region.constants import Constants
from prisma_sbi.region.profiles import RoadProfiles

_STANDING_M = 1e-9
"""Advance in a time step below which the car stands: its square must not underflow to zero,
or the derivative of a ratio to it is not a number."""


class Road(eqx.Module):
    """Road profile of one trip; with a leading axis on every leaf, of many.

    Attributes
    ----------
    length_m
        Length of the shortest path.
    speed_mps : (point,)
        Drivable speed at equal spacing along the path; positive.
    slope_rad : (point,)
        Slope angle in the direction of travel, positive uphill.
    """

    length_m: Float[Array, "*trip"]
    speed_mps: Float[Array, "*trip point"]
    slope_rad: Float[Array, "*trip point"]


class Drive(eqx.Module):
    """One driver run.

    Attributes
    ----------
    speed_mps, acceleration_mps2, slope_rad : (time,)
        State at the start of each time step.
    engaged : (time,)
        Share of the time step before arrival: 1 while driving, 0 after, between them once.
    """

    speed_mps: Float[Array, "*trip time"]
    acceleration_mps2: Float[Array, "*trip time"]
    slope_rad: Float[Array, "*trip time"]
    engaged: Float[Array, "*trip time"]


class DriverSetting(eqx.Module):
    """Everything one step of the driver needs that does not change along the trip."""

    length_m: Float[Array, ""]
    arrival_m: Float[Array, ""]
    spacing_m: Float[Array, ""]
    acceleration_limit_mps2: Float[Array, ""]
    deceleration_mps2: Float[Array, ""]
    squared_envelope: Float[Array, " point"]
    slope_rad: Float[Array, " point"]
    squared_end_speed: Float[Array, ""]


def squared_speed_envelope(
    speed_mps: Float[Array, " point"],
    spacing_m: Float[Array, ""],
    deceleration_mps2: Float[Array, ""],
    squared_end_speed: Float[Array, ""] | float = 0.0,
) -> Float[Array, " point"]:
    r"""Square of the highest speed from which every limit ahead can still be met.

    Parameters
    ----------
    speed_mps : (point,)
        Drivable speed.
    spacing_m
        Distance between points.
    deceleration_mps2
        Constant braking.
    squared_end_speed
        Square of the speed one spacing behind the last point; 0 for a stop.

    Returns
    -------
    squared_envelope : (point,)
        In m^2/s^2.

    Notes
    -----
    The backward recursion :math:`w_i = \min(u_i^2, w_{i+1} + 2 b\,\Delta s)`, with
    :math:`w_{S+1}` the square of the speed at the end, is a running minimum in disguise:
    subtracting the ramp makes the recursion flat,
    :math:`w_i + 2 b\,\Delta s\,i = \min_{j \ge i} (u_j^2 + 2 b\,\Delta s\,j)`.
    """
    ramp = 2.0 * deceleration_mps2 * spacing_m * jnp.arange(1, speed_mps.shape[-1] + 1)
    stop = squared_end_speed + 2.0 * deceleration_mps2 * spacing_m * (speed_mps.shape[-1] + 1)
    lowest = lax.cummin(
        jnp.minimum(speed_mps**2 + ramp, stop), axis=speed_mps.ndim - 1, reverse=True
    )
    return jnp.maximum(lowest - ramp, 0.0)


def driver_setting(
    aggressiveness: Float[Array, ""],
    detour: Float[Array, ""],
    road: Road,
    constants: Constants,
) -> DriverSetting:
    """Stretch the road by the detour and derive limits from the aggressiveness."""
    length_m = detour * road.length_m
    spacing_m = length_m / (road.speed_mps.shape[-1] - 1)
    acceleration_limit = aggressiveness * constants.acceleration_ceiling_mps2
    deceleration = constants.brake_fraction * acceleration_limit
    end_speed = constants.end_speed_share * road.speed_mps[-1]
    return DriverSetting(
        length_m=length_m,
        arrival_m=length_m - jnp.minimum(constants.arrival_tolerance_m, 0.5 * length_m),
        spacing_m=spacing_m,
        acceleration_limit_mps2=acceleration_limit,
        deceleration_mps2=deceleration,
        squared_envelope=squared_speed_envelope(
            road.speed_mps, spacing_m, deceleration, end_speed**2
        ),
        slope_rad=road.slope_rad / detour,
        squared_end_speed=end_speed**2,
    )


def initial_state(
    setting: DriverSetting, constants: Constants
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Position and speed at the start."""
    speed = constants.start_speed_share * safe_sqrt(setting.squared_envelope[0])
    return jnp.zeros_like(setting.length_m), speed


def safe_sqrt(value: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Square root whose derivative at zero is zero, not infinite."""
    positive = value > 0.0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, value, 1.0)), 0.0)


def driver_step(
    state: tuple[Float[Array, ""], Float[Array, ""]], setting: DriverSetting, constants: Constants
) -> tuple[tuple[Float[Array, ""], Float[Array, ""]], tuple[Array, Array, Array, Array]]:
    """Advance position and speed by one time step; emit speed, acceleration, slope, engagement."""
    position, speed = state
    dt = constants.time_step_s
    last = setting.squared_envelope.shape[-1] - 2
    place = jnp.clip(position / setting.spacing_m, 0.0, last + 1.0)
    cell = jnp.minimum(place.astype(jnp.int32), last)
    share = place - cell
    left, right = setting.squared_envelope[cell], setting.squared_envelope[cell + 1]
    slope = (1.0 - share) * setting.slope_rad[cell] + share * setting.slope_rad[cell + 1]

    remaining = jnp.maximum(setting.length_m - position - speed * dt, 0.0)
    squared_target = jnp.minimum(
        left + share * (right - left),
        setting.squared_end_speed + 2.0 * setting.deceleration_mps2 * remaining,
    )
    limit = setting.acceleration_limit_mps2
    upper = limit
    if constants.acceleration_fade_mps > 0.0:
        upper = limit / (1.0 + speed / constants.acceleration_fade_mps)
    acceleration = jnp.clip(
        constants.control_gain_per_s * (safe_sqrt(squared_target) - speed), -limit, upper
    )
    # The share of this step before arrival is piecewise linear in the position, so that energy
    # and duration stay continuous in the descriptors although time is discrete.
    advance = speed * dt
    moving = advance > _STANDING_M
    engaged = jnp.clip((setting.arrival_m - position) / jnp.where(moving, advance, 1.0), 0.0, 1.0)
    engaged = jnp.where(moving, engaged, (position < setting.arrival_m).astype(engaged.dtype))
    emitted = (speed, acceleration, slope, engaged)
    return (position + advance, jnp.maximum(speed + acceleration * dt, 0.0)), emitted


def drive(
    aggressiveness: Float[Array, ""],
    detour: Float[Array, ""],
    road: Road,
    constants: Constants,
) -> Drive:
    r"""Drive a road to its end, or until the horizon.

    Parameters
    ----------
    aggressiveness
        In [0, 1]; scales the acceleration limit. At 0 the car never moves.
    detour
        At least 1; stretches the road and flattens its slopes by the same factor.
    road
        Profile of one trip.
    constants
        Public constants; ``n_times`` steps are taken.

    Returns
    -------
    Drive
        Four arrays ``(time,)``.

    Notes
    -----
    A speed-tracking law after Gipps [1]_: the desired speed is the lower of the envelope at
    the present position and :math:`\sqrt{2 b d}` for the distance :math:`d` left after this
    step; acceleration is proportional to the gap and limited on both sides. The squared
    envelope is interpolated linearly, which is exact under constant braking. Every operation
    is differentiable almost everywhere; forward mode is the cheap direction.

    References
    ----------
    .. [1] Gipps, A behavioural car-following model for computer simulation, 1981.
       https://doi.org/10.1016/0191-2615(81)90037-0
    """
    setting = driver_setting(aggressiveness, detour, road, constants)

    def step(state, _):
        return driver_step(state, setting, constants)

    _, emitted = lax.scan(step, initial_state(setting, constants), length=constants.n_times)
    speed, acceleration, slope, engaged = emitted
    return Drive(speed_mps=speed, acceleration_mps2=acceleration, slope_rad=slope, engaged=engaged)


def roads_from_profiles(profiles: RoadProfiles) -> Road:
    """Road profiles of many trips as one record with a leading trip axis."""
    return Road(
        length_m=jnp.asarray(profiles.length_m, jnp.float32),
        speed_mps=jnp.asarray(profiles.speed_mps, jnp.float32),
        slope_rad=jnp.arctan(jnp.asarray(profiles.grade, jnp.float32)),
    )
