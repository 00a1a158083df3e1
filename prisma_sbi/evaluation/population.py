"""A population of traces, checked once, with the curves that several metrics share."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError, RegionMismatchError
from prisma_sbi.evaluation.autocorrelation import autocorrelation
from prisma_sbi.evaluation.features import trace_features
from prisma_sbi.evaluation.marginals import power_levels, trace_durations, trace_energies
from prisma_sbi.evaluation.spectrum import periodogram

MINIMUM_SAMPLES = 3
"""Shortest trace for which lag 1 is defined (lags end at ``time - 2``)."""

_PER_TRIP = ("autocorrelation", "features", "periodogram", "duration_s", "energy_j")

type Traces = xr.Dataset | xr.DataArray | np.ndarray
"""What every metric accepts: a dataset with ``power_w (trip, time)`` or the bare array."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """Traces of one population and what is computed from each of them alone.

    Attributes
    ----------
    power_w : (trip, time) float64
        Finite.
    scale_w
        Amplitude by which distances in power are divided; that of the *real* population
        for both sides of a comparison.
    time_step_s
        Time between samples.
    ends_km : (trip, 4) float64
        Start and end of each trip on a local plane, where the places are known.
    """

    power_w: np.ndarray
    scale_w: float
    time_step_s: float = 1.0
    ends_km: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.power_w)

    @cached_property
    def autocorrelation(self) -> np.ndarray:
        """Autocorrelation curves ``(trip, lag)``."""
        return autocorrelation(self.power_w)

    @cached_property
    def features(self) -> np.ndarray:
        """Features ``(trip, feature)`` for precision and recall."""
        return trace_features(self.power_w)

    @cached_property
    def periodogram(self) -> np.ndarray:
        """Spectral density ``(trip, frequency)`` in W^2/Hz."""
        return periodogram(self.power_w, time_step_s=self.time_step_s)

    @cached_property
    def duration_s(self) -> np.ndarray:
        """Time ``(trip,)`` until the last sample that is not zero."""
        return trace_durations(self.power_w, time_step_s=self.time_step_s)

    @cached_property
    def energy_j(self) -> np.ndarray:
        """Energy ``(trip,)`` within the horizon."""
        return trace_energies(self.power_w, time_step_s=self.time_step_s)

    @cached_property
    def levels_w(self) -> np.ndarray:
        """All samples until the end of each trip, sorted."""
        return power_levels(self.power_w)

    def prepare(self) -> None:
        """Compute what belongs to each trip, once for all the parts that are taken from it."""
        for name in _PER_TRIP:
            getattr(self, name)

    def take(self, trips: np.ndarray) -> "Population":
        """Select the trips at these positions; what was computed of each trip is kept."""
        part = Population(
            power_w=self.power_w[trips],
            scale_w=self.scale_w,
            time_step_s=self.time_step_s,
            ends_km=None if self.ends_km is None else self.ends_km[trips],
        )
        for name in _PER_TRIP:
            if name in self.__dict__:
                part.__dict__[name] = self.__dict__[name][trips]
        return part


def power_array(traces: Traces, *, name: str) -> np.ndarray:
    """Check power and return it as float64 ``(trip, time)``, from a dataset, data array or array.

    Parameters
    ----------
    traces
        Dataset with ``power_w``, or that variable, or an array ``(trip, time)``.
    name
        What to call the population in errors.

    Returns
    -------
    power_w : (trip, time) float64

    Raises
    ------
    InputDataError
        If there is no ``power_w``, the shape is not ``(trip, time)``, there is no trip or
        fewer than 3 samples, or a value is not finite (the trip is named).
    """
    variable = _power_variable(traces, name=name)
    labels: np.ndarray | None = None
    if isinstance(variable, xr.DataArray):
        if set(variable.dims) == {"trip", "time"}:
            variable = variable.transpose("trip", "time")
        labels = variable["trip"].to_numpy() if "trip" in variable.coords else None
        power_w = variable.to_numpy().astype(np.float64)
    else:
        power_w = np.asarray(variable, dtype=np.float64)
    if power_w.ndim != 2 or power_w.shape[0] < 1 or power_w.shape[1] < MINIMUM_SAMPLES:
        raise InputDataError(
            f"Expected {name} traces of shape (trip, time) with at least 1 trip and "
            f"{MINIMUM_SAMPLES} samples; got shape {power_w.shape}. Put a single trace in a "
            "batch with trace[None, :]."
        )
    bad = np.flatnonzero(~np.isfinite(power_w).all(axis=1))
    if bad.size:
        row = int(bad[0])
        sample = int(np.flatnonzero(~np.isfinite(power_w[row]))[0])
        trip = f"row {row}" if labels is None else f"trip {labels[row]!s} (row {row})"
        raise InputDataError(
            f"Expected finite power in the {name} traces; got {float(power_w[row, sample])!r} "
            f"in {trip} at sample {sample} ({bad.size} such trips). Set these trips aside first."
        )
    return power_w


def time_step_s(traces: Traces) -> float:
    """Time between samples by the coordinate ``time``; 1 s where there is none."""
    if isinstance(traces, np.ndarray) or "time" not in traces.coords:
        return 1.0
    times = traces["time"].to_numpy()
    return float(times[-1] - times[0]) / (len(times) - 1)


def require_comparable(real: Traces, synthetic: Traces) -> None:
    """Raise unless both sides cover the same time steps and belong to one region."""
    real_w, synthetic_w = (
        power_array(real, name="real"),
        power_array(synthetic, name="synthetic"),
    )
    if real_w.shape[1] != synthetic_w.shape[1]:
        raise InputDataError(
            f"Expected traces of equal length; got {real_w.shape[1]} samples in the real and "
            f"{synthetic_w.shape[1]} in the synthetic ones. Cut or resample one of them."
        )
    if isinstance(real, np.ndarray) or isinstance(synthetic, np.ndarray):
        return
    if "time" in real.coords and "time" in synthetic.coords:
        times = real["time"].to_numpy(), synthetic["time"].to_numpy()
        if not np.allclose(times[0] - times[0][0], times[1] - times[1][0]):
            raise InputDataError(
                "Expected the same time steps in both populations; got steps of "
                f"{float(times[0][1] - times[0][0])!r} s in the real and "
                f"{float(times[1][1] - times[1][0])!r} s in the synthetic one. "
                "Resample one of them."
            )
    regions = [side.attrs.get("region_fingerprint") or "" for side in (real, synthetic)]
    if all(regions) and regions[0] != regions[1]:
        raise RegionMismatchError(
            f"Expected real and synthetic traces of one region; got {regions[0]} and "
            f"{regions[1]}. Compare traces that were made with the same region."
        )


def amplitude_scale_w(power_w: np.ndarray) -> float:
    """Robust amplitude of a population in W: the range between two percentiles.

    Parameters
    ----------
    power_w : (trip, time)
        Power of the real population.

    Returns
    -------
    scale_w
        95th minus 5th percentile over all samples of all trips. Where that is 0 (nearly
        all samples equal) the standard deviation, and where that is 0 as well, 1.

    Notes
    -----
    Distances are reported as multiples of a floor that is divided by the same scale, so
    the scale cancels there. It matters only for the plain distance.
    """
    low, high = np.percentile(power_w, [5.0, 95.0])
    if high > low:
        return float(high - low)
    if power_w.max() > power_w.min():
        return float(power_w.std())
    return 1.0


def _power_variable(traces: Traces, *, name: str) -> xr.DataArray | np.ndarray:
    """Take the power variable of a dataset; anything else unchanged."""
    if not isinstance(traces, xr.Dataset):
        return traces
    if "power_w" not in traces:
        found = ", ".join(str(variable) for variable in traces.data_vars) or "no variable"
        raise InputDataError(
            f"Expected the variable power_w in the {name} traces; got {found}. "
            "Pass a dataset from the telemetry reader or the decoder."
        )
    return traces["power_w"]
