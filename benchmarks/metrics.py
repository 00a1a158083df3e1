"""All metrics: how long they take, and what other real traces reach.

    python benchmarks/metrics.py [RUN_FOLDER] [--real 5] [--splits 15]

RUN_FOLDER is the folder of a `prisma run`: its held-out traces are compared with every synthetic
set, and with sets of its training traces, which are real ones that nobody synthesized. Without
it 2,000 made-up traces of 500 samples are compared with 2,000 others of one law. Processor time
over two is what an idle machine with two cores would need at best. The output is markdown.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from prisma_sbi.evaluation import (
    METRICS,
    Measured,
    classifier_test,
    compute_floors,
    copying,
    density_coverage,
    fit_gaussian,
    gaussian_frechet_distance,
    measure_each,
    mmd_test,
    next_step_task,
    precision_recall,
    standardize_features,
    trace_features,
    transfer_ratio,
)
from prisma_sbi.evaluation.population import Traces
from prisma_sbi.telemetry import load_traces

N_TRIPS, N_SAMPLES = 2_000, 500


def made_up(seed: int) -> np.ndarray:
    """Positive power in W that fluctuates, stops and ends."""
    generator = np.random.default_rng(seed)
    level = np.zeros((N_TRIPS, N_SAMPLES))
    noise = generator.normal(size=level.shape)
    for at in range(1, N_SAMPLES):
        level[:, at] = 0.9 * level[:, at - 1] + 0.44 * noise[:, at]
    end = generator.integers(N_SAMPLES // 4, N_SAMPLES + 1, size=(N_TRIPS, 1))
    driving = (level > -1.0) & (np.arange(N_SAMPLES) < end)
    return np.where(driving, 15_000.0 * np.exp(0.5 * level), 0.0)


def populations(
    run: Path | None, n_real: int
) -> tuple[Traces, Mapping[str, Traces], Mapping[str, Traces]]:
    """Held-out traces, synthetic sets by name, and other real sets."""
    if run is None:
        others = {f"real {number}": made_up(number + 2) for number in range(n_real)}
        return made_up(0), {"made up": made_up(1)}, others
    real, train = load_traces(run / "real.zarr"), load_traces(run / "train.zarr")
    size = real.sizes["trip"]
    order = np.random.default_rng(0).permutation(train.sizes["trip"])
    parts = [order[at : at + size] for at in range(0, len(order) - size + 1, size)][:n_real]
    synthetic = {
        path.stem.removeprefix("synthetic-"): load_traces(path)
        for path in sorted(run.glob("synthetic-*.zarr"))
    }
    return real, synthetic, {f"real {at}": train.isel(trip=part) for at, part in enumerate(parts)}


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Processor time over two, and wall time."""
    started = time.process_time(), time.perf_counter()
    work()
    return (time.process_time() - started[0]) / 2, time.perf_counter() - started[1]


def print_times(real: Traces, synthetic: Traces, n_splits: int) -> None:
    """Time of one full comparison and of its parts."""
    first, second = (
        each if isinstance(each, np.ndarray) else each["power_w"].values.astype(np.float64)
        for each in (real, synthetic)
    )
    features = trace_features(first), trace_features(second)
    scaled = standardize_features(*features)
    fits = fit_gaussian(first), fit_gaussian(second)
    tasks = next_step_task(first), next_step_task(second)
    parts = {
        f"all metrics with {n_splits} floors": lambda: measure_each(
            real, {"": synthetic}, n_splits=n_splits
        ),
        "published floors alone": lambda: compute_floors(real, n_splits=n_splits),
        "features of both sides": lambda: (trace_features(first), trace_features(second)),
        "Fréchet distance, Gaussians given": lambda: gaussian_frechet_distance(*fits),
        "precision and recall": lambda: precision_recall(*scaled),
        "density and coverage": lambda: density_coverage(*scaled),
        "copies": lambda: copying(*scaled),
        "MMD test": lambda: mmd_test(*features),
        "classifier test": lambda: classifier_test(*features),
        "next step, both tasks given": lambda: transfer_ratio(*tasks),
    }
    shapes = " against ".join(f"{len(each):,} x {each.shape[1]}" for each in (first, second))
    print(f"\n{shapes}\n\n| part | processor time / 2 (s) | wall time (s) |\n|---|---|---|")
    for name, work in parts.items():
        processor_s, wall_s = seconds(work)
        print(f"| {name} | {processor_s:.2f} | {wall_s:.2f} |", flush=True)


def print_values(synthetic: dict[str, Measured], real: dict[str, Measured]) -> None:
    """Every metric of every set; real sets as mean and standard deviation."""
    print(f"\n| metric | halves of the held-out traces | real, {len(real)} sets |", end="")
    print("".join(f" {name} |" for name in synthetic))
    print("|---|---|---|" + "---|" * len(synthetic))
    floors = next(iter(real.values())).floors.by_distance
    for key in METRICS:
        values = np.array([each.values[key] for each in real.values()])
        half = f"{floors[key].mean:.4g} ± {floors[key].sd:.2g}" if key in floors else ""
        cells = [f"{each.values[key]:.4g}" for each in synthetic.values()]
        among = f"{values.mean():.4g} ± {values.std():.2g}"
        print(f"| `{key}` | {half} | {among} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", nargs="?", type=Path, metavar="RUN_FOLDER")
    parser.add_argument("--real", type=int, default=5, help="real sets beside the held-out one")
    parser.add_argument("--splits", type=int, default=15)
    chosen = parser.parse_args()
    real, synthetic, others = populations(chosen.run, chosen.real)
    print_times(real, next(iter(synthetic.values())), chosen.splits)
    found = measure_each(real, {**synthetic, **others}, n_splits=chosen.splits)
    print_values({name: found[name] for name in synthetic}, {name: found[name] for name in others})


if __name__ == "__main__":
    main()
