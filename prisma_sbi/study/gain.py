"""What each trip told about each descriptor: contraction, z-score, nats."""

import jax
import numpy as np
import xarray as xr

from prisma_sbi.diagnostics.equivalence import effective_number
from prisma_sbi.diagnostics.gain import choice_gain, marginal_gain
from prisma_sbi.encoding.fitting import parameter_box
from prisma_sbi.encoding.predict import model_of
from prisma_sbi.encoding.status import FitStatus
from prisma_sbi.models.trip_model import TripModel
from prisma_sbi.region.record import Region
from prisma_sbi.study.simulations import prior_variances

_N_NODES = 40_001
_NAMES = ("aggressiveness", "detour")


def information_gain(
    model: TripModel,
    point: np.ndarray,
    vehicle_probability: np.ndarray,
    *,
    truth: np.ndarray | None = None,
) -> xr.Dataset:
    """Contraction, z-score and information of many posteriors, from their draws.

    Parameters
    ----------
    model
        Gives the prior.
    point : (trip, draw, 2)
        Draws of aggressiveness and detour, independent or nearly so.
    vehicle_probability : (trip, vehicle)
        Posterior probabilities.
    truth : (trip, 2)
        If known.

    Returns
    -------
    xarray.Dataset
        Along ``trip``: ``mean``, ``sd``, ``contraction (trip, parameter)``, which is one minus
        posterior over prior variance; ``z_score (trip, parameter)``, posterior mean minus
        truth in posterior standard deviations, if the truth is known; ``gain (trip,
        descriptor)`` of aggressiveness, detour and vehicle, each on its own, in nats, and
        ``gain_error``; ``n_vehicles (trip)``, the exponential of the entropy of the vehicle.
    """
    point = np.asarray(point, np.float64)
    mean, sd = point.mean(axis=1), point.std(axis=1, ddof=1)
    units = _prior_unit(model, point)
    numbers = [marginal_gain(units[..., axis]) for axis in (0, 1)]
    prior = np.exp(np.asarray(model.log_vehicle_prior, np.float64))
    probability = np.asarray(vehicle_probability, np.float64)
    vehicle = choice_gain(probability, prior)
    each = ("trip", "parameter")
    found = xr.Dataset(
        {
            "mean": (each, mean),
            "sd": (each, sd),
            "contraction": (each, 1.0 - sd**2 / prior_variances(model)),
            "gain": (
                ("trip", "descriptor"),
                np.stack([*(gain for gain, _ in numbers), vehicle], axis=-1),
                {"units": "nat"},
            ),
            "gain_error": (
                ("trip", "descriptor"),
                np.stack([*(error for _, error in numbers), np.zeros(len(point))], axis=-1),
                {"units": "nat"},
            ),
            "n_vehicles": ("trip", effective_number(probability)),
        },
        coords={"parameter": list(_NAMES), "descriptor": [*_NAMES, "vehicle"]},
    )
    if truth is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            found["z_score"] = (each, (mean - np.asarray(truth)) / sd)
    return found


def fit_information(
    region: Region, fit: xr.DataTree, *, model: TripModel | None = None, n_draws: int = 500
) -> xr.Dataset:
    """The same for a fit by :func:`~prisma_sbi.encoding.encode`, trips that failed left out.

    Parameters
    ----------
    region
        The region of the fit.
    fit
        By a method that gives draws.
    model
        By default the likelihood of the fit under a flat prior.
    n_draws
        Draws taken of each trip, evenly spaced.

    Returns
    -------
    xarray.Dataset
        As :func:`information_gain`, with the names of the trips.

    Raises
    ------
    ValueError
        If the fit has one draw a trip.
    """
    region.require_same(fit.attrs.get("region_fingerprint"), what="a fit")
    status = fit["sample_stats"].dataset["status"].values
    rows = np.flatnonzero(status <= FitStatus.POOR_FIT)
    posterior = fit["posterior"].to_dataset().isel(trip=rows)
    n_found = posterior.sizes["chain"] * posterior.sizes["draw"]
    if n_found < 8:
        raise ValueError(
            f"Expected a fit with draws; got {n_found} a trip by method "
            f"{fit.attrs.get('method')!r}. Encode with method quadrature."
        )
    flat = np.stack(
        [
            posterior[name].transpose("trip", "chain", "draw").values.reshape(len(rows), -1)
            for name in _NAMES
        ],
        axis=-1,
    )
    kept = np.unique(np.linspace(0, n_found - 1, min(n_draws, n_found)).astype(int))
    probability = fit["sample_stats"].dataset["vehicle_probability"].values[rows]
    found = information_gain(model or model_of(region, fit), flat[:, kept], probability)
    return found.assign_coords(trip=posterior["trip"].values)


def _prior_unit(model: TripModel, point: np.ndarray) -> np.ndarray:
    """Prior distribution function of each parameter at points ``(..., 2)``, by integration."""
    box = parameter_box(model.constants)
    laws = (model.prior.aggressiveness, model.prior.detour)
    result = np.empty_like(point)
    for axis, law in enumerate(laws):
        nodes = np.linspace(float(box.lower[axis]), float(box.upper[axis]), _N_NODES)
        middle = 0.5 * (nodes[1:] + nodes[:-1])
        density = np.exp(np.asarray(jax.vmap(law.log_prob)(middle), np.float64))
        cumulative = np.concatenate([[0.0], np.cumsum(density)])
        result[..., axis] = np.interp(point[..., axis], nodes, cumulative / cumulative[-1])
    return result
