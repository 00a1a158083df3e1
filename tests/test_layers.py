"""The import rule: a package imports only from those above it in the order of data flow."""

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "prisma_sbi"
BELOW_ALL = {"units", "_validate", "_errors", "_optional", "_files"}
ORDER = [
    "region",
    "telemetry",
    "simulator",
    "models",
    "inference",
    "descriptors",
    "encoding",
    "privacy",
    "decoding",
    "evaluation",
    "pipeline",
    "cli",
]
FORBIDDEN = {("inference", "models"), ("evaluation", "inference"), ("decoding", "telemetry")}
EXTRAS = ["osmnx", "networkx", "rasterio", "sklearn", "osmium", "openpyxl", "requests", "mbi"]
EXTRAS += ["opendp", "matplotlib", "typer", "rich"]


def breaches(package: Path) -> list[str]:
    """Imports against the order, and imports inside functions."""
    found = []
    for file in sorted(package.rglob("*.py")):
        here = file.relative_to(package).parts[0].removesuffix(".py")
        tree = ast.parse(file.read_text())
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        inside = {id(node) for function in functions for node in ast.walk(function)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            if id(node) in inside:
                found.append(f"{file.name}: import inside a function")
            names = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
            )
            for name in names:
                parts = name.split(".")
                if parts[0] != "prisma_sbi" or len(parts) < 2 or here == "__init__":
                    continue
                there = parts[1]
                if there in BELOW_ALL or there == here:
                    continue
                upward = here in BELOW_ALL or ORDER.index(there) > ORDER.index(here)
                if upward or (here, there) in FORBIDDEN:
                    found.append(f"{file.name}: {here} imports {there}")
    return found


def test_layers_hold():
    assert breaches(PACKAGE) == []


def test_a_breach_is_caught(tmp_path):
    for name, text in {
        "simulator": "from prisma_sbi.privacy.release import Release\n",
        "inference": "from prisma_sbi.models.summary import summarize\n",
        "region": "def f():\n    import math\n    return math\n",
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "wrong.py").write_text(text)
    assert len(breaches(tmp_path)) == 3


def test_package_imports_without_extras():
    parts = [f"prisma_sbi.{name}" for name in ORDER if name != "cli"]
    code = (
        "import sys\n"
        f"for name in {EXTRAS!r}: sys.modules[name] = None\n"
        f"for name in {parts!r}: __import__(name)\n"
        "from prisma_sbi.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "prisma_sbi[cli]" in done.stderr
