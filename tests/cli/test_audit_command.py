"""`prisma audit`: tables, the report, refusals, and the exit code of a refuted claim."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from prisma_sbi.audit import audit_noise
from prisma_sbi.cli import audit_command
from prisma_sbi.privacy import ZeroNoise
from prisma_sbi.telemetry import save_traces
from tests.cli.conftest import prisma, prisma_json, refusal

QUICK = ("--level", "noise,selection", "--draws", 40)


@pytest.mark.parametrize("width", [80, 120])
def test_help_teaches(width):
    done = prisma("audit", "--help", width=width)
    assert done.exit_code == 0
    text = " ".join(done.stdout.split())
    assert "Example: prisma audit " in text
    assert "--json" in text
    assert "below it proves nothing" in text
    assert max(map(len, done.stdout.splitlines())) <= width
    assert " audit " in prisma("--help").stdout


def test_table_shows_bounds_beside_claims(tmp_path):
    done = prisma("audit", *QUICK, "--confidence", 0.9999, "-o", tmp_path / "audit.json")
    assert done.exit_code == 0, done.stderr
    assert "beside what is claimed" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    for word in ("noise", "selection", "0.125"):
        assert word in done.stdout
    assert "The claim stands" in done.stderr
    report = json.loads((tmp_path / "audit.json").read_text())
    assert [each["level"] for each in report["audits"]] == ["noise", "selection"]
    assert report["nearness"] is None


def test_released_rows_of_a_simulated_fleet_are_attacked():
    found = prisma_json(
        "audit", "--level", "table", "--mechanism", "independent", "--runs", 8, "--trips", 16,
        "--confidence", 0.9999,
    )  # fmt: skip
    (audit,) = found["audits"]
    assert (audit["n_runs"], audit["n_records"], audit["caught"]) == (8, 16, False)
    assert found["settings"]["mechanism"] == "independent"


def test_settings_come_from_a_release(city_folder, releases):
    options = ("audit", "--level", "table", "--runs", 4, "--trips", 12, "--confidence", 0.9999)
    found = prisma_json(*options, "--region", city_folder, "--like", releases["independent"])
    assert found["settings"]["mechanism"] == "independent"
    assert found["settings"]["n_rows"] is None
    assert "--region" in refusal(*options, "--like", releases["independent"])
    assert "claims nothing" in refusal(
        *options, "--region", city_folder, "--like", releases["none"]
    )


def test_refuted_claim_has_its_exit_code(monkeypatch):
    def broken(**options):
        return audit_noise(noise=ZeroNoise(), **options)

    monkeypatch.setattr(audit_command, "audit_noise", broken)
    done = prisma("audit", "--level", "noise", "--draws", 400)
    assert done.exit_code == audit_command.REFUTED
    assert "YES" in done.stdout
    assert "The claim is refuted" in done.stderr


@pytest.fixture(scope="module")
def sets(fleet: xr.Dataset, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Halves of a fleet, and copies of the first half as a release."""
    folder = tmp_path_factory.mktemp("sets")
    parts = {"members": slice(0, 12), "held": slice(12, 24), "copies": slice(0, 12)}
    return {
        name: save_traces(fleet.isel(trip=rows), folder / f"{name}.zarr")
        for name, rows in parts.items()
    }


def test_copied_traces_are_found_out(sets):
    options = ("--level", "none", "--members", sets["members"], "--held-out", sets["held"])
    found = prisma_json("audit", *options, "--released", sets["copies"])
    assert found["audits"] == []
    assert found["nearness"]["n_copied"] == 12
    assert found["nearness"]["auc"]["value"] == 1.0
    assert np.isclose(found["nearness"]["distance_ratio"]["value"], 0.0)
    done = prisma("audit", *options, "--released", sets["copies"])
    assert "Do released traces betray" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "12 of 12 members copied" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--level", "magic"), "magic"),
        (("--mechanism", "none", "--level", "table", "--trips", 8), "claims nothing"),
        (("--epsilon", -1), "epsilon"),
        (("--confidence", 1.5), "confidence"),
        (("--members", "x.zarr"), "--held-out"),
        (("--region", "nowhere", "--level", "table"), "nowhere"),
        (("--level", "none"), "at least one level"),
        (("--level", "traces", "--fit", "fit.zarr"), "--level table"),
    ],
)
def test_wrong_requests_are_refused(arguments, message):
    assert message in refusal("audit", *arguments)


def test_a_folder_is_no_report(tmp_path):
    assert "the folder" in refusal("audit", *QUICK, "-o", tmp_path)
