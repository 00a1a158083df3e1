"""`prisma telemetry import`."""

import pandas as pd
import pytest

from prisma_sbi.telemetry import load_traces
from tests.cli.conftest import prisma, prisma_json, refusal
from tests.telemetry.tables import plain_trip


@pytest.fixture
def trips(city, tmp_path):
    """Two trips in the city, and one far from it."""
    home = (city.bounds.south_deg + city.bounds.north_deg) / 2
    frames = []
    for name, shift_deg in (("a", 0.0), ("b", 0.001), ("far", 5.0)):
        frame = plain_trip(name)
        frame["lat"] += home - 42.3 + shift_deg
        frame["lon"] = (city.bounds.west_deg + city.bounds.east_deg) / 2
        frames.append(frame)
    path = tmp_path / "trips [v1].csv"
    pd.concat(frames).to_csv(path, index=False)
    return path


def test_import_keeps_and_accounts(city, city_folder, trips, tmp_path):
    out = tmp_path / "traces.zarr"
    arguments = ["telemetry", "import", trips, "--region", city_folder, "-o", out]
    found = prisma_json(*arguments)
    assert found["n_trips"] == 2
    assert found["n_set_aside"] == sum(found["set_aside"].values()) == 1
    table = pd.read_csv(found["set_aside_table"])
    assert table["trip"].tolist() == ["far"]
    assert table["source"].tolist() == [trips.name]
    traces = load_traces(out)
    assert traces.attrs["region_fingerprint"] == city.fingerprint
    assert traces.sizes["trip"] == 2

    assert "--force" in refusal(*arguments)
    again = prisma(*arguments, "--force", "--max-trips", 1)
    assert again.exit_code == 0, again.stderr
    assert f"wrote {out}: 1 trips" in again.stderr
    assert load_traces(out).sizes["trip"] == 1


def test_import_prints_the_reasons(city_folder, trips, tmp_path):
    out = tmp_path / "traces.zarr"
    done = prisma("telemetry", "import", trips, "--region", city_folder, "-o", out)
    (reason,) = pd.read_csv(tmp_path / "traces-set_aside.csv")["reason"]
    assert reason in done.stdout
    assert "1 set aside" in done.stderr


def test_import_without_a_usable_trip_points_to_the_reasons(city_folder, trips, tmp_path):
    far = pd.read_csv(trips).query("trip == 'far'")
    far.to_csv(tmp_path / "far.csv", index=False)
    out = tmp_path / "traces.zarr"
    line = refusal("telemetry", "import", tmp_path / "far.csv", "--region", city_folder, "-o", out)
    assert "traces-set_aside.csv" in line
    assert not out.exists()
    assert len(pd.read_csv(tmp_path / "traces-set_aside.csv")) == 1


@pytest.mark.parametrize(
    ("content", "part"), [("", "bad.csv"), ("a,b\n1,2\n", "bad.csv"), ("\x00\x01", "bad.csv")]
)
def test_import_refuses_a_bad_file(city_folder, content, part, tmp_path):
    (tmp_path / "bad.csv").write_text(content)
    out = tmp_path / "out.zarr"
    arguments = ["telemetry", "import", tmp_path / "bad.csv", "--region", city_folder, "-o", out]
    assert part in refusal(*arguments)
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--format", "excel"], "file_format"),
        (["--vehicle-types", " , "], "vehicle types"),
        (["--vehicle-tables", "missing.xlsx"], "missing.xlsx"),
    ],
)
def test_import_refuses_options(city_folder, trips, options, part, tmp_path):
    out = tmp_path / "out.zarr"
    line = refusal("telemetry", "import", trips, "--region", city_folder, "-o", out, *options)
    assert part in line


def test_import_refuses_a_missing_file_and_region(city_folder, tmp_path):
    out = tmp_path / "out.zarr"
    missing = tmp_path / "missing.csv"
    assert "missing.csv" in refusal(
        "telemetry", "import", missing, "--region", city_folder, "-o", out
    )
    assert "nowhere" in refusal("telemetry", "import", missing, "--region", "nowhere", "-o", out)
