"""What all rows and seeds share: region and variants, all trips, and their fits, made once."""

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path

import numpy as np
import xarray as xr

from prisma_sbi._files import remove
from prisma_sbi.encoding import EncodeSettings, Method, QuadratureFit, encode, load_fit, save_fit
from prisma_sbi.models import TripModel
from prisma_sbi.pipeline.config import PipelineConfig
from prisma_sbi.pipeline.inputs import make_region, make_trips, region_files, trip_files
from prisma_sbi.pipeline.reproduce.rows import Recipe, Roads, Source
from prisma_sbi.pipeline.reproduce.step import Step
from prisma_sbi.pipeline.stage import Reporter, file_stamp, stage_key
from prisma_sbi.region import Region, load_region, save_region
from prisma_sbi.telemetry import load_traces, save_traces, split_trips

N_DRAWS = 32
"""Posterior draws of a trip; weights are kept in 64ths, so that each of them counts."""


class Shared:
    """Region, trips and fits of one configuration in one folder, read when they are asked for.

    A trip's fit depends on that trip alone, so all trips are fitted once, and each seed takes
    the rows of its training trips from that fit.
    """

    def __init__(self, config: PipelineConfig, folder: Path, reporter: Reporter) -> None:
        self.config, self.folder, self.reporter = config, folder, reporter
        self._regions: dict[Roads, Region] = {}
        self._fits: dict[str, xr.DataTree] = {}
        self._splits: dict[int, tuple[xr.Dataset, xr.Dataset]] = {}

    def steps(self, recipe: Recipe) -> list[Step]:
        """Stages that a recipe needs."""
        roads, name = recipe.roads, _fit_name(recipe)
        steps = [
            self._step("region", self.region_key, self._make_region),
            self._step("trips", self.trips_key, self._make_trips),
            self._step(name, self.fit_key(recipe), lambda out: self._make_fit(recipe, out)),
        ]
        if roads != Roads.ALL:
            key = stage_key(self.region_key, roads)
            vary = self._step(_region_name(roads), key, lambda out: self._vary(roads, out))
            steps.insert(2, vary)
        return steps

    def _step(self, name: str, key: str, make: Callable[[Path], str]) -> Step:
        """A stage of the whole folder."""
        return Step(title=name, name=name, folder=self.folder, key=lambda: key, make=make)

    @cached_property
    def region_key(self) -> str:
        """What the region depends on."""
        stamps = [file_stamp(path) for path in region_files(self.config)]
        return stage_key(metadata.version("prisma-sbi"), asdict(self.config.region), stamps)

    @cached_property
    def trips_key(self) -> str:
        """What the trips depend on."""
        stamps = [file_stamp(path) for path in trip_files(self.config)]
        return stage_key(self.region_key, asdict(self.config.telemetry), stamps)

    def fit_key(self, recipe: Recipe) -> str:
        """What the fit of a recipe depends on."""
        seen = self.config.encode.likelihood
        # The published likelihood goes unnamed, as it did before there was a choice.
        named = () if seen == "summary" else (seen,)
        return stage_key(self.trips_key, recipe.roads, repr(_encode_settings(recipe)), *named)

    def region(self, roads: Roads = Roads.ALL) -> Region:
        """The public inputs of a row."""
        if roads not in self._regions:
            self._regions[roads] = load_region(self.folder / _region_name(roads))
        return self._regions[roads]

    @cached_property
    def _trips(self) -> xr.Dataset:
        return load_traces(self.folder / "trips.zarr")

    def split(self, seed: int) -> tuple[xr.Dataset, xr.Dataset]:
        """Recorded trips to train and to judge with, under one seed."""
        if seed not in self._splits:
            sizes = self.config.split
            self._splits[seed] = split_trips(
                self._trips, n_train=sizes.n_train, n_holdout=sizes.n_holdout, seed=seed
            )
        return self._splits[seed]

    def fit(self, recipe: Recipe) -> xr.DataTree:
        """The fit of all trips that a recipe takes rows from."""
        name = _fit_name(recipe)
        if name not in self._fits:
            self._fits[name] = load_fit(self.folder / f"{name}.zarr")
        return self._fits[name]

    def _make_region(self, out: Path) -> str:
        region = make_region(self.config)
        save_region(region, out / "region")
        return f"{region.roads.n_nodes:,} junctions, {len(region.vehicles)} vehicles"

    def _vary(self, roads: Roads, out: Path) -> str:
        region = region_without(self.region(), roads)
        save_region(region, out / _region_name(roads))
        return region.name

    def _make_trips(self, out: Path) -> str:
        traces, set_aside = make_trips(self.config, self.region(), self.reporter.progress)
        save_traces(traces, out / "trips.zarr")
        set_aside.to_csv(out / "set_aside.csv", index=False)
        return f"{traces.sizes['trip']:,} trips, {len(set_aside):,} set aside"

    def _make_fit(self, recipe: Recipe, out: Path) -> str:
        self.split(seed=0)  # too few trips show before an hour of fitting
        region, name = self.region(recipe.roads), _fit_name(recipe)
        checkpoint = self.folder / f"{name}.chunks"
        fit = encode(
            region,
            under(region, self._trips),
            model=TripModel.of(region, likelihood=self.config.encode.likelihood),
            settings=_encode_settings(recipe),
            checkpoint=checkpoint,
            progress=self.reporter.progress,
        )
        save_fit(fit, out / f"{name}.zarr")
        remove(checkpoint)
        return f"{self._trips.sizes['trip']:,} trips by {fit.attrs['method']}"


def region_without(region: Region, roads: Roads) -> Region:
    """The region with heights or traffic controls taken away; its fingerprint is another one."""
    if roads == Roads.FLAT:
        level = replace(region.elevation, height_m=np.zeros_like(region.elevation.height_m))
        return replace(region, name=f"{region.name}, flat", elevation=level)
    if roads == Roads.FREE:
        free = replace(region.roads, node_control=np.zeros_like(region.roads.node_control))
        return replace(region, name=f"{region.name}, without signals", roads=free)
    return region


def under(region: Region, traces: xr.Dataset) -> xr.Dataset:
    """Recorded traces under a variant of their region; they do not depend on heights or signals."""
    return traces.assign_attrs(region_fingerprint=region.fingerprint)


def _encode_settings(recipe: Recipe) -> EncodeSettings:
    """How all trips are fitted: by a point, or with draws of the exact posterior."""
    if recipe.source != Source.POSTERIOR:
        return EncodeSettings()
    return EncodeSettings(method=Method.QUADRATURE, work=QuadratureFit(n_chains=1, n_draws=N_DRAWS))


def _region_name(roads: Roads) -> str:
    """Folder and stage of a region."""
    return "region" if roads == Roads.ALL else f"region-{roads}"


def _fit_name(recipe: Recipe) -> str:
    """File and stage of a fit; unfitted rows take the ends and the choice of trips from it."""
    name = "fit-posterior" if recipe.source == Source.POSTERIOR else "fit-map"
    return name if recipe.roads == Roads.ALL else f"{name}-{recipe.roads}"
