"""The vehicle: from motion to power, linear in four coefficients."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from prisma_sbi.region.constants import Constants
from prisma_sbi.region.pool import VehiclePool
from prisma_sbi.simulator.driver import Drive
from prisma_sbi.units import STANDARD_GRAVITY_MPS2


class Vehicle(eqx.Module):
    """Road-load coefficients and idle power of one vehicle, or of a pool.

    Attributes
    ----------
    coefficients : (..., 4)
        Mass in kg and the resistance factors of v^3, v^2 and v, all SI.
    idle_power_w : (...)
        Power from the tank whenever the engine runs.
    """

    coefficients: Float[Array, "*vehicle 4"]
    idle_power_w: Float[Array, "*vehicle"]

    def __getitem__(self, index) -> "Vehicle":
        """The vehicles at the given positions of the pool."""
        return Vehicle(self.coefficients[index], self.idle_power_w[index])

    def mix(self, weights: Float[Array, "*n vehicle"]) -> "Vehicle":
        """A relaxed vehicle: coefficients mixed by weights on the simplex."""
        return Vehicle(weights @ self.coefficients, weights @ self.idle_power_w)


def vehicles_from_pool(pool: VehiclePool, constants: Constants) -> Vehicle:
    """The pool as arrays; idle power is proportional to displacement."""
    return Vehicle(
        coefficients=jnp.asarray(pool.coefficients, jnp.float32),
        idle_power_w=jnp.asarray(pool.displacement_l * constants.idle_power_w_per_l, jnp.float32),
    )


def traction_features(
    speed_mps: Float[Array, "*n"],
    acceleration_mps2: Float[Array, "*n"],
    slope_rad: Float[Array, "*n"],
) -> Float[Array, "*n 4"]:
    """Factors of the four coefficients: (acceleration + g sin) v, v^3, v^2 and v."""
    inertia_and_slope = acceleration_mps2 + STANDARD_GRAVITY_MPS2 * jnp.sin(slope_rad)
    return jnp.stack(
        [inertia_and_slope * speed_mps, speed_mps**3, speed_mps**2, speed_mps], axis=-1
    )


def tank_power(
    wheel_power_w: Float[Array, "*n"], idle_power_w: Float[Array, "*m"], constants: Constants
) -> Float[Array, "*k"]:
    """Power drawn from the tank for a given power at the wheels, engine running."""
    return (
        jnp.maximum(wheel_power_w, 0.0) / constants.tank_efficiency
        + constants.recuperation * jnp.minimum(wheel_power_w, 0.0)
        + idle_power_w
    )


def power_trace(vehicle: Vehicle, motion: Drive, constants: Constants) -> Float[Array, " time"]:
    r"""Power from the tank along a driver run.

    Parameters
    ----------
    vehicle
        One vehicle, hard or mixed.
    motion
        A driver run ``(time,)``.
    constants
        Efficiency and recuperation.

    Returns
    -------
    power_w : (time,)
        Zero after arrival.

    Notes
    -----
    Quasi-static: with features :math:`f_t` and coefficients :math:`c`, power at the wheels is
    :math:`f_t \cdot c` and power from the tank
    :math:`\max(f c, 0)/\eta + r \min(f c, 0) + P_\text{idle}` [1]_.

    References
    ----------
    .. [1] Guzzella and Sciarretta, Vehicle Propulsion Systems, 2013.
       https://doi.org/10.1007/978-3-642-35913-2
    """
    features = traction_features(motion.speed_mps, motion.acceleration_mps2, motion.slope_rad)
    wheel_power_w = features @ vehicle.coefficients
    return motion.engaged * tank_power(wheel_power_w, vehicle.idle_power_w, constants)
