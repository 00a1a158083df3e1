"""Trips with known truth, drawn from the model that will be asked about them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.models.likelihood import (
    SummaryLikelihood,
    TraceLikelihood,
    partial_log_likelihoods,
)
from prisma_sbi.models.summary import TraceSummary, summarize
from prisma_sbi.models.texture import TextureLikelihood, TextureSummary
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


class PackedSummary(SummaryLikelihood):
    """The summary likelihood, for data that are summaries already.

    A row of data holds energy, duration and the cumulative curve. Residuals have a law of
    their own, of which no trace is known to be a draw; so what is simulated under it are
    summaries.
    """

    def observe(self, power_w: Float[Array, "*trip packed"], constants: Constants) -> TraceSummary:
        """Unpack a row."""
        del constants
        return TraceSummary(power_w[..., 0], power_w[..., 1], power_w[..., 2:])


class PackedTexture(TextureLikelihood):
    """The same for the texture likelihood: after the summaries, log variance and correlations."""

    def observe(
        self, power_w: Float[Array, "*trip packed"], constants: Constants
    ) -> TextureSummary:
        """Unpack a row."""
        end = 2 + constants.n_times
        summary = TraceSummary(power_w[..., 0], power_w[..., 1], power_w[..., 2:end])
        return TextureSummary(summary, power_w[..., end], power_w[..., end + 1 :])


class TwoRecords(eqx.Module):
    """A likelihood of two records of the same trip, independent given its descriptors.

    A row of data holds one after the other; both are of one length.

    Attributes
    ----------
    likelihood
        Of each.
    """

    likelihood: Any

    def observe(self, power_w: Float[Array, "*trip both"], constants: Constants) -> Any:
        """What the likelihood needs of either."""
        half = power_w.shape[-1] // 2
        return tuple(
            self.likelihood.observe(part, constants)
            for part in (power_w[..., :half], power_w[..., half:])
        )

    def log_likelihoods(
        self,
        point: Float[Array, "2"],
        vehicles: Vehicle,
        trip: TripData,
        constants: Constants,
        *,
        stride: int = 1,
    ) -> Float[Array, " choice"]:
        """Sum of both."""
        first, second = (
            self.likelihood.log_likelihoods(
                point, vehicles, TripData(trip.road, seen), constants, stride=stride
            )
            for seen in trip.observed
        )
        return first + second

    def partial_log_likelihoods(
        self,
        point: Float[Array, "2"],
        vehicles: Vehicle,
        trip: TripData,
        constants: Constants,
        *,
        shares: tuple[float, ...],
    ) -> Float[Array, "share choice"]:
        """Of the beginnings of both."""
        first, second = (
            partial_log_likelihoods(
                self.likelihood, point, vehicles, TripData(trip.road, seen), constants, shares
            )
            for seen in trip.observed
        )
        return first + second

    def sampled(self) -> "TwoRecords":
        """With the parameters that have a prior sampled, the same for both."""
        return TwoRecords(self.likelihood.sampled())


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
        Likelihood ``trace``, ``summary`` or ``texture``; vehicle summed out or fixed.
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
    computation; what it says about recorded traces is nothing. The texture likelihood adds
    normal errors of its log variance and of its correlations.
    """
    _validate.at_least(1, n_simulations=n_simulations)
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
    return simulate_at(model, profiles, np.asarray(point), np.asarray(vehicle), noise_key)


def simulate_at(
    model: TripModel,
    profiles: RoadProfiles,
    point: np.ndarray,
    vehicle: np.ndarray,
    key: jax.Array,
) -> Simulations:
    """Draw data at given descriptors.

    Parameters
    ----------
    model, profiles
        As for :func:`simulate`.
    point : (simulation, 2)
        Aggressiveness and detour.
    vehicle : (simulation,) int
        Positions in the pool.
    key
        Of the noise.
    """
    check_roads(profiles)
    roads = roads_from_profiles(profiles)
    road = np.arange(len(point)) % len(profiles)
    power_w = _simulated(model, roads, road, jnp.asarray(point), jnp.asarray(vehicle))
    likelihood, data = _drawn(model, power_w, key)
    return Simulations(
        model=eqx.tree_at(lambda m: m.likelihood, model, likelihood),
        roads=roads,
        road=road,
        point=np.asarray(point),
        vehicle=np.asarray(vehicle),
        data=data,
    )


