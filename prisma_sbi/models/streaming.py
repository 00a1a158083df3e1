"""Power of many vehicles on one drive, folded step by step so that no trace is stored."""

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from prisma_sbi.region.constants import Constants
from prisma_sbi.simulator.driver import Road, driver_setting, driver_step, initial_state
from prisma_sbi.simulator.vehicle import Vehicle, tank_power, traction_features


def fold_power(
    point: Float[Array, "2"],
    vehicles: Vehicle,
    road: Road,
    constants: Constants,
    *,
    start: Any,
    update: Callable[[Any, Float[Array, " choice"], Any], Any],
    seen: Any,
    stride: int = 1,
    unroll: int = 1,
    stops: tuple[int, ...] | None = None,
) -> Any:
    """Fold a function over the power traces of several vehicles that share one drive.

    Parameters
    ----------
    point : (2,)
        Aggressiveness and detour.
    vehicles
        The vehicles, with a leading axis.
    road
        Profile of one trip.
    constants
        Public constants.
    start
        First carry of ``update``; arrays ``(choice,)``.
    update
        From carry, power ``(choice,)`` and what was observed at that step to the next carry.
    seen
        What was observed, with a leading axis of ``n_times // stride``.
    stride
        Time steps over which the motion is averaged before the vehicles see it.
    unroll
        Steps that one turn of the loop takes: pays where ``update`` hands on what it keeps.
    stops
        Rising counts of steps.

    Returns
    -------
    The last carry, or a list of the carries after so many steps.
    """
    setting = driver_setting(point[0], point[1], road, constants)
    zero = jnp.zeros_like(setting.length_m)
    coefficients = vehicles.coefficients

    def motion_step(carry, _):
        state, features, engaged = carry
        state, (speed, acceleration, slope, engaged_now) = driver_step(state, setting, constants)
        features = features + engaged_now * traction_features(speed, acceleration, slope)
        return (state, features, engaged + engaged_now), None

    def step(carry, now):
        state, folded = carry
        (state, features, engaged), _ = lax.scan(
            motion_step, (state, jnp.zeros(4, zero.dtype) + zero, zero), length=stride
        )
        # Wheel power is linear in the features, tank power positively homogeneous: for a
        # stride of one, factoring the engagement in here changes nothing.
        # Four products in place of a matrix product, which XLA would not fuse with the rest.
        products = [coefficients[:, k] * feature for k, feature in enumerate(features)]
        wheel_power = reduce(add, products) / stride
        power = tank_power(wheel_power, vehicles, constants, engaged=engaged / stride)
        return (state, update(folded, power, now)), None

    # Adding the zero gives the carry the batch axes that it will have after a step.
    carry = (initial_state(setting, constants), _with(start, zero))
    if stops is None:
        return lax.scan(step, carry, seen, unroll=unroll)[0][1]
    found = []
    for begin, end in pairwise((0, *stops)):
        now = jax.tree.map(lambda leaf, begin=begin, end=end: leaf[begin:end], seen)
        carry, _ = lax.scan(step, carry, now, unroll=unroll)
        found.append(carry[1])
    return found


def _with(start: Any, zero: Float[Array, ""]) -> Any:
    """The first carry, in the precision of the drive."""
    return jax.tree.map(lambda leaf: leaf + zero.astype(leaf.dtype), start)
