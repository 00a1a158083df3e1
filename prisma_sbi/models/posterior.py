"""The posterior of one trip, as the estimators ask for it."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from prisma_sbi.models.likelihood import SummaryLikelihood, partial_log_likelihoods
from prisma_sbi.models.objective import SummaryObjective
from prisma_sbi.models.trip_data import TripData
from prisma_sbi.models.trip_model import TripModel


class TripPosterior(eqx.Module):
    """A trip model together with the data of one trip.

    Attributes
    ----------
    model
        Shared by all trips.
    trip
        Data of the trip.
    """

    model: TripModel
    trip: TripData

    def trip_axes(self) -> "TripPosterior":
        """Axes for ``jax.vmap`` over many trips: the data is stacked, the model is not."""
        unstacked = jax.tree.map(lambda _: None, self.model)
        return TripPosterior(unstacked, jax.tree.map(lambda _: 0, self.trip))

    def log_weights(self, point: Float[Array, "2"], *, stride: int = 1) -> Float[Array, " vehicle"]:
        """Log joint density of the point and every vehicle."""
        weights = self.model.log_weights(point, self.trip, stride=stride)
        return self.model.log_prior(point) + weights

    def partial_log_weights(
        self, point: Float[Array, "2"], shares: tuple[float, ...]
    ) -> Float[Array, "share vehicle"]:
        """Log joint densities given the first shares of the data.

        See :func:`~prisma_sbi.models.likelihood.partial_log_likelihoods`.
        """
        model = self.model
        values = partial_log_likelihoods(
            model.likelihood, point, model.pool, self.trip, model.constants, shares
        )
        return values + model.log_vehicle_prior + model.log_prior(point)

    def losses(
        self, point: Float[Array, "2"], vehicles: Int[Array, " choice"], *, stride: int = 1
    ) -> Float[Array, " choice"]:
        """Minus the log joint density for some vehicles of the pool."""
        model = self.model
        values = model.likelihood.log_likelihoods(
            point, model.pool[vehicles], self.trip, model.constants, stride=stride
        )
        return -(values + model.log_vehicle_prior[vehicles] + model.log_prior(point))

    def promise(
        self, point: Float[Array, "2"], vehicles: Int[Array, " few"], *, stride: int = 1
    ) -> Float[Array, ""]:
        """What the best vehicle might reach at a point, judged by a few of them."""
        model = self.model
        if not isinstance(model.likelihood, SummaryLikelihood):
            return jnp.min(self.losses(point, vehicles, stride=stride))
        objective = SummaryObjective(
            self.trip.road, self.trip.observed, model.pool, model.constants
        )
        return objective.promise(point, vehicles, stride=stride) - model.log_prior(point)
