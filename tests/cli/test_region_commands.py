"""`prisma region`."""

import pytest

from prisma_sbi.cli import region_commands
from prisma_sbi.region import DownloadError, demo_elevation, demo_roads, load_region
from tests.cli.conftest import prisma, prisma_json, refusal


@pytest.fixture
def downloads(monkeypatch):
    """Stand-ins for the servers; they note what was asked."""
    asked = {}

    def roads(**options):
        asked["roads"] = options
        return demo_roads()

    def tiles(bounds, *, cache, progress):
        asked["tiles"] = {"bounds": bounds, "cache": cache}
        progress(2048, None)
        progress(4096, 4096)
        return demo_elevation()

    monkeypatch.setattr(region_commands, "download_roads", roads)
    monkeypatch.setattr(region_commands, "fetch_terrain_tiles", tiles)
    return asked


def test_show_tells_what_is_there(city, city_folder):
    found = prisma_json("region", "show", city_folder)
    assert found["fingerprint"] == city.fingerprint
    assert found["junctions"] == city.roads.n_nodes
    assert found["vehicles"] == len(city.vehicles)
    shown = prisma("region", "show", city_folder)
    assert city.fingerprint in shown.stdout
    assert shown.stderr == ""


def test_show_refuses_a_changed_region(city_folder, tmp_path):
    text = (city_folder / "region.json").read_text()
    for item in city_folder.iterdir():
        (tmp_path / item.name).write_bytes(item.read_bytes())
    changed = text.replace(load_region(city_folder).fingerprint, "0" * 16)
    assert changed != text
    (tmp_path / "region.json").write_text(changed)
    assert "0" * 16 in refusal("region", "show", tmp_path)


def test_build_from_files(city_folder, tmp_path):
    out = tmp_path / "city"
    arguments = ["region", "build", "--roads", city_folder / "roads.graphml"]
    arguments += ["--elevation", city_folder / "elevation.tif", "-o", out]
    found = prisma_json(*arguments)
    assert found["name"] == "city"
    assert load_region(out).fingerprint == found["fingerprint"]
    assert "--force" in refusal(*arguments)
    again = prisma(*arguments, "--force", "--vehicles", "builtin", "--name", "other")
    assert again.exit_code == 0, again.stderr
    assert f"wrote {out}" in again.stderr
    assert load_region(out).name == "other"


@pytest.mark.parametrize("box", [False, True])
def test_build_downloads_what_is_not_given(downloads, tmp_path, box):
    source = ["--bbox", 44.9, 45.1, -30.1, -29.9] if box else ["--place", "Prisma City"]
    found = prisma_json(
        "region", "build", *source, "-o", tmp_path / "out", "--cache", tmp_path / "kept"
    )
    assert found["vehicles"] == 64
    assert downloads["roads"]["cache"] == downloads["tiles"]["cache"] == tmp_path / "kept"
    if box:
        bounds = downloads["roads"]["bounds"]
        assert (bounds.south_deg, bounds.north_deg) == (44.9, 45.1)
        assert (bounds.west_deg, bounds.east_deg) == (-30.1, -29.9)
    else:
        assert downloads["roads"]["place"] == found["name"] == "Prisma City"


def test_failed_download_is_no_bad_input(monkeypatch, tmp_path):
    def fail(**_options):
        raise DownloadError("Expected an answer; got none. Try again.")

    monkeypatch.setattr(region_commands, "download_roads", fail)
    done = prisma("region", "build", "--place", "Nowhere", "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert done.stderr == "error: Expected an answer; got none. Try again.\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ([], "exactly one of --place, --bbox and --roads"),
        (["--place", "A", "--roads", "b.osm"], "exactly one of --place, --bbox and --roads"),
        (["--place", "A", "--pool-size", 9], "has 64 vehicles"),
        (["--place", "A", "--vehicles", "builtin", "--vehicles", "a.csv"], "got both"),
        (["--bbox", 45.1, 44.9, -30.1, -29.9], "south"),
        (["--roads", "missing.graphml"], "missing.graphml"),
    ],
)
def test_build_refuses(downloads, options, part, tmp_path):
    assert part in refusal("region", "build", *options, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()
