"""What the commands of `prisma study` write and read: folders of results, rows, trips."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi._files import replacing, write_zarr
from prisma_sbi.cli.console import wrote
from prisma_sbi.evaluation.plot_style import save_figures
from prisma_sbi.models import TripModel
from prisma_sbi.region import Region, RoadProfiles, demo_region, load_region
from prisma_sbi.region.profiles import RouteStatus
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.simulator import roads_from_profiles
from prisma_sbi.study import Simulations, simulate
from prisma_sbi.study.atlas import draw_routes
from prisma_sbi.telemetry import load_traces

ENDS = ("start_lat", "start_lon", "end_lat", "end_lon")


@dataclass(frozen=True)
class StudyFolder:
    """Where results go, or nowhere."""

    path: Path | None
    data: str

    @classmethod
    def fresh(cls, path: Path | None, data: str, *, force: bool) -> "StudyFolder":
        """The folder, unless it holds such a result that may not be replaced."""
        if path is not None and (path / data).exists() and not force:
            raise FileExistsError(
                f"Expected no {data} in {path}; got one. Choose another -o, or replace it with "
                "--force."
            )
        return cls(path, data)

    def keep(self, content: xr.Dataset) -> None:
        """Write the data."""
        if self.path is not None:
            target = self.path / self.data
            with replacing(target) as partial:
                write_zarr(content, partial)
            wrote(target)

    def table(self, table: pd.DataFrame, name: str) -> None:
        """Write a table."""
        if self.path is not None:
            with replacing(self.path / name) as partial:
                table.to_csv(partial, index=False)
            wrote(self.path / name)

    def draw(self, make: Callable[[], Mapping[str, Any]]) -> None:
        """Make figures and write them; without a folder they are not even made."""
        if self.path is not None:
            for path in save_figures(dict(make()), self.path):
                wrote(path)


@dataclass(frozen=True, kw_only=True, eq=False)
class StudyTrips:
    """Trips to profile: simulated ones with their truth, or recorded ones.

    Attributes
    ----------
    simulations
        Data and roads; its truth means nothing if ``truth`` is None.
    profiles
        One road a trip.
    names : (trip,)
    truth : (trip, 2)
        Aggressiveness and detour.
    """

    simulations: Simulations
    profiles: RoadProfiles
    names: list[str]
    truth: np.ndarray | None


def study_region(path: Path | None, traces: Path | None = None) -> Region:
    """The region of a folder, or the demo city, which recorded traces are not from."""
    if traces is not None and path is None:
        raise ValueError("Expected --region with recorded traces; got none. Name their region.")
    return demo_region() if path is None else load_region(path)


def study_trips(region: Region, traces: Path | None, n_trips: int, seed: int) -> StudyTrips:
    """Recorded trips, or simulated ones where no traces are given."""
    if traces is None:
        return simulated_trips(region, n_trips, seed)
    return recorded_trips(region, traces, n_trips)


def simulated_trips(region: Region, n_trips: int, seed: int) -> StudyTrips:
    """Trips drawn from the prior, on random routes."""
    profiles = draw_routes(region, n_trips, seed=seed)
    drawn = simulate(TripModel.of(region, likelihood="trace"), profiles, n_trips, seed=seed)
    names = [f"simulated {row}" for row in range(n_trips)]
    return StudyTrips(simulations=drawn, profiles=profiles, names=names, truth=drawn.point)


def recorded_trips(
    region: Region, path: Path, n_trips: int, *, name: str | None = None
) -> StudyTrips:
    """The first trips of a file that can be routed and have power at every second, or one."""
    traces = load_traces(path)
    n_times = region.constants.n_times
    if traces.sizes["time"] != n_times:
        raise InputDataError(
            f"Expected traces of {n_times} samples, as the region has it; got "
            f"{traces.sizes['time']}. Import again with the horizon of the region."
        )
    if name is not None:
        chosen = np.flatnonzero(traces["trip"].values == name)
        if not chosen.size:
            raise InputDataError(
                f"Expected a trip of {path}, such as {str(traces['trip'].values[0])!r}; got "
                f"{name!r}. Names are week/vehicle/trip in recordings of VED."
            )
        traces = traces.isel(trip=chosen)
    # Some are left out, so a few more are looked at than wanted.
    some = traces.isel(trip=slice(0, 4 * n_trips + 16))
    profiles = route_profiles(region, *(some[name].values for name in ENDS))
    power_w = some["power_w"].values.astype(np.float32)
    usable = (profiles.status == RouteStatus.OK) & np.all(np.isfinite(power_w), axis=1)
    rows = np.flatnonzero(usable & np.any(power_w != 0.0, axis=1))[:n_trips]
    if not rows.size:
        raise InputDataError(
            f"Expected a trip that can be routed among the first {some.sizes['trip']} of {path}; "
            "got none. Use the region that the traces were recorded in."
        )
    kept = profiles.take(rows)
    simulations = Simulations(
        model=TripModel.of(region, likelihood="trace"),
        roads=roads_from_profiles(kept),
        road=np.arange(rows.size),
        point=np.full((rows.size, 2), np.nan, np.float32),
        vehicle=np.zeros(rows.size, int),
        data=power_w[rows],
    )
    names = [str(name) for name in some["trip"].values[rows]]
    return StudyTrips(simulations=simulations, profiles=kept, names=names, truth=None)


def interval_row(one: xr.Dataset, draws: np.ndarray, level: float) -> dict[str, Any]:
    """Profile interval of one parameter of one trip beside that of the posterior."""
    tail = 0.5 * (1.0 - level)
    low, high = np.quantile(draws, [tail, 1.0 - tail])
    return {
        "trip": str(one["trip"].item()),
        "parameter": str(one["parameter"].item()),
        "best": float(one["best"].item()),
        "low": float(one["low"].item()),
        "high": float(one["high"].item()),
        "pieces": int(one["n_pieces"].item()),
        "posterior_low": float(low),
        "posterior_high": float(high),
    }


def local_table(local: xr.Dataset, profiles: RoadProfiles) -> pd.DataFrame:
    """Bounds of every route, directions known better than before, and decades of eigenvalues."""
    value = local["eigenvalue"].values
    columns = {"length_m": profiles.length_m.astype(float)}
    for name in ("aggressiveness", "detour"):
        columns[f"{name}_bound"] = local["bound"].sel(parameter=name).values
        columns[f"{name}_bound_alone"] = local["bound_alone"].sel(parameter=name).values
    columns["n_known"] = (value > 1.0).sum(axis=1)
    columns["decades"] = np.log10(value[:, 0] / np.maximum(value[:, -1], 1e-300))
    return pd.DataFrame(columns).rename_axis("route")


def atlas_table(atlas: xr.Dataset) -> pd.DataFrame:
    """Facts and gains of every route."""
    columns = {
        name: atlas[name].values
        for name in (*ENDS, "length_m", "n_stops", "height_range_m", "speed_limit_mps")
    }
    for name in atlas["descriptor"].values:
        columns[f"gain_{name}"] = atlas["gain"].sel(descriptor=name).values
    for name in atlas["parameter"].values:
        columns[f"posterior_sd_{name}"] = atlas["posterior_sd"].sel(parameter=name).values
    return pd.DataFrame(columns).rename_axis("route").reset_index()


def plain_numbers(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row as JSON can have it: Python's own numbers, null for what is not finite."""
    plain = {str(key): item.item() if hasattr(item, "item") else item for key, item in row.items()}
    return {
        key: None if isinstance(item, float) and not np.isfinite(item) else item
        for key, item in plain.items()
    }
