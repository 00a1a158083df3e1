"""One method under one likelihood, on a fleet whose truth is known: a cell of the study."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax.monitoring
import numpy as np
import xarray as xr

from prisma_sbi.diagnostics import crps
from prisma_sbi.encoding.methods import EncodeSettings, Method
from prisma_sbi.encoding.status import FitStatus
from prisma_sbi.models.trip_model import TripModel
from prisma_sbi.region.record import Region
from prisma_sbi.study.gain import information_gain

PARAMETERS = ("aggressiveness", "detour")
_COMPILING = "/jax/core/compile/"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A method under a likelihood, both by name."""

    likelihood: str
    method: str

    @property
    def name(self) -> str:
        """For people and folders."""
        return f"{self.likelihood}-{self.method}"

    @property
    def path(self) -> str:
        """Its group in the tree of the study."""
        return f"cells/{self.name}"


@runtime_checkable
class Encoder(Protocol):
    """What a study is about: :func:`~prisma_sbi.encoding.encode`, or your own in its place."""

    def __call__(
        self,
        region: Region,
        traces: xr.Dataset,
        *,
        model: TripModel,
        settings: EncodeSettings,
        checkpoint: Path | None,
        progress: Callable[[int, int], None],
    ) -> xr.DataTree:
        """Fit every trip, in order."""
        ...


def encode_cell(
    region: Region,
    fleet: xr.Dataset,
    cell: Cell,
    *,
    encoder: Encoder,
    settings: EncodeSettings,
    n_draws: int,
    checkpoint: Path | None,
    progress: Callable[[int, int], None],
) -> xr.Dataset:
    """Encode the fleet and put what was found beside the truth.

    Returns
    -------
    xarray.Dataset
        As :func:`compared` has it; attributes ``run_s`` and ``compile_s`` say how long it took,
        ``n_timed`` for how many trips: those of chunks that were not there yet.
    """
    relaxed = settings.method == Method.SVI
    model = TripModel.of(
        region, likelihood=cell.likelihood, choice="gumbel" if relaxed else "marginal"
    )
    n_chunks = 0 if checkpoint is None else len(list(checkpoint.glob("chunk-*.npz")))
    n_kept = n_chunks * Method(settings.method).chunk_size
    with _clock() as clock:
        fit = encoder(
            region, fleet, model=model, settings=settings, checkpoint=checkpoint, progress=progress
        )
    found = compared(model, fleet, fit, n_draws=n_draws)
    return found.assign_attrs(
        likelihood=cell.likelihood,
        method=cell.method,
        settings=repr(settings),
        run_s=clock.elapsed_s - clock.compile_s,
        compile_s=clock.compile_s,
        n_timed=max(0, fleet.sizes["trip"] - n_kept),
        versions=fit.attrs.get("versions", json.dumps({})),
    )


def compared(
    model: TripModel, fleet: xr.Dataset, fit: xr.DataTree, *, n_draws: int = 500
) -> xr.Dataset:
    """What a fit says of every trip, beside what is true.

    Parameters
    ----------
    model
        Gives the prior.
    fleet
        With the true ``aggressiveness``, ``detour`` and ``vehicle`` of every trip.
    fit
        Of the same trips in the same order.
    n_draws
        Draws kept a trip, evenly spaced over all chains.

    Returns
    -------
    xarray.Dataset
        Along ``trip``; NaN, or -1, for trips that were set aside:

        ========================= ==========================================================
        ``estimate``              (trip, parameter): posterior mean, or the best point
        ``vehicle``               (trip): the most probable one, or the best
        ``status``, ``flags``     (trip)
        ========================= ==========================================================

        and from methods with draws also:

        ========================= ==========================================================
        ``draws``                 (trip, draw, parameter)
        ``rank``                  (trip, parameter): draws below the truth
        ``sd``, ``contraction``   (trip, parameter)
        ``z_score``               (trip, parameter): (mean - truth) / sd
        ``crps``                  (trip, parameter)
        ``gain``                  (trip, descriptor), in nats
        ``vehicle_probability``   (trip, pool_vehicle)
        ========================= ==========================================================
    """
    stats = fit["sample_stats"].dataset
    status = stats["status"].values
    rows = np.flatnonzero(status <= FitStatus.POOR_FIT)
    truth = np.stack([fleet[name].values for name in PARAMETERS], axis=-1)[rows]
    best = np.stack([stats[f"best_{name}"].values for name in PARAMETERS], axis=-1)[rows]
    columns: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        "estimate": (("trip", "parameter"), best.astype(np.float64)),
        "vehicle": (("trip",), stats["best_vehicle"].values[rows].astype(np.int32)),
    }
    if "vehicle_probability" in stats and rows.size:
        draws = _draws(fit["posterior"].to_dataset().isel(trip=rows), n_draws)
        probability = stats["vehicle_probability"].values[rows]
        columns |= _beside(model, draws, probability, truth)
    n_trips = fleet.sizes["trip"]
    found = {name: (dims, _everywhere(v, rows, n_trips)) for name, (dims, v) in columns.items()}
    return xr.Dataset(
        found
        | {
            "status": (("trip",), status.astype(np.int8)),
            "flags": (("trip",), stats["flags"].values.astype(np.int32)),
        },
        coords={
            "trip": fleet["trip"].values,
            "parameter": list(PARAMETERS),
            **({"descriptor": [*PARAMETERS, "vehicle"]} if "gain" in found else {}),
        },
    )


