"""`prisma encode` and `prisma decode`."""

import numpy as np
import pytest

from prisma_sbi.encoding import load_fit
from prisma_sbi.region import Constants, demo_region, save_region
from prisma_sbi.telemetry import load_traces
from tests.cli.conftest import prisma, prisma_json, refusal


@pytest.fixture(scope="session")
def other_folder(tmp_path_factory):
    """A region that differs in one constant."""
    folder = tmp_path_factory.mktemp("other") / "region"
    save_region(demo_region(constants=Constants(control_gain_per_s=0.8)), folder)
    return folder


@pytest.fixture(scope="session")
def synthetic_path(releases, city_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("decoded") / "synthetic.zarr"
    found = prisma_json(
        *("decode", releases["independent"], "--region", city_folder),
        *("-o", out, "-n", 30, "--seed", 1),
    )
    assert found["n_traces"] == 30
    return out


def test_decode_is_repeatable_and_exact_in_number(releases, city_folder, synthetic_path, tmp_path):
    arguments = ["decode", releases["independent"], "--region", city_folder]
    again = prisma(*arguments, "-o", tmp_path / "again.zarr", "-n", 30, "--seed", 1)
    assert again.exit_code == 0, again.stderr
    assert again.stdout == ""
    assert "30 traces" in again.stderr
    one, other = load_traces(synthetic_path), load_traces(tmp_path / "again.zarr")
    assert one.sizes["trip"] == 30
    np.testing.assert_array_equal(one["power_w"], other["power_w"])
    assert "--force" in refusal(*arguments, "-o", tmp_path / "again.zarr")


def test_decode_asks_before_it_takes_an_unprotected_release(releases, city_folder, tmp_path):
    out = tmp_path / "synthetic.zarr"
    arguments = ["decode", releases["none"], "--region", city_folder, "-o", out]
    assert "--allow-unprotected" in refusal(*arguments)
    assert not out.exists()
    found = prisma_json(*arguments, "--allow-unprotected")
    assert found["n_traces"] == 24
    assert "no" in found["statement"].lower()


def test_regions_are_not_mixed(releases, traces_path, other_folder, tmp_path):
    out = tmp_path / "out.zarr"
    for command in (["decode", releases["independent"]], ["encode", traces_path]):
        assert "region" in refusal(*command, "--region", other_folder, "-o", out)
        assert not out.exists()


def test_decode_refuses_a_folder_that_is_no_release(city_folder, tmp_path):
    assert "release" in refusal(
        "decode", tmp_path, "--region", city_folder, "-o", tmp_path / "out.zarr"
    )
    done = prisma("decode", tmp_path, "--region", city_folder, "-o", tmp_path / "o", "-n", 0)
    assert done.exit_code == 2


def test_encode_refuses_what_is_no_traces(city_folder, releases, tmp_path):
    out = tmp_path / "fit.zarr"
    for wrong in (tmp_path / "missing.zarr", releases["none"]):
        assert "traces" in refusal("encode", wrong, "--region", city_folder, "-o", out)
    assert not out.exists()


def test_encode_never_replaces_a_folder_of_other_files(city_folder, traces_path, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    arguments = ["encode", traces_path, "--region", city_folder, "-o", tmp_path]
    assert "something else" in refusal(*arguments, "--force")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.slow
def test_encode_fits_every_trip(demo_run, tmp_path):
    folder, _ = demo_run
    out = tmp_path / "fit.zarr"
    arguments = ["encode", folder / "train.zarr", "--region", folder / "region", "-o", out]
    found = prisma_json(*arguments)
    assert sum(found["status"].values()) == 16
    assert found["status"]["bad_trace"] == 0
    one, other = load_fit(out), load_fit(folder / "fit.zarr")
    assert one["posterior"].to_dataset().identical(other["posterior"].to_dataset())
    assert "--force" in refusal(*arguments)
