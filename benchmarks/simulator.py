"""Cost of a driver run, a trace and a derivative, per trip, in batches of two sizes.

    python benchmarks/simulator.py [--lanes 256 1024] [--repeats 20]

Compile time is reported apart. The yardstick is a bound: the same number of time steps with two
additions each, which is what XLA takes to step through time and do nothing else.
"""

import argparse
import os
import platform
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from prisma_sbi.region import Constants
from prisma_sbi.simulator import Road, Vehicle, drive, simulate_power

CONSTANTS = Constants()


def make_batch(n_trips):
    """Descriptors, vehicles and hilly roads with signals."""
    rng = np.random.default_rng(0)
    shape = (n_trips, CONSTANTS.n_route_points)
    speed = rng.choice([8.0, 13.0, 20.0, 28.0], (n_trips, shape[1] // 16)).repeat(16, axis=1)
    speed[rng.uniform(size=shape) < 0.02] = CONSTANTS.creep_speed_mps
    phase = rng.uniform(0, 6, (n_trips, 1)) + np.linspace(0, 12, shape[1])
    road = Road(
        jnp.asarray(rng.uniform(800, 6_000, n_trips), jnp.float32),
        jnp.asarray(speed, jnp.float32),
        jnp.asarray(0.04 * np.sin(phase), jnp.float32),
    )
    size = jnp.asarray(rng.uniform(0.8, 1.8, n_trips), jnp.float32)
    coefficients = size[:, None] * jnp.asarray([1_400.0, 0.42, 1.2, 110.0])
    point = rng.uniform([0.1, 1.0], [1.0, 2.5], (n_trips, 2))
    return jnp.asarray(point, jnp.float32), Vehicle(coefficients, 3_000.0 * size), road


def nothing(point, vehicle, road):
    """As many steps through time as a driver run has, with next to nothing in them."""
    del vehicle, road

    def step(state, _):
        return (state[0] + state[1], state[1] + point[1]), state[0]

    return jax.lax.scan(step, (point[0], point[1]), length=CONSTANTS.n_times)[1]


def motion(point, vehicle, road):
    del vehicle
    return drive(point[0], point[1], road, CONSTANTS)


def trace(point, vehicle, road):
    return simulate_power(point[0], point[1], vehicle, road, CONSTANTS)


def energy(point, vehicle, road):
    return jnp.sum(trace(point, vehicle, road))


KERNELS = {
    "steps alone (bound)": nothing,
    "driver run": motion,
    "power trace": trace,
    "energy": energy,
    "energy, forward derivative": jax.jacfwd(energy),
    "energy, reverse derivative": jax.jacrev(energy),
}


def measure(kernel, batch, repeats):
    """Seconds to compile, and the median and lowest seconds of a run."""
    started = time.perf_counter()
    compiled = jax.jit(jax.vmap(kernel)).lower(*batch).compile()
    compile_s = time.perf_counter() - started
    run = partial(compiled, *batch)
    jax.block_until_ready(run())
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        jax.block_until_ready(run())
        seconds.append(time.perf_counter() - started)
    return compile_s, np.median(seconds), np.min(seconds)


def main():
    parser = argparse.ArgumentParser(description="Cost of the simulator per trip.")
    parser.add_argument("--lanes", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    device = jax.devices()[0]
    print(
        f"jax {jax.__version__} on {device.platform}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, float32, {CONSTANTS.n_times} steps"
    )
    print(f"{'':28} {'lanes':>6} {'compile s':>10} {'us a trip, median':>18} {'lowest':>8}")
    for name, kernel in KERNELS.items():
        for lanes in options.lanes:
            compile_s, median_s, lowest_s = measure(kernel, make_batch(lanes), options.repeats)
            per_trip = [f"{1e6 * seconds / lanes:.2f}" for seconds in (median_s, lowest_s)]
            print(f"{name:28} {lanes:6} {compile_s:10.2f} {per_trip[0]:>18} {per_trip[1]:>8}")


if __name__ == "__main__":
    main()
