"""What descriptors owe to public constants: refits with each of them changed."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from prisma_sbi import _validate
from prisma_sbi.encoding.fitting import parameter_box
from prisma_sbi.inference.alignment import AlignSettings, integrate_aligned
from prisma_sbi.inference.batch import map_trips
from prisma_sbi.inference.box import Box
from prisma_sbi.inference.quadrature import GridSettings
from prisma_sbi.models.likelihood import TraceLikelihood
from prisma_sbi.models.trace_noise import noise_scale
from prisma_sbi.models.trip_data import TripData
from prisma_sbi.models.trip_model import TripModel
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.profiles import RoadProfiles
from prisma_sbi.region.record import Region
from prisma_sbi.simulator.driver import Road, roads_from_profiles
from prisma_sbi.simulator.trip import simulate_power
from prisma_sbi.simulator.vehicle import Vehicle
from prisma_sbi.study.power_scaling import power_scaling
from prisma_sbi.study.samplers import Progress
from prisma_sbi.study.simulations import check_roads

CONSTANTS: Mapping[str, str] = MappingProxyType(
    {
        "acceleration_ceiling_mps2": "A, acceleration ceiling",
        "brake_fraction": "B, braking over accelerating",
        "control_gain_per_s": "K, control gain",
        "tank_efficiency": "eta, tank efficiency",
        "creep_speed_mps": "creep speed",
        "idle_power_w_per_l": "idle power",
    }
)
"""Constants that are changed, and how figures call them."""
PARAMETERS = ("aggressiveness", "detour", "vehicle_mass_kg")
"""What may move: the third is the posterior mean of the mass of the vehicle."""
_FINEST = np.asarray([1e-4, 1e-4, 1.0])
"""Standard deviations smaller than these count as these: a vehicle that is certain has none."""
SIDES = ("lower", "higher")
_IN_DRIVER = tuple(CONSTANTS)[:4]


@dataclass(frozen=True, kw_only=True)
class SensitivitySettings:
    """Work of every refit.

    Attributes
    ----------
    change
        By which share constants are lowered and raised.
    align, grid
        Of :func:`~prisma_sbi.inference.integrate_aligned`.
    n_draws
        Draws that power scaling is judged by.
    chunk_size
        Refits per compiled call.
    seed
        Of the points and the draws; the same for all refits of a trip, so that they differ by
        less than their errors.
    """

    change: float = 0.1
    align: AlignSettings = AlignSettings()
    grid: GridSettings = GridSettings(n_levels=10, n_split=16)
    n_draws: int = 400
    chunk_size: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        _validate.positive(change=self.change)
        _validate.in_range(0.0, 0.5, change=self.change)
        _validate.at_least(1, n_draws=self.n_draws, chunk_size=self.chunk_size)


class ScaledTrip(eqx.Module):
    """A road, a pool and constants, of which six are multiplied by factors that may be traced.

    Attributes
    ----------
    pool
        Vehicles at the constants as they are.
    road
        Road at the constants as they are.
    creeping : (point,)
        Points of the road where a signal or stop sign sets the speed.
    constants
        As they are (static).
    """

    pool: Vehicle
    road: Road
    creeping: Bool[Array, " point"]
    constants: Constants = eqx.field(static=True)

    def at(self, factor: Float[Array, " constant"]) -> tuple[Vehicle, Road, Constants]:
        """Pool, road and constants with the factors of :data:`CONSTANTS` applied.

        No road is routed again: a higher creep speed raises the speed of those points that it
        set, which is the same as long as it stays below the speed of every road.
        """
        changed = copy.copy(self.constants)
        for value, name in zip(factor, _IN_DRIVER, strict=False):
            # Traced numbers would not pass the checks of the record; plain ones have.
            object.__setattr__(changed, name, value * getattr(self.constants, name))
        creep, idle = factor[len(_IN_DRIVER)], factor[len(_IN_DRIVER) + 1]
        speed = jnp.where(self.creeping, creep, 1.0) * self.road.speed_mps
        drivetrain = self.pool.drivetrain
        if drivetrain is not None:  # then efficiencies live there
            efficiency = factor[_IN_DRIVER.index("tank_efficiency")] * drivetrain.efficiency
            drivetrain = eqx.tree_at(lambda leaf: leaf.efficiency, drivetrain, efficiency)
        pool = Vehicle(self.pool.coefficients, idle * self.pool.idle_power_w, drivetrain)
        return pool, Road(self.road.length_m, speed, self.road.slope_rad), changed

    def power(
        self,
        factor: Float[Array, " constant"],
        point: Float[Array, "2"],
        vehicle: Int[Array, ""],
    ) -> Float[Array, " time"]:
        """Simulated trace with the factors applied; differentiable in them."""
        pool, road, constants = self.at(factor)
        return simulate_power(point[0], point[1], pool[vehicle], road, constants)


class ScaledPosterior(eqx.Module):
    """The posterior of a trip with constants multiplied by factors.

    Attributes
    ----------
    model
        At the constants as they are.
    trip
        Road and pool.
    observed
        What the likelihood keeps of the trace.
    factor : (constant,)
    """

    model: TripModel
    trip: ScaledTrip
    observed: Array
    factor: Float[Array, " constant"]

    def log_likelihoods(self, point: Float[Array, "2"]) -> Float[Array, " vehicle"]:
        """Log likelihood of every vehicle."""
        law, pool, trip, constants = self._given()
        return law.log_likelihoods(point, pool, trip, constants)

    def log_weights(self, point: Float[Array, "2"], *, stride: int = 1) -> Float[Array, " vehicle"]:
        """Log joint density of the point and every vehicle."""
        del stride
        return self.log_likelihoods(point) + self._log_prior(point)

    def partial_log_weights(
        self, point: Float[Array, "2"], shares: tuple[float, ...]
    ) -> Float[Array, "share vehicle"]:
        """Log joint densities given the first shares of the trace."""
        law, pool, trip, constants = self._given()
        values = law.partial_log_likelihoods(point, pool, trip, constants, shares=shares)
        return values + self._log_prior(point)

    def _given(self) -> tuple[TraceLikelihood, Vehicle, TripData, Constants]:
        """The law, and what it asks besides a point."""
        pool, road, constants = self.trip.at(self.factor)
        law = cast(TraceLikelihood, self.model.likelihood)
        return law, pool, TripData(road, self.observed), constants

    def _log_prior(self, point: Float[Array, "2"]) -> Float[Array, " vehicle"]:
        """Log prior density of the point and every vehicle."""
        return self.model.log_prior(point) + self.model.log_vehicle_prior


def constant_sensitivity(
    region: Region,
    profiles: RoadProfiles,
    power_w: Float[np.ndarray, "trip time"],
    *,
    model: TripModel | None = None,
    settings: SensitivitySettings | None = None,
    progress: Progress | None = None,
) -> xr.Dataset:
    r"""Fit trips with each public constant lowered and raised, and see what moves.

    Parameters
    ----------
    region, profiles
        Public inputs, one road a trip.
    power_w : (trip, time)
        Traces, simulated or recorded.
    model
        Likelihood ``trace`` (the default) and the prior; vehicle summed out or fixed.
    settings
        By how much constants change, and the work of every refit.
    progress
        Called with refits done and refits in all, thirteen a trip.

    Returns
    -------
    xarray.Dataset
        Along ``trip``, ``parameter`` (:data:`PARAMETERS`), ``constant`` (:data:`CONSTANTS`) and
        ``side`` (lower, higher): ``mean`` and ``sd (trip, parameter)``; ``shift`` and
        ``shift_sd (trip, constant, side, parameter)``, what the posterior mean moves by, in its
        unit and in posterior standard deviations; ``log_evidence_gain (trip, constant, side)``;
        ``trace_change (trip, constant)``, by how much the trace itself would change, first order,
        root mean square over time in units of the noise; ``n_effective (trip)``. And from draws
        of the same posteriors ``sensitivity`` and ``role`` of :func:`power_scaling`.

    Raises
    ------
    ValueError
        If a changed constant would not be allowed, or the likelihood is another one.

    Notes
    -----
    A refit sees all that derivatives see and kinks besides. Each has its own grid, of which
    ``n_effective`` cells carry the posterior, the fewest of all refits of the trip; shifts below
    a fifth of a standard deviation are noise. Posterior means of bounded parameters
    saturate, so a shift per 10 % is no slope: 20 % need not give twice as much.
    """
    model = model or TripModel.of(region, likelihood="trace")
    settings = settings or SensitivitySettings()
    if not isinstance(model.likelihood, TraceLikelihood):
        raise ValueError(
            f"Expected likelihood='trace'; got {type(model.likelihood).__name__}. Changes are "
            "measured in units of the noise of a trace."
        )
    check_roads(profiles)
    if np.shape(power_w) != (len(profiles), region.constants.n_times):
        raise ValueError(
            f"Expected power_w ({len(profiles)}, {region.constants.n_times}); got "
            f"{np.shape(power_w)}."
        )
    _check_changes(region.constants, settings.change)
    exact, _ = model.exact()
    roads = roads_from_profiles(profiles)
    creeping = jnp.asarray(profiles.speed_mps == np.float32(region.constants.creep_speed_mps))
    box, key = parameter_box(region.constants), jax.random.key(settings.seed)

    changes = factors(settings.change)

    def trips(rows: np.ndarray) -> tuple[Road, Array, Array]:
        at = jnp.asarray(rows)
        road = jax.tree.map(lambda leaf: leaf[at], roads)
        return road, creeping[at], jnp.asarray(power_w[rows])

    def refit(pairs: np.ndarray) -> dict[str, Array]:
        rows, which = np.divmod(pairs, len(changes))
        keys = jax.vmap(lambda row: jax.random.fold_in(key, row))(jnp.asarray(rows))
        return _refit_chunk(exact, *trips(rows), jnp.asarray(changes[which]), keys, box, settings)

    n_refits = len(profiles) * len(changes)
    found = map_trips(refit, n_refits, chunk_size=settings.chunk_size, progress=progress)
    found = {
        name: values.reshape(len(profiles), len(changes), *values.shape[1:])
        for name, values in found.items()
    }
    point, choice = found.pop("point")[:, 0], found.pop("choice")[:, 0]
    best = found.pop("vehicle")[:, 0]

    def weigh(rows: np.ndarray) -> dict[str, Array]:
        at, chosen = jnp.asarray(found["mean"][rows, 0, :2]), jnp.asarray(best[rows])
        given = (*trips(rows), jnp.asarray(point[rows]), jnp.asarray(choice[rows]), at, chosen)
        return _weigh_chunk(exact, *given, change=settings.change)

    found |= map_trips(weigh, len(profiles), chunk_size=settings.chunk_size)
    scaled = power_scaling(
        dict(zip(PARAMETERS, np.moveaxis(found["draw"], -1, 0), strict=True)),
        found["log_prior"],
        found["log_likelihood"],
    )
    return _described(found, settings.change).merge(scaled, combine_attrs="no_conflicts")


def factors(change: float) -> np.ndarray:
    """Factors of the refits: none changed, then each lowered and raised ``(refit, constant)``."""
    n = len(CONSTANTS)
    rows = [np.ones(n)]
    for place in range(n):
        for sign in (-1.0, 1.0):
            row = np.ones(n)
            row[place] += sign * change
            rows.append(row)
    return np.stack(rows).astype(np.float32)


@eqx.filter_jit
def _refit_chunk(
    model: TripModel,
    road: Road,
    creeping: Bool[Array, "refit point"],
    power_w: Float[Array, "refit time"],
    factor: Float[Array, "refit constant"],
    keys: jax.Array,
    box: Box,
    settings: SensitivitySettings,
) -> dict[str, Array]:
    """Moments and draws of a chunk of posteriors, each with its own factors."""
    mass, middle = model.pool.coefficients[:, 0], 0.5 * (box.lower + box.upper)

    def one(given):
        road, creeping, seen, factor, key = given
        trip = ScaledTrip(model.pool, road, creeping, model.constants)
        target = ScaledPosterior(
            model, trip, model.likelihood.observe(seen, model.constants), factor
        )
        frame, grid = integrate_aligned(key, target, box, middle, settings.align, settings.grid)
        share, point = grid.mass, frame.point(grid.box.unfold(grid.center))
        mean, vehicle = share @ point, grid.choice_probability
        # From the most probable mass, so that nothing is left of rounding where it is certain.
        center = mass[jnp.argmax(vehicle)]
        mean_mass = center + vehicle @ (mass - center)
        position, choice = grid.sample(key, settings.n_draws)
        variance = jnp.append(share @ (point - mean) ** 2, vehicle @ (mass - mean_mass) ** 2)
        return {
            "mean": jnp.append(mean, mean_mass),
            "sd": jnp.sqrt(variance),
            "log_evidence": grid.log_evidence,
            "n_effective": grid.n_effective,
            "vehicle": jnp.argmax(vehicle),
            "point": frame.point(position),
            "choice": choice,
        }

    return lax.map(one, (road, creeping, power_w, factor, keys))


@eqx.filter_jit
def _weigh_chunk(
    model: TripModel,
    road: Road,
    creeping: Bool[Array, "trip point"],
    power_w: Float[Array, "trip time"],
    point: Float[Array, "trip draw 2"],
    choice: Int[Array, "trip draw"],
    mean: Float[Array, "trip 2"],
    vehicle: Int[Array, " trip"],
    *,
    change: float,
) -> dict[str, Array]:
    """Prior and likelihood of draws, and how traces would change; nothing is changed here."""
    law, none = cast(TraceLikelihood, model.likelihood), jnp.ones(len(CONSTANTS), power_w.dtype)

    def one(given):
        road, creeping, seen, point, choice, at, vehicle = given
        trip = ScaledTrip(model.pool, road, creeping, model.constants)
        target = ScaledPosterior(model, trip, law.observe(seen, model.constants), none)
        likelihood = lax.map(target.log_likelihoods, point, batch_size=50)
        slope = jax.jacfwd(trip.power)(none, at, vehicle)
        scale = _noise(law, trip.power(none, at, vehicle))
        moved = change * jnp.sqrt(jnp.mean((slope / scale[:, None]) ** 2, axis=0))
        return {
            "draw": jnp.append(point, model.pool.coefficients[choice, :1], axis=1),
            "log_prior": jax.vmap(model.log_prior)(point) + model.log_vehicle_prior[choice],
            "log_likelihood": jnp.take_along_axis(likelihood, choice[:, None], axis=1)[:, 0],
            "trace_change": moved,
        }

    return lax.map(one, (road, creeping, power_w, point, choice, mean, vehicle))


def _noise(likelihood: TraceLikelihood, power_w: Float[Array, " time"]) -> Float[Array, " time"]:
    """Scale of the noise of a trace."""
    law = likelihood.law(power_w)
    return noise_scale(power_w, law.floor_w, law.share)


def _check_changes(constants: Constants, change: float) -> None:
    """Raise ``ValueError`` if a constant may not have one of its changed values."""
    for name in CONSTANTS:
        for factor in (1.0 - change, 1.0 + change):
            replace(constants, **{name: factor * getattr(constants, name)})


def _described(found: Mapping[str, np.ndarray], change: float) -> xr.Dataset:
    """Shifts from the fit with nothing changed."""
    n, shape = len(found["mean"]), (len(CONSTANTS), len(SIDES))
    mean, sd = found["mean"].astype(np.float64), found["sd"].astype(np.float64)
    shift = (mean[:, 1:] - mean[:, :1]).reshape(n, *shape, len(PARAMETERS))
    evidence = found["log_evidence"].astype(np.float64)
    dims = ("trip", "constant", "side", "parameter")
    shift_sd = shift / np.maximum(sd[:, 0, None, None], _FINEST)
    return xr.Dataset(
        {
            "mean": (("trip", "parameter"), mean[:, 0]),
            "sd": (("trip", "parameter"), sd[:, 0]),
            "shift": (dims, shift),
            "shift_sd": (dims, shift_sd),
            "log_evidence_gain": (
                dims[:3],
                (evidence[:, 1:] - evidence[:, :1]).reshape(n, *shape),
                {"units": "nat"},
            ),
            "trace_change": (("trip", "constant"), found["trace_change"]),
            "n_effective": ("trip", found["n_effective"].min(axis=1)),
        },
        coords={
            "constant": list(CONSTANTS), "side": list(SIDES), "parameter": list(PARAMETERS),
        },
        attrs={"change": change},
    )  # fmt: skip


def constant_table(found: xr.Dataset) -> pd.DataFrame:
    """Which constants matter: medians over trips of absolute shifts, larger side.

    Parameters
    ----------
    found
        From :func:`constant_sensitivity`.

    Returns
    -------
    pandas.DataFrame
        A row a constant, those that move most first: ``shift_sd_...`` and ``shift_...`` by
        parameter, ``trace_change``, and ``prefer_lower`` and ``prefer_higher``, shares of trips
        whose log evidence rises by more than 1 on that side.
    """
    largest = np.abs(found[["shift", "shift_sd"]]).max("side").median("trip")
    gain = found["log_evidence_gain"]
    other = gain.isel(side=slice(None, None, -1)).values
    preferred = ((gain > 1.0) & (gain.values > other)).mean("trip")
    columns = {
        f"{kind}_{name}": largest[kind].sel(parameter=name).values
        for kind in ("shift_sd", "shift")
        for name in PARAMETERS
    }
    columns["trace_change"] = found["trace_change"].median("trip").values
    columns |= {f"prefer_{side}": preferred.sel(side=side).values for side in SIDES}
    table = pd.DataFrame(columns, index=pd.Index(found["constant"].values, name="constant"))
    order = np.argsort(-table.filter(like="shift_sd_").max(axis=1).to_numpy(), kind="stable")
    return table.iloc[order]
