"""The misfit study: what decoded traces lack at their best fits, from finished runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi._files import replacing
from prisma_sbi.decoding.decode import decode
from prisma_sbi.encoding import descriptor_table, load_fit
from prisma_sbi.evaluation import save_figures
from prisma_sbi.evaluation.plot_gap import plot_gap, plot_gap_groups, plot_swaps
from prisma_sbi.evaluation.texture_gap import ALL_TRIPS, PUBLISHED, gap_table, swap_table
from prisma_sbi.pipeline.reproduce.recipes import make_release
from prisma_sbi.pipeline.reproduce.rows import Recipe
from prisma_sbi.pipeline.stage import Reporter, Silence
from prisma_sbi.privacy import SynthesisSettings
from prisma_sbi.region import Region, load_region, route_profiles
from prisma_sbi.telemetry import load_traces

MISFIT = "misfit"
"""Name of the target on the command line."""
N_TRIPS = 2_000
ROAD_LIMITS_MPS = (13.0, 16.0)
"""Limits between three classes of routes, by mean drivable speed."""
ROADS = ("0 to 13 m/s", "13 to 16 m/s", "over 16 m/s")
CONTROLLED_PER_KM = 1.0
"""Signals and stop signs per km from which a route is called controlled."""
_FORMATS, _DOTS_PER_INCH = ("png", "pdf"), 110
_CONTROL_DIP = 0.5
_FACT = ("fact", "title", "unit")
_ENDS = ("start_lat", "start_lon", "end_lat", "end_lon")


@dataclass(frozen=True, kw_only=True)
class MisfitStudy:
    """What a misfit study found and wrote.

    Attributes
    ----------
    folder
        Where everything is. Facts are of recorded trips: private, like the traces.
    gaps, swaps
        Tables of all runs, as :func:`~prisma_sbi.evaluation.gap_table` and
        :func:`~prisma_sbi.evaluation.swap_table` make them, with a column ``run``.
    files
        Tables, page and figures.
    """

    folder: Path
    gaps: pd.DataFrame
    swaps: pd.DataFrame
    files: list[Path]


def study_misfit(
    runs: Sequence[str | Path],
    folder: str | Path,
    *,
    n_trips: int = N_TRIPS,
    reporter: Reporter | None = None,
) -> MisfitStudy:
    """Compare recorded training trips with the traces of their best fits, in finished runs.

    Only training trips are read, never a hold-out: some of them are set beside their decoded
    traces, as many others judge.

    Parameters
    ----------
    runs
        Folders of finished runs of the same trips, as of two presets; each is called by the
        name of its folder.
    folder
        Where tables and figures go.
    n_trips
        Trips that are compared, and trips that judge; fewer if there are not as many.
    reporter
        Told about progress.

    Returns
    -------
    study

    Raises
    ------
    InputDataError
        If a run lacks its region, training trips or fit, two have one name, or their trips
        differ.
    """
    _validate.at_least(4, n_trips=n_trips)
    reporter = reporter or Silence()
    named = _named([Path(run) for run in runs])
    train = {name: load_traces(run / "train.zarr") for name, run in named.items()}
    trips = _common_trips(train)
    n_trips = min(n_trips, len(trips) // 2)
    fits = {name: _fitted(run, trips[:n_trips]) for name, run in named.items()}
    first = next(iter(train.values()))
    chosen = [trip for trip in trips[:n_trips] if all(trip in table for _, table in fits.values())]
    real = first.sel(trip=chosen)
    judge_w = first["power_w"].sel(trip=trips[n_trips : 2 * n_trips]).to_numpy().astype(float)
    real_w = real["power_w"].to_numpy().astype(float)

    decoded: dict[str, np.ndarray] = {}
    gaps, swaps = [], []
    for number, (name, (region, fit)) in enumerate(fits.items()):
        table = fit.select(chosen)
        reporter.stage(f"{MISFIT} {name}", len(named), number)
        decoded[name] = _imitated(region, table)
        groups = _road_groups(region, table)
        if "vehicle_type" in real:
            groups = {"vehicle": real["vehicle_type"].to_numpy().astype(str)} | groups
        gaps.append(gap_table(real_w, decoded[name], groups).assign(run=name))
        found = swap_table(real_w, decoded[name], judge_w, progress=reporter.progress)
        swaps.append(found.assign(run=name))
    return _written(Path(folder), real_w, decoded, pd.concat(gaps), pd.concat(swaps))


@dataclass(frozen=True, eq=False)
class _Fit:
    """Descriptors of the trips that could be fitted."""

    table: xr.Dataset

    def __contains__(self, trip: str) -> bool:
        return trip in self.table.indexes["trip"]

    def select(self, trips: Sequence[str]) -> xr.Dataset:
        """Rows of some trips, in their order."""
        return self.table.sel(trip=list(trips))


def _named(runs: Sequence[Path]) -> dict[str, Path]:
    """Runs by the name of their folder."""
    if not runs:
        raise InputDataError(
            "Expected the folder of a finished run, as `prisma reproduce misfit out/run -o "
            "out/misfit`; got none. Make one with `prisma run`."
        )
    named = {run.absolute().name: run for run in runs}
    if len(named) < len(runs):
        raise InputDataError(
            f"Expected runs in folders of different names; got {', '.join(map(str, runs))}. "
            "Rename one: figures call a run by its folder."
        )
    for run in runs:
        for part in ("region", "train.zarr", "fit.zarr"):
            if not (run / part).exists():
                raise InputDataError(
                    f"Expected a finished run with region, train.zarr and fit.zarr; got {run} "
                    f"without {part}. Make one with `prisma run`."
                )
    return named


def _common_trips(train: Mapping[str, xr.Dataset]) -> list[str]:
    """Names of the training trips, which all runs must share."""
    (first, trips), *others = (
        (name, [str(trip) for trip in traces["trip"].values]) for name, traces in train.items()
    )
    for name, other in others:
        if other != trips:
            raise InputDataError(
                f"Expected runs of the same training trips; got others in {name} than in {first}. "
                "Run both with the same trips, split and seed."
            )
    return trips


def _fitted(run: Path, trips: Sequence[str]) -> tuple[Region, _Fit]:
    """Region of a run, and the descriptors of those of some trips that could be fitted."""
    region = load_region(run / "region")
    table = descriptor_table(region, load_fit(run / "fit.zarr"))
    return region, _Fit(table.isel(trip=np.isin(table["trip"].values, trips)))


def _imitated(region: Region, table: xr.Dataset) -> np.ndarray:
    """Traces of the best fits, decoded as in a release without a mechanism."""
    release = make_release(
        Recipe(), table, region, SynthesisSettings(), seed=0, progress=lambda *_: None
    )
    traces = decode(release, region, seed=0, allow_unprotected=True)
    return traces["power_w"].to_numpy().astype(float)


def _road_groups(region: Region, table: xr.Dataset) -> dict[str, np.ndarray]:
    """Class of each trip's shortest path by its speed and by its signals and stop signs."""
    profiles = route_profiles(region, *(table[name].values for name in _ENDS))
    speed = profiles.speed_mps
    road = np.digitize(speed.mean(axis=1), ROAD_LIMITS_MPS)
    lowered = speed <= region.constants.creep_speed_mps + _CONTROL_DIP
    n_controls = np.sum(lowered[:, 1:] & ~lowered[:, :-1], axis=1)
    is_controlled = n_controls >= CONTROLLED_PER_KM * profiles.length_m / 1e3
    return {
        "roads": np.array(ROADS)[road],
        "controls": np.where(is_controlled, "many controls", "few controls"),
    }


