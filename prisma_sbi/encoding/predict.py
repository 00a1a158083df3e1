"""What a fit says about traces: posterior prediction and log likelihood, added on demand."""

import json
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import lax
from jaxtyping import Array, Float

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.encoding.status import FitStatus
from prisma_sbi.inference.batch import map_trips
from prisma_sbi.models.likelihood import TraceLikelihood
from prisma_sbi.models.trip_data import TripData
from prisma_sbi.models.trip_model import LIKELIHOODS, TripModel
from prisma_sbi.region.record import Region
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.simulator.driver import Road, roads_from_profiles
from prisma_sbi.simulator.trip import simulate_trips

_ENDS = ("start_lat", "start_lon", "end_lat", "end_lon")


def model_of(region: Region, fit: xr.DataTree) -> TripModel:
    """Rebuild the likelihood of a fit from its attributes, under a flat prior.

    Raises
    ------
    InputDataError
        If the likelihood was made by the user; give the model itself then.
    """
    described = json.loads(fit.attrs["model"])["likelihood"]
    name = described.pop("name")
    numbers = {
        key: tuple(value) if isinstance(value, list) else value for key, value in described.items()
    }
    if name not in LIKELIHOODS or any(isinstance(value, str) for value in numbers.values()):
        raise InputDataError(
            f"Expected a fit by one of the likelihoods {', '.join(LIKELIHOODS)} with numbers; "
            f"got {name!r} with {numbers}. Pass the model that made the fit."
        )
    return TripModel.of(region, likelihood=LIKELIHOODS[name](**numbers))


