"""A small pool, roads and a noisy trace for the tests of models."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from prisma_sbi.models import TripData, TripModel, TripPrior, uniform_prior
from prisma_sbi.models.trip_model import CHOICES, LIKELIHOODS
from prisma_sbi.region.constants import Constants
from prisma_sbi.simulator import Vehicle, simulate_power
from tests.simulator.examples import make_pool, make_road

CONSTANTS = Constants(horizon_s=120)
N_VEHICLES = 4
TRUTH = (0.4, 1.2)
POINTS = [(0.08, 1.0), (0.4, 1.2), (0.6, 1.5), (0.95, 2.4)]
power_of = jax.jit(simulate_power, static_argnames="constants")


def simulated(point, pool: Vehicle, road, constants=CONSTANTS):
    """Traces of every vehicle of a pool on one drive, one after the other."""
    first, second = jnp.asarray(point[0]), jnp.asarray(point[1])
    rows = range(pool.idle_power_w.shape[0])
    return np.stack([power_of(first, second, pool[row], road, constants) for row in rows])


def observed_trace(seed, constants=CONSTANTS):
    """A noisy trace of vehicle 1."""
    clean = simulated(TRUTH, make_pool(), make_road(seed), constants)[1]
    noise = np.random.default_rng(seed).uniform(0.7, 1.3, constants.n_times)
    return jnp.asarray(np.asarray(clean, float) * noise)


def make_model(
    *,
    choice: Any = "marginal",
    likelihood: Any = "summary",
    prior: TripPrior | None = None,
    constants=CONSTANTS,
) -> TripModel:
    """A trip model of the small pool."""
    return TripModel(
        pool=make_pool(),
        prior=prior or uniform_prior(constants),
        choice=CHOICES[choice]() if isinstance(choice, str) else choice,
        likelihood=LIKELIHOODS[likelihood]() if isinstance(likelihood, str) else likelihood,
        constants=constants,
    )


def make_trip(model: TripModel, seed=0) -> TripData:
    """Data of one trip, as the model wants it."""
    power_w = observed_trace(seed, model.constants)
    return TripData(make_road(seed), model.likelihood.observe(power_w, model.constants))
