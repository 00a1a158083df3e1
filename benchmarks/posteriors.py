"""Posteriors of many trips: rate, convergence, agreement between methods, and rivals.

    python benchmarks/posteriors.py [RUN_FOLDER] [--trips 100] [--tree-trips 100]
        [--nuts-trips 5] [--rival-trips 3] [--large 10000]

RUN_FOLDER is the folder of a `prisma run`, whose region and training trips are used; without it
a simulated fleet in the embedded city. Everything is measured in one process; compile time is
reported apart. Trees are BlackJAX NUTS on the map of each trip's grid: no part of this package but
that map stands between them and the density. Rivals see a few trips each, and the slow samplers
run 4 x (300 + 300) transitions, not the 4 x (500 + 500) of their defaults. The output is markdown.
"""

import argparse
import os
import resource
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
from scipy.optimize import differential_evolution

from prisma_sbi.diagnostics import convergence
from prisma_sbi.encoding import EncodeSettings, HmcFit, QuadratureFit, encode
from prisma_sbi.inference import Box
from prisma_sbi.inference.nuts import NutsSettings, numpyro_nuts, plane_nuts
from prisma_sbi.inference.svi import SviSettings, svi_map
from prisma_sbi.models import TripData, TripModel, TripPosterior

CHUNK = 16
NAMES = ("aggressiveness", "detour")
LOWER, UPPER = (0.02, 1.0), (1.0, 2.5)
LEAST_ESS, MOST_R_HAT = 400.0, 1.01
NUTS = NutsSettings(n_warmup=300, n_draws=300)


class Fitted(NamedTuple):
    """A fit, and what it took."""

    fit: xr.DataTree
    n_trips: int
    seconds: float
    compile_s: float

    @property
    def rate(self) -> float:
        """Trips a second."""
        return self.n_trips / self.seconds

    def draws(self, name: str) -> np.ndarray:
        """All draws of a descriptor, one trip a row."""
        values = self.fit["posterior"].dataset[name]
        return (
            values.stack(entry=("chain", "draw"), create_index=False).transpose("trip", ...).values
        )

    def chains(self, name: str) -> np.ndarray:
        """The same as ``(trip, chain, draw)``."""
        return self.fit["posterior"].dataset[name].transpose("trip", "chain", "draw").values

    def statistic(self, name: str) -> np.ndarray:
        """One of the statistics of the trips."""
        return self.fit["sample_stats"].dataset[name].values


def fitted(trips: Trips, method: str, n_trips: int, work=None) -> Fitted:
    """Fit the first trips after a first call that compiles."""
    settings = EncodeSettings(method=method, work=work)
    started = time.perf_counter()
    # The second pass of hmc over doubtful trips compiles too, so it must see all of them.
    n_first = n_trips if method == "hmc" else CHUNK
    encode(trips.region, trips.traces.isel(trip=slice(0, n_first)), settings=settings)
    first_s, started = time.perf_counter() - started, time.perf_counter()
    fit = encode(trips.region, trips.traces.isel(trip=slice(0, n_trips)), settings=settings)
    seconds = time.perf_counter() - started
    note(f"{method}: {n_trips} trips in {seconds:.1f} s")
    return Fitted(fit, n_trips, seconds, max(first_s - n_first * seconds / n_trips, 0.0))


def fitted_one_by_one(trips: Trips, n_trips: int) -> Fitted:
    """The first trips by NumPyro's NUTS; its first trip compiles and does not count."""
    stamps = [time.perf_counter()]
    fit = encode(
        trips.region,
        trips.traces.isel(trip=slice(0, n_trips)),
        settings=EncodeSettings(method="nuts", work=NUTS),
        progress=lambda *_: stamps.append(time.perf_counter()),
    )
    seconds = stamps[-1] - stamps[1]
    note(f"nuts: {n_trips} trips in {seconds:.1f} s, {stamps[1] - stamps[0]:.1f} s for the first")
    timed = n_trips - 1
    return Fitted(fit, timed, seconds, max(stamps[1] - stamps[0] - seconds / timed, 0.0))


