"""The marks that the method has to reach on recorded trips."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.realdata
@pytest.mark.slow
def test_ann_arbor_reaches_its_marks(reference_data, tmp_path):
    text = (ROOT / "examples" / "ann_arbor.toml").read_text()
    (tmp_path / "run.toml").write_text(text.replace("../../shared/data", str(reference_data)))
    # In a process of its own: this one keeps the compiled programs of all tests before.
    command = "import sys; from prisma_sbi.cli import main; sys.exit(main())"
    given = ["run", str(tmp_path / "run.toml"), "-o", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-c", command, *given],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    modes = json.loads((tmp_path / "out" / "metrics.json").read_text())["modes"]
    none, private = (modes[mode] for mode in ("none", "epsilon=0.5"))
    assert none["acf_x_floor"] <= 3.5
    assert none["fid_x_floor"] <= 1.4
    assert private["acf_x_floor"] <= 15.9
    assert private["fid_x_floor"] <= 1.92
    stages = json.loads((tmp_path / "out" / "log.json").read_text())["stages"]
    assert max(stage["peak_memory_mib"] for stage in stages) <= 6 * 1024
