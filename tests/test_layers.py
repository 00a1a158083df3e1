"""The import rule: a package imports only from those above it in the order of data flow."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.imports import BELOW_ALL, EXTRAS, ORDER, breaches, cycles, imports_of

PACKAGE = Path(__file__).resolve().parents[1] / "prisma_sbi"

BLOCKER = f"""
import sys
import warnings

warnings.simplefilter("error")


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None


sys.meta_path.insert(0, Blocker())
"""


def run_without_extras(code):
    """Run code in a fresh interpreter that has no optional library."""
    return subprocess.run(
        [sys.executable, "-c", BLOCKER + code], capture_output=True, text=True, check=False
    )


def write(package, files):
    """Write a package of small files."""
    for name, text in files.items():
        file = package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_layers_hold():
    assert breaches(PACKAGE) == []


def test_reader_sees_the_imports_that_are_there():
    seen = {(str(each.file.relative_to(PACKAGE)), each.module) for each in imports_of(PACKAGE)}
    assert ("models/objective.py", "prisma_sbi.simulator.driver") in seen
    assert ("simulator/fleet.py", "prisma_sbi._validate") in seen
    assert ("__init__.py", "prisma_sbi.encoding") in seen
    assert len(seen) > 200


def test_every_package_has_a_place_and_a_docstring():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == {path.name for path in PACKAGE.iterdir() if any(path.glob("*.py"))}
    assert folders <= set(ORDER)
    files = {path.stem for path in PACKAGE.glob("*.py")}
    assert files <= {"__init__", *BELOW_ALL, *ORDER}


BROKEN = {
    "upward": ("simulator/a.py", "from prisma_sbi.privacy.release import Release\n"),
    "upward by name": ("region/a.py", "from prisma_sbi import telemetry\n"),
    "upward by plain import": ("region/a.py", "import prisma_sbi.cli.main as main\n"),
    "from the ground": ("units.py", "from prisma_sbi.region.bounds import Bounds\n"),
    "inference of models": ("inference/a.py", "from prisma_sbi.models import summarize\n"),
    "evaluation of estimator": ("evaluation/a.py", "from prisma_sbi.inference import search\n"),
    "decoding of private data": ("decoding/a.py", "from prisma_sbi.telemetry import read_trips\n"),
    "inside a function": ("region/a.py", "def f():\n    import math\n    return math\n"),
    "inside a method": ("region/a.py", "class A:\n    def f(self):\n        import math\n"),
    "whole package": ("cli/a.py", "import prisma_sbi\n"),
    "relative": ("region/a.py", "from . import bounds\n"),
    "optional library": ("evaluation/a.py", "import matplotlib.pyplot as plt\n"),
    "optional library of another": ("cli/a.py", "import networkx\n"),
    "optional library on entry": ("cli/__init__.py", "from rich.console import Console\n"),
    "no place": ("helpers/a.py", "from prisma_sbi.region.bounds import Bounds\n"),
}


@pytest.mark.parametrize(("name", "text"), BROKEN.values(), ids=BROKEN)
def test_a_breach_is_caught(tmp_path, name, text):
    package = tmp_path / "prisma_sbi"
    modules = ("telemetry/__init__.py", "region/__init__.py", "__init__.py")
    write(package, {**dict.fromkeys(modules, ""), name: text})
    found = breaches(package)
    assert len(found) == 1, found
    assert name in found[0]


def test_good_package_has_no_breach(tmp_path):
    package = tmp_path / "prisma_sbi"
    write(
        package,
        {
            "__init__.py": "from prisma_sbi.evaluation import score\n",
            "region/bounds.py": "import numpy as np\nfrom prisma_sbi import _validate\n",
            "_validate.py": "import math\n",
            "evaluation/score.py": "from prisma_sbi.region.bounds import Bounds\n",
            "evaluation/plot.py": "if TYPE_CHECKING:\n    import matplotlib.figure\n",
        },
    )
    assert breaches(package) == []


def test_a_cycle_is_caught(tmp_path):
    package = tmp_path / "prisma_sbi"
    write(
        package,
        {
            "region/a.py": "from prisma_sbi.region.b import x\n",
            "region/b.py": "from prisma_sbi.region.c import x\n",
            "region/c.py": "from prisma_sbi.region.a import x\n",
            "region/d.py": "from prisma_sbi.region.a import x\n",
        },
    )
    names = [f"prisma_sbi.region.{letter}" for letter in "abca"]
    assert cycles(package) == [names]
    assert breaches(package) == [f"cycle: {' -> '.join(names)}"]


def test_package_imports_without_the_extras():
    packages = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    names = ["prisma_sbi", *(f"prisma_sbi.{name}" for name in packages)]
    done = run_without_extras(f"for name in {names!r}: __import__(name)\nprint('imported')")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "imported"


def test_blocker_blocks():
    for extra in ("networkx", "matplotlib.pyplot"):
        done = run_without_extras(f"import {extra}")
        assert done.returncode == 1
        assert "ModuleNotFoundError" in done.stderr


def test_command_without_its_extra_says_what_to_install():
    done = run_without_extras("from prisma_sbi.cli import main\nmain()")
    assert done.returncode == 2, done.stderr
    assert "prisma_sbi[cli]" in done.stderr
    assert "Traceback" not in done.stderr
