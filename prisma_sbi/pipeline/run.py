"""The whole road: public inputs and trips in, private synthetic traces and their scores out."""

import json
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi._files import replacing
from prisma_sbi.decoding.decode import decode
from prisma_sbi.descriptors.table import DESCRIPTORS
from prisma_sbi.encoding import descriptor_table, encode, load_fit, save_fit, status_counts
from prisma_sbi.evaluation import compute_floors, evaluate, metrics_json, recovery
from prisma_sbi.models import TripModel
from prisma_sbi.pipeline.budget_book import BudgetTotal
from prisma_sbi.pipeline.config import PipelineConfig
from prisma_sbi.pipeline.figures import draw_figures
from prisma_sbi.pipeline.inputs import (
    make_region,
    make_trips,
    region_files,
    trip_files,
    trip_sources,
)
from prisma_sbi.pipeline.metrics import trip_metrics, workload_metrics
from prisma_sbi.pipeline.spending import Spending
from prisma_sbi.pipeline.stage import (
    Reporter,
    Silence,
    StageRecord,
    file_stamp,
    run_stage,
    stage_file,
    stage_key,
)
from prisma_sbi.privacy import PrivacyUnit, load_release, save_release, synthesize
from prisma_sbi.region import (
    Region,
    load_region,
    save_region,
)
from prisma_sbi.telemetry import load_traces, save_traces, split_trips

