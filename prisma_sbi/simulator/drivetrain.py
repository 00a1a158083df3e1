"""Drivetrains: what turns stored into mechanical power, and when the engine runs."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from prisma_sbi.region.constants import Constants
from prisma_sbi.region.pool import VehiclePool

_NEVER_OFF_W = -1e9
_STARTING_W = 2_000.0
"""Wheel power over which a starting engine takes over, so that power stays continuous."""


class Drivetrain(eqx.Module):
    """Drivetrain of one vehicle, or of a pool.

    Attributes
    ----------
    efficiency : (...)
        Power at the wheels over power from the tank or battery.
    recuperation : (...)
        Share of the braking power that returns to the battery.
    engine_on_w : (...)
        Wheel power below which the engine of a hybrid is off; far below zero for others.
    """

    efficiency: Float[Array, "*vehicle"]
    recuperation: Float[Array, "*vehicle"]
    engine_on_w: Float[Array, "*vehicle"]

    def stored_power(
        self,
        wheel_power_w: Float[Array, "*n"],
        idle_power_w: Float[Array, "*vehicle"],
        engaged: Float[Array, "*m"] | float = 1.0,
    ) -> Float[Array, "*k"]:
        r"""Power from the tank or battery for a given power at the wheels.

        Parameters
        ----------
        wheel_power_w
            Negative while braking.
        idle_power_w
            Power from the tank whenever the engine runs.
        engaged
            Share of the time step before arrival.

        Notes
        -----
        With wheel power :math:`w` and the share :math:`e` the result is
        :math:`g\,(w^+ / \eta + e P_\text{idle}) + r\,w^-`, where
        :math:`g = \operatorname{clip}((w - e P_\text{on}) / 2\,\text{kW}, 0, 1)` is whether the
        engine runs. What a hybrid drives on its battery it drew from braking, so it costs no
        fuel here.
        """
        running = jnp.clip((wheel_power_w - engaged * self.engine_on_w) / _STARTING_W, 0.0, 1.0)
        burnt = jnp.maximum(wheel_power_w, 0.0) / self.efficiency + engaged * idle_power_w
        return running * burnt + self.recuperation * jnp.minimum(wheel_power_w, 0.0)


def drivetrains(pool: VehiclePool, constants: Constants) -> Drivetrain | None:
    """Drivetrains of a pool, or None where all of them are the published engine.

    A vehicle without displacement is electric. Road-load lists do not say which combustion
    vehicles are hybrids, so ``hybrid_share`` of them, evenly spread over the pool, are taken for
    such: a list of candidates needs both kinds at every mass.
    """
    if constants.hybrid_share == 0.0 and constants.electric_efficiency == 0.0:
        return None
    electric = pool.displacement_l == 0.0
    hybrid = evenly_spread(~electric, constants.hybrid_share)
    efficiency = np.where(
        electric & (constants.electric_efficiency > 0.0),
        constants.electric_efficiency,
        constants.tank_efficiency,
    )
    return Drivetrain(
        efficiency=jnp.asarray(efficiency, jnp.float32),
        recuperation=jnp.asarray(
            np.where(electric, constants.electric_recuperation, constants.recuperation), jnp.float32
        ),
        engine_on_w=jnp.asarray(np.where(hybrid, constants.engine_on_w, _NEVER_OFF_W), jnp.float32),
    )


def evenly_spread(
    candidate: Bool[np.ndarray, " vehicle"], share: float
) -> Bool[np.ndarray, " vehicle"]:
    """A share of the candidates, at equal steps along their order."""
    place = np.cumsum(candidate)
    return candidate & (np.floor(place * share) > np.floor((place - 1) * share))
