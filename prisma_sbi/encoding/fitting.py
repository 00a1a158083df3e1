"""All trips by one method: chunks, restarts and what each trip's fit came to."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from prisma_sbi.diagnostics.convergence import FitFlag, convergence
from prisma_sbi.diagnostics.modes import has_two_modes
from prisma_sbi.encoding.checkpoint import ChunkFolder, digest
from prisma_sbi.encoding.chunks import (
    climb_chunk,
    hmc_chunk,
    laplace_chunk,
    nuts_chunk,
    quadrature_chunk,
    search_chunk,
    svi_chunk,
)
from prisma_sbi.encoding.methods import (
    ALIGNED_GRID,
    NARROW_SEARCH,
    EncodeSettings,
    HmcFit,
    LaplaceFit,
    Method,
    QuadratureFit,
)
from prisma_sbi.inference.alignment import AlignSettings
from prisma_sbi.inference.batch import map_trips
from prisma_sbi.inference.box import Box
from prisma_sbi.inference.nuts import numpyro_nuts
from prisma_sbi.inference.quadrature import GridSettings
from prisma_sbi.inference.search import SearchSettings
from prisma_sbi.inference.svi import SviSettings
from prisma_sbi.models.likelihood import TraceLikelihood
from prisma_sbi.models.trip_data import TripData
from prisma_sbi.models.trip_model import LOWEST_AGGRESSIVENESS, TripModel
from prisma_sbi.models.vehicle_choice import FixedVehicle, GumbelVehicle
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.record import Region
from prisma_sbi.region.representatives import representative_vehicles
from prisma_sbi.simulator.driver import Road

Columns = dict[str, np.ndarray]
Solve = Callable[[np.ndarray], dict[str, jax.Array]]
NOISE_PREFIX = "noise_"
"""Sites of a likelihood's own parameters begin so."""
LEAST_CELLS = 30.0
"""Fewer effective cells than this are too coarse."""
_N_REPRESENTATIVES = 32
_LEAST_LIKENESS = 0.3
_MOST_DIVERGING = 0.02
_DOUBT = FitFlag.R_HAT | FitFlag.LOW_ESS
_FEW = 2
_LONGER = 2
"""How much longer the chains of the second pass are."""


