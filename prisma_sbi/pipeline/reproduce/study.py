"""The stages behind a table: each remembers what it was made from, so that none is made twice."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi._files import remove
from prisma_sbi.decoding.decode import decode
from prisma_sbi.encoding import EncodeSettings, Method, QuadratureFit, encode, load_fit, save_fit
from prisma_sbi.encoding.checkpoint import digest
from prisma_sbi.evaluation import Floor, Floors, measure_all
from prisma_sbi.pipeline.budget_book import BOOK_NAME, BudgetBook
from prisma_sbi.pipeline.config import PipelineConfig
from prisma_sbi.pipeline.reproduce.inputs import (
    make_region,
    make_trips,
    region_files,
    region_without,
    trip_files,
    trip_sources,
)
from prisma_sbi.pipeline.reproduce.recipes import NOISELESS_EPSILON, make_release, private_table
from prisma_sbi.pipeline.reproduce.rows import Recipe, Roads, Row, Source
from prisma_sbi.pipeline.stage import (
    Reporter,
    Silence,
    StageRecord,
    file_stamp,
    find_stage,
    run_stage,
    stage_file,
    stage_key,
)
from prisma_sbi.privacy import Mechanism, PrivacyUnit, Release, SynthesisSettings
from prisma_sbi.region import Region, load_region, save_region
from prisma_sbi.telemetry import load_traces, save_traces, split_trips

N_DRAWS = 32
"""Posterior draws of a trip; weights are kept in 64ths, so that each of them counts."""
REAL = "real"
"""In place of a row: other recorded trips, the best that any row can reach."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One stage, to be run or looked up.

    Attributes
    ----------
    title
        For people.
    name
        Of the stage within its folder.
    folder
        Where its result goes.
    key
        Gives the digest of what it depends on; empty while something of that is not there.
    make
        Fills a folder and says what it did.
    """

    title: str
    name: str
    folder: Path
    key: Callable[[], str]
    make: Callable[[Path], str]

    def find(self) -> StageRecord | None:
        """What it cost, if its result is there and still holds."""
        key = self.key()
        return find_stage(stage_file(self.name), self.folder, key) if key else None

    def run(self) -> StageRecord:
        """Make the result, or find it."""
        record = run_stage(stage_file(self.name), self.folder, self.key(), self.make)
        return replace(record, name=self.title)


class Study:
    """Everything that rows are made from, in one folder.

    A trip's fit depends on that trip alone, so all trips are fitted once, and each seed takes
    the rows of its training trips from that fit. Releases are made by the system's noise: one
    that is there is used again, and one that is made anew comes out in another way.

    Parameters
    ----------
    config
        Region, trips, sizes of the split, budgets, splits behind floors.
    folder
        Where results go. All of it is private.
    reporter
        Told about progress.
    """

    def __init__(
        self, config: PipelineConfig, folder: str | Path, reporter: Reporter | None = None
    ) -> None:
        _require_published_unit(config)
        self.config, self.folder = config, Path(folder)
        self.reporter = reporter or Silence()
        self.book = BudgetBook(self.folder / BOOK_NAME)
        self._splits: dict[int, tuple[xr.Dataset, xr.Dataset]] = {}
        self._regions: dict[Roads, Region] = {}
        self._fits: dict[tuple[bool, Roads], xr.DataTree] = {}

    # Stages

    def steps(self, rows: Sequence[Row], seeds: Sequence[int]) -> list[Step]:
        """Every stage that some rows need, each once, in the order in which they can be run."""
        found: dict[str, Step] = {}
        for row in rows:
            assert row.recipe is not None
            for step in self._shared(row.recipe):
                found.setdefault(step.title, step)
            for seed in seeds:
                for step in (self.floors(seed), self.synthetic(row, seed), self.scores(row, seed)):
                    found.setdefault(step.title, step)
        return list(found.values())

    def _shared(self, recipe: Recipe) -> list[Step]:
        """Stages that all seeds share."""
        exact, roads = recipe.source == Source.POSTERIOR, recipe.roads
        steps = [
            self._step("region", lambda: self._region_key, self._make_region),
            self._step("trips", lambda: self._trips_key, self._make_trips),
        ]
        if roads != Roads.ALL:
            key = stage_key(self._region_key, roads)
            steps.append(
                self._step(f"region-{roads}", lambda: key, lambda out: self._vary(roads, out))
            )
        name = self._fit_name(exact=exact, roads=roads)
        fit_key = self._fit_key(exact=exact, roads=roads)
        steps.append(
            self._step(
                name, lambda: fit_key, lambda out: self._make_fit(out, exact=exact, roads=roads)
            )
        )
        return steps

    def _step(self, name: str, key: Callable[[], str], make: Callable[[Path], str]) -> Step:
        """A stage of the whole folder."""
        return Step(title=name, name=name, folder=self.folder, key=key, make=make)

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
            key=lambda: self._synthetic_key(row, seed),
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

    # What each depends on

    @cached_property
    def _region_key(self) -> str:
        stamps = [file_stamp(path) for path in region_files(self.config)]
        return stage_key(metadata.version("prisma-sbi"), asdict(self.config.region), stamps)

    @cached_property
    def _trips_key(self) -> str:
        stamps = [file_stamp(path) for path in trip_files(self.config)]
        return stage_key(self._region_key, asdict(self.config.telemetry), stamps)

    @cached_property
    def _sources(self) -> tuple[str, ...]:
        return trip_sources(self.config)

    def _fit_key(self, *, exact: bool, roads: Roads) -> str:
        return stage_key(self._trips_key, roads, repr(_encode_settings(exact=exact)))

    def _split_key(self, seed: int) -> str:
        split = self.config.split
        return stage_key(self._trips_key, split.n_train, split.n_holdout, seed)

    def _floors_key(self, seed: int) -> str:
        return stage_key(self._split_key(seed), self.config.evaluate.n_splits)

    def _synthetic_key(self, row: Row, seed: int) -> str:
        recipe = _recipe(row)
        exact, roads = recipe.source == Source.POSTERIOR, recipe.roads
        settings = self._settings(recipe).to_dict() if recipe.table else None
        fit = self._fit_key(exact=exact, roads=roads)
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

    # What they make

    def region(self, roads: Roads = Roads.ALL) -> Region:
        """The public inputs of a row."""
        if roads not in self._regions:
            name = "region" if roads == Roads.ALL else f"region-{roads}"
            self._regions[roads] = load_region(self.folder / name)
        return self._regions[roads]

    def split(self, seed: int) -> tuple[xr.Dataset, xr.Dataset]:
        """Recorded trips to train and to judge with, under one seed."""
        if seed not in self._splits:
            sizes = self.config.split
            self._splits[seed] = split_trips(
                self._trips, n_train=sizes.n_train, n_holdout=sizes.n_holdout, seed=seed
            )
        return self._splits[seed]

    @cached_property
    def _trips(self) -> xr.Dataset:
        return load_traces(self.folder / "trips.zarr")

    def _fit(self, *, exact: bool, roads: Roads) -> xr.DataTree:
        if (exact, roads) not in self._fits:
            name = self._fit_name(exact=exact, roads=roads)
            self._fits[exact, roads] = load_fit(self.folder / f"{name}.zarr")
        return self._fits[exact, roads]

    @staticmethod
    def _fit_name(*, exact: bool, roads: Roads) -> str:
        name = "fit-posterior" if exact else "fit-map"
        return name if roads == Roads.ALL else f"{name}-{roads}"

    def _make_region(self, out: Path) -> str:
        region = make_region(self.config)
        save_region(region, out / "region")
        return f"{region.roads.n_nodes:,} junctions, {len(region.vehicles)} vehicles"

    def _vary(self, roads: Roads, out: Path) -> str:
        region = region_without(self.region(), roads)
        save_region(region, out / f"region-{roads}")
        return region.name

    def _make_trips(self, out: Path) -> str:
        traces, set_aside = make_trips(self.config, self.region(), self.reporter.progress)
        save_traces(traces, out / "trips.zarr")
        set_aside.to_csv(out / "set_aside.csv", index=False)
        return f"{traces.sizes['trip']:,} trips, {len(set_aside):,} set aside"

    def _make_fit(self, out: Path, *, exact: bool, roads: Roads) -> str:
        self.split(seed=0)  # too few trips show before an hour of fitting
        region = self.region(roads)
        name = self._fit_name(exact=exact, roads=roads)
        checkpoint = self.folder / f"{name}.chunks"
        fit = encode(
            region,
            _under(region, self._trips),
            settings=_encode_settings(exact=exact),
            checkpoint=checkpoint,
            progress=self.reporter.progress,
        )
        save_fit(fit, out / f"{name}.zarr")
        remove(checkpoint)
        return f"{self._trips.sizes['trip']:,} trips by {fit.attrs['method']}"

    def _make_floors(self, seed: int, out: Path) -> str:
        train, holdout = self.split(seed)
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
        region = self.region(recipe.roads)
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
        fit = self._fit(exact=recipe.source == Source.POSTERIOR, roads=recipe.roads)
        trips = self.split(seed)[0]["trip"].values
        table = private_table(region, fit, trips, recipe.source, seed=seed)
        settings = self._settings(recipe) if recipe.table else SynthesisSettings()
        if recipe.is_private:
            self.book.spend(
                settings,
                release=self._synthetic_key(row, seed),
                mode=f"{row.name} seed {seed}",
                sources=self._sources,
                total_epsilon=self.config.synthesize.total_epsilon,
            )
        return make_release(
            recipe, table, region, settings, seed=seed, progress=self.reporter.progress
        )

    def _make_scores(self, row: Row, seed: int, out: Path) -> str:
        region = self.region(_recipe(row).roads)
        floors = floors_from_dict(read_json(self.place(REAL, seed) / "floors.json"))
        measured = measure_all(
            _under(region, self.split(seed)[1]),
            self.traces(row, seed),
            seed=seed,
            floors=floors,
            progress=self.reporter.progress,
        )
        write_json(out / "scores.json", {"row": row.name, "seed": seed} | measured.to_dict())
        acf, fid = (measured.values[f"{name}_x_floor"] for name in ("acf", "fid"))
        return f"ACF {acf:.2f}, FID {fid:.2f} floors"

    def traces(self, row: Row, seed: int) -> xr.Dataset:
        """Synthetic traces that were made."""
        return load_traces(self.place(row.name, seed) / "synthetic.zarr")

    def values(self, row: Row | str, seed: int) -> Mapping[str, float | None] | None:
        """All metrics of one row and seed, or of :data:`REAL`; None if they are not there."""
        step = self.floors(seed) if isinstance(row, str) else self.scores(row, seed)
        if step.find() is None:
            return None
        return read_json(step.folder / "scores.json")["values"]

    def spent(self) -> Any:
        """What all releases in the folder have cost together; None if there is none."""
        return self.book.total(self._sources)


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


def _encode_settings(*, exact: bool) -> EncodeSettings:
    """How all trips are fitted: by a point, or with draws of the exact posterior."""
    if not exact:
        return EncodeSettings()
    return EncodeSettings(method=Method.QUADRATURE, work=QuadratureFit(n_chains=1, n_draws=N_DRAWS))


def _under(region: Region, traces: xr.Dataset) -> xr.Dataset:
    """Recorded traces under a variant of their region; they do not depend on heights or signals."""
    return traces.assign_attrs(region_fingerprint=region.fingerprint)


def floors_from_dict(values: Mapping[str, Any]) -> Floors:
    """Inverse of ``asdict`` on floors."""
    plain: dict[str, Any] = dict(values)
    plain["by_distance"] = {name: Floor(**each) for name, each in plain["by_distance"].items()}
    return Floors(**plain)


def read_json(path: Path) -> dict[str, Any]:
    """An object from a file."""
    return json.loads(path.read_text())


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """An object into a file."""
    path.write_text(json.dumps(content, indent=1))
