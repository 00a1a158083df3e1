"""Fits on disk: bit for bit, without this package, and from older versions."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.encoding import descriptor_table, load_fit, save_fit

READER = """
import sys, warnings
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("prisma_sbi", "jax", "numpyro"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocker())
warnings.simplefilter("ignore")
import xarray as xr
path = sys.argv[1]
kind = dict(engine="h5netcdf") if path.endswith(".nc") else dict(engine="zarr", consolidated=False)
tree = xr.open_datatree(path, **kind)
print(float(tree["posterior"]["detour"].mean()), tree["posterior"]["detour"].dims)
"""


def assert_identical(left: xr.DataTree, right: xr.DataTree) -> None:
    assert left.attrs == right.attrs
    assert set(left.children) == set(right.children)
    for name in left.children:
        one, other = left[name].to_dataset(), right[name].to_dataset()
        assert set(one.variables) == set(other.variables)
        for variable in one.variables:
            assert one[variable].dtype.kind == other[variable].dtype.kind
            np.testing.assert_array_equal(one[variable].values, other[variable].values)
            assert one[variable].dims == other[variable].dims


@pytest.mark.parametrize("name", ["fit.zarr", "fit.nc"])
@pytest.mark.parametrize("method", ["map", "hmc"])
def test_what_is_read_is_what_was_written(fits, tmp_path, name, method):
    path = save_fit(fits[method], tmp_path / name)
    assert_identical(load_fit(path), fits[method])


@pytest.mark.parametrize("name", ["fit.zarr", "fit.nc"])
def test_a_fit_opens_without_this_package(fits, tmp_path, name):
    path = save_fit(fits["quadrature"], tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", READER, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    mean, dims = done.stdout.split(maxsplit=1)
    assert float(mean) == pytest.approx(float(fits["quadrature"]["posterior"]["detour"].mean()))
    assert dims.strip() == "('chain', 'draw', 'trip')"


def test_a_fit_of_version_1_is_read(fits, city, tmp_path):
    old = fits["map"].copy()
    stats = old["sample_stats"].to_dataset()
    old["sample_stats"] = xr.DataTree(
        stats.drop_vars(["flags", *(name for name in stats if str(name).startswith("best_"))])
    )
    old.attrs = {
        "kind": "fit",
        "format_version": 1,
        "method": "map",
        "likelihood": "summary",
        "region_fingerprint": city.fingerprint,
    }
    found = load_fit(save_fit(old, tmp_path / "old.zarr"))
    xr.testing.assert_allclose(descriptor_table(city, found), descriptor_table(city, fits["map"]))


def test_a_fit_of_a_later_version_is_refused(fits, tmp_path):
    new = fits["map"].copy()
    new.attrs = {**new.attrs, "format_version": 99}
    with pytest.raises(InputDataError, match="version 99.*Install a later version"):
        load_fit(save_fit(new, tmp_path / "new.zarr"))


def test_nothing_and_nonsense_are_refused(tmp_path):
    with pytest.raises(InputDataError, match="got nothing"):
        load_fit(tmp_path / "absent.zarr")
    (tmp_path / "junk.nc").write_bytes(b"junk")
    with pytest.raises(InputDataError, match="damaged or of another kind"):
        load_fit(tmp_path / "junk.nc")
