"""Profile likelihood of aggressiveness and detour: the rest always at its best."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import lax
from jaxtyping import Array, Float
from scipy.stats import chi2

from prisma_sbi import _validate
from prisma_sbi.encoding.fitting import parameter_box
from prisma_sbi.inference.batch import map_trips
from prisma_sbi.inference.box import Box
from prisma_sbi.inference.population import PopulationSettings, survey
from prisma_sbi.models.posterior import TripPosterior
from prisma_sbi.models.trip_data import TripData
from prisma_sbi.models.trip_model import TripModel
from prisma_sbi.region.profiles import RoadProfiles
from prisma_sbi.region.record import Region
from prisma_sbi.simulator.driver import Road, roads_from_profiles
from prisma_sbi.study.samplers import Progress
from prisma_sbi.study.simulations import check_roads

_DEEP = 10.0
"""Points of a survey that are less likely than the best by this much bound the window."""
_ZOOM = 0.35
"""Factor on the range of the inner search from one round to the next."""


@dataclass(frozen=True, kw_only=True)
class ProfileSettings:
    """Work of profile curves.

    Attributes
    ----------
    n_values
        Values of the parameter along a curve.
    n_inner, n_rounds
        Values of the other parameter that the inner search tries a round, and rounds.
    population
        Of the survey that finds where the likelihood is high.
    seed
        Of that.
    """

    n_values: int = 81
    n_inner: int = 12
    n_rounds: int = 5
    population: PopulationSettings = PopulationSettings()
    seed: int = 0

    def __post_init__(self) -> None:
        _validate.at_least(5, n_values=self.n_values, n_inner=self.n_inner)
        _validate.at_least(1, n_rounds=self.n_rounds)


def profile_likelihood(
    region: Region,
    profiles: RoadProfiles,
    data: np.ndarray,
    *,
    model: TripModel | None = None,
    level: float = 0.95,
    settings: ProfileSettings | None = None,
    chunk_size: int = 4,
    progress: Progress | None = None,
) -> xr.Dataset:
    r"""Profile log likelihood of aggressiveness and of detour, with intervals.

    Parameters
    ----------
    region
        Public inputs.
    profiles
        One road a trip.
    data : (trip, ...)
        Traces in W, or what else ``model.likelihood.observe`` takes.
    model
        Its likelihood is used, its prior is not; by default the law of the whole trace. With
        the vehicle fixed, that vehicle is the only one.
    level
        Of the intervals.
    settings
        Amount of work.
    chunk_size
        Trips per compiled call.
    progress
        Called with trips done and trips in all.

    Returns
    -------
    xarray.Dataset
        Along ``trip`` and ``parameter`` (aggressiveness, detour):

        ================ ===================================================================
        ``value``        (trip, parameter, place): values along the curve
        ``drop``         (trip, parameter, place): profile log likelihood minus its highest
        ``other``        (trip, parameter, place): best value of the other parameter
        ``vehicle``      (trip, parameter, place): best vehicle
        ``best``         (trip, parameter): of the highest point met
        ``best_vehicle`` (trip)
        ``low``, ``high`` (trip, parameter): likelihood-ratio interval, its outermost ends
        ``open_low``, ``open_high`` (trip, parameter): whether it ends at the domain
        ``n_pieces``     (trip, parameter): stretches that the interval consists of
        ``log_likelihood`` (trip): at the highest point
        ================ ===================================================================

    Raises
    ------
    ValueError
        If the numbers of roads and traces differ.

    Notes
    -----
    The curve is :math:`\ell_p(a) = \max_{k, v} \ell(a, k, v)`; the interval holds the values with
    :math:`2 (\max \ell_p - \ell_p(a)) \le \chi^2_1(\text{level})` [1]_. Where the likelihood is
    normal it is the central interval of the posterior under a flat prior. Where it is ragged,
    the curve shows the peaks and the interval its outermost ones. The path of ``other`` is the
    ridge along which detour makes up for aggressiveness.

    References
    ----------
    .. [1] Raue et al., Structural and practical identifiability analysis of partially observed
       dynamical models by exploiting the profile likelihood, 2009.
       https://doi.org/10.1093/bioinformatics/btp358
    """
    _validate.in_range(0.0, 1.0, level=level)
    settings = settings or ProfileSettings()
    model = model or TripModel.of(region, likelihood="trace")
    check_roads(profiles)
    n = len(profiles)
    if len(data) != n:
        raise ValueError(f"Expected {n} traces, one a road; got {len(data)}.")
    exact, candidates = model.exact()
    box, roads = parameter_box(model.constants), roads_from_profiles(profiles)
    key = jax.random.key(settings.seed)

    def solve(rows: np.ndarray) -> dict[str, jax.Array]:
        road = jax.tree.map(lambda leaf: leaf[jnp.asarray(rows)], roads)
        keys = jax.vmap(lambda row: jax.random.fold_in(key, row))(jnp.asarray(rows))
        return _profile_chunk(exact, road, jnp.asarray(data[rows]), keys, box, settings)

    found = map_trips(solve, n, chunk_size=chunk_size, progress=progress)
    found = {name: array.astype(np.float64) for name, array in found.items()}
    return _dataset(region, found, candidates, box, level)


@eqx.filter_jit
def _profile_chunk(
    model: TripModel,
    road: Road,
    data: Float[Array, "trip ..."],
    keys: jax.Array,
    box: Box,
    settings: ProfileSettings,
) -> dict[str, Array]:
    """Curves of a chunk of trips."""

    def one(given):
        trip, key = given
        posterior = TripPosterior(model, trip)
        middle = 0.5 * (box.lower + box.upper)
        found = survey(key, posterior, box, middle, settings.population)
        point = box.inside(found.position)
        # The survey weighs by the posterior; the likelihood is what remains without prior.
        weight = found.log_weight - box.log_jacobian(found.position)[:, None]
        prior = jax.vmap(model.log_prior)(point)[:, None] + model.log_vehicle_prior
        height = jnp.max(weight - prior, axis=1)
        height = jnp.where(jnp.isnan(height), -jnp.inf, height)
        curves = [_curve(model, trip, axis, point, height, box, settings) for axis in (0, 1)]
        return jax.tree.map(lambda *leaf: jnp.stack(leaf), *curves)

    trips = TripData(road, model.likelihood.observe(data, model.constants))
    return lax.map(one, (trips, keys))


def _curve(
    model: TripModel,
    trip: TripData,
    axis: int,
    point: Float[Array, "n 2"],
    height: Float[Array, " n"],
    box: Box,
    settings: ProfileSettings,
) -> dict[str, Array]:
    """One curve: values over a window, the other parameter searched at each."""
    other = 1 - axis
    near = height >= jnp.max(height) - _DEEP
    low, high = (
        jnp.min(jnp.where(near, point[:, axis], jnp.inf)),
        jnp.max(jnp.where(near, point[:, axis], -jnp.inf)),
    )
    margin = 0.1 * (high - low) + 1e-4 * (box.upper - box.lower)[axis]
    low = jnp.maximum(low - margin, box.lower[axis])
    high = jnp.minimum(high + margin, box.upper[axis])
    best = point[jnp.argmax(height)]
    # Even steps, and the best point itself, so that no curve misses its top.
    steps = jnp.linspace(low, high, settings.n_values - 1)
    value = jnp.sort(jnp.append(steps, best[axis]))
    middle, center, spread = _ridge(point, near, axis)

    def heights(values, others):
        at = jnp.zeros((*others.shape, 2), values.dtype)
        at = at.at[..., axis].set(values[:, None]).at[..., other].set(others)
        found = lax.map(
            lambda points: jax.vmap(
                lambda p: model.likelihood.log_likelihoods(p, model.pool, trip, model.constants)
            )(points),
            jnp.swapaxes(at, 0, 1),
        )
        found = jnp.where(jnp.isnan(found), -jnp.inf, found)
        top = jnp.swapaxes(jnp.max(found, axis=-1), 0, 1)
        return top, jnp.swapaxes(jnp.argmax(found, axis=-1), 0, 1)

    offsets = jnp.linspace(-1.0, 1.0, settings.n_inner)

    def search(carry, scale):
        chosen, top, vehicle = carry
        tried = chosen[:, None] + scale * offsets
        tried = jnp.clip(tried, box.lower[other], box.upper[other])
        found, vehicles = heights(value, tried)
        index = jnp.argmax(found, axis=1)[:, None]

        def pick(array):
            return jnp.take_along_axis(array, index, axis=1)[:, 0]

        better = pick(found) > top
        return (
            jnp.where(better, pick(tried), chosen),
            jnp.where(better, pick(found), top),
            jnp.where(better, pick(vehicles), vehicle),
        ), None

    first = jnp.clip(center[0] + center[1] * (value - middle), box.lower[other], box.upper[other])
    first = jnp.where(value == best[axis], best[other], first)
    nothing = jnp.full_like(value, -jnp.inf)
    scales = spread * _ZOOM ** jnp.arange(settings.n_rounds)
    (chosen, top, vehicle), _ = lax.scan(
        search, (first, nothing, jnp.zeros(value.shape, jnp.int32)), scales
    )
    return {"value": value, "height": top, "other": chosen, "choice": vehicle}


def _ridge(point: Array, near: Array, axis: int) -> tuple[Array, tuple[Array, Array], Array]:
    """Line and half width of the other parameter along one, among the likely points."""
    share = near / jnp.sum(near)
    middle = share @ point
    offset = point - middle
    variance = share @ offset[:, axis] ** 2
    slope = share @ (offset[:, 0] * offset[:, 1]) / jnp.maximum(variance, 1e-12)
    residual = offset[:, 1 - axis] - slope * offset[:, axis]
    reach = jnp.max(jnp.where(near, jnp.abs(residual), 0.0))
    return middle[axis], (middle[1 - axis], slope), 1.1 * reach + 1e-5


def _dataset(
    region: Region, found: dict[str, np.ndarray], candidates: np.ndarray, box: Box, level: float
) -> xr.Dataset:
    """Curves and what is read off them."""
    value, height = found["value"], found["height"]
    highest = height.max(axis=(1, 2))
    drop = height - highest[:, None, None]
    rows = np.arange(len(value))
    axis, place = np.divmod(height.reshape(len(value), -1).argmax(axis=1), value.shape[-1])
    along, across = value[rows, axis, place], found["other"][rows, axis, place]
    best = np.where(
        (axis == 0)[:, None], np.stack([along, across], 1), np.stack([across, along], 1)
    )
    vehicle = candidates[found["choice"].astype(int)]
    # Each curve against its own top: both searches may have met slightly different ones.
    own = height - height.max(axis=-1, keepdims=True)
    low, high, n_pieces = _interval(value, own, 0.5 * float(chi2.ppf(level, 1)))
    lower, upper = np.asarray(box.lower, float), np.asarray(box.upper, float)
    margin = 1e-6 * (upper - lower)
    each, curve = ("trip", "parameter"), ("trip", "parameter", "place")
    variables: dict[str, Any] = {
        "value": (curve, value),
        "drop": (curve, drop),
        "other": (curve, found["other"]),
        "vehicle": (curve, vehicle),
        "best": (each, best),
        "best_vehicle": ("trip", vehicle[rows, axis, place]),
        "low": (each, low),
        "high": (each, high),
        "open_low": (each, low <= lower + margin),
        "open_high": (each, high >= upper - margin),
        "n_pieces": (each, n_pieces),
        "log_likelihood": ("trip", highest),
    }
    return xr.Dataset(
        variables,
        coords={"parameter": ["aggressiveness", "detour"]},
        attrs={
            "kind": "profile_likelihood",
            "format_version": 1,
            "level": level,
            "region_fingerprint": region.fingerprint,
        },
    )


def _interval(
    value: np.ndarray, drop: np.ndarray, depth: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outermost crossings of a depth below the top, and stretches above it."""
    above = drop >= -depth
    first = above.argmax(axis=-1)
    last = above.shape[-1] - 1 - above[..., ::-1].argmax(axis=-1)
    starts = above & ~np.concatenate([np.zeros_like(above[..., :1]), above[..., :-1]], axis=-1)

    def crossing(inside, outside):
        here, there = np.maximum(inside, 0), np.clip(outside, 0, value.shape[-1] - 1)

        def take(array, index):
            return np.take_along_axis(array, index[..., None], axis=-1)[..., 0]

        # Square roots of drops are nearly straight where a curve is a parabola.
        a, b = np.sqrt(-take(drop, here)), np.sqrt(np.minimum(-take(drop, there), 1e12))
        span = np.where(b > a, b - a, 1.0)
        share = np.where(here == there, 0.0, np.clip((np.sqrt(depth) - a) / span, 0.0, 1.0))
        return take(value, here) + share * (take(value, there) - take(value, here))

    return crossing(first, first - 1), crossing(last, last + 1), starts.sum(axis=-1)
