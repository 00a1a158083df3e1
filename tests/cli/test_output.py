"""What a command may replace."""

import pytest

from prisma_sbi.cli.output import REGION, RELEASE, ZARR, fresh_output


@pytest.mark.parametrize("force", [False, True])
def test_nothing_or_an_empty_folder_is_free(tmp_path, force):
    assert fresh_output(tmp_path / "new", force=force, mark=ZARR) == tmp_path / "new"
    assert fresh_output(tmp_path, force=force, mark=ZARR) == tmp_path


@pytest.mark.parametrize("mark", [ZARR, REGION, RELEASE])
def test_result_is_replaced_only_by_force(tmp_path, mark):
    (tmp_path / mark).touch()
    with pytest.raises(FileExistsError, match="--force"):
        fresh_output(tmp_path, force=False, mark=mark)
    assert fresh_output(tmp_path, force=True, mark=mark) == tmp_path


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("name", ["thesis.tex", RELEASE])
def test_folder_of_other_files_is_never_replaced(tmp_path, force, name):
    (tmp_path / name).touch()
    with pytest.raises(FileExistsError, match="something else"):
        fresh_output(tmp_path, force=force, mark=ZARR)


def test_netcdf_traces_are_a_result_and_other_files_are_not(tmp_path):
    for name in ("traces.nc", "traces.txt"):
        (tmp_path / name).touch()
    assert fresh_output(tmp_path / "traces.nc", force=True, mark=ZARR)
    with pytest.raises(FileExistsError, match="--force"):
        fresh_output(tmp_path / "traces.nc", force=False, mark=ZARR)
    with pytest.raises(FileExistsError, match="something else"):
        fresh_output(tmp_path / "traces.txt", force=True, mark=ZARR)
    with pytest.raises(FileExistsError, match="something else"):
        fresh_output(tmp_path / "traces.nc", force=True, mark=REGION)
