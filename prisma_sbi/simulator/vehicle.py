"""The vehicle: from motion to power, linear in four coefficients."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from prisma_sbi.region.constants import Constants
from prisma_sbi.region.pool import VehiclePool
from prisma_sbi.simulator.driver import Drive
from prisma_sbi.simulator.drivetrain import Drivetrain, drivetrains
from prisma_sbi.units import STANDARD_GRAVITY_MPS2


class Vehicle(eqx.Module):
    """Road-load coefficients, idle power and drivetrain of one vehicle, or of a pool.

    Attributes
    ----------
    coefficients : (..., 4)
        Mass in kg and the resistance factors of v^3, v^2 and v, all SI.
    idle_power_w : (...)
        Power from the tank whenever the engine runs.
    drivetrain
        What turns stored into mechanical power; None, as published, for one engine efficiency
        and an engine that always runs.
    """

    coefficients: Float[Array, "*vehicle 4"]
    idle_power_w: Float[Array, "*vehicle"]
    drivetrain: Drivetrain | None = None

    def __getitem__(self, index) -> "Vehicle":
        """The vehicles at the given positions of the pool."""
        return jax.tree.map(lambda leaf: leaf[index], self)

    def scaled(self, factor: Float[Array, "5"]) -> "Vehicle":
        """One vehicle with its four coefficients and its idle power multiplied by factors."""
        return Vehicle(
            self.coefficients * factor[:4], self.idle_power_w * factor[4], self.drivetrain
        )

    def mix(self, weights: Float[Array, "*n vehicle"]) -> "Vehicle":
        """A relaxed vehicle: coefficients mixed by weights on the simplex."""
        return jax.tree.map(lambda leaf: weights @ leaf, self)


def vehicles_from_pool(pool: VehiclePool, constants: Constants) -> Vehicle:
    """The pool as arrays; idle power is proportional to displacement."""
    return Vehicle(
        coefficients=jnp.asarray(pool.coefficients, jnp.float32),
        idle_power_w=jnp.asarray(pool.displacement_l * constants.idle_power_w_per_l, jnp.float32),
        drivetrain=drivetrains(pool, constants),
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
    wheel_power_w: Float[Array, "*n"],
    vehicle: Vehicle,
    constants: Constants,
    *,
    engaged: Float[Array, "*m"] | float = 1.0,
) -> Float[Array, "*k"]:
    """Power drawn from the tank for a given power at the wheels.

    Positively homogeneous in wheel power and ``engaged``, the share of the time step before
    arrival, together.
    """
    if vehicle.drivetrain is not None:
        return vehicle.drivetrain.stored_power(wheel_power_w, vehicle.idle_power_w, engaged)
    return (
        jnp.maximum(wheel_power_w, 0.0) / constants.tank_efficiency
        + constants.recuperation * jnp.minimum(wheel_power_w, 0.0)
        + engaged * vehicle.idle_power_w
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
    return motion.engaged * tank_power(wheel_power_w, vehicle, constants)
