"""The marks that the method has to reach on recorded trips."""

from pathlib import Path

import pytest

from prisma_sbi.pipeline import load_config, run_pipeline

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.realdata
@pytest.mark.slow
def test_ann_arbor_reaches_its_marks(reference_data, tmp_path):
    text = (ROOT / "examples" / "ann_arbor.toml").read_text()
    (tmp_path / "run.toml").write_text(text.replace("../../shared/data", str(reference_data)))
    result = run_pipeline(load_config(tmp_path / "run.toml"), tmp_path / "out")
    none, private = (result.metrics["modes"][mode] for mode in ("none", "epsilon=0.5"))
    assert none["acf_x_floor"] <= 3.5
    assert none["fid_x_floor"] <= 1.4
    assert private["acf_x_floor"] <= 15.9
    assert private["fid_x_floor"] <= 1.92
    assert max(record.peak_memory_mib for record in result.stages) <= 6 * 1024
