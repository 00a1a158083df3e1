"""The stages of single rows and seeds: release, traces, scores; each is made once."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.decoding.decode import decode
from prisma_sbi.encoding.checkpoint import digest
from prisma_sbi.evaluation import Floor, Floors, measure_all
from prisma_sbi.pipeline.budget_book import BOOK_NAME, BudgetBook, BudgetTotal
from prisma_sbi.pipeline.config import PipelineConfig
from prisma_sbi.pipeline.inputs import trip_sources
from prisma_sbi.pipeline.reproduce.recipes import NOISELESS_EPSILON, make_release, private_table
from prisma_sbi.pipeline.reproduce.rows import Recipe, Row
from prisma_sbi.pipeline.reproduce.shared import Shared, under
from prisma_sbi.pipeline.reproduce.step import Step, read_json, write_json
from prisma_sbi.pipeline.stage import Reporter, Silence, stage_key
from prisma_sbi.privacy import Mechanism, PrivacyUnit, Release, SynthesisSettings
from prisma_sbi.region import Region
from prisma_sbi.telemetry import load_traces, save_traces

REAL = "real"
"""In place of a row: other recorded trips, the best that any row can reach."""


class Study:
    """Everything that rows are made from, in one folder.

    Releases are made by the system's noise: one that is there is used again, and one that is
    made anew comes out in another way.

    Parameters
    ----------
    config
        Region, trips, sizes of the split, budgets, splits behind floors.
    folder
        Where results go. All of it is private.
    reporter
        Told about progress.

    Raises
    ------
    InputDataError
        If the configuration protects vehicles, or has no mechanism.
    """

    def __init__(
        self, config: PipelineConfig, folder: str | Path, reporter: Reporter | None = None
    ) -> None:
        _require_published_unit(config)
        self.config, self.folder = config, Path(folder)
        self.reporter = reporter or Silence()
        self.shared = Shared(config, self.folder, self.reporter)
        self.book = BudgetBook(self.folder / BOOK_NAME)

    def steps(self, rows: Sequence[Row], seeds: Sequence[int]) -> list[Step]:
        """Every stage that some rows need, each once, in the order in which they can be run."""
        found: dict[str, Step] = {}
        for row in rows:
            steps = self.shared.steps(_recipe(row))
            for seed in seeds:
                steps += self.floors(seed), self.synthetic(row, seed), self.scores(row, seed)
            for step in steps:
                found.setdefault(step.title, step)
        return list(found.values())

    def floors(self, seed: int) -> Step:
        """Floors of one hold-out, and what other recorded trips reach against it."""
        return Step(
            title=f"{REAL} seed {seed}",
            name="floors",
            folder=self.place(REAL, seed),
            key=lambda: self._floors_key(seed),
            make=lambda out: self._make_floors(seed, out),
        )

    def synthetic(self, row: Row, seed: int) -> Step:
        """Synthetic traces of one row and seed; where a row is private this spends."""
        return Step(
            title=f"{row.name} seed {seed}",
            name="synthetic",
            folder=self.place(row.name, seed),
            key=lambda: self._synthetic_key(_recipe(row), seed),
            make=lambda out: self._make_synthetic(row, seed, out),
        )

    def scores(self, row: Row, seed: int) -> Step:
        """Scores of the traces that are there."""
        return Step(
            title=f"{row.name} seed {seed}, scores",
            name="scores",
            folder=self.place(row.name, seed),
            key=lambda: self._scores_key(row, seed),
            make=lambda out: self._make_scores(row, seed, out),
        )

    def place(self, name: str, seed: int) -> Path:
        """Folder of one row and seed."""
        return self.folder / f"seed-{seed}" / name

    def traces(self, row: Row, seed: int) -> xr.Dataset:
        """Synthetic traces that were made."""
        return load_traces(self.place(row.name, seed) / "synthetic.zarr")

    def values(self, row: Row | str, seed: int) -> Mapping[str, float | None] | None:
        """All metrics of one row and seed, or of :data:`REAL`; None if they are not there."""
        step = self.floors(seed) if isinstance(row, str) else self.scores(row, seed)
        if step.find() is None:
            return None
        return read_json(step.folder / "scores.json")["values"]

    def spent(self) -> BudgetTotal | None:
        """What all releases in the folder have cost together; None if there is none."""
        return self.book.total(self._sources)

    @cached_property
    def _sources(self) -> tuple[str, ...]:
        return trip_sources(self.config)

    def _split_key(self, seed: int) -> str:
        split = self.config.split
        return stage_key(self.shared.trips_key, split.n_train, split.n_holdout, seed)

    def _floors_key(self, seed: int) -> str:
        return stage_key(self._split_key(seed), self.config.evaluate.n_splits)

    def _synthetic_key(self, recipe: Recipe, seed: int) -> str:
        settings = self._settings(recipe).to_dict() if recipe.table else None
        fit = self.shared.fit_key(recipe)
        return stage_key(self._split_key(seed), fit, asdict(recipe), settings)

    def _scores_key(self, row: Row, seed: int) -> str:
        # A release that is made anew has the same key but other traces.
        if self.synthetic(row, seed).find() is None or self.floors(seed).find() is None:
            return ""
        facts = read_json(self.place(row.name, seed) / "facts.json")
        return stage_key(self._floors_key(seed), facts["digest"])

    def _settings(self, recipe: Recipe) -> SynthesisSettings:
        """Settings of the mechanism, as a run of the configuration has them."""
        epsilon = recipe.epsilon if recipe.is_private else NOISELESS_EPSILON
        settings = self.config.synthesize.settings("epsilon=1", n_rows=self.config.split.n_train)
        return replace(settings, epsilon=epsilon, table=recipe.table)

    def _make_floors(self, seed: int, out: Path) -> str:
        train, holdout = self.shared.split(seed)
        measured = measure_all(
            holdout,
            train.isel(trip=slice(holdout.sizes["trip"])),
            seed=seed,
            n_splits=self.config.evaluate.n_splits,
            progress=self.reporter.progress,
        )
        write_json(out / "floors.json", asdict(measured.floors))
        write_json(out / "scores.json", measured.to_dict())
        return f"{measured.n_real:,} held out, {measured.n_synthetic:,} other recorded trips"

    def _make_synthetic(self, row: Row, seed: int, out: Path) -> str:
        recipe = _recipe(row)
        region = self.shared.region(recipe.roads)
        release = self._release(row, seed, region)
        traces = decode(
            release,
            region,
            n_traces=self.config.split.n_holdout,
            seed=seed,
            allow_unprotected=not recipe.is_private,
            progress=self.reporter.progress,
        )
        save_traces(traces, out / "synthetic.zarr")
        facts = {
            "digest": digest(traces["power_w"].values),
            "n_rows": release.n_rows,
            "measured": [list(each.columns) for each in release.measured],
            "n_redrawn": traces.attrs["n_redrawn"],
            "n_replaced": traces.attrs["n_replaced"],
            "statement": release.guarantee_text(),
        }
        write_json(out / "facts.json", facts)
        n_pairs = sum(len(each.columns) > 1 for each in release.measured)
        measured = f", {n_pairs} pairs measured" if release.measured else ""
        return f"{traces.sizes['trip']:,} traces{measured}"

    def _release(self, row: Row, seed: int, region: Region) -> Release:
        """The rows that are decoded; what they spend is on disk before."""
        recipe = _recipe(row)
        trips = self.shared.split(seed)[0]["trip"].values
        table = private_table(region, self.shared.fit(recipe), trips, recipe.source, seed=seed)
        settings = self._settings(recipe) if recipe.table else SynthesisSettings()
        if recipe.is_private:
            self.book.spend(
                settings,
                release=self._synthetic_key(recipe, seed),
                mode=f"{row.name} seed {seed}",
                sources=self._sources,
                total_epsilon=self.config.synthesize.total_epsilon,
            )
        return make_release(
            recipe, table, region, settings, seed=seed, progress=self.reporter.progress
        )

    def _make_scores(self, row: Row, seed: int, out: Path) -> str:
        region = self.shared.region(_recipe(row).roads)
        measured = measure_all(
            under(region, self.shared.split(seed)[1]),
            self.traces(row, seed),
            seed=seed,
            floors=_floors_from(read_json(self.place(REAL, seed) / "floors.json")),
            progress=self.reporter.progress,
        )
        write_json(out / "scores.json", {"row": row.name, "seed": seed} | measured.to_dict())
        acf, fid = (measured.values[f"{name}_x_floor"] for name in ("acf", "fid"))
        return f"ACF {acf:.2f}, FID {fid:.2f} floors"


def _require_published_unit(config: PipelineConfig) -> None:
    """Raise unless trips are protected, by some mechanism."""
    chosen = config.synthesize
    if chosen.unit != PrivacyUnit.TRIP or chosen.mechanism == Mechanism.NONE:
        raise InputDataError(
            "Expected unit = 'trip' and a mechanism in [synthesize], as in the paper; got "
            f"unit = {str(chosen.unit)!r}, mechanism = {str(chosen.mechanism)!r}. Leave them out."
        )


def _recipe(row: Row) -> Recipe:
    """The recipe of a row that has one."""
    assert row.recipe is not None, row.name
    return row.recipe


def _floors_from(values: Mapping[str, Any]) -> Floors:
    """Inverse of ``asdict`` on floors."""
    plain: dict[str, Any] = dict(values)
    plain["by_distance"] = {name: Floor(**each) for name, each in plain["by_distance"].items()}
    return Floors(**plain)