_LIBRARIES = ("prisma-sbi", "jax", "numpy", "xarray", "mbi", "opendp")


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a run made.

    Attributes
    ----------
    folder
        Where everything is.
    metrics
        Contents of ``metrics.json``.
    recovery
        Errors against known descriptors, with the rows of a table; None for real trips.
    stages
        What each stage cost.
    warnings
        What a person should know, the warnings of releases among them.
    spent
        Cost of all releases from the same trips, by the book of the folder; None without any.
    """

    folder: Path
    metrics: dict[str, Any]
    recovery: dict[str, Any] | None
    stages: list[StageRecord]
    warnings: list[str] = field(default_factory=list)
    spent: BudgetTotal | None = None


def run_pipeline(
    config: PipelineConfig,
    folder: str | Path,
    *,
    reporter: Reporter | None = None,
    force: bool = False,
) -> RunResult:
    """Run all stages, taking up finished ones from an earlier run.

    Parameters
    ----------
    config
        What to do; see :func:`load_config`.
    folder
        Where results go: ``metrics.json``, ``real.zarr``, one ``synthetic-*.zarr`` and one
        ``release-*`` per mode, ``descriptors.parquet``, ``set_aside.csv``, ``figures``,
        ``log.json``, ``privacy-ledger.jsonl``. Only ``release-epsilon=*`` and
        ``synthetic-epsilon=*`` carry a guarantee; everything else is private.
    reporter
        Told about progress.
    force
        Run every stage again. For a release this is a second spend, and the book in
        ``privacy-ledger.jsonl`` adds it to the first; no run deletes that file.

    Returns
    -------
    RunResult

    Raises
    ------
    InputDataError
        If an input cannot be used.
    BudgetError
        If the releases would exceed ``total_epsilon``; nothing is then released.
    """
    return _Run(config, Path(folder), reporter or Silence(), force=force).run()


class _Run:
    """One run: each stage is a method that fills a folder; state between them is on disk."""

    def __init__(
        self, config: PipelineConfig, folder: Path, reporter: Reporter, *, force: bool = False
    ) -> None:
        self.config, self.folder, self.reporter, self.force = config, folder, reporter, force
        self.records: list[StageRecord] = []
        self.warnings: list[str] = []
        self.modes = config.synthesize.modes()
        self.spending = Spending(config, folder)

    def run(self) -> RunResult:
        """All stages in order; the key of each holds the keys of those it builds on."""
        config = self.config
        self.folder.mkdir(parents=True, exist_ok=True)
        version = metadata.version("prisma-sbi")
        recorded = trip_files(config)  # a wrong path shows before any work is done
        key = stage_key(version, asdict(config.region), self._stamps(region_files(config)))
        self._stage("region", key, self._make_region)
        region = load_region(self.folder / "region")
        key = stage_key(
            key,
            region.fingerprint,
            asdict(config.telemetry),
            asdict(config.split),
            self._stamps(recorded),
        )
        self._stage("telemetry", key, lambda out: self._make_traces(region, out))
        encoded = stage_key(key, asdict(config.encode))
        self._stage("encode", encoded, lambda out: self._make_fit(region, out))
        keys = {mode: self._release_key(encoded, mode) for mode in self.modes}
        self.spending.check(keys, trip_sources(config), force=self.force)
        decoded = []
        for mode, released in keys.items():
            self._stage(
                f"synthesize {mode}",
                released,
                lambda out, mode=mode: self._make_release(region, mode, keys[mode], out),
            )
            # A release made anew has the same key but other rows.
            stamp = file_stamp(self.folder / f"release-{mode}")
            decoded.append(stage_key(released, stamp, config.evaluate.n_synthetic))
            self._stage(
                f"decode {mode}",
                decoded[-1],
                lambda out, mode=mode: self._make_synthetic(region, mode, out),
            )
        key = stage_key(decoded, asdict(config.evaluate))
        self._stage("evaluate", key, lambda out: self._make_scores(region, out))
        return self._finish()

    def _release_key(self, encoded: str, mode: str) -> str:
        """Key of one release: the descriptors, the settings, and the seed of the rows."""
        config = self.config
        settings = config.synthesize.settings(mode, n_rows=config.split.n_train)
        return stage_key(encoded, settings.to_dict(), config.synthesize.seed)

    def _stage(self, name: str, key: str, make: Callable[[Path], str]) -> None:
        """Run or reuse one stage and tell about it."""
        self.reporter.stage(name, 4 + 2 * len(self.modes), len(self.records))
        record = run_stage(stage_file(name), self.folder, key, make, force=self.force)
        self.records.append(record)
        self.reporter.finished(record)

    @staticmethod
    def _stamps(paths: list[Path]) -> list[Any]:
        """Stamps of input files, so that a changed file is read again."""
        return [file_stamp(path) for path in paths]

    def _make_region(self, out: Path) -> str:
        """Build, load or embed the public inputs."""
        region = make_region(self.config)
        save_region(region, out / "region")
        return f"{region.roads.n_nodes:,} junctions, {len(region.vehicles)} vehicles"

    def _make_traces(self, region: Region, out: Path) -> str:
        """Import or simulate trips, and split them."""
        split = self.config.split
        traces, set_aside = make_trips(self.config, region, self.reporter.progress)
        train, holdout = split_trips(
            traces, n_train=split.n_train, n_holdout=split.n_holdout, seed=split.seed
        )
        save_traces(train, out / "train.zarr")
        save_traces(holdout, out / "real.zarr")
        set_aside.to_csv(out / "set_aside.csv", index=False)
        return f"{traces.sizes['trip']:,} trips, {len(set_aside):,} set aside"

    def _make_fit(self, region: Region, out: Path) -> str:
        """Encode the training trips."""
        train = load_traces(self.folder / "train.zarr")
        model = TripModel.of(region, likelihood=self.config.encode.likelihood)
        fit = encode(region, train, model=model, progress=self.reporter.progress)
        save_fit(fit, out / "fit.zarr")
        table = descriptor_table(region, fit).to_dataframe().reset_index()
        table.to_parquet(out / "descriptors.parquet", index=False)
        counts = status_counts(fit)
        if "aggressiveness" in train:
            found = recovery(
                train[list(DESCRIPTORS)],
                descriptor_table(region, fit),
                vehicle_mass_kg=region.vehicles.mass_kg,
            )
            content = found.to_dict() | {"rows": found.rows()}
            (out / "recovery.json").write_text(json.dumps(content, indent=1))
        return f"{train.sizes['trip']:,} trips, " + ", ".join(
            f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items() if count
        )

    def _make_release(self, region: Region, mode: str, key: str, out: Path) -> str:
        """Synthesize descriptors for one mode, after it was written into the book."""
        config = self.config
        table = descriptor_table(region, load_fit(self.folder / "fit.zarr"))
        if mode != "none" and config.synthesize.unit == PrivacyUnit.VEHICLE:
            table = self._with_owners(table)

        def tell(share: float, _: str) -> None:
            self.reporter.progress(round(100 * share), 100)

        self.spending.spend(mode, key)
        release = synthesize(
            table,
            region,
            config.synthesize.settings(mode, n_rows=config.split.n_train),
            seed=config.synthesize.seed,
            progress=tell,
        )
        save_release(release, out / f"release-{mode}")
        return f"{release.n_rows:,} rows, {len(release.measured)} marginals measured"

    def _with_owners(self, table: xr.Dataset) -> xr.Dataset:
        """The table with the recorded vehicle of each trip, which bounds its trips."""
        train = load_traces(self.folder / "train.zarr")
        if "vehicle_id" not in train:
            raise InputDataError(
                "Expected the recorded vehicle of each trip for unit = 'vehicle'; got trips "
                "without one, such as those of a simulated fleet. Protect trips with unit = 'trip'."
            )
        owner = train["vehicle_id"].sel(trip=table["trip"]).values
        return table.assign(owner=("trip", owner.astype(np.str_)))

    def _make_synthetic(self, region: Region, mode: str, out: Path) -> str:
        """Decode one release."""
        config = self.config
        release = load_release(self.folder / f"release-{mode}", region)
        traces = decode(
            release,
            region,
            n_traces=config.evaluate.n_synthetic or config.split.n_holdout,
            seed=config.evaluate.seed,
            allow_unprotected=mode == "none",
            progress=self.reporter.progress,
        )
        save_traces(traces, out / f"synthetic-{mode}.zarr")
        redrawn, replaced = traces.attrs["n_redrawn"], traces.attrs["n_replaced"]
        return f"{traces.sizes['trip']:,} traces, {redrawn} redrawn, {replaced} replaced"

    def _make_scores(self, region: Region, out: Path) -> str:
        """Judge every mode against the hold-out, and draw."""
        config = self.config.evaluate
        real = load_traces(self.folder / "real.zarr")
        synthetic = {
            mode: load_traces(self.folder / f"synthetic-{mode}.zarr") for mode in self.modes
        }
        floors = compute_floors(real, seed=config.seed, n_splits=config.n_splits)
        scores = {}
        for index, (mode, traces) in enumerate(synthetic.items()):
            scores[mode] = evaluate(real, traces, floors=floors)
            self.reporter.progress(index + 1, len(synthetic) + config.figures)
        content = metrics_json(scores) | {
            "trips": trip_metrics(region, real, synthetic, config),
            "workload": workload_metrics(region, self.folder, self.modes),
        }
        (out / "metrics.json").write_text(json.dumps(content, indent=1))
        if config.figures:
            truth = self._truth()
            draw_figures(region, real, synthetic, truth, out / "figures")
        return f"{real.sizes['trip']:,} real traces against {len(synthetic)} synthetic sets"

    def _truth(self) -> tuple[xr.Dataset, xr.Dataset] | None:
        """Known and fitted descriptors of a simulated fleet."""
        train = load_traces(self.folder / "train.zarr")
        if "aggressiveness" not in train:
            return None
        region = load_region(self.folder / "region")
        fitted = descriptor_table(region, load_fit(self.folder / "fit.zarr"))
        return train[list(DESCRIPTORS)], fitted

    def _finish(self) -> RunResult:
        """Collect warnings, write the log, and return what a caller wants to see."""
        private = [mode for mode in self.modes if mode != "none"]
        region = load_region(self.folder / "region")
        for mode in private:
            release = load_release(self.folder / f"release-{mode}", region)
            self.warnings += [f"{mode}: {sentence}" for sentence in release.warnings]
        total = self.spending.total()
        if total is not None and total.n_releases > 1:
            self.warnings.append(total.text)
        for warning in self.warnings:
            self.reporter.note(warning)
        if total is not None and total.n_releases == 1:
            self.reporter.note(total.text)
        log = {
            "config": self.config.to_dict() | {"base_folder": ""},
            "stages": [asdict(record) for record in self.records],
            "warnings": self.warnings,
            "privacy": total.to_dict() if total is not None else None,
            "versions": {name: _version(name) for name in _LIBRARIES},
            "python": platform.python_version(),
        }
        with replacing(self.folder / "log.json") as partial:
            partial.write_text(json.dumps(log, indent=1))
        found = self.folder / "recovery.json"
        return RunResult(
            folder=self.folder,
            metrics=json.loads((self.folder / "metrics.json").read_text()),
            recovery=json.loads(found.read_text()) if found.is_file() else None,
            stages=self.records,
            warnings=self.warnings,
            spent=total,
        )


def _version(name: str) -> str:
    """Version of a library, for the log."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
