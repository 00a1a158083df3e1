"""Which vehicles of a pool a trace can tell apart, at a given noise."""

from dataclasses import fields

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import lax
from jaxtyping import Array, Float

from prisma_sbi import _validate
from prisma_sbi.diagnostics.equivalence import equivalence_classes, representatives
from prisma_sbi.diagnostics.fisher import noise_features
from prisma_sbi.inference.batch import map_trips
from prisma_sbi.models.likelihood import TraceLikelihood
from prisma_sbi.models.trip_model import TripModel
from prisma_sbi.region.pool import VehiclePool
from prisma_sbi.region.profiles import RoadProfiles
from prisma_sbi.region.record import Region
from prisma_sbi.simulator.driver import Road, roads_from_profiles
from prisma_sbi.simulator.trip import simulate_power
from prisma_sbi.study.samplers import Progress
from prisma_sbi.study.simulations import check_roads


def vehicle_distances(
    region: Region,
    profiles: RoadProfiles,
    point: np.ndarray,
    *,
    model: TripModel | None = None,
    chunk_size: int = 4,
    progress: Progress | None = None,
) -> xr.Dataset:
    r"""How well traces tell every two vehicles of the pool apart.

    Parameters
    ----------
    region
        Public inputs.
    profiles
        One road a trip.
    point : (trip, 2)
        Aggressiveness and detour.
    model
        Its likelihood must be the law of the whole trace, which is the default.
    chunk_size
        Trips per compiled call.
    progress
        Called with trips done and trips in all.

    Returns
    -------
    xarray.Dataset
        ``distance (trip, vehicle, other)``: :math:`d'` where aggressiveness and detour are
        unknown, and may be moved so that one vehicle looks like the other;
        ``distance_known``: the same if both are known.

    Raises
    ------
    ValueError
        If the likelihood is another one, or the shapes disagree.

    Notes
    -----
    :math:`d'` is the distance of two laws of traces in units of the noise: whoever has to
    choose between two vehicles, equally likely before, errs with probability
    :math:`\Phi(-d'/2)`, which is 0.31 at 1 and 0.02 at 4. It is the length of the difference of
    powers in the metric of the Fisher information
    (:func:`~prisma_sbi.diagnostics.trace_information`) at the mean scale of both, right where
    no single sample tells the two apart, which is where it matters. For an unknown driver
    the part along the derivatives by aggressiveness and detour is taken out, at each of the two
    vehicles, and the squares are averaged; that is right for small moves of the driver.
    """
    model, likelihood = _trace_model(region, model)
    check_roads(profiles)
    n = len(profiles)
    _check_point(point, n)
    roads = roads_from_profiles(profiles)

    def solve(rows: np.ndarray) -> dict[str, jax.Array]:
        road = jax.tree.map(lambda leaf: leaf[jnp.asarray(rows)], roads)
        at = jnp.asarray(np.asarray(point)[rows], jnp.float32)
        known, unknown = _distance_chunk(model, likelihood, road, at)
        return {"distance": unknown, "distance_known": known}

    found = map_trips(solve, n, chunk_size=chunk_size, progress=progress)
    dims = ("trip", "vehicle", "other")
    return xr.Dataset(
        {name: (dims, array) for name, array in found.items()},
        attrs={
            "kind": "vehicle_distances",
            "format_version": 1,
            "region_fingerprint": region.fingerprint,
        },
    )


def expected_confusion(
    region: Region,
    profiles: RoadProfiles,
    point: np.ndarray,
    *,
    model: TripModel | None = None,
    n_draws: int = 32,
    seed: int = 0,
    chunk_size: int = 2,
    progress: Progress | None = None,
) -> xr.DataArray:
    """Mean posterior probability of every vehicle, by the vehicle that is true.

    The driver is known here, so this is the best that can be hoped for; with the driver unknown,
    see :func:`~prisma_sbi.diagnostics.confusion` of the probabilities of a calibration.

    Parameters
    ----------
    region, profiles, point, model, chunk_size, progress
        As for :func:`vehicle_distances`.
    n_draws
        Noisy traces of each vehicle on each trip.
    seed
        Of the noise.

    Returns
    -------
    xarray.DataArray
        ``(trip, vehicle, other)``: true vehicle, believed vehicle; sums to one over ``other``.
    """
    _validate.at_least(1, n_draws=n_draws)
    model, likelihood = _trace_model(region, model)
    check_roads(profiles)
    n = len(profiles)
    _check_point(point, n)
    roads = roads_from_profiles(profiles)
    key = jax.random.key(seed)

    def solve(rows: np.ndarray) -> dict[str, jax.Array]:
        road = jax.tree.map(lambda leaf: leaf[jnp.asarray(rows)], roads)
        at = jnp.asarray(np.asarray(point)[rows], jnp.float32)
        keys = jax.vmap(lambda row: jax.random.fold_in(key, row))(jnp.asarray(rows))
        return {"confusion": _confusion_chunk(model, likelihood, road, at, keys, n_draws)}

    found = map_trips(solve, n, chunk_size=chunk_size, progress=progress)["confusion"]
    attrs = {"n_draws": n_draws, "region_fingerprint": region.fingerprint}
    return xr.DataArray(found, dims=("trip", "vehicle", "other"), name="confusion", attrs=attrs)


