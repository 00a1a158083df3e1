"""`prisma study sensitivity`: which constants move what, and refusals."""

import pandas as pd
import pytest

from prisma_sbi.study.sensitivity import CONSTANTS
from tests.cli.conftest import prisma, prisma_json, refusal


def test_help_teaches():
    done = prisma("study", "sensitivity", "--help")
    assert done.exit_code == 0
    assert "Example: prisma study sensitivity " in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.slow
def test_constants_are_ranked_on_simulated_and_recorded_trips(tmp_path, traces_path, city_folder):
    out = tmp_path / "sensitivity"
    options = ("study", "sensitivity", "--trips", 2)
    done = prisma(*options, "-o", out)
    assert done.exit_code == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "may be shown to anybody" in " ".join(done.stderr.split())
    for name in ("tornado.png", "prior.png"):
        assert (out / name).stat().st_size > 10_000
    table = pd.read_csv(out / "constants.csv", index_col="constant")
    assert set(table.index) == set(CONSTANTS)
    assert "--force" in refusal(*options, "-o", out)
    found = prisma_json(*options, traces_path, "--region", city_folder, "--prior", "flat")
    assert found["private"]
    assert all(sum(roles.values()) == 2 for roles in found["roles"].values())
    # A flat prior decides nothing.
    assert all(roles["ok"] == 2 for roles in found["roles"].values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("some.zarr",), "--region"),
        (("--change", 0.9), "change in"),
        (("--change", 0), "change > 0"),
    ],
)
def test_wrong_requests_are_refused(arguments, message):
    assert message in refusal("study", "sensitivity", *arguments)
