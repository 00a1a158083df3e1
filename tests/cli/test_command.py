"""The command as a newcomer meets it."""

import json
import subprocess
import sys

import pytest

COMMANDS = [
    (),
    ("demo",),
    ("run",),
    ("region", "build"),
    ("region", "show"),
    ("telemetry", "import"),
    ("encode",),
    ("synthesize",),
    ("decode",),
    ("evaluate",),
]


def prisma(*arguments):
    """Run the command in a process of its own."""
    code = "from prisma_sbi.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def region(tmp_path_factory):
    from prisma_sbi.region import demo_region, save_region

    return save_region(demo_region(), tmp_path_factory.mktemp("cli") / "region")


def test_every_help_teaches():
    for command in COMMANDS:
        shown = prisma(*command, "--help")
        assert shown.returncode == 0
        assert "prisma " in shown.stdout


def test_version_and_region_as_json(region):
    assert prisma("--version").stdout.startswith("prisma 0.")
    shown = prisma("region", "show", region, "--json")
    assert shown.returncode == 0
    assert json.loads(shown.stdout)["vehicles"] == 64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("encode", "nowhere.zarr", "--region", "{region}", "-o", "{out}"), "nowhere.zarr"),
        (("run", "nowhere.toml", "-o", "{out}"), "nowhere.toml"),
        (("region", "show", "nowhere"), "nowhere"),
        (("synthesize", "f", "--region", "{region}", "--explain", "--epsilon", "0"), "epsilon"),
        (("synthesize", "f", "--region", "{region}", "--explain", "--delta", "1"), "delta"),
        (("encode", "x.zarr", "--region", "{region}", "-o", "{region}"), "left as it is"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_two(region, tmp_path, arguments, message):
    filled = [text.format(region=region, out=tmp_path / "out") for text in arguments]
    done = prisma(*filled)
    assert done.returncode == 2
    assert message in done.stderr
    assert "error: Expected" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_explain_reads_no_data(region):
    done = prisma("synthesize", "nowhere.zarr", "--region", region, "--explain", "--json")
    assert done.returncode == 0
    plan = json.loads(done.stdout)
    assert plan["epsilon"] == 0.5
    assert plan["plan"], plan
    assert all(row["columns"] for row in plan["plan"])
