"""Scores of a run that need more than the traces: trips on the roads, and pairs of columns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from prisma_sbi.encoding import descriptor_table, load_fit
from prisma_sbi.evaluation import (
    TripFacts,
    local_plane_km,
    trip_floors,
    trip_scores,
    workload_error,
)
from prisma_sbi.pipeline.config import EvaluateConfig
from prisma_sbi.privacy import load_release
from prisma_sbi.region import Region, RouteStatus, route_profiles

_ENDS = ("start_lat", "start_lon", "end_lat", "end_lon")
_MINIMUM_TRIPS = 8


def trip_facts(region: Region, traces: xr.Dataset) -> TripFacts:
    """Facts of recorded or decoded traces, in the same way for both.

    Parameters
    ----------
    region
        Its roads give the length of the shortest route from start to end.
    traces
        With ``power_w`` and the two ends per trip. Trips without a route are left out.

    Returns
    -------
    facts
    """
    ends = [traces[name].values.astype(np.float64) for name in _ENDS]
    routes = route_profiles(region, *ends)
    routed = routes.status != RouteStatus.UNREACHABLE
    length_m = routes.length_m.astype(np.float64)
    routed &= np.isfinite(length_m) & np.all(np.isfinite(ends), axis=0)
    power_w = traces["power_w"].values.astype(np.float64)
    box = region.bounds
    return TripFacts(
        length_m=length_m[routed],
        energy_j=power_w[routed].sum(axis=1) * float(region.constants.time_step_s),
        ends_km=local_plane_km(
            *(end[routed] for end in ends), center_lat=(box.south_deg + box.north_deg) / 2
        ),
    )


def trip_metrics(
    region: Region,
    real: xr.Dataset,
    synthetic: Mapping[str, xr.Dataset],
    config: EvaluateConfig,
) -> dict[str, Any]:
    """Distances of every mode by length, energy and ends of the trips, and their floors.

    Empty where fewer than 8 trips are held out; a number that is not finite becomes ``None``.
    """
    if real.sizes["trip"] < _MINIMUM_TRIPS:
        return {}
    facts = trip_facts(region, real)
    floors = trip_floors(facts, seed=config.seed, n_splits=config.n_splits)
    modes = {}
    for mode, traces in synthetic.items():
        scores = trip_scores(facts, trip_facts(region, traces), floors)
        modes[mode] = {
            name: value if math.isfinite(value) else None for name, value in scores.items()
        }
    return {"modes": modes, "floors": {name: asdict(floor) for name, floor in floors.items()}}


def workload_metrics(region: Region, folder: Path, modes: Sequence[str]) -> dict[str, Any]:
    """What each mechanism of a run did to the pairs of columns; from the private rows."""
    private = descriptor_table(region, load_fit(folder / "fit.zarr"))
    real: dict[str, np.ndarray] = {}
    found = {}
    for mode in modes:
        release = load_release(folder / f"release-{mode}", region)
        if release.codes is None:
            continue
        layout, name = release.layout, str(release.settings.table)
        if name not in real:
            real[name] = layout.discretize(private)
        error = workload_error(real[name], release.codes, layout.shape, names=layout.names)
        found[mode] = error.to_dict()
    return found
