"""Time and verdict of simulation-based calibration, beside a tool that fits one trip at a time.

python benchmarks/calibration.py [REGION] --simulations 1000 --methods grid hmc

Without a folder of a region, on the demo city. Seconds of CPU divided by the number of cores are
what a run takes on an idle machine; the wall clock stands beside them. Compilation is apart: a
first run over one chunk pays for it.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

from prisma_sbi.models import TraceLikelihood, TripModel
from prisma_sbi.region import demo_region, load_region
from prisma_sbi.study import calibrate, calibration_table, draw_routes, vehicle_test

SEQUENTIAL_S = 2.0
"""Of a simulation by the usual tool: one compiled fit after the other."""
N_FIRST = 16


def timed(region, model, profiles, method, n_simulations, seed):
    """A calibration, its seconds on the wall and of CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = calibrate(
        region, profiles, model=model, n_simulations=n_simulations, sampler=method, seed=seed
    )
    return found, time.perf_counter() - wall, time.process_time() - cpu


def main():
    parser = argparse.ArgumentParser(description="Time and verdict of calibration.")
    parser.add_argument("region", nargs="?", type=Path)
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--methods", nargs="+", default=["grid", "hmc"])
    parser.add_argument("--likelihood", default="wide", help="wide, trace, summary or texture")
    parser.add_argument("--route", type=int, default=0, help="which of the random routes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    region = demo_region() if options.region is None else load_region(options.region)
    law = options.likelihood
    law = TraceLikelihood(floor_w=3_000.0, share=0.5) if law == "wide" else law
    model = TripModel.of(region, likelihood=law)
    profiles = draw_routes(region, options.route + 1, seed=0).take(np.asarray([options.route]))
    n_cores = os.cpu_count() or 1
    print(
        f"{region.name}: {len(region.vehicles)} vehicles, a route of {profiles.length_m[0]:.0f} m, "
        f"{options.likelihood} likelihood, {n_cores} cores, load {os.getloadavg()[0]:.1f}"
    )
    for method in options.methods:
        *_, compile_s = timed(region, model, profiles, method, N_FIRST, 1)
        for seed in options.seeds:
            n = options.simulations
            found, wall_s, cpu_s = timed(region, model, profiles, method, n, seed)
            idle_s = cpu_s / n_cores
            print(
                f"\n{method}, seed {seed}: {n} simulations in {wall_s:.0f} s on the wall, "
                f"{cpu_s:.0f} s of CPU, {idle_s:.0f} s on idle cores; first chunk with compilation "
                f"{compile_s:.0f} s of CPU; {SEQUENTIAL_S * n / idle_s:.0f} times as fast as "
                f"{SEQUENTIAL_S:g} s a simulation"
            )
            print(calibration_table(found).round(3).to_string())
            print({name: round(value, 3) for name, value in vehicle_test(found).items()})


if __name__ == "__main__":
    main()
