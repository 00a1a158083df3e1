"""Encoder against an exhaustive grid over the whole pool: loss and time in one run.

    python benchmarks/encoder.py [RUN_FOLDER] [--trips 500]

RUN_FOLDER is the folder of a `prisma run`, whose region and training trips are used; without it
a simulated fleet in the embedded city. Both sides run the same compiled loss, in chunks, on all
cores; compile time is reported apart.
"""

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from prisma_sbi.inference import SearchSettings, coarse_grid, minimize_trips
from prisma_sbi.models.objective import SummaryObjective
from prisma_sbi.models.summary import summarize
from prisma_sbi.region import RouteStatus, demo_region, load_region, route_profiles
from prisma_sbi.region.representatives import representative_vehicles
from prisma_sbi.simulator.driver import Road, roads_from_profiles
from prisma_sbi.simulator.fleet import simulate_fleet
from prisma_sbi.simulator.vehicle import vehicles_from_pool
from prisma_sbi.telemetry import load_traces

LOWER, UPPER = np.array([0.02, 1.0]), np.array([1.0, 2.5])
ENDS = ("start_lat", "start_lon", "end_lat", "end_lon")


@partial(jax.jit, static_argnames="axes")
def exhaustive(objectives, grid, *, axes):
    """Lowest loss over grid x pool for each trip."""

    def one(objective):
        pool = jnp.arange(objective.pool.idle_power_w.shape[0])
        return jnp.min(jax.vmap(lambda point: objective.losses(point, pool))(grid))

    return jax.vmap(one, in_axes=(axes,))(objectives)


def chunks(n_trips, size):
    """Positions of trips in chunks of one size, the last one padded."""
    return [np.minimum(np.arange(s, s + size), n_trips - 1) for s in range(0, n_trips, size)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--trips", type=int, default=500)
    options = parser.parse_args()
    if options.run:
        region = load_region(options.run / "region")
        traces = load_traces(options.run / "train.zarr")
    else:
        region = demo_region()
        traces = simulate_fleet(region, options.trips + 50)
    profiles = route_profiles(region, *(traces[name].values for name in ENDS))
    rows = np.flatnonzero(profiles.status == RouteStatus.OK)[: options.trips]
    profiles, power_w = profiles.take(rows), traces["power_w"].values[rows]
    constants, n_trips = region.constants, len(rows)
    roads = roads_from_profiles(profiles)
    pool = vehicles_from_pool(region.vehicles, constants)

    def build(index):
        road = Road(roads.length_m[index], roads.speed_mps[index], roads.slope_rad[index])
        return SummaryObjective(
            road, summarize(jnp.asarray(power_w[index]), constants), pool, constants
        )

    axes = build(np.zeros(1, np.int64)).trip_axes()
    grid = coarse_grid(jnp.array([0.0, 1.0]), jnp.asarray(UPPER), (16, 12))
    search = partial(
        minimize_trips,
        build,
        in_axes=axes,
        lower=LOWER,
        upper=UPPER,
        representatives=representative_vehicles(region.vehicles, 32),
        n_choices=len(region.vehicles),
        settings=SearchSettings(),
    )
    size = 8

    def brute(index):
        return np.asarray(exhaustive(build(index), grid, axes=axes))

    started = time.perf_counter()
    brute(np.arange(size))
    search(16)
    compile_s = time.perf_counter() - started
    started = time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        best = np.concatenate(list(executor.map(brute, chunks(n_trips, size))))[:n_trips]
    brute_s = time.perf_counter() - started
    started = time.perf_counter()
    found = search(n_trips)
    search_s = time.perf_counter() - started
    ratio = np.asarray(found.loss) / best
    print(f"{n_trips} trips, {len(region.vehicles)} vehicles, compile time {compile_s:.1f} s")
    print(f"exhaustive 16 x 12 grid: {1e3 * brute_s / n_trips:.2f} ms a trip")
    print(f"search: {1e3 * search_s / n_trips:.2f} ms a trip, {n_trips / search_s:.0f} trips/s")
    print(f"time ratio: {brute_s / search_s:.1f}")
    print(
        "loss ratio: "
        + ", ".join(f"{q} %: {np.percentile(ratio, q):.3f}" for q in (5, 50, 90, 95, 99))
    )


if __name__ == "__main__":
    main()
