"""Every metric of a synthetic population that needs traces alone, in one call."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation.classifier import classifier_test
from prisma_sbi.evaluation.copying import copying
from prisma_sbi.evaluation.density_coverage import density_coverage
from prisma_sbi.evaluation.distances import ALL_DISTANCES
from prisma_sbi.evaluation.floor import N_SPLITS, Floors, population_floors
from prisma_sbi.evaluation.mmd import mmd_test
from prisma_sbi.evaluation.population import (
    Population,
    Traces,
    amplitude_scale_w,
    power_array,
    require_comparable,
    time_step_s,
)
from prisma_sbi.evaluation.precision_recall import precision_recall, standardize_features
from prisma_sbi.evaluation.registry import METRICS, Metric
from prisma_sbi.evaluation.score import require_floors_of
from prisma_sbi.evaluation.trips import local_plane_km
from prisma_sbi.evaluation.usefulness import TASKS, Task, transfer_ratio

__all__ = ["METRICS", "Measured", "Metric", "measure_all", "measure_each"]

MINIMUM_TRIPS = 12
"""Least number of traces on either side; halves of the real ones need neighbors too."""

ENDS = ("start_lat", "start_lon", "end_lat", "end_lon")
Progress = Callable[[int, int], None]
"""Told (steps done, steps in all)."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """All metrics of one synthetic population.

    Attributes
    ----------
    values
        Key of a metric -> its value, for every key of
        :data:`~prisma_sbi.evaluation.METRICS`, in that order. NaN where a metric is not defined
        for these traces, infinite where a distance is not 0 and its floor is.
    floors
        What random halves of the real traces reach; serves other synthetic populations too.
    n_real, n_synthetic, n_samples
        Traces on either side, and samples of a trace.
    """

    values: Mapping[str, float]
    floors: Floors
    n_real: int
    n_synthetic: int
    n_samples: int

    @property
    def sd(self) -> dict[str, float]:
        """Standard deviation over the splits of what random halves of the real traces reach.

        By key of a metric, where it has a floor; for a multiple of the floor in units of it.
        """
        found = {}
        for key, floor in self.floors.by_distance.items():
            found[key] = floor.sd
            if f"{key}_x_floor" in METRICS:
                found[f"{key}_x_floor"] = floor.multiple(floor.sd)
        return {key: found[key] for key in METRICS if key in found}

    def to_dict(self) -> dict[str, Any]:
        """Values, floors and counts for JSON; NaN and infinity become ``None``."""
        return {
            "values": {key: _plain(value) for key, value in self.values.items()},
            "floors": {
                key: {"mean": _plain(floor.mean), "sd": _plain(floor.sd)}
                for key, floor in self.floors.by_distance.items()
            },
            "sd": {key: _plain(value) for key, value in self.sd.items()},
            "counts": {
                "real": self.n_real,
                "synthetic": self.n_synthetic,
                "samples": self.n_samples,
                "splits": self.floors.n_splits,
            },
        }


def measure_all(
    real: Traces,
    synthetic: Traces,
    *,
    seed: int = 0,
    floors: Floors | None = None,
    n_splits: int = N_SPLITS,
    progress: Progress | None = None,
) -> Measured:
    """Compute every metric of one synthetic population.

    Parameters
    ----------
    real
        Real hold-out, never used for fitting: dataset with ``power_w (trip, time)`` or array, at
        least 12 traces.
    synthetic
        The same for the synthetic population; equal number of samples per trace.
    seed
        Of the splits behind the floors, and of all that is drawn.
    floors
        From an earlier result on the same real traces, to save that work.
    n_splits
        Random halvings of the real traces behind the floors.
    progress
        Told (steps done, steps in all).

    Returns
    -------
    measured

    Raises
    ------
    InputDataError
        If a trace is not finite (the trip is named), lengths or time steps differ, or a
        population has fewer than 12 traces.
    RegionMismatchError
        If both datasets carry a region fingerprint and the two differ.
    ValueError
        If the floors were computed from other real traces.

    See Also
    --------
    measure_each : several synthetic populations against one real population.

    Notes
    -----
    Only ``start_end`` needs more than power: the places ``start_lat``, ``start_lon``, ``end_lat``
    and ``end_lon`` of either dataset. Trips that are listed in another order have the same
    metrics; the floors, and with them the multiples, depend on the order of the real ones.

    Examples
    --------
    >>> import numpy as np
    >>> traces = np.random.default_rng(0).normal(size=(40, 50))
    >>> measure_all(traces, traces, n_splits=2).values["fid"]
    0.0
    """
    measured = measure_each(
        real, {"": synthetic}, seed=seed, floors=floors, n_splits=n_splits, progress=progress
    )
    return measured[""]


def measure_each(
    real: Traces,
    synthetic: Mapping[str, Traces],
    *,
    seed: int = 0,
    floors: Floors | None = None,
    n_splits: int = N_SPLITS,
    progress: Progress | None = None,
) -> dict[str, Measured]:
    """Compute every metric of several synthetic populations, the work on the real side once.

    Parameters
    ----------
    real
        Real hold-out.
    synthetic
        Name of a population -> its traces.
    seed, floors, n_splits, progress
        As in :func:`measure_all`.

    Returns
    -------
    measured
        Name of a population -> its metrics.

    Raises
    ------
    InputDataError, RegionMismatchError, ValueError
        As :func:`measure_all`.
    """
    if not synthetic:
        raise ValueError("Expected at least one synthetic population; got none. Pass one.")
    for traces in synthetic.values():
        require_comparable(real, traces)
    center_lat = _center_lat(real)
    real_side = _side(real, name="real", real=None, center_lat=center_lat)
    others = {
        name: _side(traces, name=name or "synthetic", real=real_side, center_lat=center_lat)
        for name, traces in synthetic.items()
    }
    real_side.prepare()
    n_steps = (0 if floors else n_splits) + len(others)

    def tell(done: int) -> None:
        if progress is not None:
            progress(done, n_steps)

    if floors is None:
        floors = population_floors(
            real_side, seed=seed, n_splits=n_splits, measure=_between, progress=tell
        )
    _require_all_floors(real_side, floors)
    tasks = _tasks(real_side)
    found = {}
    for number, (name, other) in enumerate(others.items(), start=1):
        values = _between(real_side, other) | _of_two_laws(real_side, other, seed)
        for task, made in _tasks(other).items():
            values[f"tstr_{task}"] = transfer_ratio(tasks[task], made, seed=seed)
        for distance in ALL_DISTANCES:
            multiple = floors.by_distance[distance].multiple(values[distance])
            values[f"{distance}_x_floor"] = multiple
        found[name] = Measured(
            values={key: values[key] for key in METRICS},
            floors=floors,
            n_real=len(real_side),
            n_synthetic=len(other),
            n_samples=real_side.power_w.shape[1],
        )
        tell(n_steps - len(others) + number)
    return found


def _between(real: Population, synthetic: Population) -> dict[str, float]:
    """Metrics that random halves of the real traces have as well."""
    distances = {name: distance(real, synthetic) for name, distance in ALL_DISTANCES.items()}
    raw = precision_recall(real.features, synthetic.features)
    features = standardize_features(real.features, synthetic.features)
    standardized, dense = precision_recall(*features), density_coverage(*features)
    near = copying(*features)
    return distances | {
        "precision_raw": raw.precision,
        "recall_raw": raw.recall,
        "precision_standardized": standardized.precision,
        "recall_standardized": standardized.recall,
        "density": dense.density,
        "coverage": dense.coverage,
        "nearest_ratio": near.nearest_ratio,
        "copied": near.copied,
    }


def _of_two_laws(real: Population, synthetic: Population, seed: int) -> dict[str, float]:
    """Two-sample tests."""
    kernel = mmd_test(real.features, synthetic.features, seed=seed)
    classifier = classifier_test(real.features, synthetic.features, seed=seed)
    return {
        "mmd2": kernel.mmd2,
        "mmd_p_value": kernel.p_value,
        "classifier_auc": classifier.auc,
        "classifier_accuracy": classifier.accuracy,
        "classifier_p_value": classifier.p_value,
    }


def _tasks(side: Population) -> dict[str, Task]:
    """Regressions on the traces of one side, in units of the real amplitude."""
    return {name: make(side.power_w, scale_w=side.scale_w) for name, make in TASKS.items()}


def _require_all_floors(real: Population, floors: Floors) -> None:
    """Raise unless the floors are those of this population and of every distance."""
    require_floors_of(real, floors)
    if not set(ALL_DISTANCES) <= set(floors.by_distance):
        raise ValueError(
            f"Expected floors of every distance; got those of {', '.join(floors.by_distance)}. "
            "Pass the floors of an earlier measure_all on the same real traces."
        )


def _side(traces: Traces, *, name: str, real: Population | None, center_lat: float) -> Population:
    """Check a population; distances are in units of the real amplitude."""
    power_w = power_array(traces, name=name)
    if len(power_w) < MINIMUM_TRIPS:
        raise InputDataError(
            f"Expected at least {MINIMUM_TRIPS} {name} traces for all metrics; got "
            f"{len(power_w)}. Add traces, or call single metrics."
        )
    return Population(
        power_w=power_w,
        scale_w=amplitude_scale_w(power_w) if real is None else real.scale_w,
        time_step_s=time_step_s(traces),
        ends_km=_ends_km(traces, center_lat),
    )


def _ends_km(traces: Traces, center_lat: float) -> np.ndarray | None:
    """Places ``(trip, 4)`` of a dataset that has all of them."""
    if not isinstance(traces, xr.Dataset) or not all(name in traces for name in ENDS):
        return None
    ends = [traces[name].to_numpy().astype(np.float64) for name in ENDS]
    return local_plane_km(*ends, center_lat=center_lat)


def _center_lat(traces: Traces) -> float:
    """Mean latitude of the places, where the plane is true to scale."""
    if not isinstance(traces, xr.Dataset) or not all(name in traces for name in ENDS):
        return 0.0
    latitudes = np.concatenate([traces[name].to_numpy() for name in ("start_lat", "end_lat")])
    known = latitudes[np.isfinite(latitudes)]
    return float(known.mean()) if known.size else 0.0


def _plain(value: float) -> float | None:
    """Number that JSON knows."""
    return float(value) if math.isfinite(value) else None