def parameter_box(constants: Constants) -> Box:
    """Domain of aggressiveness and detour."""
    low, high = constants.aggressiveness_bounds
    return Box(
        jnp.asarray([max(low, LOWEST_AGGRESSIVENESS), constants.detour_bounds[0]], jnp.float32),
        jnp.asarray([high, constants.detour_bounds[1]], jnp.float32),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitting:
    """Trips that have a road and a trace, and how to fit them.

    Attributes
    ----------
    region
        Public inputs.
    model
        Trip model.
    settings
        Method and work.
    roads
        One a trip.
    power_w : (trip, time)
    seeds : (trip,) uint32
        From the names of the trips; they make the keys of the draws. What a trip's draws are
        must not depend on which other trips there are: a guarantee for single trips rests on it.
    chunk_size
        Trips per compiled call.
    checkpoint
        Folder for finished chunks.
    checkpoint_key
        What they depend on.
    progress
        Called with trips done and trips in all.
    """

    region: Region
    model: TripModel
    settings: EncodeSettings
    roads: Road
    power_w: np.ndarray
    seeds: np.ndarray
    chunk_size: int
    checkpoint: Path | None
    checkpoint_key: dict[str, str]
    progress: Callable[[int, int], None] | None

    def run(self) -> Columns:
        """Fit all trips.

        Returns
        -------
        Arrays with a leading trip axis: ``best (trip, 2)``, ``best_vehicle``, ``flags``; for
        methods with draws ``point (trip, chain, draw, 2)``, ``vehicle (trip, chain, draw)``,
        ``vehicle_probability (trip, vehicle)``; and one number a trip under other names.
        """
        solve, candidates = self._solver()
        found = self._mapped(solve, candidates)
        found["flags"] = self._flags(found)
        if self.settings.method == Method.HMC:
            self._sample_again(found)
        return found

    def _mapped(self, solve: Solve, candidates: np.ndarray) -> Columns:
        """Fits of all trips, chunk by chunk."""
        folder = None
        if self.checkpoint is not None:
            folder = ChunkFolder(self.checkpoint, self.checkpoint_key)
        found = map_trips(
            solve,
            len(self.seeds),
            chunk_size=1 if self.settings.method == Method.NUTS else self.chunk_size,
            store=folder,
            progress=self.progress,
        )
        return _named(found, candidates, len(self.region.vehicles))

    def _solver(self) -> tuple[Solve, np.ndarray]:
        """From positions of trips to their fits, and the vehicles that were candidates."""
        if self.settings.method == Method.NUTS:
            return self._nuts_solver()
        work, search = self._work()
        exact, candidates = self._exact()
        box = parameter_box(self.region.constants)
        key = jax.random.key(self.settings.seed)
        few = self._representatives(exact)
        narrow = _is_narrow(exact.likelihood)

        def solve(rows: np.ndarray) -> dict[str, jax.Array]:
            road, power = self.trips(rows)
            if isinstance(work, SviSettings):
                return svi_chunk(self.model, exact, road, power, key, box, work)
            keys = self._keys(rows)
            found = {}
            start = jnp.broadcast_to(0.5 * (box.lower + box.upper), (len(rows), 2))
            if search is not None:
                found = search_chunk(exact, road, power, box, few, search)
                if narrow:
                    found = climb_chunk(exact, road, power, keys, found["best"], box)
                start = found["best"]
            common = (exact, road, power, keys, start, box)
            # Where a search has run, its best point is better than that of a grid.
            if isinstance(work, QuadratureFit):
                found = quadrature_chunk(*common, work) | found
            elif isinstance(work, HmcFit):
                sample = nuts_chunk if work.all_nuts else hmc_chunk
                found = sample(*common, work) | found
            elif isinstance(work, LaplaceFit):
                found |= laplace_chunk(*common, work)
            return found

        return solve, candidates

    def _work(self) -> tuple[Any, SearchSettings | None]:
        """Work of the method and of the search; defaults are finer where maxima are narrow."""
        work, search = self.settings.work, self.settings.search
        if _is_narrow(self.model.likelihood):
            if search == SearchSettings():
                search = NARROW_SEARCH
            if isinstance(work, (QuadratureFit, HmcFit)) and work.grid == GridSettings():
                work = replace(work, grid=ALIGNED_GRID, align=work.align or AlignSettings())
        return work, search

    def _exact(self) -> tuple[TripModel, np.ndarray]:
        """The model whose vehicles are enumerated, and which they are."""
        relaxed = isinstance(self.model.choice, GumbelVehicle)
        if self.settings.method == Method.SVI and relaxed:
            return TripModel.of(
                self.region, prior=self.model.prior, likelihood=self.model.likelihood
            ).exact()
        return self.model.exact()

    def _keys(self, rows: np.ndarray) -> jax.Array:
        """A key for each trip, its own whatever the others are."""
        key = jax.random.key(self.settings.seed)
        return jax.vmap(lambda seed: jax.random.fold_in(key, seed))(jnp.asarray(self.seeds[rows]))

    def trips(self, rows: np.ndarray) -> tuple[Road, jax.Array]:
        """Roads and traces of some trips."""
        road = jax.tree.map(lambda leaf: jnp.asarray(leaf[rows]), self.roads)
        return road, jnp.asarray(self.power_w[rows])

    def _representatives(self, exact: TripModel) -> jax.Array:
        """Candidates that stand for all on the coarse grid."""
        n_candidates = exact.pool.idle_power_w.shape[0]
        if n_candidates < len(self.region.vehicles):
            return jnp.arange(n_candidates)
        return jnp.asarray(representative_vehicles(self.region.vehicles, _N_REPRESENTATIVES))

    def _nuts_solver(self) -> tuple[Solve, np.ndarray]:
        """Plain NumPyro: one trip at a time, under the model as it is."""
        sample = numpyro_nuts(self.model, self.settings.work)
        n_vehicles = len(self.region.vehicles)
        fixed = isinstance(self.model.choice, FixedVehicle)
        candidates = self.model.exact()[1] if fixed else np.arange(n_vehicles)

        def solve(rows: np.ndarray) -> dict[str, jax.Array]:
            road, power = self.trips(rows)
            observed = self.model.likelihood.observe(power, self.model.constants)
            trip = jax.tree.map(lambda leaf: leaf[0], TripData(road, observed))
            walk_key, choice_key = jax.random.split(self._keys(rows)[0])
            values, facts = sample(walk_key, trip)
            point = jnp.stack([values["aggressiveness"], values["detour"]], axis=-1)
            if fixed:
                choice = jnp.zeros(point.shape[:-1], jnp.int32)
                probability = jnp.ones(1)
            elif isinstance(self.model.choice, GumbelVehicle):
                choice = values["vehicle"].astype(jnp.int32)
                probability = jnp.bincount(choice.ravel(), length=n_vehicles) / choice.size
            else:
                weights = values["vehicle_log_weight"]
                gumbel = jax.random.gumbel(choice_key, weights.shape, weights.dtype)
                choice = jnp.argmax(weights + gumbel, axis=-1)
                probability = jnp.mean(jax.nn.softmax(weights, axis=-1), axis=(0, 1))
            flat = point.reshape(-1, 2)
            # No search ran: the draw nearest to the middle of all stands for the best.
            offset = (flat - jnp.median(flat, axis=0)) / (jnp.std(flat, axis=0) + 1e-12)
            found = {
                "point": point,
                "choice": choice,
                "choice_probability": probability,
                "best": flat[jnp.argmin(jnp.sum(offset**2, axis=-1))],
                "best_choice": jnp.argmax(probability),
                "acceptance": jnp.mean(facts["accept_prob"]),
                "diverging": jnp.mean(facts["diverging"]),
                **{name: values[name] for name in values if name.startswith(NOISE_PREFIX)},
            }
            return {name: jnp.asarray(value)[None] for name, value in found.items()}

        return solve, candidates

    def _flags(self, found: Columns) -> np.ndarray:
        """Flags of all trips, from what the method says about itself."""
        flags = np.zeros(len(self.seeds), np.int32)
        if "point" in found and self.settings.method in (Method.HMC, Method.NUTS):
            checked = convergence(_chains(found["point"]), ("aggressiveness", "detour"))
            flags |= checked.flags()
            found["r_hat"], found["ess_bulk"] = checked.r_hat, checked.ess_bulk
            found["ess_tail"] = checked.ess_tail
        elif "point" in found:
            # Independent draws: chains agree by construction.
            flat = found["point"].reshape(len(self.seeds), -1, 2)
            two_modes = has_two_modes(flat[..., 0]) | has_two_modes(flat[..., 1])
            flags[two_modes] |= FitFlag.TWO_MODES
        if "diverging" in found:
            flags[found["diverging"] > _MOST_DIVERGING] |= FitFlag.DIVERGING
        if "likeness" in found:
            flags[~(found["likeness"] >= _LEAST_LIKENESS)] |= FitFlag.NOT_GAUSSIAN
        if self.settings.method == Method.QUADRATURE:
            flags[~(found["n_effective_cells"] >= LEAST_CELLS)] |= FitFlag.COARSE_GRID
        return flags

    def _sample_again(self, found: Columns) -> None:
        """Sample flagged trips again, in place: finer and longer, then by NUTS."""
        work, _ = self._work()
        doubtful = np.flatnonzero(found["flags"] & _DOUBT)
        grid = work.grid
        finer = replace(
            work,
            grid=replace(grid, n_levels=grid.n_levels + 4, n_split=2 * grid.n_split),
            hmc=replace(work.hmc, n_draws=_LONGER * work.hmc.n_draws),
            second_pass=False,
            rerun=False,
        )
        if work.second_pass and doubtful.size:
            self._replace(found, doubtful, self._part(doubtful, finer, seed=1))
            doubtful = np.flatnonzero(found["flags"] & _DOUBT)
        if work.rerun and doubtful.size:
            again = self._part(doubtful, replace(finer, all_nuts=True), seed=2)
            self._replace(found, doubtful, again)

    def _part(self, chosen: np.ndarray, work: HmcFit, *, seed: int) -> Columns:
        """Fits of some of the trips, with other work and a seed so much higher."""
        settings = replace(self.settings, work=work, seed=self.settings.seed + seed)
        folder = None if self.checkpoint is None else self.checkpoint / f"again-{seed}"
        roads, _ = self.trips(chosen)
        part = replace(
            self,
            settings=settings,
            roads=roads,
            power_w=self.power_w[chosen],
            seeds=self.seeds[chosen],
            # Few trips: small chunks, so that every core has some; of one size, compiled once.
            chunk_size=min(self.chunk_size, _FEW),
            checkpoint=folder,
            checkpoint_key={
                **self.checkpoint_key,
                "settings": repr(settings),
                "part": digest(chosen),
            },
            progress=None,
        )
        return part._mapped(*part._solver())

    def _replace(self, found: Columns, chosen: np.ndarray, again: Columns) -> None:
        """Take over the new draws of those trips whose chains agree better than before."""
        n_draws = found["point"].shape[2]
        # Evenly spaced draws of chains that are longer; a shorter chain is repeated.
        kept = np.linspace(0, again["point"].shape[2] - 1, n_draws).astype(int)
        checked = convergence(_chains(again["point"]), ("aggressiveness", "detour"))
        better = checked.r_hat <= found["r_hat"][chosen]
        rows = chosen[better]
        found["point"][rows] = again["point"][better][:, :, kept]
        found["vehicle"][rows] = again["vehicle"][better][:, :, kept]
        found["vehicle_probability"][rows] = again["vehicle_probability"][better]
        for name in ("r_hat", "ess_bulk", "ess_tail"):
            found[name][rows] = getattr(checked, name)[better]
        found["acceptance"][rows] = again["acceptance"][better]
        remaining = found["flags"][rows] & ~(_DOUBT | FitFlag.TWO_MODES)
        found["flags"][rows] = remaining | checked.flags()[better]


def _is_narrow(likelihood: Any) -> bool:
    """Whether a likelihood, or a part of it, compares whole traces."""
    parts = (likelihood, *vars(likelihood).values())
    return any(isinstance(part, TraceLikelihood) for part in parts)


def _named(found: dict[str, Any], candidates: np.ndarray, n_vehicles: int) -> Columns:
    """Choices among candidates as positions in the pool."""
    columns = {name: np.array(value) for name, value in found.items()}
    for choice, vehicle in (("best_choice", "best_vehicle"), ("choice", "vehicle")):
        if choice in columns:
            columns[vehicle] = candidates[columns.pop(choice)].astype(np.int32)
    if "choice_probability" in columns:
        columns["vehicle_probability"] = _spread_out(
            columns.pop("choice_probability"), candidates, n_vehicles
        )
    return columns


def _spread_out(probability: np.ndarray, candidates: np.ndarray, n_vehicles: int) -> np.ndarray:
    """Probabilities of candidates as probabilities over the pool."""
    whole = np.zeros((len(probability), n_vehicles), np.float32)
    whole[:, candidates] = probability
    return whole


def _chains(point: np.ndarray) -> xr.Dataset:
    """Draws of many trips as a dataset that ArviZ reads."""
    dims = ("trip", "chain", "draw")
    return xr.Dataset(
        {"aggressiveness": (dims, point[..., 0]), "detour": (dims, point[..., 1])}
    ).transpose("chain", "draw", "trip")
