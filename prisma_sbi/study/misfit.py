"""Trips that the simulator cannot explain: posterior predictive checks, trip by trip."""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Array, Float, Int

from prisma_sbi import _validate
from prisma_sbi.encoding.fitting import NOISE_PREFIX
from prisma_sbi.encoding.predict import model_of
from prisma_sbi.inference.batch import map_trips
from prisma_sbi.models.likelihood import TraceLikelihood
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.profiles import RoadProfiles
from prisma_sbi.region.record import Region
from prisma_sbi.simulator.driver import Road, roads_from_profiles
from prisma_sbi.simulator.trip import simulate_power
from prisma_sbi.simulator.vehicle import Vehicle, vehicles_from_pool
from prisma_sbi.study.discrepancies import DISCREPANCIES, QUIET_W, discrepancies
from prisma_sbi.study.samplers import Progress

EXTREME = 0.05
"""A p-value below this is called extreme; so many are expected of a true model, at most."""
_NOISE = ("floor_w", "share", "memory", "degrees_of_freedom")
_FEWEST_REPLICATES = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Prediction:
    """Traces that a fit predicts, made when asked for.

    Attributes
    ----------
    constants
        Public constants.
    pool
        Vehicles of the region.
    roads
        One a trip.
    point : (trip, replicate, 2)
        Aggressiveness and detour behind each replicate.
    vehicle : (trip, replicate) int
        Its position in the pool.
    noise : (trip, replicate, 4)
        Floor in W, share, memory and degrees of freedom of its noise.
    seed
        Of the noise.
    """

    constants: Constants
    pool: Vehicle
    roads: Road
    point: np.ndarray
    vehicle: np.ndarray
    noise: np.ndarray
    seed: int = 0

    @classmethod
    def of(
        cls,
        region: Region,
        profiles: RoadProfiles,
        point: np.ndarray,
        vehicle: np.ndarray,
        *,
        likelihood: TraceLikelihood | None = None,
        n_replicates: int = 200,
        seed: int = 0,
    ) -> "Prediction":
        """Predict from draws, evenly spaced; a draw serves several times if there are too few.

        Parameters
        ----------
        region, profiles
            Public inputs, one road a trip.
        point : (trip, draw, 2)
            Draws of aggressiveness and detour.
        vehicle : (trip, draw) int
            Draws of the vehicle.
        likelihood
            The law of the noise, with numbers for parameters.
        n_replicates
            Traces a trip.
        seed
            Of the noise.

        Raises
        ------
        ValueError
            If shapes disagree, or there are too few replicates for p-values.
        """
        _validate.at_least(_FEWEST_REPLICATES, n_replicates=n_replicates)
        n, n_draws = len(profiles), np.shape(point)[1]
        if np.shape(point) != (n, n_draws, 2) or np.shape(vehicle) != (n, n_draws):
            raise ValueError(
                f"Expected point ({n}, draw, 2) and vehicle ({n}, draw), one row a road; got "
                f"{np.shape(point)} and {np.shape(vehicle)}."
            )
        kept = np.arange(n_replicates) * n_draws // n_replicates
        law = (likelihood or TraceLikelihood()).law(jnp.zeros(1))
        numbers = [float(getattr(law, name)) for name in _NOISE]
        return cls(
            constants=region.constants,
            pool=vehicles_from_pool(region.vehicles, region.constants),
            roads=roads_from_profiles(profiles),
            point=np.asarray(point, np.float32)[:, kept],
            vehicle=np.asarray(vehicle)[:, kept],
            noise=np.broadcast_to(np.asarray(numbers, np.float32), (n, n_replicates, 4)),
            seed=seed,
        )

    def __len__(self) -> int:
        return len(self.point)

    def traces(self, rows: np.ndarray) -> Float[np.ndarray, "row replicate time"]:
        """Replicates of some trips, in W; the same whichever others are asked for."""
        key = jax.random.key(self.seed)
        at = jnp.asarray(rows)
        found = _replicates(
            self.pool,
            jax.tree.map(lambda leaf: leaf[at], self.roads),
            jnp.asarray(self.point[rows]),
            jnp.asarray(self.vehicle[rows]),
            jnp.asarray(self.noise[rows]),
            jax.vmap(lambda row: jax.random.fold_in(key, row))(at),
            self.constants,
        )
        return np.asarray(found)


@eqx.filter_jit
def _replicates(
    pool: Vehicle,
    road: Road,
    point: Float[Array, "trip replicate 2"],
    vehicle: Int[Array, "trip replicate"],
    noise: Float[Array, "trip replicate 4"],
    keys: jax.Array,
    constants: Constants,
) -> Float[Array, "trip replicate time"]:
    """Simulated traces with noise."""

    def one(key, point, vehicle, numbers, road):
        power_w = simulate_power(point[0], point[1], pool[vehicle], road, constants)
        law = TraceLikelihood(*numbers).law(power_w)
        return law.sample(key)

    def trip(key, *given):
        keys = jax.random.split(key, point.shape[1])
        return jax.vmap(one, in_axes=(0, 0, 0, 0, None))(keys, *given)

    return jax.vmap(trip)(keys, point, vehicle, noise, road)


