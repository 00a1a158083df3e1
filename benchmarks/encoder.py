"""Encoder against an exhaustive grid over the whole pool: loss and time in one run.

    python benchmarks/encoder.py [RUN_FOLDER] [--trips 500]

RUN_FOLDER is the folder of a `prisma run`, whose region and training trips are used; without it
a simulated fleet in the embedded city. Both sides run the same compiled loss, in chunks, on all
cores, in turns, and the faster of two rounds counts; compile time is reported apart.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from prisma_sbi.inference import SearchSettings, coarse_grid, map_trips, search
from prisma_sbi.models import SummaryObjective, summarize
from prisma_sbi.region import Region, RouteStatus, demo_region, load_region, route_profiles
from prisma_sbi.region.representatives import representative_vehicles
from prisma_sbi.simulator.driver import Road, roads_from_profiles
from prisma_sbi.simulator.fleet import simulate_fleet
from prisma_sbi.simulator.vehicle import vehicles_from_pool
from prisma_sbi.telemetry import load_traces

ENDS = ("start_lat", "start_lon", "end_lat", "end_lon")


class Trips(NamedTuple):
    """Trips that have a road: their traces as read, and what the loss takes."""

    region: Region
    traces: xr.Dataset
    roads: Road
    power_w: np.ndarray

    def some(self, rows: np.ndarray) -> tuple[Road, jax.Array]:
        """Roads and traces of some of them."""
        roads = self.roads
        road = Road(roads.length_m[rows], roads.speed_mps[rows], roads.slope_rad[rows])
        return road, jnp.asarray(self.power_w[rows])


def read_trips(run: Path | None, n_trips: int) -> Trips:
    """Region and trips of a run, or of a simulated fleet; those with a road, at most so many."""
    if run is not None:
        region, traces = load_region(run / "region"), load_traces(run / "train.zarr")
    else:
        region = demo_region()
        traces = simulate_fleet(region, n_trips + n_trips // 8 + 4)
    profiles = route_profiles(region, *(traces[name].values for name in ENDS))
    rows = np.flatnonzero(profiles.status == RouteStatus.OK)[:n_trips]
    roads = jax.tree.map(np.asarray, roads_from_profiles(profiles.take(rows)))
    traces = traces.isel(trip=rows)
    return Trips(region, traces, roads, traces["power_w"].values.astype(np.float32))


@eqx.filter_jit
def exhaustive(objectives, axes, grid):
    """Lowest loss over grid x pool for each trip."""

    def one(objective):
        pool = jnp.arange(objective.pool.idle_power_w.shape[0])
        return jnp.min(jax.vmap(lambda point: objective.losses(point, pool))(grid))

    return jax.vmap(one, in_axes=(axes,))(objectives)


@eqx.filter_jit
def searched(objectives, axes, lower, upper, representatives):
    """Loss where the search ends, for each trip."""

    def one(objective):
        n_vehicles = objective.pool.idle_power_w.shape[0]
        settings = SearchSettings()
        return search(objective, lower, upper, representatives, n_vehicles, settings).loss

    return jax.vmap(one, in_axes=(axes,))(objectives)


def timed(solve, n_trips: int, chunk_size: int) -> tuple[np.ndarray, float]:
    """Losses of some trips and the seconds that took."""
    started = time.perf_counter()
    loss = map_trips(solve, n_trips, chunk_size=chunk_size)["loss"]
    return loss, time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description="Encoder against an exhaustive grid.")
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--trips", type=int, default=500)
    options = parser.parse_args()
    trips = read_trips(options.run, options.trips)
    constants, n_trips = trips.region.constants, len(trips.power_w)
    pool = vehicles_from_pool(trips.region.vehicles, constants)
    lower, upper = jnp.array([0.02, 1.0]), jnp.array([1.0, 2.5])
    grid = coarse_grid(jnp.array([0.0, 1.0]), upper, (16, 12))
    representatives = jnp.asarray(representative_vehicles(trips.region.vehicles, 32))

    def objectives(rows) -> tuple[SummaryObjective, Any]:
        road, power_w = trips.some(rows)
        batch = SummaryObjective(road, summarize(power_w, constants), pool, constants)
        return batch, batch.trip_axes()

    def brute(rows):
        return {"loss": exhaustive(*objectives(rows), grid)}

    def fast(rows):
        return {"loss": searched(*objectives(rows), lower, upper, representatives)}

    compile_s = timed(brute, 8, 8)[1] + timed(fast, 16, 16)[1]
    # In turns, so that whatever else the machine does meets both.
    rounds = [(timed(brute, n_trips, 8), timed(fast, n_trips, 16)) for _ in range(2)]
    brute_s, search_s = (min(each[side][1] for each in rounds) for side in (0, 1))
    best, loss = (rounds[0][side][0] for side in (0, 1))
    ratio = loss / best
    print(f"{n_trips} trips, {len(trips.region.vehicles)} vehicles, compile time {compile_s:.1f} s")
    print(f"exhaustive 16 x 12 grid: {1e3 * brute_s / n_trips:.2f} ms a trip")
    print(f"search: {1e3 * search_s / n_trips:.2f} ms a trip, {n_trips / search_s:.0f} trips/s")
    print(f"time ratio: {brute_s / search_s:.1f}")
    print(
        "loss ratio: "
        + ", ".join(f"{q} %: {np.percentile(ratio, q):.3f}" for q in (5, 50, 90, 95, 99))
    )


if __name__ == "__main__":
    main()
