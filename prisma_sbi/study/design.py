"""What a recording would tell, before it is made: length, sampling, noise, likelihood, route."""

from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Array, Float, Int

from prisma_sbi import _validate
from prisma_sbi.diagnostics.fisher import information_spectrum, noise_features
from prisma_sbi.inference.batch import map_trips
from prisma_sbi.models.likelihood import SummaryLikelihood, TraceLikelihood
from prisma_sbi.models.summary import summary_residuals
from prisma_sbi.models.texture import TextureLikelihood
from prisma_sbi.models.trip_model import TripModel, TripPrior
from prisma_sbi.region.constants import PRESETS, Constants
from prisma_sbi.region.profiles import RoadProfiles
from prisma_sbi.region.record import Region
from prisma_sbi.simulator.driver import Road, roads_from_profiles
from prisma_sbi.simulator.trip import simulate_power
from prisma_sbi.simulator.vehicle import Vehicle, vehicles_from_pool
from prisma_sbi.study.atlas import route_facts
from prisma_sbi.study.averages import averaged_information
from prisma_sbi.study.local import VEHICLE_PARAMETERS
from prisma_sbi.study.samplers import Progress
from prisma_sbi.study.simulations import check_roads, prior_variances

OF_REGION = "region"
"""Name of the constants that the region has."""
LIKELIHOODS = ("trace", "texture", "summary")
DESCRIPTORS = ("aggressiveness", "detour", "vehicle")
_PARAMETERS = ("aggressiveness", "detour", *VEHICLE_PARAMETERS)
_VEHICLE_SD = 0.3
_N_PRIOR = 4_096


