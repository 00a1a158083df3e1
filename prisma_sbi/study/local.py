"""What a trip reveals about its descriptors, judged by derivatives at one point."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from prisma_sbi.diagnostics.fisher import (
    information_spectrum,
    noise_features,
)
from prisma_sbi.inference.batch import map_trips
from prisma_sbi.models.likelihood import SummaryLikelihood, TraceLikelihood
from prisma_sbi.models.summary import summarize, summary_residuals
from prisma_sbi.models.trip_model import TripModel
from prisma_sbi.region.profiles import RoadProfiles
from prisma_sbi.region.record import Region
from prisma_sbi.simulator.driver import Road, roads_from_profiles
from prisma_sbi.simulator.trip import simulate_power
from prisma_sbi.simulator.vehicle import Vehicle
from prisma_sbi.study.samplers import Progress
from prisma_sbi.study.simulations import check_roads, prior_variances

VEHICLE_PARAMETERS = ("mass", "drag_cubic", "drag_square", "drag_linear", "idle")
"""Logarithms of factors on the four coefficients and on the idle power."""
_VEHICLE_SCALE = 0.3
"""Unit of those: vehicles of a pool differ by about this factor."""


def local_information(
    region: Region,
    profiles: RoadProfiles,
    point: np.ndarray,
    vehicle: np.ndarray,
    *,
    model: TripModel | None = None,
    with_vehicle: bool = False,
    chunk_size: int = 16,
    progress: Progress | None = None,
) -> xr.Dataset:
    """Fisher information of the descriptors of trips, and what follows from it.

    Parameters
    ----------
    region
        Public inputs.
    profiles
        One road a trip.
    point : (trip, 2)
        Aggressiveness and detour at which derivatives are taken.
    vehicle : (trip,) int
        Positions in the pool.
    model
        Likelihood ``trace`` (the default) or ``summary``, and the prior, whose standard
        deviations are the units of the eigenvalues.
    with_vehicle
        Treat the vehicle as unknown as well, by the logarithms of factors on its mass, its
        three drag coefficients and its idle power; else it is known.
    chunk_size
        Trips per compiled call.
    progress
        Called with trips done and trips in all.

    Returns
    -------
    xarray.Dataset
        Along ``trip``, with ``parameter``, ``other`` (parameters too) and ``mode`` (falling):
        ``information (trip, parameter, other)``, ``eigenvalue (trip, mode)``,
        ``eigenvector (trip, parameter, mode)``, ``bound`` and ``bound_alone (trip, parameter)``
        (Cramér-Rao standard deviations with the other parameters unknown, and known).

    Raises
    ------
    ValueError
        If the likelihood is another one, or the shapes disagree.

    Notes
    -----
    Derivatives are exact, by forward mode. They are those of one smooth piece: the simulator
    steps through time, so its likelihood has kinks at scales that a posterior may span. Where
    bound and posterior spread disagree, believe the posterior; see
    :func:`~prisma_sbi.study.profile_likelihood` for what lies between.

    Under the summaries the information is the curvature of the loss for a trace that the
    simulator explains exactly.
    """
    model = model or TripModel.of(region, likelihood="trace")
    check_roads(profiles)
    n = len(profiles)
    if np.shape(point) != (n, 2) or np.shape(vehicle) != (n,):
        raise ValueError(
            f"Expected point ({n}, 2) and vehicle ({n},), one a road; got {np.shape(point)} and "
            f"{np.shape(vehicle)}."
        )
    if not isinstance(model.likelihood, TraceLikelihood | SummaryLikelihood):
        raise ValueError(
            "Expected likelihood='trace' or 'summary', whose information is known; got "
            f"{type(model.likelihood).__name__}."
        )
    roads = roads_from_profiles(profiles)

    def solve(rows: np.ndarray) -> dict[str, jax.Array]:
        road = jax.tree.map(lambda leaf: leaf[jnp.asarray(rows)], roads)
        at = jnp.asarray(np.asarray(point)[rows], jnp.float32)
        chosen = model.pool[jnp.asarray(np.asarray(vehicle)[rows])]
        return {"feature": _feature_chunk(model, road, at, chosen, with_vehicle)}

    feature = map_trips(solve, n, chunk_size=chunk_size, progress=progress)["feature"]
    # Products in double precision: eigenvalues spread over more decades than single has.
    feature = feature.astype(np.float64)
    found = feature @ np.swapaxes(feature, 1, 2)
    scale = np.sqrt(prior_variances(model))
    names = ["aggressiveness", "detour"]
    if with_vehicle:
        names += VEHICLE_PARAMETERS
        scale = np.concatenate([scale, np.full(len(VEHICLE_PARAMETERS), _VEHICLE_SCALE)])
    spectrum = information_spectrum(found, scale)
    return xr.Dataset(
        {
            "information": (("trip", "parameter", "other"), found),
            "eigenvalue": (("trip", "mode"), spectrum.eigenvalue),
            "eigenvector": (("trip", "parameter", "mode"), spectrum.eigenvector),
            "bound": (("trip", "parameter"), spectrum.bound),
            "bound_alone": (("trip", "parameter"), spectrum.bound_alone),
            "scale": ("parameter", scale),
        },
        coords={"parameter": names, "other": names},
        attrs={
            "kind": "local_information",
            "format_version": 1,
            "region_fingerprint": region.fingerprint,
        },
    )


def spread_over_bound(
    region: Region, profiles: RoadProfiles, calibration: xr.Dataset, *, model: TripModel
) -> xr.DataArray:
    """Posterior standard deviations over Cramér-Rao bounds at the truth.

    Parameters
    ----------
    region, profiles, model
        As they were given to :func:`~prisma_sbi.study.calibrate`.
    calibration
        From there.

    Returns
    -------
    xarray.DataArray
        ``(simulation, parameter)``. About 1 where the posterior is Gaussian and the vehicle
        known; more where vehicles trade against drivers or kinks hide what derivatives
        promise; less where the bounds of the domain say more than the data.
    """
    local = local_information(
        region,
        profiles.take(calibration["road"].values),
        calibration["truth"].values,
        calibration["true_vehicle"].values,
        model=model,
    )
    bound = local["bound"].rename(trip="simulation")
    return (calibration["sd"] / bound.values).rename("spread_over_bound")


@eqx.filter_jit
def _feature_chunk(
    model: TripModel,
    road: Road,
    point: Float[Array, "trip 2"],
    vehicle: Vehicle,
    with_vehicle: bool,  # noqa: FBT001  static for the compiler
) -> Float[Array, "trip parameter feature"]:
    """Score of each parameter of a chunk of trips, as vectors; information is their products."""
    constants, likelihood = model.constants, model.likelihood

    def one(road, point, vehicle):
        def power(parameters):
            factor = jnp.exp(parameters[2:]) if with_vehicle else jnp.ones(5)
            changed = vehicle.scaled(factor)
            return simulate_power(parameters[0], parameters[1], changed, road, constants)

        n_more = len(VEHICLE_PARAMETERS) if with_vehicle else 0
        parameters = jnp.concatenate([point, jnp.zeros(n_more, point.dtype)])
        if isinstance(likelihood, TraceLikelihood):
            clean = power(parameters)
            law = likelihood.law(clean)
            scale = law.floor_w + law.share * jnp.abs(clean)
            slope = jax.jacfwd(power)(parameters).T / scale
            return noise_features(
                slope,
                law.share * jnp.sign(clean) * slope,
                memory=law.memory,
                degrees_of_freedom=law.degrees_of_freedom,
            )
        seen = summarize(power(parameters), constants)

        def residuals(parameters):
            return summary_residuals(summarize(power(parameters), constants), seen, constants)

        return jax.jacfwd(residuals)(parameters).T

    return jax.vmap(one)(road, point, vehicle)
