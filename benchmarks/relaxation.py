"""Bias of a relaxed vehicle against summing it out, over temperature.

    python benchmarks/relaxation.py [RUN_FOLDER] [--trips 8] [--minutes 8]

RUN_FOLDER is the folder of a `prisma run`, whose region and training trips are used; without it
a simulated fleet in the embedded city. Each trip is sampled by NumPyro's NUTS with
``GumbelVehicle`` at each temperature and compared with quadrature, which is exact. The output is
a markdown table; past the time limit no further trip is begun, and the table says how many.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import xarray as xr
from encoder import Trips, read_trips

from prisma_sbi.diagnostics import convergence
from prisma_sbi.encoding import EncodeSettings, QuadratureFit, encode
from prisma_sbi.inference.nuts import NutsSettings, numpyro_nuts
from prisma_sbi.models import GumbelVehicle, TripData, TripModel

NAMES = ("aggressiveness", "detour")
TEMPERATURES = (1.0, 0.5, 0.3, 0.1)
STRAIGHT_THROUGH = 0.5
SETTINGS = NutsSettings(n_chains=2, n_warmup=300, n_draws=300)


class Exact(NamedTuple):
    """Means, standard deviations and vehicle probabilities of trips."""

    mean: np.ndarray
    sd: np.ndarray
    probability: np.ndarray


def exact_posteriors(trips: Trips) -> Exact:
    """By quadrature, from 4 x 2,500 independent draws."""
    settings = EncodeSettings(method="quadrature", work=QuadratureFit(n_draws=2_500))
    fit = encode(trips.region, trips.traces, settings=settings)
    posterior = fit["posterior"].dataset[list(NAMES)]
    by_trip = {"mean": posterior.mean(("chain", "draw")), "sd": posterior.std(("chain", "draw"))}
    mean, sd = (
        np.stack([each[name].values for name in NAMES], axis=-1) for each in by_trip.values()
    )
    return Exact(mean, sd, fit["sample_stats"].dataset["vehicle_probability"].values)


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


def compare(exact: Exact, row: int, point: np.ndarray, vehicle: np.ndarray) -> dict[str, float]:
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
    parser.add_argument("--trips", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=8.0)
    options = parser.parse_args()
    trips = read_trips(options.run, options.trips)
    exact = exact_posteriors(trips)
    labels = {f"{t:g}": GumbelVehicle(t) for t in TEMPERATURES}
    labels[f"{STRAIGHT_THROUGH:g}, straight-through"] = GumbelVehicle(STRAIGHT_THROUGH, True)
    samplers = {label: sampler(trips, choice) for label, choice in labels.items()}
    rows = {label: [] for label in labels}
    seconds = dict.fromkeys(labels, 0.0)
    started = time.perf_counter()
    for row in range(len(trips.power_w)):
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
        "| temperature | trips | error of mean, sd (a / k) | sd over exact (a / k) | "
        "probability of the likeliest vehicle (exact) | distance of vehicle laws | "
        "R-hat, trips <= 1.01 | bulk ESS | divergent | s a trip |\n" + "|---" * 10 + "|"
    )
    for label in labels:
        print(line(label, rows[label], seconds[label]))


if __name__ == "__main__":
    main()