@dataclass(frozen=True, kw_only=True)
class DesignSettings:
    """Recordings to compare.

    Attributes
    ----------
    horizon_s
        Lengths of the recording, rising; they may exceed that of the region.
    period_s
        Seconds between samples, rising; each sample is the mean power since the last one.
    noise
        Factors on the scale of the noise.
    memory
        Autocorrelations of the noise over one time step.
    constants
        Names of presets of the driver and the idle power, or ``"region"`` for those at hand.
    n_truths
        Drivers and vehicles that expectations are taken over.
    seed
        Of their combination.
    """

    horizon_s: tuple[int, ...] = (60, 120, 250, 500, 1000)
    period_s: tuple[int, ...] = (1, 2, 5, 10, 30, 60)
    noise: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    memory: tuple[float, ...] = (0.0, 0.6)
    constants: tuple[str, ...] = (OF_REGION,)
    n_truths: int = 6
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("horizon_s", "period_s", "noise", "memory", "constants"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise ValueError(f"Expected one or more different {name}; got {values!r}.")
        for name in ("horizon_s", "period_s"):
            values = getattr(self, name)
            if list(values) != sorted(values):
                raise ValueError(f"Expected {name} that rise; got {values!r}.")
        _validate.at_least(3, horizon_s=self.horizon_s[0])
        _validate.at_least(1, period_s=self.period_s[0], n_truths=self.n_truths)
        _validate.positive(noise=min(self.noise))
        if not all(-1.0 < each < 1.0 for each in self.memory):
            raise ValueError(f"Expected memory in (-1, 1); got {self.memory!r}.")
        for each in self.constants:
            _validate.one_of([OF_REGION, *PRESETS], constants=each)


def information_design(
    region: Region,
    profiles: RoadProfiles,
    *,
    model: TripModel | None = None,
    settings: DesignSettings | None = None,
    chunk_size: int = 8,
    progress: Progress | None = None,
) -> xr.Dataset:
    r"""Expected information about driver and vehicle, for every combination of a design.

    Parameters
    ----------
    region
        Public inputs.
    profiles
        Routes, from :func:`~prisma_sbi.study.draw_routes` or of your own choice.
    model
        Prior, and the law of the trace whose noise has factor 1; flat and the default law if
        not given.
    settings
        Recordings to compare.
    chunk_size
        Drives per compiled call.
    progress
        Called with drives done and drives in all, once through for each set of constants.

    Returns
    -------
    xarray.Dataset
        With ``design`` short for (constants, memory, noise, horizon, period, route):

        ====================== ============================================================
        ``gain``               (design, descriptor): expected information in nats; the
                               descriptor ``vehicle`` is all five of its properties
        ``total_gain``         (design): about all seven unknowns together
        ``posterior_sd``       (design, parameter): geometric mean over truths
        ``bound``              (design, parameter): Cramér-Rao, without prior, likewise
        ``claimed_gain``       (constants, likelihood, horizon, route, descriptor): what a
                               fit by that likelihood to every sample would claim
        ``n_samples``          (horizon, period)
        ``prior_sd``           (parameter)
        ``length_m`` ...       (route): as :func:`~prisma_sbi.study.information_atlas` has it
        ``truth``              (truth, unknown): drivers, and positions in the pool
        ====================== ============================================================

    Raises
    ------
    ValueError
        If the likelihood of the model is no law of traces, or the settings do not fit it.
    InputDataError
        If a route is not routed.

    Notes
    -----
    A sample at period :math:`k` is the mean of :math:`k` seconds; its information is that of
    :func:`~prisma_sbi.study.averages.averaged_information` under the covariance of the trace law:
    scale :math:`c\,(f + s |q_t|)\sqrt{\nu / (\nu - 2)}` and autocorrelation :math:`\phi^{|t-u|}`.
    White noise averages out as :math:`1/k`; noise with memory does not. The scale is taken for
    known, though it depends on the power, and the law for no better than its covariance, so that
    ``gain`` is a lower bound on what the whole law tells at a period of one step, which is
    ``claimed_gain`` of likelihood ``trace`` where the memory is that of the law.

    The summaries are no law of traces. ``claimed_gain`` of ``summary`` and ``texture`` is the
    curvature of their loss for a trace that the simulator explains exactly: the width that their
    posterior has, not what the data holds. It does not depend on the noise.

    Information adds to that of a normal prior with the standard deviations ``prior_sd``, as in
    the atlas. The truths are a Latin hypercube over prior and pool, the same on every route and
    for every recording.
    """
    settings = settings or DesignSettings()
    model = model or TripModel.of(region, likelihood="trace")
    if not isinstance(model.likelihood, TraceLikelihood):
        raise ValueError(
            "Expected likelihood='trace', which says what noise there is; got "
            f"{type(model.likelihood).__name__}. The other ones are compared with it in any case."
        )
    check_roads(profiles)
    point, vehicle = _truths(region, model.prior, settings)
    scale = np.concatenate(
        [np.sqrt(prior_variances(model)), np.full(len(VEHICLE_PARAMETERS), _VEHICLE_SD)]
    )
    parts = []
    for name in settings.constants:
        known = _constants(region.constants, name, settings)
        found = _informations(
            region, profiles, model.likelihood, known, (point, vehicle), settings,
            chunk_size=chunk_size, progress=progress,
        )  # fmt: skip
        parts.append(_measures(found, scale, settings))
    content = xr.concat(parts, dim="constants").assign_coords(constants=list(settings.constants))
    horizon, period = np.asarray(settings.horizon_s), np.asarray(settings.period_s)
    facts = route_facts(region, profiles)
    content = content.assign(
        {name: item for name, item in facts.items() if item[0] == "route"}
        | {
            "n_samples": (("horizon", "period"), horizon[:, None] // period),
            "prior_sd": ("parameter", scale),
            "truth": (("truth", "unknown"), np.column_stack([point, vehicle])),
        }
    )
    content["unknown"] = list(DESCRIPTORS)
    return content.assign_attrs(
        kind="design",
        format_version=1,
        region_fingerprint=region.fingerprint,
        seed=settings.seed,
        time_step_s=region.constants.time_step_s,
    )


def best_designs(design: xr.Dataset, n_samples: tuple[int, ...]) -> pd.DataFrame:
    """The recording of so many samples, or fewer, that tells most on the mean of its routes.

    Parameters
    ----------
    design
        From :func:`information_design`.
    n_samples
        Budgets. Those that no recording of the design meets are left out.

    Returns
    -------
    pandas.DataFrame
        A row for each budget, set of constants, memory and noise: ``horizon_s``, ``period_s``,
        ``n_samples`` (used), ``total_gain`` and ``shortest_gain``, that of spending the same
        budget on the shortest period.
    """
    mean = design["total_gain"].mean("route").stack(plan=("horizon", "period"))
    count = design["n_samples"].stack(plan=("horizon", "period")).values
    period = mean["period"].values
    rows = []
    for budget in n_samples:
        allowed = count <= budget
        if not allowed.any():
            continue
        for values in mean.stack(case=("constants", "memory", "noise")).transpose("case", ...):
            gain = np.where(allowed, values.values, -np.inf)
            best = int(gain.argmax())
            fastest = np.where(period == period.min(), gain, -np.inf).max()
            rows.append(
                {
                    "budget": budget,
                    **{name: values[name].item() for name in ("constants", "memory", "noise")},
                    "horizon_s": int(mean["horizon"].values[best]),
                    "period_s": int(period[best]),
                    "n_samples": int(count[best]),
                    "total_gain": float(gain[best]),
                    "shortest_gain": float(fastest) if np.isfinite(fastest) else np.nan,
                }
            )
    return pd.DataFrame(rows)


def _truths(
    region: Region, prior: TripPrior, settings: DesignSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Drivers ``(truth, 2)`` and positions in the pool ``(truth,)``, a Latin hypercube."""
    rng, n = np.random.default_rng(settings.seed), settings.n_truths
    ranks = (np.arange(n) + 0.5) / n
    keys = jax.random.split(jax.random.key(settings.seed))
    columns = [
        np.quantile(np.asarray(law.sample(key, (_N_PRIOR,)), np.float64), ranks)
        for law, key in zip((prior.aggressiveness, prior.detour), keys, strict=True)
    ]
    order = np.argsort(region.vehicles.mass_kg, kind="stable")
    vehicle = order[(ranks * len(order)).astype(int)]
    return np.column_stack([columns[0], rng.permutation(columns[1])]), rng.permutation(vehicle)


def _constants(constants: Constants, name: str, settings: DesignSettings) -> Constants:
    """Constants of a name, with the longest horizon."""
    changes: dict[str, Any] = {"horizon_s": settings.horizon_s[-1]}
    if name != OF_REGION:
        preset = asdict(Constants.preset(name))
        changed = {field for each in PRESETS.values() for field in each}
        changes |= {field: preset[field] for field in changed}
    step = constants.time_step_s
    for duration in (*settings.horizon_s, *settings.period_s):
        if abs(duration / step - round(duration / step)) > 1e-9 or duration < step:
            raise ValueError(
                f"Expected horizons and periods that are multiples of the time step, {step:g} s; "
                f"got {duration} s."
            )
    return replace(constants, **changes)


def _informations(
    region: Region,
    profiles: RoadProfiles,
    law: TraceLikelihood,
    constants: Constants,
    truths: tuple[np.ndarray, np.ndarray],
    settings: DesignSettings,
    *,
    chunk_size: int,
    progress: Progress | None,
) -> dict[str, np.ndarray]:
    """Informations ``(route, truth, memory or likelihood, period, horizon, 7, 7)`` at factor 1."""
    n_routes, n_truths = len(profiles), settings.n_truths
    roads = roads_from_profiles(profiles)
    pool = vehicles_from_pool(region.vehicles, constants)
    ends = tuple(round(each / constants.time_step_s) for each in settings.horizon_s)
    blocks = tuple(round(each / constants.time_step_s) for each in settings.period_s)

    def solve(rows: np.ndarray) -> dict[str, np.ndarray]:
        route, truth = np.divmod(rows, n_truths)
        road = jax.tree.map(lambda leaf: leaf[jnp.asarray(route)], roads)
        point = jnp.asarray(truths[0][truth], jnp.float32)
        vehicle = pool[jnp.asarray(truths[1][truth])]
        found = _slopes(law, constants, ends, road, point, vehicle)
        *claims, slope, sd = (np.asarray(each, np.float64) for each in found)
        linear = [
            [
                [
                    averaged_information(j, s, memory=memory, n_block=block, ends=ends)
                    for block in blocks
                ]
                for memory in settings.memory
            ]
            for j, s in zip(slope, sd, strict=True)
        ]
        products = [each @ np.swapaxes(each, -1, -2) for each in claims]
        return {"linear": np.asarray(linear), "claimed": np.stack(products, axis=1)}

    n = n_routes * n_truths
    found = map_trips(solve, n, chunk_size=min(chunk_size, n), progress=progress)
    return {
        name: array.reshape(n_routes, n_truths, *array.shape[1:]) for name, array in found.items()
    }


@eqx.filter_jit
def _slopes(
    law: TraceLikelihood,
    constants: Constants,
    ends: tuple[int, ...],
    road: Road,
    point: Float[Array, "drive 2"],
    vehicle: Vehicle,
) -> tuple[Array, ...]:
    """Scores ``(drive, end, parameter, feature)`` by likelihood, slopes of the trace, and noise."""

    def one(road, point, vehicle):
        def power(parameters):
            factor = jnp.exp(parameters[2:])
            changed = vehicle.scaled(factor)
            return simulate_power(parameters[0], parameters[1], changed, road, constants)

        parameters = jnp.concatenate([point, jnp.zeros(len(VEHICLE_PARAMETERS), point.dtype)])
        clean = power(parameters)
        slope = jax.jacfwd(power)(parameters)
        noise = law.law(clean)
        scale = noise.floor_w + noise.share * jnp.abs(clean)
        relative = slope.T / scale
        score = noise_features(
            relative,
            noise.share * jnp.sign(clean) * relative,
            memory=noise.memory,
            degrees_of_freedom=noise.degrees_of_freedom,
        )
        step = jnp.arange(constants.n_times)
        # Features of the trace law come in three parts; the second begins with the second step.
        seen = jnp.concatenate([step, step[1:], step]) < jnp.asarray(ends)[:, None]
        scores = [score * seen[:, None]]
        for likelihood in (TextureLikelihood(), SummaryLikelihood()):
            at_end = partial(_score, likelihood, clean, slope, constants)
            scores.append(jax.vmap(at_end)(jnp.asarray(ends)))
        nu = noise.degrees_of_freedom
        return *scores, slope, scale * jnp.sqrt(nu / (nu - 2.0))

    return jax.vmap(one)(road, point, vehicle)


def _score(
    likelihood: SummaryLikelihood | TextureLikelihood,
    power_w: Float[Array, " time"],
    slope: Float[Array, "time parameter"],
    constants: Constants,
    end: Int[Array, ""],
) -> Float[Array, "parameter feature"]:
    """Derivatives of the residuals of a loss around a trace of which ``end`` steps are seen."""
    n = power_w.shape[0]
    seen = jnp.arange(n) < end
    whole: Any = likelihood.observe(power_w * seen, constants)
    # The curve counts as the mean over what was seen, not over all steps.
    curve = jnp.where(seen, jnp.sqrt(n / end), 0.0)
    weight = jnp.concatenate([jnp.ones(2, power_w.dtype), curve])

    def residuals(power_w):
        found: Any = likelihood.observe(power_w * seen, constants)
        if isinstance(likelihood, SummaryLikelihood):
            return weight * summary_residuals(found, whole, constants)
        published = weight * summary_residuals(found.summary, whole.summary, constants)
        variance = (found.log_variance - whole.log_variance) / likelihood.log_variance_scale
        lags = (found.autocorrelation - whole.autocorrelation) / likelihood.autocorrelation_scale
        lags = lags / jnp.sqrt(len(likelihood.lags))
        return jnp.concatenate([published, variance[None], lags])

    return jax.vmap(lambda tangent: jax.jvp(residuals, (power_w,), (tangent,))[1])(slope.T)


def _measures(
    found: dict[str, np.ndarray], scale: np.ndarray, settings: DesignSettings
) -> xr.Dataset:
    """Means over truths of what follows from the informations."""
    noise = np.asarray(settings.noise)
    # (noise, route, truth, memory, period, horizon, parameter, parameter)
    linear = found["linear"] / noise.reshape(-1, *[1] * found["linear"].ndim) ** 2
    gain, total, relative_sd = _gains(linear, scale)
    claimed, _, _ = _gains(found["claimed"], scale)
    bound = information_spectrum(found["linear"], scale).bound * noise.reshape(-1, *[1] * 6)
    design = ("noise", "route", "memory", "period", "horizon")
    with np.errstate(divide="ignore"):
        log_bound = np.log(bound).mean(axis=2)
    variables: dict[str, Any] = {
        "gain": ((*design, "descriptor"), gain.mean(axis=2), {"units": "nat"}),
        "total_gain": (design, total.mean(axis=2), {"units": "nat"}),
        "posterior_sd": ((*design, "parameter"), scale * np.exp(np.log(relative_sd).mean(axis=2))),
        "bound": ((*design, "parameter"), np.exp(log_bound)),
        "claimed_gain": (
            ("route", "likelihood", "horizon", "descriptor"),
            claimed.mean(axis=1),
            {"units": "nat"},
        ),
    }
    coords = {
        "noise": noise,
        "memory": np.asarray(settings.memory),
        "period": ("period", np.asarray(settings.period_s), {"units": "s"}),
        "horizon": ("horizon", np.asarray(settings.horizon_s), {"units": "s"}),
        "descriptor": list(DESCRIPTORS),
        "parameter": list(_PARAMETERS),
        "likelihood": list(LIKELIHOODS),
    }
    order = ("memory", "noise", "horizon", "period", "route", "likelihood")
    return xr.Dataset(variables, coords=coords).transpose(*order, "descriptor", "parameter")


def _gains(information: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nats about descriptors and about all, and posterior over prior standard deviations."""
    covariance = np.linalg.inv(information * scale * scale[:, None] + np.eye(len(scale)))
    relative_sd = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    about_vehicle = -0.5 * np.linalg.slogdet(covariance[..., 2:, 2:])[1]
    total = -0.5 * np.linalg.slogdet(covariance)[1]
    gain = np.concatenate([-np.log(relative_sd[..., :2]), about_vehicle[..., None]], axis=-1)
    return gain, total, relative_sd