def vehicle_classes(
    distances: xr.Dataset,
    *,
    threshold: float = 1.0,
    linkage_method: str = "complete",
    known_driver: bool = False,
) -> xr.Dataset:
    """Classes of vehicles that no trace of these trips tells apart.

    Parameters
    ----------
    distances
        From :func:`vehicle_distances`. The largest over its trips counts: one trip that tells
        two vehicles apart is enough.
    threshold
        Largest d' within a class.
    linkage_method
        See :func:`~prisma_sbi.diagnostics.equivalence_classes`.
    known_driver
        Whether aggressiveness and detour are known.

    Returns
    -------
    xarray.Dataset
        ``label (vehicle)``, from 0; ``representative (class_)``, position of the vehicle that
        stands for the class, ``size (class_)`` and ``diameter (class_)``, its largest d'.
    """
    name = "distance_known" if known_driver else "distance"
    distance = distances[name].max("trip").values
    label = equivalence_classes(distance, threshold, linkage_method=linkage_method)
    chosen = representatives(distance, label)
    members = [np.flatnonzero(label == number) for number in range(len(chosen))]
    return xr.Dataset(
        {
            "label": ("vehicle", label),
            "representative": ("class_", chosen),
            "size": ("class_", [len(each) for each in members]),
            "diameter": ("class_", [distance[np.ix_(each, each)].max() for each in members]),
        },
        attrs={
            "kind": "vehicle_classes",
            "format_version": 1,
            "threshold": threshold,
            "linkage": linkage_method,
            "region_fingerprint": distances.attrs.get("region_fingerprint", ""),
        },
    )


def reduced_pool(region: Region, classes: xr.Dataset) -> VehiclePool:
    """The pool with one vehicle a class, in the order of the pool.

    A region with this pool is another region: make it by ``dataclasses.replace``, before any
    private trip is read.
    """
    region.require_same(classes.attrs.get("region_fingerprint"), what="vehicle classes")
    rows = np.sort(classes["representative"].values)
    columns = {field.name: getattr(region.vehicles, field.name) for field in fields(VehiclePool)}
    return VehiclePool(**{name: column[rows] for name, column in columns.items()})


def _trace_model(region: Region, model: TripModel | None) -> tuple[TripModel, TraceLikelihood]:
    """A model whose likelihood is a law of traces, and that law."""
    model = model or TripModel.of(region, likelihood="trace")
    if not isinstance(model.likelihood, TraceLikelihood):
        raise ValueError(
            "Expected likelihood='trace', which says what noise there is; got "
            f"{type(model.likelihood).__name__}."
        )
    return model, model.likelihood


def _check_point(point: np.ndarray, n_trips: int) -> None:
    """Raise unless there is a point for each road."""
    if np.shape(point) != (n_trips, 2):
        raise ValueError(f"Expected point ({n_trips}, 2), one a road; got {np.shape(point)}.")


def _powers(model: TripModel, road: Road, point: Array) -> Float[Array, "vehicle time"]:
    """Power of every vehicle of the pool on one drive."""
    return jax.vmap(
        lambda vehicle: simulate_power(point[0], point[1], vehicle, road, model.constants)
    )(model.pool)


@eqx.filter_jit
def _distance_chunk(
    model: TripModel, likelihood: TraceLikelihood, road: Road, point: Float[Array, "trip 2"]
) -> tuple[Float[Array, "trip vehicle vehicle"], Float[Array, "trip vehicle vehicle"]]:
    """Distances with the driver known, and unknown."""

    def one(given):
        road, at = given
        power = _powers(model, road, at)
        slope = jax.jacfwd(lambda p: _powers(model, road, p))(at)
        law = likelihood.law(power)
        scale = law.floor_w + law.share * jnp.abs(power)
        memory = {"memory": law.memory, "degrees_of_freedom": law.degrees_of_freedom}

        def row(mine):
            my_power, my_scale, my_slope = mine
            mean_scale = 0.5 * (my_scale + scale)
            step = noise_features(
                (power - my_power) / mean_scale, jnp.log(scale) - jnp.log(my_scale), **memory
            )
            relative = law.share * jnp.sign(my_power)[:, None] * my_slope / my_scale[:, None]
            driver = noise_features((my_slope / my_scale[:, None]).T, relative.T, **memory)
            # An orthonormal frame of what the driver can do; flat directions can do nothing.
            root, size, _ = jnp.linalg.svd(driver.T, full_matrices=False)
            frame = jnp.where(size > 1e-6 * jnp.maximum(size[0], 1e-30), root, 0.0)
            whole = jnp.sum(step**2, axis=-1)
            return whole, jnp.maximum(whole - jnp.sum((step @ frame) ** 2, axis=-1), 0.0)

        known, unknown = lax.map(row, (power, scale, slope))
        return jnp.sqrt(0.5 * (known + known.T)), jnp.sqrt(0.5 * (unknown + unknown.T))

    return lax.map(one, (road, point))


@eqx.filter_jit
def _confusion_chunk(
    model: TripModel,
    likelihood: TraceLikelihood,
    road: Road,
    point: Float[Array, "trip 2"],
    keys: jax.Array,
    n_draws: int,
) -> Float[Array, "trip vehicle vehicle"]:
    """Mean probabilities of vehicles on noisy traces of every vehicle."""

    def one(given):
        road, at, key = given
        power = _powers(model, road, at)
        every = likelihood.law(power)

        def row(mine):
            my_power, my_key = mine
            seen = likelihood.law(my_power).sample(my_key, (n_draws,))
            weight = every.log_prob(seen[:, None]) + model.log_vehicle_prior
            return jnp.mean(jax.nn.softmax(weight, axis=-1), axis=0)

        return lax.map(row, (power, jax.random.split(key, len(power))))

    return lax.map(one, (road, point, keys))