def _written(
    folder: Path,
    real_w: np.ndarray,
    decoded: Mapping[str, np.ndarray],
    gaps: pd.DataFrame,
    swaps: pd.DataFrame,
) -> MisfitStudy:
    """Write tables, the page and figures."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, table in (("gaps", gaps), ("swaps", swaps)):
        files.append(folder / f"{MISFIT}_{name}.csv")
        with replacing(files[-1]) as partial:
            table.to_csv(partial, index=False, float_format="%.6g")
    files.append(folder / f"{MISFIT}.md")
    with replacing(files[-1]) as partial:
        partial.write_text(f"{gaps_page(gaps)}\n{swaps_page(swaps)}")
    by_run = {str(run): table for run, table in swaps.groupby("run", sort=False)}
    figures = {
        MISFIT: plot_gap(real_w, decoded),
        f"{MISFIT}_repairs": plot_swaps(by_run),
        f"{MISFIT}_breaks": plot_swaps(by_run, direction="break"),
    }
    for run, table in gaps.groupby("run", sort=False):
        figures[f"{MISFIT}_groups-{run}"] = plot_gap_groups(table)
    files += save_figures(figures, folder / "figures", formats=_FORMATS, dpi=_DOTS_PER_INCH)
    return MisfitStudy(folder=folder, gaps=gaps, swaps=swaps, files=files)


def gaps_page(gaps: pd.DataFrame) -> str:
    """Facts of all trips: a row per fact, recorded and each run side by side."""
    every = gaps[gaps["grouping"] == ALL_TRIPS]
    runs = list(dict.fromkeys(every["run"]))
    lines = [
        f"| | unit | recorded | {' | '.join(runs)} |",
        f"|---|---|{'---|' * (1 + len(runs))}",
    ]
    for fact, title, unit in dict.fromkeys(zip(*(every[key] for key in _FACT), strict=True)):
        rows = every.loc[every["fact"] == fact].to_dict(orient="records")
        cells = [f"{value:.3g}" for value in (rows[0]["real"], *(row["synthetic"] for row in rows))]
        lines.append(f"| {title} | {unit} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def swaps_page(swaps: pd.DataFrame) -> str:
    """Scores of every swap of each run, with the share of the gap that it closes or opens."""
    lines = ["| run | | feature | ACF | FID | precision | recall |", f"|{'---|' * 7}"]
    for row in swaps.to_dict(orient="records"):
        cells = []
        for score in PUBLISHED:
            share = float(row[f"explained_{score}"])
            shown = "" if np.isnan(share) or row["direction"] == "none" else f" ({share:.0%})"
            cells.append(f"{row[score]:.2f}{shown}")
        direction = "" if row["direction"] == "none" else row["direction"]
        lines.append(f"| {row['run']} | {direction} | {row['title']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
