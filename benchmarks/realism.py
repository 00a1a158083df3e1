"""What each part of the realistic simulator buys, left out one at a time.

    python benchmarks/realism.py RUN_FOLDER [-o out/realism.csv] [--fitted 4000] [--seeds 5]

RUN_FOLDER is the folder of a `prisma run`; of it, only the region and the training trips are
read. The first trips are fitted and decoded without a mechanism under each set of constants; a
seed picks 2,000 of them, a draw of chance, and 2,000 other trips to compare with. Rows that are in
the output already are not run again. The output is markdown; the time is that of fitting.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from prisma_sbi.encoding import descriptor_table, encode
from prisma_sbi.evaluation import compute_floors, evaluate
from prisma_sbi.models import TripModel
from prisma_sbi.region import Region, load_region, route_profiles
from prisma_sbi.region.constants import Constants
from prisma_sbi.simulator import draw_traces
from prisma_sbi.telemetry import load_traces

N_JUDGED = 2_000
SCORES = {
    "acf": "acf_x_floor",
    "fid": "fid_x_floor",
    "precision": "precision_standardized",
    "recall": "recall_standardized",
}


class Row(NamedTuple):
    """One row of the table: its constants and its likelihood."""

    name: str
    preset: str = "realistic"
    likelihood: str = "texture"
    changes: tuple[tuple[str, float], ...] = ()


def changed(name: str, preset: str = "realistic", likelihood: str = "texture", **changes: float):
    """A row with some constants changed."""
    return Row(name, preset, likelihood, tuple(changes.items()))


ROWS = (
    changed("published", "published", "summary"),
    changed("published, texture", "published", "texture"),
    changed("published, traffic", "published", "summary", speed_wander=0.3),
    changed("published, texture, traffic", "published", "texture", speed_wander=0.3),
    changed("realistic"),
    changed("without traffic", speed_wander=0.0),
    changed("without shrinkage", aggressiveness_shrinkage=0.0),
    changed("without restless power", restlessness=0.0),
    changed("without hybrids and electric cars", hybrid_share=0.0, electric_efficiency=0.0),
    changed("without the end on the move", end_speed_share=0.0),
    changed("without the start on the move", start_speed_share=0.0),
    changed("without fading", acceleration_fade_mps=0.0, acceleration_ceiling_mps2=2.0),
    changed("without gentler brakes", brake_fraction=1.0),
    changed("without the higher idle", idle_power_w_per_l=2_000.0),
    changed("without texture", likelihood="summary"),
    changed("by the law of the trace", likelihood="trace"),
)
DECODED = ("speed_wander", "restlessness", "aggressiveness_shrinkage")
"""Constants that only decoding knows, so that a fit serves all their values."""


def fit(region: Region, trips: xr.Dataset, likelihood: str) -> tuple[xr.Dataset, xr.Dataset, float]:
    """Descriptors and statistics of the best fits, and seconds with compilation."""
    began = time.perf_counter()
    found = encode(
        region,
        trips.assign_attrs(region_fingerprint=region.fingerprint),
        model=TripModel.of(region, likelihood=likelihood),
    )
    stats = found["sample_stats"].to_dataset()
    return descriptor_table(region, found), stats, time.perf_counter() - began


def scored(
    region: Region, table: xr.Dataset, others: np.ndarray, n_seeds: int
) -> Iterator[dict[str, float]]:
    """Scores of decoded rows, one record a seed."""
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        real = others[rng.choice(len(others), N_JUDGED, replace=False)]
        some = table.isel(trip=rng.choice(table.sizes["trip"], N_JUDGED, replace=False))
        ends = (some[name].values for name in ("start_lat", "start_lon", "end_lat", "end_lon"))
        power_w = draw_traces(
            region,
            route_profiles(region, *ends),
            *(some[name].values for name in ("aggressiveness", "detour", "vehicle")),
            rng,
        )
        found = evaluate(real, power_w, floors=compute_floors(real))
        yield {"seed": seed} | {name: getattr(found, key) for name, key in SCORES.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="What each part of the simulator buys.")
    parser.add_argument("run", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("out/realism.csv"))
    parser.add_argument("--fitted", type=int, default=4_000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    base, trips = load_region(options.run / "region"), load_traces(options.run / "train.zarr")
    others = trips["power_w"].values[options.fitted :]
    trips = trips.isel(trip=slice(0, options.fitted))
    done = pd.read_csv(options.output) if options.output.exists() else pd.DataFrame({"row": []})
    fits: dict[Any, Any] = {}
    for row in ROWS:
        if row.name in set(done["row"]):
            continue
        region = replace(base, constants=Constants.preset(row.preset, **dict(row.changes)))
        key = (row.preset, row.likelihood, *(c for c in row.changes if c[0] not in DECODED))
        if key not in fits:
            fits[key] = fit(region, trips, row.likelihood)
        table, stats, seconds = fits[key]
        off = np.abs(stats["energy_misfit"].values)
        facts = {
            "row": row.name, "seconds": seconds, "energy_median": np.nanmedian(off),
            "energy_p90": np.nanquantile(off, 0.9),
        }  # fmt: skip
        # Rows that share a fit differ in the fingerprint only.
        table = table.assign_attrs(region_fingerprint=region.fingerprint)
        records = [facts | record for record in scored(region, table, others, options.seeds)]
        done = pd.concat([done, pd.DataFrame(records)], ignore_index=True)
        options.output.parent.mkdir(parents=True, exist_ok=True)
        done.to_csv(options.output, index=False, float_format="%.6g")
        print(row.name, flush=True)
    print(markdown(done))


def markdown(done: pd.DataFrame) -> str:
    """Mean and standard deviation over seeds, a line a row."""
    lines = [
        "| | ACF x floor | FID x floor | precision | recall | energy, median / p90 | fit, s |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, rows in done.groupby("row", sort=False):
        cells = [f"{rows[key].mean():.2f} ± {rows[key].std():.2f}" for key in SCORES]
        first = rows.iloc[0]
        off = f"{100 * first['energy_median']:.1f} / {100 * first['energy_p90']:.0f} %"
        lines.append(f"| {name} | {' | '.join(cells)} | {off} | {first['seconds']:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
