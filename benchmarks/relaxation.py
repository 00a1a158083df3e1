"""Bias of a relaxed vehicle against summing it out, over temperature.

    python benchmarks/relaxation.py [RUN_FOLDER] [--trips 40] [--nuts-trips 4] [--minutes 6]

RUN_FOLDER is the folder of a `prisma run`, whose region and training trips are used; without it
a simulated fleet in the embedded city. Two tables in markdown: the relaxed posterior itself, its
noise integrated out by quadrature over many draws of it; and what NumPyro's NUTS makes of it with
``GumbelVehicle``. Both are compared with quadrature over the pool, which is exact. Past the time
limit NUTS begins no further trip, and the table says how many there were.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from encoder import Trips, read_trips

from prisma_sbi.diagnostics import convergence
from prisma_sbi.inference import Box, GridSettings, SearchSettings, integrate, map_trips, search
from prisma_sbi.inference.nuts import NutsSettings, numpyro_nuts
from prisma_sbi.models import GumbelVehicle, TripData, TripModel, TripPosterior
from prisma_sbi.region.representatives import representative_vehicles
from prisma_sbi.simulator.driver import Road

NAMES = ("aggressiveness", "detour")
BOX = Box(jnp.array([0.02, 1.0]), jnp.array([1.0, 2.5]))
TEMPERATURES = (1.0, 0.5, 0.3, 0.1)
STRAIGHT_THROUGH = 0.5
SETTINGS = NutsSettings(n_chains=2, n_warmup=300, n_draws=300)


class Posterior(NamedTuple):
    """Means, standard deviations and vehicle probabilities of trips."""

    mean: np.ndarray
    sd: np.ndarray
    probability: np.ndarray


@eqx.filter_jit
def best_points(model: TripModel, road: Road, power_w, representatives):
    """Where the global search ends."""
    n_vehicles = model.pool.idle_power_w.shape[0]

    def one(trip):
        posterior = TripPosterior(model, trip)
        settings = SearchSettings()
        return search(posterior, BOX.lower, BOX.upper, representatives, n_vehicles, settings).point

    observed = model.likelihood.observe(power_w, model.constants)
    return {"point": jax.vmap(one)(TripData(road, observed))}


@eqx.filter_jit
def integrated(model: TripModel, road: Road, power_w, start):
    """Moments and probabilities of the members of the pool, by quadrature."""

    def one(now):
        trip, start = now
        grid = integrate(TripPosterior(model, trip), BOX, start, GridSettings())
        mean, covariance = grid.moments()
        return {
            "mean": mean,
            "sd": jnp.sqrt(jnp.diag(covariance)),
            "probability": grid.choice_probability,
        }

    observed = model.likelihood.observe(power_w, model.constants)
    return jax.lax.map(one, (TripData(road, observed), start))


def posteriors(trips: Trips, model: TripModel, owner: np.ndarray, start: np.ndarray) -> Posterior:
    """Posteriors of all trips; ``owner`` names the vehicle that a member of the pool counts as."""
    found = map_trips(
        lambda rows: integrated(model, *trips.some(rows), jnp.asarray(start[rows])),
        len(trips.power_w),
        chunk_size=4,
    )
    n_vehicles = len(trips.region.vehicles)
    counts = np.eye(n_vehicles, dtype=np.float32)[owner]
    return Posterior(found["mean"], found["sd"], found["probability"] @ counts)


def relaxed(model: TripModel, temperature: float, n_mixtures: int) -> tuple[TripModel, np.ndarray]:
    """The model with a pool of mixtures, drawn as the relaxation draws them, and who leads each.

    Summing over many such draws is integrating the noise out, so what is left of the relaxed
    posterior is its bias, without the trouble that a chain has with it. A temperature of zero
    draws single vehicles and shows the error of the draws alone.
    """
    logits = model.log_vehicle_prior
    noise = jax.random.gumbel(jax.random.key(0), (n_mixtures, logits.shape[0]))
    owner = jnp.argmax(logits + noise, axis=-1)
    if temperature > 0.0:
        weights = jax.nn.softmax((logits + noise) / temperature, axis=-1)
    else:
        weights = jax.nn.one_hot(owner, logits.shape[0])
    return eqx.tree_at(lambda m: m.pool, model, model.pool.mix(weights)), np.asarray(owner)


def bias_line(label: str, exact: Posterior, other: Posterior) -> str:
    """One row of the first table: medians over trips."""
    shift = np.median(np.abs(other.mean - exact.mean) / exact.sd, axis=0)
    ratio = np.median(other.sd / exact.sd, axis=0)
    rows, likeliest = np.arange(len(exact.mean)), np.argmax(exact.probability, axis=1)
    true, named = exact.probability[rows, likeliest], other.probability[rows, likeliest]
    distance = 0.5 * np.sum(np.abs(other.probability - exact.probability), axis=1)
    cells = (
        label,
        f"{shift[0]:.2f} / {shift[1]:.2f}",
        f"{ratio[0]:.2f} / {ratio[1]:.2f}",
        f"{np.median(named):.3f} ({np.median(true):.3f})",
        f"{np.median(distance):.2f}",
    )
    return "| " + " | ".join(cells) + " |"


def sampler(trips: Trips, choice: GumbelVehicle):
    """From positions of trips to draws ``(chain, draw, 2)``, vehicles and divergences."""
    model = TripModel.of(trips.region, choice=choice)
    sample = numpyro_nuts(model, SETTINGS)

    def draws(row: int) -> tuple[np.ndarray, np.ndarray, float]:
        road, power_w = trips.some(np.asarray([row]))
        data = TripData(road, model.likelihood.observe(power_w, model.constants))
        one = jax.tree.map(lambda leaf: leaf[0], data)
        values, facts = sample(jax.random.fold_in(jax.random.key(0), row), one)
        point = np.stack([np.asarray(values[name]) for name in NAMES], axis=-1)
        return point, np.asarray(values["vehicle"]), float(np.mean(facts["diverging"]))

    return draws


def compare(exact: Posterior, row: int, point: np.ndarray, vehicle: np.ndarray) -> dict[str, float]:
    """One trip: errors of the relaxed posterior in units of the exact one."""
    flat = point.reshape(-1, 2)
    likeliest = int(np.argmax(exact.probability[row]))
    named = np.bincount(vehicle.ravel().astype(int), minlength=exact.probability.shape[1])
    shares = named / named.sum()
    dims = ("trip", "chain", "draw")
    chains = xr.Dataset({name: (dims, point[None, ..., i]) for i, name in enumerate(NAMES)})
    found = convergence(chains, NAMES)
    shift = np.abs(flat.mean(axis=0) - exact.mean[row]) / exact.sd[row]
    ratio = flat.std(axis=0) / exact.sd[row]
    return {
        "shift_aggressiveness": shift[0],
        "shift_detour": shift[1],
        "ratio_aggressiveness": ratio[0],
        "ratio_detour": ratio[1],
        "exact_probability": exact.probability[row, likeliest],
        "probability": shares[likeliest],
        "distance": 0.5 * np.sum(np.abs(shares - exact.probability[row])),
        "r_hat": float(found.r_hat[0]),
        "ess": float(found.ess_bulk[0]),
    }


def line(label: str, rows: list[dict[str, float]], seconds: float) -> str:
    """Means over trips as a row of the table."""
    mean = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    r_hat = np.array([row["r_hat"] for row in rows])
    cells = (
        label,
        str(len(rows)),
        f"{mean['shift_aggressiveness']:.2f} / {mean['shift_detour']:.2f}",
        f"{mean['ratio_aggressiveness']:.2f} / {mean['ratio_detour']:.2f}",
        f"{mean['probability']:.3f} ({mean['exact_probability']:.3f})",
        f"{mean['distance']:.2f}",
        f"{np.median(r_hat):.2f}, {int(np.sum(r_hat <= 1.01))} of {len(rows)}",
        f"{np.median([row['ess'] for row in rows]):.0f}",
        f"{100 * mean['diverging']:.0f} %",
        f"{seconds / len(rows):.0f}",
    )
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description="Bias of a relaxed vehicle over temperature.")
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--trips", type=int, default=40, help="by quadrature")
    parser.add_argument("--mixtures", type=int, default=1_024, help="draws of the relaxed vehicle")
    parser.add_argument("--nuts-trips", type=int, default=4, help="by NUTS, too")
    parser.add_argument("--minutes", type=float, default=6.0, help="for NUTS")
    options = parser.parse_args()
    trips = read_trips(options.run, options.trips)
    model = TripModel.of(trips.region)
    few = jnp.asarray(representative_vehicles(trips.region.vehicles, 32))
    start = map_trips(lambda rows: best_points(model, *trips.some(rows), few), len(trips.power_w))[
        "point"
    ]
    exact = posteriors(trips, model, np.arange(len(trips.region.vehicles)), start)
    print(
        f"The relaxed posterior itself, {len(trips.power_w)} trips, medians:\n\n"
        "| temperature | shift of mean, sd (a / k) | sd over exact (a / k) | "
        "probability of the likeliest vehicle (exact) | distance of vehicle laws |\n"
        + "|---" * 5
        + "|"
    )
    for temperature in (*TEMPERATURES, 0.0):
        mixed, owner = relaxed(model, temperature, options.mixtures)
        label = f"{temperature:g}" if temperature else "0: error of the draws"
        print(bias_line(label, exact, posteriors(trips, mixed, owner, start)), flush=True)
    labels = {f"{t:g}": GumbelVehicle(t) for t in TEMPERATURES}
    labels[f"{STRAIGHT_THROUGH:g}, straight-through"] = GumbelVehicle(STRAIGHT_THROUGH, True)
    samplers = {label: sampler(trips, choice) for label, choice in labels.items()}
    rows = {label: [] for label in labels}
    seconds = dict.fromkeys(labels, 0.0)
    started = time.perf_counter()
    for row in range(min(options.nuts_trips, len(trips.power_w))):
        # All temperatures see a trip or none does.
        done = (time.perf_counter() - started) / 60.0
        if row and done * (row + 1) / row > options.minutes:
            break
        for label, draws in samplers.items():
            begun = time.perf_counter()
            point, vehicle, diverging = draws(row)
            seconds[label] += time.perf_counter() - begun
            found = compare(exact, row, point, vehicle)
            rows[label].append({**found, "diverging": diverging})
            print(f"trip {row}, temperature {label}: {found}", file=sys.stderr, flush=True)
    print(
        f"\nWhat NUTS makes of it, {SETTINGS.n_chains} x ({SETTINGS.n_warmup} + "
        f"{SETTINGS.n_draws}) transitions, means over trips:\n\n"
        "| temperature | trips | error of mean, sd (a / k) | sd over exact (a / k) | "
        "probability of the likeliest vehicle (exact) | distance of vehicle laws | "
        "R-hat, trips <= 1.01 | bulk ESS | divergent | s a trip |\n" + "|---" * 10 + "|"
    )
    for label in labels if options.nuts_trips > 0 else ():
        print(line(label, rows[label], seconds[label]))


if __name__ == "__main__":
    main()
