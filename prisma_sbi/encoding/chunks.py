"""One chunk of trips by each method: compiled functions from traces to draws."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from prisma_sbi.encoding.methods import HmcFit, LaplaceFit, QuadratureFit
from prisma_sbi.inference.alignment import Frame, integrate_aligned
from prisma_sbi.inference.box import Box
from prisma_sbi.inference.hmc import lockstep_hmc
from prisma_sbi.inference.laplace import LaplaceSettings, laplace
from prisma_sbi.inference.nuts import whitened_nuts
from prisma_sbi.inference.quadrature import GridPosterior, GridSettings, integrate
from prisma_sbi.inference.search import SearchSettings, search
from prisma_sbi.inference.svi import SviSettings, svi_map
from prisma_sbi.inference.transport import GridTransport, normal_force, start_positions
from prisma_sbi.models.likelihood import SummaryLikelihood
from prisma_sbi.models.posterior import TripPosterior
from prisma_sbi.models.trip_data import TripData
from prisma_sbi.models.trip_model import TripModel
from prisma_sbi.simulator.driver import Road

Draws = dict[str, Array]
"""``point (trip, chain, draw, 2)``, ``choice (trip, chain, draw)``, ``choice_probability (trip,
choice)``, and one number a trip under any other name."""
_N_SCOUTS, _N_CLIMBS = 96, 5


def _data(model: TripModel, road: Road, power_w: Float[Array, "trip time"]) -> TripData:
    """Data of a chunk of trips."""
    return TripData(road, model.likelihood.observe(power_w, model.constants))


@eqx.filter_jit
def search_chunk(
    model: TripModel,
    road: Road,
    power_w: Float[Array, "trip time"],
    box: Box,
    representatives: Int[Array, " few"],
    settings: SearchSettings,
) -> Draws:
    """Best point and vehicle by global search: ``best (trip, 2)``, ``best_choice (trip,)``."""
    n_choices = model.pool.idle_power_w.shape[0]

    def one(trip: TripData):
        posterior = TripPosterior(model, trip)
        return search(posterior, box.lower, box.upper, representatives, n_choices, settings)

    found = jax.vmap(one)(_data(model, road, power_w))
    return {
        "best": found.point,
        "best_choice": found.choice,
        "log_density": -found.loss,
    }


@eqx.filter_jit
def climb_chunk(
    model: TripModel,
    road: Road,
    power_w: Float[Array, "trip time"],
    keys: jax.Array,
    best: Float[Array, "trip 2"],
    box: Box,
) -> Draws:
    """Better starts where maxima are narrow: scouts from the summaries' posterior climb too.

    The likelihood of a whole trace has many sharp maxima, one for each way to line up the
    peaks of two traces. That of the summaries is smooth, and its posterior lies where the
    best of them are.
    """
    smooth = eqx.tree_at(lambda m: m.likelihood, model, SummaryLikelihood())
    settings = LaplaceSettings(n_iterations=15, first_step=0.2)

    def one(data):
        sharp_trip, smooth_trip, key, point = data
        sharp, wide = TripPosterior(model, sharp_trip), TripPosterior(smooth, smooth_trip)
        scouts, _ = integrate(wide, box, point, GridSettings(n_levels=5)).sample(key, _N_SCOUTS)

        def height(position):
            return jax.nn.logsumexp(sharp.log_weights(box.inside(position)))

        _, chosen = lax.top_k(jax.vmap(height)(box.outside(scouts)), _N_CLIMBS)
        starts = jnp.concatenate([point[None], scouts[chosen]])
        peaks = jax.vmap(lambda start: laplace(height, start, settings))(box.outside(starts))
        winner = jnp.argmax(peaks.log_density)
        top = box.inside(peaks.mode[winner])
        weights = sharp.log_weights(top)
        return {"best": top, "best_choice": jnp.argmax(weights), "log_density": jnp.max(weights)}

    # Of two traces of one trip side by side, the summaries see the first.
    first = power_w[:, : model.constants.n_times]
    data = _data(model, road, power_w), _data(smooth, road, first), keys, best
    return lax.map(one, data)


@eqx.filter_jit
def quadrature_chunk(
    model: TripModel,
    road: Road,
    power_w: Float[Array, "trip time"],
    keys: jax.Array,
    best: Float[Array, "trip 2"],
    box: Box,
    settings: QuadratureFit,
) -> Draws:
    """Independent draws from the posterior on a grid."""
    shape = (settings.n_chains, settings.n_draws)

    def one(data):
        trip, key, start = data
        frame, grid = _gridded(TripPosterior(model, trip), key, start, box, settings)
        point, choice = grid.sample(key, settings.n_chains * settings.n_draws)
        return {
            "point": _unframed(frame, point).reshape(*shape, 2),
            "choice": choice.reshape(shape),
            **_grid_facts(frame, grid),
        }

    return lax.map(one, (_data(model, road, power_w), keys, best))


@eqx.filter_jit
def hmc_chunk(
    model: TripModel,
    road: Road,
    power_w: Float[Array, "trip time"],
    keys: jax.Array,
    best: Float[Array, "trip 2"],
    box: Box,
    settings: HmcFit,
) -> Draws:
    """Chains in lockstep, on the normal side of a map made from the grid."""
    trips = _data(model, road, power_w)

    def chart(data):
        trip, key, start = data
        frame, grid = _gridded(TripPosterior(model, trip), key, start, box, settings)
        return frame, GridTransport.of(grid), _grid_facts(frame, grid)

    # One trip at a time: a grid is wide enough to fill the vector units on its own.
    frames, maps, facts = lax.map(chart, (trips, keys, best))

    def one(trip, key, frame: Frame | None, transport: GridTransport):
        posterior = TripPosterior(model, trip)
        start_key, walk_key, choice_key = jax.random.split(key, 3)

        def log_density(position):
            point, log_jacobian = _mapped(frame, transport, position)
            weights = posterior.log_weights(point)
            return jax.nn.logsumexp(weights) + log_jacobian, (point, weights)

        starts = start_positions(start_key, settings.hmc.n_chains)
        draws = lockstep_hmc(walk_key, log_density, normal_force, starts, settings.hmc)
        point, weights = draws.kept
        gumbel = jax.random.gumbel(choice_key, weights.shape, weights.dtype)
        return {
            "point": point,
            "choice": jnp.argmax(weights + gumbel, axis=-1),
            "choice_probability": jnp.mean(jax.nn.softmax(weights, axis=-1), axis=(0, 1)),
            "acceptance": jnp.mean(draws.acceptance),
            # Proposals into a place where the density is nil are no failure here: the map is
            # wide on purpose.
            "step_scale": draws.step_scale,
        }

    found = jax.vmap(one)(trips, keys, frames, maps)
    return {**facts, **found}


@eqx.filter_jit
def laplace_chunk(
    model: TripModel,
    road: Road,
    power_w: Float[Array, "trip time"],
    keys: jax.Array,
    best: Float[Array, "trip 2"],
    box: Box,
    settings: LaplaceFit,
) -> Draws:
    """Draws from a Gaussian around the maximum, in the plane behind the box."""
    n = settings.n_chains * settings.n_draws
    shape = (settings.n_chains, settings.n_draws)

    def one(trip, key, start):
        posterior = TripPosterior(model, trip)

        def weights_at(position):
            return posterior.log_weights(box.inside(position)) + box.log_jacobian(position)

        def height(position):
            return jax.nn.logsumexp(weights_at(position))

        found = laplace(height, box.outside(start, 1e-2), settings.laplace)
        normal_key, choice_key = jax.random.split(key)
        normal = jax.random.normal(normal_key, (n, 2))
        position = found.mode + normal @ found.root.T
        weights = jax.vmap(weights_at)(position)
        # How alike the Gaussian and the posterior are: the share of draws that would be left
        # after weighing one by the other.
        log_ratio = jax.nn.logsumexp(weights, axis=-1) + 0.5 * jnp.sum(normal**2, axis=-1)
        ratio = jax.nn.softmax(log_ratio)
        gumbel = jax.random.gumbel(choice_key, weights.shape, weights.dtype)
        probability = jnp.mean(jax.nn.softmax(weights, axis=-1), axis=0)
        return {
            "point": box.inside(position).reshape(*shape, 2),
            "choice": jnp.argmax(weights + gumbel, axis=-1).reshape(shape),
            "choice_probability": probability,
            "log_evidence": found.log_evidence(),
            "likeness": 1.0 / (n * jnp.sum(ratio**2)),
        }

    return jax.vmap(one)(_data(model, road, power_w), keys, best)


@eqx.filter_jit
def svi_chunk(
    model: TripModel,
    exact: TripModel,
    road: Road,
    power_w: Float[Array, "trip time"],
    key: jax.Array,
    box: Box,
    settings: SviSettings,
) -> Draws:
    """The published descent; then the vehicle is resolved, and the point polished for it."""
    trips = _data(model, road, power_w)
    values, _ = svi_map(key, model, trips, settings)
    margin = 1e-3 * (box.upper - box.lower)
    point = jnp.stack([values["aggressiveness"], values["detour"]], axis=-1)
    point = jnp.clip(point, box.lower + margin, box.upper - margin)

    def one(trip, point):
        posterior = TripPosterior(exact, trip)
        choice = jnp.argmax(posterior.log_weights(point))

        def height(position):
            return -posterior.losses(box.inside(position), choice[None])[0]

        peak = laplace(height, box.outside(point), LaplaceSettings(n_iterations=8))
        return {
            "best": box.inside(peak.mode),
            "best_choice": choice,
            "log_density": peak.log_density,
        }

    return jax.vmap(one)(trips, point)


@eqx.filter_jit
def nuts_chunk(
    model: TripModel,
    road: Road,
    power_w: Float[Array, "trip time"],
    keys: jax.Array,
    best: Float[Array, "trip 2"],
    box: Box,
    settings: HmcFit,
) -> Draws:
    """Trees of BlackJAX on the normal side of a map made from the grid."""

    def one(data):
        trip, key, start = data
        posterior = TripPosterior(model, trip)
        frame, grid = _gridded(posterior, key, start, box, settings)
        transport = GridTransport.of(grid)
        start_key, walk_key, choice_key = jax.random.split(key, 3)

        def log_density(position):
            point, log_jacobian = _mapped(frame, transport, position)
            return jax.nn.logsumexp(posterior.log_weights(point)) + log_jacobian, None

        starts = start_positions(start_key, settings.hmc.n_chains)
        position, facts = whitened_nuts(walk_key, log_density, normal_force, starts, settings.nuts)
        point = jax.vmap(jax.vmap(lambda place: _mapped(frame, transport, place)[0]))(position)
        return {
            **_grid_facts(frame, grid),
            "point": point,
            **choices_at(posterior, choice_key, point),
            "acceptance": jnp.mean(facts["acceptance"]),
        }

    return lax.map(one, (_data(model, road, power_w), keys, best))


def choices_at(
    posterior: TripPosterior, key: jax.Array, point: Float[Array, "chain draw 2"]
) -> dict[str, Any]:
    """A vehicle for each draw of the point, and their probabilities over all draws."""
    flat = point.reshape(-1, 2)
    weights = lax.map(posterior.log_weights, flat, batch_size=64)
    gumbel = jax.random.gumbel(key, weights.shape, weights.dtype)
    return {
        "choice": jnp.argmax(weights + gumbel, axis=-1).reshape(point.shape[:-1]),
        "choice_probability": jnp.mean(jax.nn.softmax(weights, axis=-1), axis=0),
    }


def _gridded(
    posterior: TripPosterior,
    key: jax.Array,
    start: Float[Array, "2"],
    box: Box,
    settings: QuadratureFit | HmcFit,
) -> tuple[Frame | None, GridPosterior]:
    """The posterior on a grid over the box, or over its own axes and then the frame of these."""
    if settings.align is None:
        return None, integrate(posterior, box, start, settings.grid)
    own_key = jax.random.fold_in(key, 1)
    return integrate_aligned(own_key, posterior, box, start, settings.align, settings.grid)


def _unframed(frame: Frame | None, position: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
    """Points in the box, from positions on the grid."""
    return position if frame is None else frame.point(position)


def _mapped(
    frame: Frame | None, transport: GridTransport, position: Float[Array, "2"]
) -> tuple[Float[Array, "2"], Float[Array, ""]]:
    """From the normal side into the box, and the log of the areas' ratio."""
    point, log_jacobian = transport.point(position)
    if frame is None:
        return point, log_jacobian
    return frame.point(point), log_jacobian + frame.log_jacobian(point)


def _grid_facts(frame: Frame | None, grid: GridPosterior) -> Draws:
    """What a grid says about itself, and its highest cell."""
    top = jnp.argmax(grid.mass / jnp.prod(grid.half_width, axis=-1))
    return {
        "best": _unframed(frame, grid.box.unfold(grid.center[top])),
        "best_choice": jnp.argmax(grid.log_choice[top]),
        "choice_probability": grid.choice_probability,
        "log_evidence": grid.log_evidence,
        "n_effective_cells": grid.n_effective,
    }