def table(title: str, header: tuple[str, ...], rows: list[tuple]) -> None:
    """Print one table."""
    print(f"\n### {title}\n\n| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def note(text: str) -> None:
    """Say on the way how far it is."""
    print(text, file=sys.stderr, flush=True)


def number(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def spread(values: np.ndarray) -> str:
    """Median and 95th percentile."""
    return f"{np.median(values):.3f} ({np.percentile(values, 95):.3f})"


def methods(fits: dict[str, Fitted]) -> list[tuple]:
    """Rate and convergence of the methods of this package."""
    rows = []
    for name, each in fits.items():
        cells = [name, str(each.n_trips), number(each.rate), number(each.compile_s)]
        stats = each.fit["sample_stats"].dataset
        if "ess_bulk" in stats:
            ess, r_hat = each.statistic("ess_bulk"), each.statistic("r_hat")
            good = np.mean((ess >= LEAST_ESS) & (r_hat <= MOST_R_HAT))
            cells += [f"{np.median(ess):.0f}", f"{100 * good:.0f} %"]
        else:
            cells += ["independent" if each.draws(NAMES[0]).shape[1] > 1 else "-", "-"]
        flags = each.statistic("flags")
        kinds = each.fit["sample_stats"].dataset["flags"].attrs
        pairs = zip(kinds["flag_meanings"].split(), kinds["flag_masks"], strict=True)
        counted = {text: int(np.sum((flags & mask) > 0)) for text, mask in pairs}
        cells.append(", ".join(f"{text} {count}" for text, count in counted.items() if count))
        rows.append(tuple(cells))
    return rows


def agreement(label: str, first: Fitted, second: Fitted) -> list[tuple]:
    """Differences of two fits of the same trips, each beside its Monte-Carlo error.

    Trips whose chains converged in both; the second is the yardstick of the widths.
    """
    n_trips = min(first.n_trips, second.n_trips)
    rows = np.flatnonzero(converged(first)[:n_trips] & converged(second)[:n_trips])
    error = np.sqrt(1.0 / ess(first)[rows] + 1.0 / ess(second)[rows])
    label = f"{label}, {len(rows)} of {n_trips} trips"
    found = []
    for name in NAMES:
        a, b = first.draws(name)[rows], second.draws(name)[rows]
        mean, sd = b.mean(axis=1), b.std(axis=1)
        shift = np.abs(a.mean(axis=1) - mean) / sd
        ratio = np.abs(np.log(a.std(axis=1) / sd))
        # Chains that swing from side to side know the mean better than the variance.
        kurtosis = np.mean(((b.T - mean) / sd) ** 4, axis=0)
        parts = [1.0 / ess_of_squares(each, name, rows) for each in (first, second)]
        ratio_error = 0.5 * np.sqrt(np.maximum(kurtosis - 1.0, 0.0) * sum(parts))
        found += [
            (label, f"mean of {name}, sd", *beside(shift, error)),
            (label, f"log ratio of sd of {name}", *beside(ratio, ratio_error)),
        ]
    p, q = (each.statistic("vehicle_probability")[rows] for each in (first, second))
    gap = np.max(np.abs(p - q), axis=1)
    bound = np.max(np.sqrt(np.clip(p * (1.0 - p), 0.0, 0.25)), axis=1) * error
    share = f"{100 * np.mean(gap <= 0.02):.0f} % within 0.02, max {gap.max():.3f}"
    found.append((label, "largest gap of a vehicle probability", spread(gap), spread(bound), share))
    return found


def ess(each: Fitted) -> np.ndarray:
    """Effective draws of each trip; all of them where they are independent."""
    stats = each.fit["sample_stats"].dataset
    if "ess_bulk" in stats:
        return stats["ess_bulk"].values
    return np.full(each.n_trips, float(each.draws(NAMES[0]).shape[1]))


def converged(each: Fitted) -> np.ndarray:
    """Trips that may be compared."""
    stats = each.fit["sample_stats"].dataset
    if "ess_bulk" not in stats:
        return np.ones(each.n_trips, bool)
    return (stats["ess_bulk"].values >= LEAST_ESS) & (stats["r_hat"].values <= MOST_R_HAT)


def ess_of_squares(each: Fitted, name: str, rows: np.ndarray) -> np.ndarray:
    """Effective draws for the variance."""
    chains = each.chains(name)[rows]
    if "ess_bulk" not in each.fit["sample_stats"].dataset:
        return np.full(len(rows), float(chains[0].size))
    return ess_of(((chains - chains.mean(axis=(1, 2), keepdims=True)) ** 2)[..., None])


def beside(values: np.ndarray, error: np.ndarray) -> tuple[str, str, str]:
    """Differences, their errors, and the share of trips within two of them."""
    return spread(values), spread(error), f"{100 * np.mean(values <= 2.0 * error):.0f} %"


class Rivals:
    """The same posteriors by other means, a few trips each."""

    def __init__(self, trips: Trips, exact: Fitted, n_trips: int) -> None:
        self.trips, self.n_trips = trips, n_trips
        self.model = TripModel.of(trips.region)
        self.relaxed = TripModel.of(trips.region, choice="gumbel")
        self.box = Box(jnp.asarray(LOWER), jnp.asarray(UPPER))
        self.draws = np.stack([exact.draws(name) for name in NAMES], axis=-1)
        self.best_loss = exact.statistic("loss")

    def data(self, rows) -> TripData:
        """Data of some trips."""
        road, power_w = self.trips.some(np.asarray(rows))
        return TripData(road, self.model.likelihood.observe(power_w, self.model.constants))

    def timed(self, solve, n_trips: int) -> tuple[list, float, float]:
        """Results of one trip after the other, trips a second, and seconds to compile."""
        started = time.perf_counter()
        jax.block_until_ready(solve(0))
        first, started = time.perf_counter() - started, time.perf_counter()
        results = [jax.block_until_ready(solve(row)) for row in range(n_trips)]
        seconds = time.perf_counter() - started
        return results, n_trips / seconds, max(first - seconds / n_trips, 0.0)

    def svi_one_by_one(self) -> tuple:
        """NumPyro SVI with a point mass, compiled once."""
        key = jax.random.key(0)
        run = eqx.filter_jit(lambda data: svi_map(key, self.relaxed, data, SviSettings())[1])
        n_trips = 2 * self.n_trips
        _, rate, compile_s = self.timed(lambda row: run(self.data([row])), n_trips)
        return "NumPyro SVI, one by one", str(n_trips), number(rate), number(compile_s), "relaxed"

    def vmapped_nuts(self) -> tuple:
        """All trips in one vmap of NumPyro's NUTS."""
        sample = numpyro_nuts(self.model, NUTS)

        def some(keys, data):
            values, _ = jax.vmap(sample)(keys, data)
            return jnp.stack([values[name] for name in NAMES], axis=-1)

        keys = jax.random.split(jax.random.key(1), self.n_trips)
        started = time.perf_counter()
        data = self.data(range(self.n_trips))
        compiled = jax.jit(some).lower(keys, data).compile()
        compile_s, started = time.perf_counter() - started, time.perf_counter()
        point = jax.block_until_ready(compiled(keys, data))
        rate = self.n_trips / (time.perf_counter() - started)
        remark = f"bulk ESS {np.median(ess_of(point)):.0f}"
        return "NumPyro NUTS, vmap", str(self.n_trips), number(rate), number(compile_s), remark

    def blackjax(self) -> tuple:
        """Window adaptation, begun and whitened with exact draws of the trip."""

        @eqx.filter_jit
        def run(data, spread):
            one = jax.tree.map(lambda leaf: leaf[0], data)
            target = TripPosterior(self.model, one)
            return plane_nuts(jax.random.key(2), target, self.box, spread, NUTS)[0]

        def solve(row):
            return run(self.data([row]), jnp.asarray(self.draws[row, ::20][:64], jnp.float32))

        points, rate, compile_s = self.timed(solve, self.n_trips)
        remark = f"bulk ESS {np.median(ess_of(np.stack(points))):.0f}"
        label = "BlackJAX window adaptation and NUTS, one by one"
        return label, str(self.n_trips), number(rate), number(compile_s), remark

    def scipy(self) -> tuple:
        """Differential evolution over the plane, the best vehicle inside."""

        @eqx.filter_jit
        def losses(point, data):
            one = jax.tree.map(lambda leaf: leaf[0], data)
            likelihood, model = self.model.likelihood, self.model
            values = likelihood.log_likelihoods(point, model.pool, one, model.constants)
            return -jnp.max(values)

        def solve(row):
            data = self.data([row])
            found = differential_evolution(
                lambda point: float(losses(jnp.asarray(point, jnp.float32), data)),
                list(zip(LOWER, UPPER, strict=True)),
                rng=0,
                polish=False,
            )
            return found.fun

        found, rate, compile_s = self.timed(solve, self.n_trips)
        ours = np.median(self.best_loss[: self.n_trips])
        remark = f"median loss {np.median(np.asarray(found)):.4f}; map {ours:.4f}"
        label = "scipy differential_evolution, one by one"
        return label, str(self.n_trips), number(rate), number(compile_s), remark


def ess_of(point: np.ndarray) -> np.ndarray:
    """Bulk effective draws of trips, the worst of the coordinates."""
    dims = ("trip", "chain", "draw")
    names = NAMES[: np.shape(point)[-1]]
    chains = {name: (dims, np.asarray(point)[..., i]) for i, name in enumerate(names)}
    return convergence(xr.Dataset(chains), names).ess_bulk


def growth(trips: Trips, sizes: list[int]) -> list[tuple]:
    """Cost a trip at several numbers of trips, and the peak memory of the process so far."""
    rows = []
    for n_trips in sizes:
        cells = [str(n_trips)]
        for method in ("map", "quadrature"):
            each = fitted(trips, method, n_trips)
            cells.append(f"{1e3 / each.rate:.2f}")
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append((*cells, f"{peak_mib:.0f}"))
    return rows


def main():
    parser = argparse.ArgumentParser(description="Rate and agreement of posteriors, and rivals.")
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--trips", type=int, default=100)
    parser.add_argument("--tree-trips", type=int, default=100, help="0 for none")
    parser.add_argument("--nuts-trips", type=int, default=5, help="0, or 2 and more; one compiles")
    parser.add_argument("--rival-trips", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000])
    parser.add_argument("--large", type=int, help="one more size for the cost per trip")
    options = parser.parse_args()
    sizes = [*options.sizes, *([options.large] if options.large else [])]
    trips = read_trips(options.run, max(options.trips, *sizes))
    sizes = sorted({min(size, len(trips.power_w)) for size in sizes})
    print(
        f"{len(trips.region.vehicles)} vehicles, jax {jax.__version__}, {os.cpu_count()} cores, "
        f"load before the start {os.getloadavg()[0]:.1f}"
    )
    rows = growth(trips, sizes)
    table("Cost", ("trips", "map, ms a trip", "quadrature, ms a trip", "peak MiB so far"), rows)
    fits = {
        method: fitted(trips, method, options.trips)
        for method in ("map", "laplace", "quadrature", "hmc", "svi")
    }
    if options.tree_trips:
        fits["trees"] = fitted(trips, "hmc", options.tree_trips, HmcFit(all_nuts=True))
    if options.nuts_trips > 1:
        fits["nuts"] = fitted_one_by_one(trips, options.nuts_trips)
    header = (
        "method",
        "trips",
        "trips/s",
        "compile s",
        "bulk ESS, median",
        "ESS and R-hat",
        "flags",
    )
    table("Methods", header, methods(fits))
    exact = fitted(trips, "quadrature", options.trips, QuadratureFit(n_draws=2_500))
    rows = agreement("quadrature and hmc", exact, fits["hmc"])
    if "trees" in fits:
        rows += agreement("quadrature and trees", exact, fits["trees"])
        rows += agreement("hmc and trees", fits["hmc"], fits["trees"])
    header = ("of", "difference", "median (95 %)", "its error", "within 2 errors")
    table("Agreement", header, rows)
    rivals = Rivals(trips, exact, options.rival_trips)
    steps = (rivals.svi_one_by_one, rivals.scipy, rivals.blackjax, rivals.vmapped_nuts)
    header = ("rival", "trips", "trips/s", "compile s", "remark")
    rows = []
    for step in steps if options.rival_trips else ():
        rows.append(step())
        note(" ".join(rows[-1]))
    table("Rivals", header, rows)
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
