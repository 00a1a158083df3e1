"""Trips with known truth, drawn from the model that will be asked about them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.models.likelihood import SummaryLikelihood, TraceLikelihood
from prisma_sbi.models.summary import TraceSummary, summarize
from prisma_sbi.models.trip_data import TripData
from prisma_sbi.models.trip_model import TripModel
from prisma_sbi.models.vehicle_choice import GumbelVehicle
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.profiles import RoadProfiles, RouteStatus
from prisma_sbi.simulator.driver import Road, roads_from_profiles
from prisma_sbi.simulator.trip import simulate_power
from prisma_sbi.simulator.vehicle import Vehicle

_CHUNK = 256
_N_NODES = 4001
_N_PRIOR = 100_000


class PackedSummary(eqx.Module):
    """The summary likelihood, for data that are summaries already.

    A row of data holds energy, duration and the cumulative curve. Residuals have a law of
    their own, of which no trace is known to be a draw; so what is simulated under it are
    summaries.
    """

    def observe(self, power_w: Float[Array, "*trip packed"], constants: Constants) -> TraceSummary:
        """Unpack a row."""
        del constants
        return TraceSummary(power_w[..., 0], power_w[..., 1], power_w[..., 2:])

    def log_likelihoods(
        self,
        point: Float[Array, "2"],
        vehicles: Vehicle,
        trip: TripData,
        constants: Constants,
        *,
        stride: int = 1,
    ) -> Float[Array, " choice"]:
        """Minus the published loss."""
        return SummaryLikelihood().log_likelihoods(point, vehicles, trip, constants, stride=stride)

    def sampled(self) -> "PackedSummary":
        """Nothing to infer."""
        return self


class Simulations(eqx.Module):
    """Trips whose descriptors are known.

    Attributes
    ----------
    model
        What data and truth were drawn from, able to read ``data``.
    roads
        With a leading axis.
    road : (simulation,) int
        Which of them each simulation drives on.
    point : (simulation, 2)
        True aggressiveness and detour.
    vehicle : (simulation,) int
        True position in the pool.
    data : (simulation, ...)
        Observations, as ``model.likelihood.observe`` takes them: a trace in W, or a packed
        summary.
    """

    model: TripModel
    roads: Road
    road: Int[np.ndarray, " simulation"]
    point: Float[np.ndarray, "simulation 2"]
    vehicle: Int[np.ndarray, " simulation"]
    data: Float[np.ndarray, "simulation data"]

    def __len__(self) -> int:
        return len(self.road)

    def trips(self, rows: np.ndarray) -> tuple[Road, Float[Array, "row data"]]:
        """Roads and data of some simulations."""
        index = jnp.asarray(self.road[rows])
        road = jax.tree.map(lambda leaf: leaf[index], self.roads)
        return road, jnp.asarray(self.data[rows])


def simulate(
    model: TripModel, profiles: RoadProfiles, n_simulations: int, *, seed: int = 0
) -> Simulations:
    r"""Draw descriptors from the prior, and data from the law of the likelihood.

    Parameters
    ----------
    model
        Likelihood ``trace`` or ``summary``; vehicle summed out or fixed.
    profiles
        One road or more; simulations take them in turn.
    n_simulations
        How many.
    seed
        Of everything that is drawn.

    Returns
    -------
    Simulations

    Raises
    ------
    InputDataError
        If a road is not routed.
    ValueError
        If nothing can be drawn from the likelihood, or the vehicle is relaxed.

    Notes
    -----
    Under ``trace`` the data is a trace with its noise, and the posterior is that of Bayes.
    The likelihood of the summaries is no law of traces. Its posterior is still that of Bayes
    for one law of summaries, which is the one drawn from here: the cumulative curve is the
    simulated one plus independent normal errors of standard deviation
    :math:`\sigma_S \sqrt{T}`, and energy and duration are :math:`E = E_\text{sim} / u` with
    :math:`u` of density proportional to :math:`\exp(-(u-1)^2 / 2 \sigma^2) / u`. (A density
    :math:`\exp(-(E_\text{sim}/E - 1)^2 / 2\sigma^2) / E` has the same integral for every
    :math:`E_\text{sim}`; no other factor does that.) Calibration under it checks the
    computation; what it says about recorded traces is nothing.
    """
    _validate.at_least(1, n_simulations=n_simulations)
    check_roads(profiles)
    exact = _checked_choice(model)
    key = jax.random.key(seed)
    first_key, second_key, vehicle_key, noise_key = jax.random.split(key, 4)
    shape = (n_simulations,)
    point = jnp.stack(
        [
            jnp.asarray(model.prior.aggressiveness.sample(first_key, shape)),
            jnp.asarray(model.prior.detour.sample(second_key, shape)),
        ],
        axis=-1,
    ).astype(jnp.float32)
    if exact.pool.idle_power_w.shape != model.pool.idle_power_w.shape:
        vehicle = jnp.full(shape, exact_vehicle(model))
    else:
        vehicle = jax.random.categorical(vehicle_key, model.log_vehicle_prior, shape=shape)
    roads = roads_from_profiles(profiles)
    road = np.arange(n_simulations) % len(profiles)
    power_w = _simulated(model, roads, road, point, vehicle)
    likelihood, data = _drawn(model, power_w, noise_key)
    return Simulations(
        model=eqx.tree_at(lambda m: m.likelihood, model, likelihood),
        roads=roads,
        road=road,
        point=np.asarray(point),
        vehicle=np.asarray(vehicle),
        data=data,
    )


def exact_vehicle(model: TripModel) -> int:
    """Position of the vehicle of a model that has it fixed."""
    return int(model.exact()[1][0])


def prior_variances(model: TripModel) -> np.ndarray:
    """Prior variance of aggressiveness and detour ``(2,)``."""
    keys = jax.random.split(jax.random.key(0))
    laws = (model.prior.aggressiveness, model.prior.detour)
    return np.asarray(
        [
            np.var(np.asarray(law.sample(key, (_N_PRIOR,)), np.float64))
            for law, key in zip(laws, keys, strict=True)
        ]
    )


def check_roads(profiles: RoadProfiles) -> None:
    """Raise unless there are roads, all of them routed."""
    bad = np.flatnonzero(profiles.status != RouteStatus.OK)
    if not len(profiles) or bad.size:
        found = (
            f"road {bad[0]}: {RouteStatus(profiles.status[bad[0]]).text}" if bad.size else "none"
        )
        raise InputDataError(
            f"Expected roads that are routed; got {found}. Leave those out by profiles.take."
        )


def _checked_choice(model: TripModel) -> TripModel:
    """The model with its vehicles enumerated."""
    if isinstance(model.choice, GumbelVehicle):
        raise ValueError(
            "Expected choice='marginal' or 'fixed' to draw vehicles; got a relaxed one. A mixture "
            "is no vehicle of the pool."
        )
    return model.exact()[0]


def _simulated(model: TripModel, roads: Road, road, point, vehicle) -> np.ndarray:
    """Power without noise ``(simulation, time)``, in chunks of one size."""

    @jax.jit
    def chunk(index, point, vehicle):
        def one(index, point, vehicle):
            here = jax.tree.map(lambda leaf: leaf[index], roads)
            return simulate_power(point[0], point[1], model.pool[vehicle], here, model.constants)

        return jax.vmap(one)(index, point, vehicle)

    n = len(road)
    power_w = np.empty((n, model.constants.n_times), np.float32)
    for start in range(0, n, _CHUNK):
        rows = np.minimum(np.arange(start, start + _CHUNK), n - 1)
        stop = min(start + _CHUNK, n)
        found = chunk(jnp.asarray(road[rows]), point[rows], vehicle[rows])
        power_w[start:stop] = np.asarray(found)[: stop - start]
    return power_w


def _drawn(model: TripModel, power_w: np.ndarray, key: jax.Array) -> tuple[Any, np.ndarray]:
    """The likelihood that reads the data, and the data."""
    likelihood = model.likelihood
    if isinstance(likelihood, TraceLikelihood):
        return likelihood, np.asarray(likelihood.law(jnp.asarray(power_w)).sample(key))
    if isinstance(likelihood, SummaryLikelihood):
        return PackedSummary(), _drawn_summaries(power_w, model.constants, key)
    raise ValueError(
        "Expected likelihood='trace' or 'summary', which data can be drawn from; got "
        f"{type(likelihood).__name__}. Calibrate one of these, with the same prior."
    )


def _drawn_summaries(power_w: np.ndarray, constants: Constants, key: jax.Array) -> np.ndarray:
    """Packed summaries with errors, see :func:`simulate`."""
    clean = jax.jit(lambda p: summarize(p, constants))(jnp.asarray(power_w))
    energy_key, duration_key, shape_key = jax.random.split(key, 3)
    n = len(power_w)
    energy = np.asarray(clean.energy_j) / _ratios(constants.energy_scale, energy_key, n)
    duration = np.asarray(clean.duration_s) / _ratios(constants.duration_scale, duration_key, n)
    spread = constants.shape_scale * np.sqrt(constants.n_times)
    noise = jax.random.normal(shape_key, clean.cumulative_share.shape)
    curve = np.asarray(clean.cumulative_share) + spread * np.asarray(noise)
    return np.column_stack([energy, duration, curve]).astype(np.float32)


def _ratios(scale: float, key: jax.Array, n: int) -> np.ndarray:
    """Draws of simulated over observed, by the inverse of the distribution function."""
    nodes = np.linspace(max(1.0 - 8.0 * scale, 1e-3), 1.0 + 8.0 * scale, _N_NODES)
    density = np.exp(-0.5 * ((nodes - 1.0) / scale) ** 2) / nodes
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    ticket = np.asarray(jax.random.uniform(key, (n,)), np.float64) * cumulative[-1]
    return np.interp(ticket, cumulative, nodes)
