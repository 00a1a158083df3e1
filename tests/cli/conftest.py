"""A command to call, a region, a simulated fleet and its releases, made once."""

import json
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from typer.testing import CliRunner, Result

from prisma_sbi.cli.main import app
from prisma_sbi.descriptors.table import DESCRIPTORS
from prisma_sbi.privacy import SynthesisSettings, save_release, synthesize
from prisma_sbi.region import Region, demo_region, save_region
from prisma_sbi.simulator.fleet import simulate_fleet
from prisma_sbi.telemetry import save_traces


def prisma(*arguments: Any, width: int = 80) -> Result:
    """Run the command in this process, as wide as a terminal of that width."""
    environment = {"COLUMNS": str(width), "PRISMA_DEBUG": "", "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner(env=environment).invoke(app, [str(item) for item in arguments])


def prisma_json(*arguments: Any) -> dict[str, Any]:
    """The object that a command prints with ``--json``; stdout must hold nothing else."""
    done = prisma(*arguments, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def refusal(*arguments: Any) -> str:
    """The one line on stderr with which a command refuses; exit code 2, nothing on stdout."""
    done = prisma(*arguments)
    assert done.exit_code == 2, (done.exit_code, done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture(scope="session")
def city() -> Region:
    return demo_region()


@pytest.fixture(scope="session")
def city_folder(city: Region, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("public") / "city"
    save_region(city, folder)
    return folder


@pytest.fixture(scope="session")
def fleet(city: Region) -> xr.Dataset:
    return simulate_fleet(city, 24, seed=3)


@pytest.fixture(scope="session")
def traces_path(fleet: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_traces(fleet, tmp_path_factory.mktemp("private") / "traces.zarr")


@pytest.fixture(scope="session")
def releases(
    city: Region, fleet: xr.Dataset, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Releases of the true descriptors: with noise, and as they are."""
    folder = tmp_path_factory.mktemp("releases")
    table = fleet[list(DESCRIPTORS)].assign_attrs(
        kind="descriptors", format_version=1, region_fingerprint=city.fingerprint
    )
    paths = {}
    for mechanism in ("independent", "none"):
        settings = SynthesisSettings(mechanism=mechanism, epsilon=1.0)
        paths[mechanism] = folder / mechanism
        save_release(synthesize(table, city, settings, seed=0), paths[mechanism])
    return paths


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The smallest demo; slow, because it encodes."""
    folder = tmp_path_factory.mktemp("runs") / "demo"
    return folder, prisma_json("demo", "-o", folder, "--trips", 16)