def packed_likelihood(model: TripModel) -> Any:
    """The likelihood that reads what :func:`simulate` draws under that of a model."""
    likelihood = model.likelihood
    if isinstance(likelihood, TraceLikelihood | PackedSummary | PackedTexture):
        return likelihood
    if isinstance(likelihood, SummaryLikelihood):
        return PackedSummary()
    if isinstance(likelihood, TextureLikelihood):
        return PackedTexture(**vars(likelihood))
    raise ValueError(
        "Expected likelihood='trace', 'summary' or 'texture', which data can be drawn from; got "
        f"{type(likelihood).__name__}. Calibrate one of these, with the same prior."
    )


def packed(model: TripModel, power_w: np.ndarray) -> np.ndarray:
    """Traces ``(trip, time)`` as rows of data that the packed likelihood reads."""
    likelihood = packed_likelihood(model)
    if isinstance(likelihood, TraceLikelihood):
        return np.asarray(power_w, np.float32)
    source: Any = SummaryLikelihood()
    if isinstance(likelihood, PackedTexture):
        source = TextureLikelihood(**vars(likelihood))
    seen = jax.jit(lambda p: source.observe(p, model.constants))(jnp.asarray(power_w))
    return _row(seen)


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
    likelihood = packed_likelihood(model)
    if isinstance(likelihood, TraceLikelihood):
        return likelihood, np.asarray(likelihood.law(jnp.asarray(power_w)).sample(key))
    data = _drawn_summaries(power_w, model.constants, key)
    if isinstance(likelihood, PackedTexture):
        variance_key, lag_key = jax.random.split(jax.random.fold_in(key, 1))
        plain = TextureLikelihood(**vars(likelihood))
        clean = jax.jit(lambda p: plain.observe(p, model.constants))(jnp.asarray(power_w))
        variance, lags = np.asarray(clean.log_variance), np.asarray(clean.autocorrelation)
        variance = variance + plain.log_variance_scale * _normal(variance_key, variance.shape)
        # The residual is averaged over lags, so each one errs by more.
        lag_scale = plain.autocorrelation_scale * np.sqrt(lags.shape[-1])
        lags = lags + lag_scale * _normal(lag_key, lags.shape)
        data = np.column_stack([data, variance, lags])
    return likelihood, data.astype(np.float32)


def _row(seen: TraceSummary | TextureSummary) -> np.ndarray:
    """Summaries packed into rows."""
    if isinstance(seen, TextureSummary):
        more = [np.asarray(seen.log_variance), np.asarray(seen.autocorrelation)]
        return np.column_stack([_row(seen.summary), *more]).astype(np.float32)
    parts = (seen.energy_j, seen.duration_s, seen.cumulative_share)
    return np.column_stack([np.asarray(part) for part in parts]).astype(np.float32)


def _drawn_summaries(power_w: np.ndarray, constants: Constants, key: jax.Array) -> np.ndarray:
    """Packed summaries with errors, see :func:`simulate`."""
    clean = jax.jit(lambda p: summarize(p, constants))(jnp.asarray(power_w))
    energy_key, duration_key, shape_key = jax.random.split(key, 3)
    n = len(power_w)
    energy = np.asarray(clean.energy_j) / _ratios(constants.energy_scale, energy_key, n)
    duration = np.asarray(clean.duration_s) / _ratios(constants.duration_scale, duration_key, n)
    spread = constants.shape_scale * np.sqrt(constants.n_times)
    curve = np.asarray(clean.cumulative_share)
    curve = curve + spread * _normal(shape_key, curve.shape)
    return np.column_stack([energy, duration, curve]).astype(np.float32)


def _normal(key: jax.Array, shape: tuple[int, ...]) -> np.ndarray:
    """Standard normal numbers."""
    return np.asarray(jax.random.normal(key, shape))


def _ratios(scale: float, key: jax.Array, n: int) -> np.ndarray:
    """Draws of simulated over observed, by the inverse of the distribution function."""
    nodes = np.linspace(max(1.0 - 8.0 * scale, 1e-3), 1.0 + 8.0 * scale, _N_NODES)
    density = np.exp(-0.5 * ((nodes - 1.0) / scale) ** 2) / nodes
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    ticket = np.asarray(jax.random.uniform(key, (n,)), np.float64) * cumulative[-1]
    return np.interp(ticket, cumulative, nodes)
