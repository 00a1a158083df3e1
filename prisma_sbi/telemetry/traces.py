"""The traces dataset: its variables, units and attributes."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError

KIND = "traces"
FORMAT_VERSION = 1

_ATTRIBUTES: dict[str, dict[str, str]] = {
    "power_w": {"units": "W", "long_name": "power from tank and battery"},
    "start_lat": {"units": "degree", "long_name": "latitude of the start"},
    "start_lon": {"units": "degree", "long_name": "longitude of the start"},
    "end_lat": {"units": "degree", "long_name": "latitude of the end within the horizon"},
    "end_lon": {"units": "degree", "long_name": "longitude of the end within the horizon"},
    "duration_s": {"units": "s", "long_name": "duration within the horizon"},
    "distance_m": {"units": "m", "long_name": "distance driven within the horizon"},
    "start_speed_mps": {"units": "m/s", "long_name": "speed at the first sample"},
    "end_speed_mps": {"units": "m/s", "long_name": "speed at the last sample in the horizon"},
    "vehicle_id": {"long_name": "vehicle"},
    "vehicle_type": {"long_name": "ICE, HEV, PHEV, EV or unknown"},
    "power_source": {"long_name": "channel that the power is derived from"},
}


@dataclass(frozen=True, kw_only=True, eq=False)
class TripTable:
    """Arrays with one entry per trip; the names are those of the dataset."""

    trip: np.ndarray
    vehicle_id: np.ndarray
    vehicle_type: np.ndarray
    power_source: np.ndarray
    power_w: np.ndarray
    start_lat: np.ndarray
    start_lon: np.ndarray
    end_lat: np.ndarray
    end_lon: np.ndarray
    duration_s: np.ndarray
    distance_m: np.ndarray
    start_speed_mps: np.ndarray
    end_speed_mps: np.ndarray

    def select(self, chosen: np.ndarray) -> "TripTable":
        """The trips of a mask or of indices."""
        return TripTable(**{f.name: getattr(self, f.name)[chosen] for f in fields(self)})


def build_traces(
    tables: Sequence[TripTable],
    *,
    n_times: int,
    time_step_s: float,
    region_fingerprint: str = "",
) -> xr.Dataset:
    """Put tables of trips together into the traces dataset."""
    variables: dict[str, tuple] = {}
    for name, attributes in _ATTRIBUTES.items():
        is_power = name == "power_w"
        empty = np.zeros((0, n_times), np.float32) if is_power else np.zeros(0)
        if "units" not in attributes:
            empty = np.zeros(0, dtype="<U1")
        values = np.concatenate([empty, *(getattr(table, name) for table in tables)])
        variables[name] = (("trip", "time") if is_power else ("trip",), values, attributes)
    trip = np.concatenate([np.zeros(0, dtype="<U1"), *(table.trip for table in tables)])
    time_s = np.arange(n_times) * float(time_step_s)
    return xr.Dataset(
        variables,
        coords={"trip": ("trip", trip), "time": ("time", time_s, {"units": "s"})},
        attrs={
            "kind": KIND,
            "format_version": FORMAT_VERSION,
            "horizon_s": float(n_times * time_step_s),
            "time_step_s": float(time_step_s),
            "region_fingerprint": region_fingerprint,
        },
    )


def require_traces(dataset: xr.Dataset, *, what: str = "the traces") -> None:
    """Check that a dataset is one of traces, of a version that this package reads.

    Parameters
    ----------
    dataset
        Anything that xarray opened.
    what
        How the message calls it, for instance the path.

    Raises
    ------
    InputDataError
        If the kind, the version or a variable is not as expected.
    """
    kind, version = dataset.attrs.get("kind"), dataset.attrs.get("format_version")
    if kind != KIND:
        raise InputDataError(
            f"Expected {what} to hold kind={KIND!r}; got {kind!r}. "
            "Pass what telemetry import or decode wrote."
        )
    if version != FORMAT_VERSION:
        raise InputDataError(
            f"Expected {what} in format version {FORMAT_VERSION}; got {version!r}. "
            "Import again with this version of prisma_sbi."
        )
    if "power_w" not in dataset or set(dataset["power_w"].dims) != {"trip", "time"}:
        raise InputDataError(
            f"Expected {what} to hold power_w over (trip, time); got {sorted(map(str, dataset))}. "
            "Import again."
        )
