"""The published loss of one trip as a function of its descriptors."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from prisma_sbi.models.streaming import fold_power
from prisma_sbi.models.summary import (
    TraceSummary,
    activity,
    away_from_zero,
    summarize,
    summary_residuals,
)
from prisma_sbi.region.constants import Constants
from prisma_sbi.simulator.driver import Road
from prisma_sbi.simulator.trip import simulate_power
from prisma_sbi.simulator.vehicle import Vehicle


class SummaryObjective(eqx.Module):
    """Loss of one trip: its road, its observed summary and the public pool.

    Attributes
    ----------
    road
        Profile of the trip.
    observed
        Summary of the observed trace.
    pool
        Candidate vehicles.
    constants
        Public constants (static).
    """

    road: Road
    observed: TraceSummary
    pool: Vehicle
    constants: Constants = eqx.field(static=True)

    def trip_axes(self) -> "SummaryObjective":
        """Axes for ``jax.vmap`` over objectives of many trips: all but the pool are stacked."""
        stacked = jax.tree.map(lambda _: 0, self)
        return eqx.tree_at(lambda axes: axes.pool, stacked, None)

    def residuals(
        self, point: Float[Array, "2"], vehicle: Int[Array, ""]
    ) -> Float[Array, " residual"]:
        """Standardized residuals at (aggressiveness, detour) for one vehicle of the pool."""
        power_w = simulate_power(point[0], point[1], self.pool[vehicle], self.road, self.constants)
        return summary_residuals(summarize(power_w, self.constants), self.observed, self.constants)

    def losses(
        self, point: Float[Array, "2"], vehicles: Int[Array, " choice"], *, stride: int = 1
    ) -> Float[Array, " choice"]:
        r"""Loss at (aggressiveness, detour) for several vehicles, from one driver run.

        Parameters
        ----------
        point : (2,)
            Aggressiveness and detour.
        vehicles : (choice,) int
            Positions in the pool.
        stride
            Time steps over which the motion is averaged before the vehicles see it. 1 is the
            loss itself; more is a cheaper approximation, good enough to rank candidates.

        """
        return self._combine(*self._misfits(point, vehicles, stride))

    def promise(
        self, point: Float[Array, "2"], vehicles: Int[Array, " few"], *, stride: int = 1
    ) -> Float[Array, ""]:
        """What the best vehicle of the pool might reach at a point, judged by a few of them.

        The pool is dense in energy: between two representatives some vehicle meets the observed
        energy. So each is forgiven half the mean gap between them; without this a coarse grid
        ranks points by the luck of their representatives.
        """
        energy, duration, shape = self._misfits(point, vehicles, stride)
        gap = (jnp.max(energy) - jnp.min(energy)) / max(2 * (len(vehicles) - 1), 1)
        return jnp.min(self._combine(jnp.maximum(jnp.abs(energy) - gap, 0.0), duration, shape))

    def _combine(self, energy, duration, shape):
        """Loss from the relative misfits of energy and duration and the squared one of shape."""
        constants = self.constants
        return 0.5 * (
            (energy / constants.energy_scale) ** 2
            + (duration / constants.duration_scale) ** 2
            + shape / constants.shape_scale**2
        )

    def _misfits(self, point, vehicles, stride: int):
        r"""Relative energy and duration misfit, mean squared shape misfit, per vehicle.

        Nothing of length ``time`` is stored. With the running energy :math:`C_t` of a vehicle
        the misfit of the cumulative curve expands to
        :math:`\sum_t (C_t / E - s_t)^2 = A / E^2 - 2 B / E + \sum_t s_t^2` where
        :math:`A = \sum_t C_t^2` and :math:`B = \sum_t C_t s_t`, so four running sums a vehicle
        are all the memory there is.
        """
        constants = self.constants
        stride = min(stride, constants.n_times)
        share = self.observed.cumulative_share[stride - 1 :: stride]
        vehicle = self.pool[vehicles]
        dt = constants.time_step_s * stride

        def update(sums, power, share_now):
            energy, duration, squares, products = sums
            energy = energy + dt * power
            duration = duration + dt * activity(power, constants)
            return energy, duration, squares + energy**2, products + energy * share_now

        zeros = jnp.zeros_like(vehicle.idle_power_w)
        energy, duration, squares, products = fold_power(
            point,
            vehicle,
            self.road,
            constants,
            start=(zeros, zeros, zeros, zeros),
            update=update,
            seen=share,
            stride=stride,
        )
        total = away_from_zero(energy, constants.energy_floor_j)
        shape = squares / total**2 - 2.0 * products / total + jnp.sum(share**2)
        observed = self.observed
        energy_misfit = (energy - observed.energy_j) / away_from_zero(
            observed.energy_j, constants.energy_floor_j
        )
        duration_misfit = (duration - observed.duration_s) / jnp.maximum(
            observed.duration_s, constants.duration_floor_s
        )
        return energy_misfit, duration_misfit, jnp.maximum(shape, 0.0) / share.shape[-1]