def add_posterior_predictive(
    region: Region,
    fit: xr.DataTree,
    *,
    model: TripModel | None = None,
    trips: Sequence[str] | None = None,
    n_draws: int = 25,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> xr.DataTree:
    """Simulate traces from posterior draws.

    Under the trace likelihood they carry its noise; a likelihood of summaries has none to
    draw, and its prediction is the simulated trace itself.

    Parameters
    ----------
    region
        The region of the fit.
    fit
        From :func:`~prisma_sbi.encoding.encode`.
    model
        Needed if the likelihood of the fit was not one of ours.
    trips
        Names of the trips to predict; by default all that were fitted.
    n_draws
        Draws per chain, evenly spaced; fewer if there are fewer.
    seed
        Of the noise.
    progress
        Called with traces done and traces in all.

    Returns
    -------
    xarray.DataTree
        The fit of these trips with the group ``posterior_predictive``: ``power_w (chain,
        draw, trip, time)`` in W.

    Raises
    ------
    InputDataError
        If no trip is left, or one is not in the fit.
    """
    _validate.at_least(1, n_draws=n_draws)
    region.require_same(fit.attrs.get("region_fingerprint"), what="a fit")
    model = model or model_of(region, fit)
    chosen = _only(fit, trips)
    draws = _thinned(chosen, n_draws)
    n_chains, n_kept, n_trips = (draws.sizes[name] for name in ("chain", "draw", "trip"))
    profiles = route_profiles(
        region, *(chosen["constant_data"].dataset[name].values for name in _ENDS)
    )
    repeated = profiles.take(np.tile(np.arange(n_trips), n_chains * n_kept))
    power_w = simulate_trips(
        region,
        repeated,
        *(draws[name].values.ravel() for name in ("aggressiveness", "detour", "vehicle")),
        progress=progress,
    )
    if isinstance(model.likelihood, TraceLikelihood):
        power_w = np.asarray(
            model.likelihood.law(jnp.asarray(power_w)).sample(jax.random.key(seed))
        )
    shape = (n_chains, n_kept, n_trips, power_w.shape[1])
    predicted = xr.Dataset(
        {"power_w": (("chain", "draw", "trip", "time"), power_w.reshape(shape), {"units": "W"})},
        coords={**draws.coords, "time": chosen["observed_data"].dataset["time"]},
    )
    result = chosen.copy()
    result["posterior_predictive"] = xr.DataTree(predicted)
    return result


def add_log_likelihood(
    region: Region,
    fit: xr.DataTree,
    *,
    model: TripModel | None = None,
    trips: Sequence[str] | None = None,
    n_draws: int = 250,
    chunk_size: int = 8,
    progress: Callable[[int, int], None] | None = None,
) -> xr.DataTree:
    """Compute the log likelihood of each trip at posterior draws, vehicles summed out.

    The trip is the unit: ``arviz.loo`` on the result leaves out whole trips, and reports a
    Pareto k for each. Fits of trips on their own share nothing, so leaving a trip out leaves
    its prior; a large k says how far the posterior is from it.

    Parameters
    ----------
    region
        The region of the fit.
    fit
        From :func:`~prisma_sbi.encoding.encode`.
    model
        Needed if the likelihood of the fit was not one of ours.
    trips
        Names of trips; by default all that were fitted.
    n_draws
        Draws per chain, evenly spaced; fewer if there are fewer.
    chunk_size
        Trips per compiled call.
    progress
        Called with trips done and trips in all.

    Returns
    -------
    xarray.DataTree
        The fit of these trips, thinned to these draws, with the group ``log_likelihood``:
        ``power_w (chain, draw, trip)``.
    """
    _validate.at_least(1, n_draws=n_draws)
    region.require_same(fit.attrs.get("region_fingerprint"), what="a fit")
    exact, _ = (model or model_of(region, fit)).exact()
    chosen = _only(fit, trips)
    draws = _thinned(chosen, n_draws)
    profiles = route_profiles(
        region, *(chosen["constant_data"].dataset[name].values for name in _ENDS)
    )
    roads = jax.tree.map(np.asarray, roads_from_profiles(profiles))
    power_w = chosen["observed_data"].dataset["power_w"].values
    point = np.stack([draws["aggressiveness"].values, draws["detour"].values], axis=-1)
    point = np.moveaxis(point, 2, 0).astype(np.float32)

    def solve(rows: np.ndarray) -> dict[str, jax.Array]:
        road = jax.tree.map(lambda leaf: jnp.asarray(leaf[rows]), roads)
        return {
            "value": _log_likelihood_chunk(
                exact, road, jnp.asarray(power_w[rows]), jnp.asarray(point[rows])
            )
        }

    found = map_trips(solve, len(power_w), chunk_size=chunk_size, progress=progress)["value"]
    values = np.moveaxis(found, 0, -1).astype(np.float64)
    result = chosen.copy()
    result["posterior"] = xr.DataTree(draws)
    result["log_likelihood"] = xr.DataTree(
        xr.Dataset({"power_w": (("chain", "draw", "trip"), values)}, coords=draws.coords)
    )
    return result


@eqx.filter_jit
def _log_likelihood_chunk(
    model: TripModel,
    road: Road,
    power_w: Float[Array, "trip time"],
    point: Float[Array, "trip chain draw 2"],
) -> Float[Array, "trip chain draw"]:
    """Log likelihood with the vehicle summed out."""
    trips = TripData(road, model.likelihood.observe(power_w, model.constants))

    def one(data):
        trip, points = data
        flat = points.reshape(-1, 2)
        values = lax.map(
            lambda at: jax.nn.logsumexp(model.log_weights(at, trip)), flat, batch_size=64
        )
        return values.reshape(points.shape[:-1])

    return lax.map(one, (trips, point))


def _only(fit: xr.DataTree, trips: Sequence[str] | None) -> xr.DataTree:
    """The fitted trips, or those of them that are named."""
    usable = fit["sample_stats"].dataset["status"].values <= FitStatus.POOR_FIT
    names = fit["sample_stats"].dataset["trip"].values.astype(str)
    if trips is None:
        rows = np.flatnonzero(usable)
    else:
        place = {name: row for row, name in enumerate(names)}
        missing = [name for name in trips if name not in place or not usable[place[name]]]
        if missing:
            raise InputDataError(
                f"Expected trips that were fitted; got {missing[0]!r}, which is not in the fit or "
                "has no descriptors. See its status."
            )
        rows = np.asarray([place[name] for name in trips], np.int64)
    if not rows.size:
        raise InputDataError("Expected at least one fitted trip; got none. See their status.")
    result = fit.copy()
    for name in list(result.children):
        result[name] = xr.DataTree(fit[name].to_dataset().isel(trip=rows))
    return result


def _thinned(fit: xr.DataTree, n_draws: int) -> xr.Dataset:
    """Evenly spaced draws of each chain."""
    posterior = fit["posterior"].to_dataset().transpose("chain", "draw", "trip", ...)
    n_found = posterior.sizes["draw"]
    kept = np.unique(np.linspace(0, n_found - 1, min(n_draws, n_found)).astype(int))
    return posterior.isel(draw=kept)
