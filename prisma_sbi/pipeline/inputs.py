"""The inputs that a configuration names: files, the region, all its trips."""

from collections.abc import Callable
from glob import glob
from pathlib import Path

import pandas as pd
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.pipeline.budget_book import path_sources
from prisma_sbi.pipeline.config import PipelineConfig
from prisma_sbi.pipeline.stage import stage_key
from prisma_sbi.region import Constants, Region, build_region, demo_region, load_region
from prisma_sbi.simulator.fleet import simulate_fleet
from prisma_sbi.telemetry import import_trips

Progress = Callable[[int, int], None]


def region_files(config: PipelineConfig) -> list[Path]:
    """Every input file of the region."""
    region = config.region
    names = (region.folder, region.roads, region.elevation, *region.vehicles)
    return _paths(config, tuple(name for name in names if name))


def trip_files(config: PipelineConfig) -> list[Path]:
    """Every input file of the telemetry, tables of vehicles included."""
    return _paths(config, (*config.telemetry.trips, *config.telemetry.vehicle_tables))


def make_region(config: PipelineConfig) -> Region:
    """Build, load or embed the public inputs."""
    region, constants = config.region, Constants.from_dict(config.region.constants)
    if region.folder:
        return load_region(config.resolve(region.folder))
    if not region.roads:
        return demo_region(constants=constants)
    return build_region(
        name=region.name,
        roads=config.resolve(region.roads),
        elevation=config.resolve(region.elevation),
        vehicles=_paths(config, region.vehicles),
        constants=constants,
        pool_size=region.pool_size,
        first_year=region.first_year,
        last_year=region.last_year,
    )


def make_trips(
    config: PipelineConfig, region: Region, progress: Progress
) -> tuple[xr.Dataset, pd.DataFrame]:
    """All trips of a configuration, and those that were set aside."""
    telemetry = config.telemetry
    if not telemetry.trips:
        traces = simulate_fleet(region, telemetry.simulated_trips, seed=telemetry.simulated_seed)
        return traces, pd.DataFrame(columns=["trip", "source", "reason", "detail"])
    imported = import_trips(
        _paths(config, telemetry.trips),
        bounds=region.bounds,
        horizon_s=region.constants.horizon_s,
        time_step_s=region.constants.time_step_s,
        vehicle_tables=_paths(config, telemetry.vehicle_tables) or None,
        vehicle_types=telemetry.vehicle_types or None,
        progress=lambda done, total, _: progress(done, total),
        region_fingerprint=region.fingerprint,
    )
    return imported.traces, imported.set_aside


def trip_sources(config: PipelineConfig) -> tuple[str, ...]:
    """By what the trips are known again in a budget book: names and contents, or a seed."""
    telemetry = config.telemetry
    if not telemetry.trips:
        return (stage_key("simulated", telemetry.simulated_trips, telemetry.simulated_seed),)
    found = _paths(config, telemetry.trips)
    folders = {path for path in found if path.is_dir()}
    inside = {item for path in folders for item in path.rglob("*") if item.is_file()}
    return path_sources(sorted({*found, *inside} - folders))


def _paths(config: PipelineConfig, patterns: tuple[str, ...]) -> list[Path]:
    """Files behind names and patterns, in order; a pattern without match is an error."""
    found = []
    for pattern in patterns:
        resolved = str(config.resolve(pattern))
        matches = sorted(glob(resolved))
        if not matches:
            raise InputDataError(
                f"Expected files at {resolved!r}; got none. Paths in a configuration count "
                "from its own folder."
            )
        found += [Path(match) for match in matches]
    return found
