"""The NumPyro model of one trip, made of a prior, a vehicle choice and a likelihood."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from prisma_sbi.models.likelihood import Likelihood, SummaryLikelihood, TraceLikelihood
from prisma_sbi.models.texture import TextureLikelihood
from prisma_sbi.models.trip_data import TripData
from prisma_sbi.models.vehicle_choice import (
    FixedVehicle,
    GumbelVehicle,
    MarginalVehicle,
    VehicleChoice,
)
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.record import Region
from prisma_sbi.simulator.trip import simulate_power
from prisma_sbi.simulator.vehicle import Vehicle, vehicles_from_pool

LOWEST_AGGRESSIVENESS = 0.02
"""Below this a car hardly moves within the horizon; at zero it never does."""

LIKELIHOODS = {
    "summary": SummaryLikelihood,
    "texture": TextureLikelihood,
    "trace": TraceLikelihood,
}
CHOICES = {"marginal": MarginalVehicle, "gumbel": GumbelVehicle, "fixed": FixedVehicle}


class TripPrior(eqx.Module):
    """Prior of the descriptors that are inferred.

    Attributes
    ----------
    aggressiveness, detour
        Any NumPyro distributions of one number within the domain of the region.
    vehicle : (vehicle,)
        Probabilities; uniform if None.
    """

    aggressiveness: dist.Distribution
    detour: dist.Distribution
    vehicle: Float[Array, " vehicle"] | None = None


def uniform_prior(constants: Constants) -> TripPrior:
    """Flat over the domain of the region, every vehicle as likely as the others."""
    low, high = constants.aggressiveness_bounds
    return TripPrior(
        aggressiveness=dist.Uniform(max(low, LOWEST_AGGRESSIVENESS), high),
        detour=dist.Uniform(*constants.detour_bounds),
    )


def beta_prior(
    constants: Constants,
    *,
    aggressiveness: tuple[float, float] = (2.0, 2.0),
    detour: tuple[float, float] = (1.2, 5.0),
) -> TripPrior:
    """Beta laws stretched over the domain of the region; two shape parameters each."""
    low, high = constants.aggressiveness_bounds
    return TripPrior(
        aggressiveness=_stretched_beta(aggressiveness, max(low, LOWEST_AGGRESSIVENESS), high),
        detour=_stretched_beta(detour, *constants.detour_bounds),
    )


class TripModel(eqx.Module):
    """NumPyro model of one trip: call it with the data of a trip.

    Sites are named as the columns of the descriptor table: ``aggressiveness``, ``detour``,
    and ``vehicle`` where the choice has such a site. All parts are pytrees, so models go
    through ``jit`` and ``vmap``; several trips in one program need ``numpyro.plate`` with
    ``jax.vmap`` of :meth:`log_likelihoods`, or ``numpyro.handlers.scope`` per trip.

    Attributes
    ----------
    pool
        Candidate vehicles.
    prior
        Of the descriptors.
    choice
        Treatment of the vehicle.
    likelihood
        Law of the observation.
    constants
        Public constants (static).

    Examples
    --------
    >>> from prisma_sbi.region import demo_region
    >>> model = TripModel.of(demo_region(), likelihood="trace")
    >>> type(model.choice).__name__
    'MarginalVehicle'
    """

    pool: Vehicle
    prior: TripPrior
    choice: VehicleChoice
    likelihood: Likelihood
    constants: Constants = eqx.field(static=True)

    @classmethod
    def of(
        cls,
        region: Region,
        *,
        prior: TripPrior | None = None,
        choice: str | VehicleChoice = "marginal",
        likelihood: str | Likelihood = "summary",
    ) -> "TripModel":
        """Put together the model of a region.

        Parameters
        ----------
        region
            Public inputs.
        prior
            By default :func:`uniform_prior`.
        choice
            ``"marginal"``, ``"gumbel"``, ``"fixed"``, or a record of your own making.
        likelihood
            ``"summary"``, ``"texture"``, ``"trace"``, or a record of your own making.

        Raises
        ------
        ValueError
            If a name is unknown or the prior has another number of vehicles than the pool.
        """
        prior = prior or uniform_prior(region.constants)
        if prior.vehicle is not None and prior.vehicle.shape != (len(region.vehicles),):
            raise ValueError(
                f"Expected {len(region.vehicles)} prior probabilities, one a vehicle of the pool; "
                f"got {prior.vehicle.shape}."
            )
        return cls(
            pool=vehicles_from_pool(region.vehicles, region.constants),
            prior=prior,
            choice=_named(CHOICES, "choice", choice),
            likelihood=_named(LIKELIHOODS, "likelihood", likelihood),
            constants=region.constants,
        )

    def __call__(self, trip: TripData, temperature: float | Float[Array, ""] | None = None) -> None:
        """Sample the descriptors and condition on the trip; what NumPyro calls.

        A temperature replaces the one of a relaxed vehicle, for annealing.
        """
        aggressiveness = numpyro.sample("aggressiveness", self.prior.aggressiveness)
        detour = numpyro.sample("detour", self.prior.detour)
        likelihood = self.likelihood.sampled()
        if trip.observed is None:
            self._predict(jnp.asarray(aggressiveness), jnp.asarray(detour), likelihood, trip)
            return
        point = jnp.stack([jnp.asarray(aggressiveness), jnp.asarray(detour)])
        choice = self.choice
        if temperature is not None and isinstance(choice, GumbelVehicle):
            choice = GumbelVehicle(jnp.asarray(temperature), choice.straight_through)
        choice.condition(
            lambda vehicles: likelihood.log_likelihoods(point, vehicles, trip, self.constants),
            self.pool,
            self.log_vehicle_prior,
        )

    def exact(self) -> tuple["TripModel", Int[np.ndarray, " candidate"]]:
        """The model with the vehicle summed out over its candidates, and who they are.

        Returns
        -------
        model
            Its pool holds the candidates only: all vehicles, or the one that is fixed.
        candidates : (candidate,) int
            Their positions in the pool.

        Raises
        ------
        ValueError
            If the vehicle is relaxed: a mixture is no candidate.
        """
        n_vehicles = self.pool.idle_power_w.shape[0]
        if isinstance(self.choice, MarginalVehicle):
            return self, np.arange(n_vehicles)
        if isinstance(self.choice, FixedVehicle):
            vehicle = int(self.choice.vehicle)
            if not 0 <= vehicle < n_vehicles:
                raise ValueError(f"Expected a vehicle in 0..{n_vehicles - 1}; got {vehicle}.")
            prior = TripPrior(self.prior.aggressiveness, self.prior.detour)
            pool = self.pool[jnp.asarray([vehicle])]
            return (
                TripModel(pool, prior, MarginalVehicle(), self.likelihood, self.constants),
                np.asarray([vehicle]),
            )
        raise ValueError(
            "Expected choice='marginal' or 'fixed' for a method that enumerates vehicles; got "
            f"{type(self.choice).__name__}. Use method 'svi' or 'nuts' with it."
        )

    @property
    def log_vehicle_prior(self) -> Float[Array, " vehicle"]:
        """Log prior probability of every vehicle."""
        if self.prior.vehicle is not None:
            return jnp.log(self.prior.vehicle / jnp.sum(self.prior.vehicle))
        n_vehicles = self.pool.idle_power_w.shape[0]
        return jnp.full_like(self.pool.idle_power_w, -jnp.log(n_vehicles))

    def log_weights(
        self, point: Float[Array, "2"], trip: TripData, *, stride: int = 1
    ) -> Float[Array, " vehicle"]:
        """Log of prior times likelihood of every vehicle at (aggressiveness, detour).

        The prior of the point itself is not in it.
        """
        values = self.likelihood.log_likelihoods(
            point, self.pool, trip, self.constants, stride=stride
        )
        return self.log_vehicle_prior + values

    def log_prior(self, point: Float[Array, "2"]) -> Float[Array, ""]:
        """Log prior density of (aggressiveness, detour)."""
        return jnp.asarray(
            self.prior.aggressiveness.log_prob(point[0]) + self.prior.detour.log_prob(point[1])
        )

    def _predict(self, aggressiveness, detour, likelihood, trip: TripData) -> None:
        """Sample the vehicle and the trace where nothing was observed."""
        if not isinstance(likelihood, TraceLikelihood):
            raise ValueError(
                "Expected likelihood='trace' to draw a trace without data; got a law of summaries "
                f"({type(likelihood).__name__}). Give the trip observations, or change the law."
            )
        vehicle: Any = numpyro.sample("vehicle", dist.CategoricalLogits(self.log_vehicle_prior))
        power_w = simulate_power(
            aggressiveness,
            detour,
            self.pool[vehicle],
            trip.road,
            self.constants,
        )
        numpyro.sample("power_w", likelihood.law(power_w))


def _named(known: dict[str, Any], what: str, given: Any) -> Any:
    """A part by its name, or as given."""
    if not isinstance(given, str):
        return given
    if given not in known:
        raise ValueError(f"Expected {what} to be one of {', '.join(known)}; got {given!r}.")
    return known[given]()


def _stretched_beta(shape: tuple[float, float], low: float, high: float) -> dist.Distribution:
    """Beta law over an interval."""
    stretch = dist.transforms.AffineTransform(
        low, high - low, domain=dist.constraints.unit_interval
    )
    return dist.TransformedDistribution(dist.Beta(*shape), stretch)