def fit_prediction(
    region: Region,
    fit: xr.DataTree,
    profiles: RoadProfiles,
    rows: np.ndarray,
    *,
    n_replicates: int = 200,
    seed: int = 0,
) -> Prediction:
    """Predictions of some trips of a fit.

    A fit by a likelihood of summaries has no law of traces; its descriptors are given that of
    :class:`~prisma_sbi.models.TraceLikelihood` with its default numbers. Noise that was
    inferred with the trip is taken draw by draw. A fit of one point a trip will do: spread of
    the posterior is then left out, and predictions are the narrower for it.

    Parameters
    ----------
    region
        The region of the fit.
    fit
        From :func:`~prisma_sbi.encoding.encode`.
    profiles
        Roads of the trips.
    rows : (trip,) int
        Positions of the trips in the fit, all of them fitted.
    n_replicates, seed
        As for :meth:`Prediction.of`.
    """
    region.require_same(fit.attrs.get("region_fingerprint"), what="a fit")
    posterior = fit["posterior"].to_dataset().isel(trip=rows)

    def flat(name: str) -> np.ndarray:
        values = posterior[name].transpose("trip", "chain", "draw").values
        return values.reshape(len(rows), -1)

    point = np.stack([flat("aggressiveness"), flat("detour")], axis=-1)
    learned = {
        name: flat(f"{NOISE_PREFIX}{name}") for name in _NOISE if NOISE_PREFIX + name in posterior
    }
    law = TraceLikelihood()
    if not learned:
        found = model_of(region, fit).likelihood
        law = found if isinstance(found, TraceLikelihood) else law
    made = Prediction.of(
        region,
        profiles,
        point,
        flat("vehicle"),
        likelihood=law,
        n_replicates=n_replicates,
        seed=seed,
    )
    if not learned:
        return made
    kept = np.arange(n_replicates) * point.shape[1] // n_replicates
    noise = made.noise.copy()
    for name, values in learned.items():
        noise[..., _NOISE.index(name)] = values[:, kept]
    return Prediction(**{**vars(made), "noise": noise})


def trip_misfit(
    prediction: Prediction,
    power_w: Float[np.ndarray, "trip time"],
    *,
    names: Sequence[str] | None = None,
    chunk_size: int = 8,
    progress: Progress | None = None,
) -> xr.Dataset:
    r"""Compare traces with what their fits predict, by fifteen discrepancies.

    Parameters
    ----------
    prediction
        Replicates of every trip.
    power_w : (trip, time)
        The traces themselves.
    names : (trip,)
        Of the trips.
    chunk_size
        Trips per compiled call.
    progress
        Called with trips done and trips in all.

    Returns
    -------
    xarray.Dataset
        Along ``trip`` and ``discrepancy``: ``observed``; ``predicted``, ``predicted_low`` and
        ``predicted_high`` (median, 5 and 95 % of the replicates); ``z``, observed minus mean of
        the replicates in their standard deviations; ``p_above``, the share of replicates above
        the observation; ``p_value``, two-sided. Along ``trip``: ``score``, the root mean square
        of ``z``; ``p_score``, the share of replicates that are further from the others than the
        observation is; ``worst``, the discrepancy of largest ``|z|``.

    Raises
    ------
    ValueError
        If the shapes disagree.

    Notes
    -----
    With :math:`M` replicates of which :math:`g` lie above the observation and :math:`e` equal
    it, :math:`p_\text{above} = (g + e/2 + 1/2) / (M + 1)`, the middle of the ranks that the
    observation may have among all :math:`M + 1`; two-sided,
    :math:`p = 2 \min(p_\text{above}, 1 - p_\text{above})`, never below :math:`1 / (M + 1)`.

    Under a true model, replicates from the true descriptors give uniform p-values. Replicates
    from the posterior, which has seen the trace, lie closer to it: p-values of a true model then
    gather about 1/2 and extreme ones are rarer than their nominal share [1]_, [2]_, the more so
    the more the discrepancy has to do with what was fitted (energy, duration). So an extreme
    value counts, and its absence proves little. (Rarer on the whole: the share below
    :math:`\alpha` can exceed it, though never twofold [1]_.)

    References
    ----------
    .. [1] Meng, Posterior predictive p-values, 1994. https://doi.org/10.1214/aos/1176325622
    .. [2] Robins, van der Vaart and Ventura, Asymptotic distribution of p values in composite
       null models, 2000. https://doi.org/10.1080/01621459.2000.10474310
    """
    n, n_times = len(prediction), prediction.constants.n_times
    if np.shape(power_w) != (n, n_times):
        raise ValueError(f"Expected power_w ({n}, {n_times}); got {np.shape(power_w)}.")
    measure = {
        "time_step_s": prediction.constants.time_step_s,
        "quiet_w": max(QUIET_W, 3.0 * float(np.median(prediction.noise[..., 0]))),
    }

    def solve(rows: np.ndarray) -> dict[str, np.ndarray]:
        made = prediction.traces(rows)
        replicated = discrepancies(made.reshape(-1, n_times), **measure)
        return compare(
            discrepancies(power_w[rows], **measure),
            replicated.reshape(*made.shape[:2], -1),
        )

    found = map_trips(solve, n, chunk_size=chunk_size, progress=progress)
    each = ("trip", "discrepancy")
    columns = list(DISCREPANCIES)
    dims = {name: each if values.ndim == 2 else ("trip",) for name, values in found.items()}
    result = xr.Dataset(
        {name: (dims[name], values) for name, values in found.items()},
        coords={"discrepancy": columns},
        attrs={"n_replicates": prediction.point.shape[1], **measure},
    )
    result["worst"] = ("trip", np.asarray(columns)[np.argmax(np.abs(found["z"]), axis=1)])
    return result if names is None else result.assign_coords(trip=list(names))


