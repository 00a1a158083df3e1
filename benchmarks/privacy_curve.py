"""Quality over the privacy budget: both tables, several releases at each epsilon.

Without arguments a small simulated fleet, as a check that the script runs. With a folder the
recorded trips of a configuration; they are encoded once into that folder and used again:

    python benchmarks/privacy_curve.py out/curve --config examples/ann_arbor.toml \
        --csv docs/figures/privacy_curve.csv --png docs/figures/privacy_curve.png

Every release here is a spend of its own. They are for measuring, not for publishing.
"""

import argparse
import math
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
from PIL import Image

from prisma_sbi.decoding import decode
from prisma_sbi.descriptors import make_layout
from prisma_sbi.encoding import descriptor_table, load_fit
from prisma_sbi.evaluation import (
    compute_floors,
    evaluate,
    save_figures,
    trip_floors,
    trip_scores,
    workload_error,
)
from prisma_sbi.evaluation.plot_epsilon import plot_epsilon_curve
from prisma_sbi.pipeline import demo_config, load_config, run_pipeline, trip_facts
from prisma_sbi.privacy import Mechanism, SynthesisSettings, synthesize
from prisma_sbi.region import load_region
from prisma_sbi.telemetry import load_traces

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, math.inf)
TABLES = ("route", "published")
MEASURES = {
    "acf": "ACF x floor",
    "fid": "FID x floor",
    "length": "trip length x floor",
    "energy": "trip energy x floor",
    "origin_destination": "start and end x floor",
}


class Curve:
    """Encoded trips and everything that all releases are compared with."""

    def __init__(self, config, folder: Path) -> None:
        only_encode = replace(config.synthesize, epsilons=(), without_mechanism=True)
        quiet = replace(config.evaluate, figures=False, n_splits=2)
        run_pipeline(replace(config, synthesize=only_encode, evaluate=quiet), folder)
        self.config = config
        self.region = load_region(folder / "region")
        self.table = descriptor_table(self.region, load_fit(folder / "fit.zarr"))
        self.real = load_traces(folder / "real.zarr")
        splits = config.evaluate.n_splits
        self.floors = compute_floors(self.real, n_splits=splits)
        self.facts = trip_facts(self.region, self.real)
        self.trip_floors = trip_floors(self.facts, n_splits=splits)
        self.layouts = {name: make_layout(name, self.region) for name in TABLES}
        self.codes = {name: each.discretize(self.table) for name, each in self.layouts.items()}

    def point(self, table: str, epsilon: float, run: int) -> dict[str, float]:
        """One release, decoded and scored."""
        started = time.perf_counter()
        layout = self.layouts[table]
        settings = SynthesisSettings(mechanism=Mechanism.NONE, table=table)
        if math.isfinite(epsilon):
            settings = SynthesisSettings(
                epsilon=epsilon,
                delta=self.config.synthesize.delta,
                table=table,
                n_rows=self.config.split.n_train,
            )
        release = synthesize(self.table, layout, settings, seed=run)
        synthesis_s = time.perf_counter() - started
        traces = decode(
            release,
            self.region,
            n_traces=self.real.sizes["trip"],
            seed=run,
            allow_unprotected=True,
        )
        scores = evaluate(self.real, traces, floors=self.floors)
        found = {
            "acf_x_floor": scores.acf_x_floor,
            "fid_x_floor": scores.fid_x_floor,
            "precision": scores.precision_standardized,
            "recall": scores.recall_standardized,
            **trip_scores(self.facts, trip_facts(self.region, traces), self.trip_floors),
            "synthesis_s": synthesis_s,
            "pairs_measured": sum(len(item.columns) > 1 for item in release.measured),
        }
        if release.codes is not None:
            error = workload_error(self.codes[table], release.codes, layout.shape)
            found |= {
                "pairs_error": error.error,
                "pairs_x_independent": error.x_independent,
                "pairs_x_bootstrap": error.x_bootstrap,
            }
        return found


def measure(curve: Curve, epsilons, n_runs: int, progress: Path | None) -> pd.DataFrame:
    """All releases as rows; written after each epsilon, so that an interrupt loses little."""
    rows = []
    for epsilon in epsilons:
        for table in TABLES:
            if math.isinf(epsilon) and table != TABLES[0]:
                continue  # without a mechanism no table is involved
            for run in range(n_runs):
                label = "no mechanism" if math.isinf(epsilon) else table
                found = curve.point(table, epsilon, run)
                rows.append({"table": label, "epsilon": epsilon, "run": run, **found})
                print(f"{label} epsilon={epsilon:g} run {run}: " + brief(found), file=sys.stderr)
        if progress is not None:
            pd.DataFrame(rows).to_csv(progress, index=False, float_format="%.6g")
    return pd.DataFrame(rows)


def brief(found: dict[str, float]) -> str:
    """The scores of one release on a line."""
    named = [f"{name} {found[f'{name}_x_floor']:.2f}" for name in MEASURES]
    return ", ".join(named) + f", {found['synthesis_s']:.1f} s"


def markdown(rows: pd.DataFrame) -> str:
    """Mean and standard deviation over runs, a line per table and epsilon."""
    lines = [
        "| table | epsilon | " + " | ".join(MEASURES.values()) + " | pairs | pair error |",
        "|---|---|" + "---|" * (len(MEASURES) + 2),
    ]
    for (table, epsilon), group in rows.groupby(["table", "epsilon"], sort=False):
        cells = []
        for name in MEASURES:
            values = group[f"{name}_x_floor"]
            cells.append(f"{values.mean():.2f} ± {values.std(ddof=1):.2f}")
        pairs = error = "-"
        if table != "no mechanism":
            pairs = f"{group['pairs_measured'].mean():.1f}"
            error = f"{group['pairs_error'].mean():.3f} ({group['pairs_x_independent'].mean():.2f})"
        lines.append(f"| {table} | {epsilon:g} | " + " | ".join([*cells, pairs, error]) + " |")
    return "\n".join(lines)


def draw(rows: pd.DataFrame, path: Path) -> None:
    """Write the figure as a small PNG file."""
    figure = plot_epsilon_curve(rows)
    (written,) = save_figures({path.stem: figure}, path.parent, dpi=110)
    # Few colors are enough, and make the file a third as large.
    Image.open(written).convert("RGB").quantize(48).save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="encoded trips; made if not there")
    parser.add_argument("--config", type=Path, default=Path("examples/ann_arbor.toml"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--png", type=Path)
    options = parser.parse_args()
    epsilons, n_runs = options.epsilons, options.runs
    with tempfile.TemporaryDirectory() as scratch:
        if options.folder is None:
            epsilons, n_runs = (1.0, math.inf), 2
            curve = Curve(demo_config(n_trips=200), Path(scratch))
        else:
            curve = Curve(load_config(options.config), options.folder)
        if options.csv is not None:
            options.csv.parent.mkdir(parents=True, exist_ok=True)
        rows = measure(curve, epsilons, n_runs, options.csv)
    print(markdown(rows))
    if options.png is not None:
        draw(rows, options.png)
    print(f"slowest synthesis: {rows['synthesis_s'].max():.0f} s")


if __name__ == "__main__":
    main()
