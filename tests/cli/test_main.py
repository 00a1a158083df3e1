"""Help, version, exit codes, and what an error looks like."""

import errno
import importlib
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from prisma_sbi._errors import (
    BudgetError,
    GuaranteeError,
    InputDataError,
    RegionMismatchError,
)
from prisma_sbi.cli import region_commands, run_commands
from prisma_sbi.cli.errors import exit_code
from tests.cli.conftest import prisma, refusal

COMMANDS = [
    ["demo"],
    ["run"],
    ["region", "build"],
    ["region", "show"],
    ["telemetry", "import"],
    ["encode"],
    ["synthesize"],
    ["decode"],
    ["evaluate"],
    ["diagnose"],
    ["audit"],
]


def raising(error: BaseException):
    """A stand-in for the first thing that a command calls."""

    def fail(*_args, **_options):
        raise error

    return fail


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("width", [80, 120])
def test_help_has_an_example_and_fits(command, width):
    done = prisma(*command, "--help", width=width)
    assert done.exit_code == 0
    text = " ".join(done.stdout.split())
    assert f"Example: prisma {' '.join(command)} " in text
    assert "--json" in text
    assert max(map(len, done.stdout.splitlines())) <= width


def test_help_lists_every_command():
    shown = prisma("--help").stdout
    for command in COMMANDS:
        assert f" {command[0]} " in shown
    assert "Start with: prisma demo" in shown


def test_version_is_that_of_the_distribution():
    assert prisma("--version").stdout == f"prisma {version('prisma-sbi')}\n"


def test_no_command_shows_help_and_fails():
    done = prisma()
    assert done.exit_code == 2
    assert "Usage" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["region", "show"], ["demo", "--trips", "3"], ["demo", "--trips", "many"]],
    ids=" ".join,
)
def test_usage_error_is_two(arguments):
    done = prisma(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr != ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputDataError("x"), 2),
        (ValueError("x"), 2),
        (BudgetError("x"), 2),
        (GuaranteeError("x"), 2),
        (RegionMismatchError("x"), 2),
        (FileNotFoundError("x"), 2),
        (FileExistsError("x"), 2),
        (PermissionError("x"), 2),
        (ImportError("x"), 2),
        (OSError(errno.ENOSPC, "No space left on device"), 1),
        (ConnectionError("x"), 1),
    ],
    ids=lambda item: type(item).__name__ if isinstance(item, Exception) else str(item),
)
def test_exit_code_by_error(error, code, monkeypatch):
    assert exit_code(error) == code
    monkeypatch.setattr(region_commands, "load_region", raising(error))
    done = prisma("region", "show", "city")
    assert done.exit_code == code
    assert done.stdout == ""
    assert done.stderr == f"error: {error}\n"


def test_error_text_is_taken_literally_and_stays_one_line(monkeypatch):
    error = ValueError("Expected [bold]x[/]\n in [0, 1]; " + "long " * 60 + "end.")
    monkeypatch.setattr(region_commands, "load_region", raising(error))
    line = refusal("region", "show", "city")
    assert "[bold]x[/] in [0, 1]" in line
    assert line.endswith("long end.\n")


def test_unexpected_error_is_not_swallowed(monkeypatch):
    monkeypatch.setattr(region_commands, "load_region", raising(RuntimeError("a fault")))
    done = prisma("region", "show", "city")
    assert done.exit_code == 1
    assert isinstance(done.exception, RuntimeError)


def test_interrupt_is_130_and_promises_nothing_where_nothing_is_kept(monkeypatch):
    monkeypatch.setattr(region_commands, "load_region", raising(KeyboardInterrupt()))
    done = prisma("region", "show", "city")
    assert done.exit_code == 130
    assert done.stderr.startswith("interrupted: Work that is half done is not kept.")
    assert "to go on" not in done.stderr


def test_interrupt_of_a_resumable_command_says_what_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(run_commands, "run_pipeline", raising(KeyboardInterrupt()))
    done = prisma("demo", "-o", tmp_path / "demo")
    assert done.exit_code == 130
    assert done.stderr.startswith("interrupted: Finished parts are kept")
    assert "Run the same command again to go on." in done.stderr


@pytest.mark.parametrize("name", ["calibrate", "local", "profile", "vehicles", "atlas"])
def test_interrupted_studies_begin_anew(name, monkeypatch):
    module = importlib.import_module(f"prisma_sbi.cli.study.{name}")
    monkeypatch.setattr(module, "study_region", raising(KeyboardInterrupt()))
    done = prisma("study", name)
    assert done.exit_code == 130
    assert "begin from the start" in done.stderr


def test_debug_adds_the_traceback():
    done = prisma("--debug", "region", "show", "nowhere")
    assert done.exit_code == 2
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: Expected a region")


def run_module(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the entry point in a process of its own, after a line of code."""
    script = f"import sys\n{code}\nfrom prisma_sbi.cli import main\nmain()\n"
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("module", ["rich", "typer"])
def test_missing_extra_says_what_to_install(module):
    done = run_module(f"sys.modules[{module!r}] = None", "--version")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "pip install 'prisma_sbi[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_process_ends_with_the_code_and_one_line(tmp_path):
    done = run_module("", "region", "show", str(tmp_path / "nowhere"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: Expected a region")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_interrupted_demo_keeps_finished_stages(tmp_path: Path):
    out = tmp_path / "demo"
    # A shell that runs the tests in the background has them ignore the signal.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "from prisma_sbi.cli import main; main()"
    command = [sys.executable, "-c", code, "demo", "-o", str(out), "--trips", "400"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("[2/"):
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(timeout=120) == 130
    assert "interrupted: Finished parts are kept" in rest
    assert (out / "region" / "region.json").is_file()
    assert (out / "train.zarr").is_dir()
    assert not (out / "fit.zarr").exists()
    assert not list((out / ".stages").glob("*.partial"))