def _beside(
    model: TripModel, draws: np.ndarray, probability: np.ndarray, truth: np.ndarray
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """What draws ``(trip, draw, 2)`` and probabilities of vehicles say about the truth."""
    each = ("trip", "parameter")
    known = information_gain(model, draws, probability, truth=truth)
    wide = np.moveaxis(draws.astype(np.float64), 1, -1)
    return {
        "estimate": (each, known["mean"].values),
        "vehicle": (("trip",), np.argmax(probability, axis=-1).astype(np.int32)),
        "draws": (("trip", "draw", "parameter"), draws),
        "rank": (each, np.sum(wide < truth[..., None], axis=-1).astype(np.int32)),
        **{name: (each, known[name].values) for name in ("sd", "contraction", "z_score")},
        "crps": (each, crps(wide, truth)),
        "gain": (("trip", "descriptor"), known["gain"].values),
        "vehicle_probability": (("trip", "pool_vehicle"), probability),
    }


def _draws(posterior: xr.Dataset, n_draws: int) -> np.ndarray:
    """Some of the draws ``(trip, draw, 2)``, evenly spaced."""
    columns = [posterior[name].transpose("trip", "chain", "draw").values for name in PARAMETERS]
    flat = np.stack([column.reshape(len(column), -1) for column in columns], axis=-1)
    n_found = flat.shape[1]
    kept = np.linspace(0, n_found - 1, min(n_draws, n_found)).astype(int)
    return flat[:, kept]


def _everywhere(values: np.ndarray, rows: np.ndarray, n_trips: int) -> np.ndarray:
    """Values of some trips among all trips; NaN, or -1 for whole numbers, elsewhere."""
    missing: Any = -1 if np.issubdtype(values.dtype, np.integer) else np.nan
    result = np.full((n_trips, *values.shape[1:]), missing, values.dtype)
    result[rows] = values
    return result


@dataclass
class _Clock:
    """Time of a block, and how much of it went into compilation."""

    elapsed_s: float = 0.0
    spans: list[tuple[float, float]] = field(default_factory=list)

    @property
    def compile_s(self) -> float:
        """Length of the union of all spans; what is compiled within another counts once."""
        total, until = 0.0, -np.inf
        for start, end in sorted(self.spans):
            total += max(0.0, end - max(start, until))
            until = max(until, end)
        return total


@contextmanager
def _clock() -> Iterator[_Clock]:
    """Run a block against the clock; JAX tells when it traces, lowers and compiles."""
    clock = _Clock()

    def note(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
        del kwargs
        if event.startswith(_COMPILING):
            clock.spans.append((start_time, end_time))

    jax.monitoring.register_event_time_span_listener(note)
    begin = time.perf_counter()
    try:
        yield clock
    finally:
        clock.elapsed_s = time.perf_counter() - begin
        jax.monitoring.unregister_event_time_span_listener(note)