def compare(
    observed: Float[np.ndarray, "trip discrepancy"],
    replicated: Float[np.ndarray, "trip replicate discrepancy"],
) -> dict[str, np.ndarray]:
    """Ranks and distances of observations among replicates; what :func:`trip_misfit` is made of."""
    resolution = np.asarray([item.resolution for item in DISCREPANCIES.values()])
    n_replicates = replicated.shape[1]
    here = observed[:, None]
    above = np.sum(replicated > here, axis=1) + 0.5 * np.sum(replicated == here, axis=1)
    p_above = (above + 0.5) / (n_replicates + 1.0)
    spread = np.maximum(replicated.std(axis=1, ddof=1), resolution)
    z = (observed - replicated.mean(axis=1)) / spread
    # For the rank of the whole, the observation is one more replicate and treated as such.
    together = np.concatenate([here, replicated], axis=1)
    offset = together - together.mean(axis=1, keepdims=True)
    offset /= np.maximum(together.std(axis=1, ddof=1), resolution)[:, None]
    distance = np.sqrt(np.mean(offset**2, axis=2))
    further = np.sum(distance[:, 1:] > distance[:, :1], axis=1)
    low, middle, high = np.quantile(replicated, [0.05, 0.5, 0.95], axis=1)
    return {
        "observed": observed,
        "predicted": middle,
        "predicted_low": low,
        "predicted_high": high,
        "z": z,
        "p_above": p_above,
        "p_value": 2.0 * np.minimum(p_above, 1.0 - p_above),
        "score": np.sqrt(np.mean(z**2, axis=1)),
        "p_score": (further + 0.5) / (n_replicates + 1.0),
    }


def misfit_table(found: xr.Dataset) -> pd.DataFrame:
    """By discrepancy: shares of trips with an extreme p-value, too high and too low, median z.

    Parameters
    ----------
    found
        From :func:`trip_misfit`.
    """
    extreme = found["p_value"].values < EXTREME
    above = found["z"].values > 0.0
    return pd.DataFrame(
        {
            "share_extreme": extreme.mean(axis=0),
            "share_high": (extreme & above).mean(axis=0),
            "share_low": (extreme & ~above).mean(axis=0),
            "median_z": np.median(found["z"].values, axis=0),
        },
        index=pd.Index(found["discrepancy"].values, name="discrepancy"),
    )


def misfit_by(found: xr.Dataset, group: np.ndarray) -> pd.DataFrame:
    """Share of extreme p-values by discrepancy and group of trips; ``any``: the whole trip.

    Parameters
    ----------
    found
        From :func:`trip_misfit`.
    group : (trip,)
        What the trips are grouped by, such as their vehicle type.

    Returns
    -------
    pandas.DataFrame
        A row a discrepancy and one for ``p_score``; a column a group.
    """
    whole = found["p_score"].values[:, None] < EXTREME
    extreme = np.concatenate([whole, found["p_value"].values < EXTREME], axis=1)
    index = pd.Index(["any", *found["discrepancy"].values], name="discrepancy")
    kinds = np.unique(np.asarray(group, str))
    shares = {str(kind): extreme[np.asarray(group, str) == kind].mean(axis=0) for kind in kinds}
    return pd.DataFrame(shares, index=index)


def worst_trips(found: xr.Dataset, n_trips: int | None = None) -> pd.DataFrame:
    """Trips by falling score, with what is wrong with each in words.

    Parameters
    ----------
    found
        From :func:`trip_misfit`.
    n_trips
        How many; by default all.
    """
    order = np.argsort(-found["score"].values, kind="stable")[:n_trips]
    worst = np.argmax(np.abs(found["z"].values), axis=1)
    rows = []
    for trip in order:
        one = found.isel(trip=int(trip), discrepancy=int(worst[trip]))
        item = DISCREPANCIES[str(one["discrepancy"].item())]
        z = float(one["z"].item())
        rows.append(
            {
                "row": int(trip),
                "trip": str(one["trip"].item()) if "trip" in one.coords else str(trip),
                "score": float(one["score"].item()),
                "p_score": float(one["p_score"].item()),
                "discrepancy": str(one["discrepancy"].item()),
                "how": item.high if z > 0.0 else item.low,
                "z": z,
                **{
                    name: float(one[name].item())
                    for name in ("observed", "predicted_low", "predicted_high")
                },
            }
        )
    return pd.DataFrame(rows)
