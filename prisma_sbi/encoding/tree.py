"""Fits as ArviZ reads them: a tree of datasets with a trip dimension."""

import importlib.metadata
import json
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
import xarray as xr

from prisma_sbi.diagnostics.convergence import FitFlag
from prisma_sbi.encoding.fitting import NOISE_PREFIX
from prisma_sbi.encoding.methods import EncodeSettings
from prisma_sbi.encoding.status import FitStatus
from prisma_sbi.models.trip_model import (
    CHOICES,
    LIKELIHOODS,
    LOWEST_AGGRESSIVENESS,
    TripModel,
)
from prisma_sbi.region.profiles import RoadProfiles
from prisma_sbi.region.record import Region

FORMAT_VERSION = 2
_LIBRARIES = ("prisma-sbi", "jax", "numpyro", "xarray")
_NAMES = ("aggressiveness", "detour", "vehicle")
_LONG = {
    "aggressiveness": "share of the acceleration ceiling that the driver uses",
    "detour": "driven length over the length of the shortest route",
    "vehicle": "position in the pool of the region",
}
_SHAPED = ("best", "best_vehicle", "point", "vehicle", "vehicle_probability", "flags")


def fit_tree(
    region: Region,
    traces: xr.Dataset,
    profiles: RoadProfiles,
    found: dict[str, np.ndarray],
    rows: np.ndarray,
    status: np.ndarray,
    model: TripModel,
    settings: EncodeSettings,
) -> xr.DataTree:
    """Lay out what was found for some rows over all trips."""
    n_trips = traces.sizes["trip"]
    trip = traces["trip"]

    def everywhere(values: np.ndarray) -> np.ndarray:
        """Values of the fitted trips among all trips; NaN, or -1 for whole numbers, elsewhere."""
        whole = np.issubdtype(values.dtype, np.integer)
        result = np.full((n_trips, *values.shape[1:]), -1 if whole else np.nan, values.dtype)
        result[rows] = values
        return result

    none = np.zeros((0, 2), np.float32)
    best, best_vehicle = found.get("best", none), found.get("best_vehicle", np.zeros(0, np.int32))
    point = found.get("point", best[:, None, None])
    vehicle = found.get("vehicle", best_vehicle[:, None, None])
    dims = ("chain", "draw", "trip")
    sampled = {
        name: (
            dims,
            np.moveaxis(everywhere(values), 0, -1),
            {"long_name": _LONG[name], "units": "1"},
        )
        for name, values in zip(_NAMES, (point[..., 0], point[..., 1], vehicle), strict=True)
    }
    noise = [name for name in found if name.startswith(NOISE_PREFIX)]
    sampled |= {name: (dims, np.moveaxis(everywhere(found[name]), 0, -1)) for name in noise}
    stats: dict[str, Any] = {
        "best_aggressiveness": ("trip", everywhere(best[:, 0])),
        "best_detour": ("trip", everywhere(best[:, 1])),
        "best_vehicle": ("trip", everywhere(best_vehicle)),
    }
    numbers = [name for name in found if name not in (*_SHAPED, *noise)]
    for name in numbers or ["loss"]:
        values = found.get(name, np.zeros(0, np.float32))
        stats[name] = ("trip", everywhere(np.asarray(values, np.float64)))
    if "vehicle_probability" in found:
        stats["vehicle_probability"] = (
            ("trip", "pool_vehicle"),
            everywhere(found["vehicle_probability"]),
        )
    stats["status"] = ("trip", status, _flag_attributes(FitStatus, "flag_values"))
    flags = np.zeros(n_trips, np.int32)
    flags[rows] = found.get("flags", np.zeros(0, np.int32))
    stats["flags"] = ("trip", flags, _flag_attributes(FitFlag, "flag_masks"))
    ends = ("start_lat", "start_lon", "end_lat", "end_lon")
    kept = [*ends, *(name for name in ("vehicle_id",) if name in traces)]
    chains = {"chain": np.arange(point.shape[1]), "draw": np.arange(point.shape[2])}
    tree = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(sampled, coords={**chains, "trip": trip}),
            "sample_stats": xr.Dataset(stats, coords={"trip": trip}),
            "observed_data": traces[["power_w"]].reset_coords(drop=True),
            "constant_data": traces[kept].assign(
                route_length_m=("trip", profiles.length_m, {"units": "m"}),
                route_status=("trip", profiles.status),
            ),
        }
    )
    tree.attrs = {
        "kind": "fit",
        "format_version": FORMAT_VERSION,
        "method": str(settings.method),
        "settings": repr(settings),
        "seed": settings.seed,
        "model": json.dumps(describe_model(model)),
        "parameter_ranges": json.dumps(
            {
                "aggressiveness": [
                    max(region.constants.aggressiveness_bounds[0], LOWEST_AGGRESSIVENESS),
                    region.constants.aggressiveness_bounds[1],
                ],
                "detour": list(region.constants.detour_bounds),
            }
        ),
        "region_fingerprint": region.fingerprint,
        "versions": json.dumps({name: importlib.metadata.version(name) for name in _LIBRARIES}),
    }
    return tree


def describe_model(model: TripModel) -> dict[str, Any]:
    """A model in plain values: names of its parts and their numbers."""
    return {
        "likelihood": _describe(model.likelihood, LIKELIHOODS),
        "choice": _describe(model.choice, CHOICES),
        "aggressiveness": _describe_law(model.prior.aggressiveness),
        "detour": _describe_law(model.prior.detour),
        "vehicle": "uniform" if model.prior.vehicle is None else "given",
    }


def _describe(part: Any, known: dict[str, type]) -> dict[str, Any]:
    """A part by its name, if it has one, and its fields."""
    names = [name for name, kind in known.items() if type(part) is kind]
    fields = {name: _plain(value) for name, value in vars(part).items()}
    return {"name": names[0] if names else type(part).__name__, **fields}


def _plain(value: Any) -> Any:
    """A field as JSON has it."""
    if isinstance(value, dist.Distribution):
        return _describe_law(value)
    if isinstance(value, jax.Array | np.ndarray):
        return np.asarray(value).tolist()
    return list(value) if isinstance(value, tuple) else value


def _describe_law(law: dist.Distribution) -> str:
    """A distribution in words."""
    numbers = [float(x) for x in jax.tree.leaves(law) if np.ndim(x) == 0]
    return f"{type(law).__name__}({', '.join(f'{number:g}' for number in numbers)})"


def _flag_attributes(kind: Any, numbers: str) -> dict[str, Any]:
    """Attributes by which the CF conventions explain a code."""
    return {
        numbers: [int(item) for item in kind],
        "flag_meanings": " ".join(item.name.lower() for item in kind),
    }
