"""Both pages: sound HTML, everything that belongs there, and nothing private on a released one."""

import importlib
import inspect
import json
import math
import re
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from prisma_sbi import evaluation
from prisma_sbi._errors import GuaranteeError, InputDataError
from prisma_sbi.evaluation.metrics import METRICS
from prisma_sbi.report import (
    SyntheticSet,
    is_report,
    read_set,
    write_released_report,
    write_report,
)
from prisma_sbi.report.tables import number
from prisma_sbi.telemetry import save_traces
from tests.report.conftest import N_REAL, N_SYNTHETIC, WILD, Reader, make_set, poisoned


@pytest.fixture(params=["private", "released"])
def page(request):
    """Each page in turn."""
    return request.getfixturevalue(f"{request.param}_page")


@pytest.fixture
def reader(page):
    return Reader(page.read_text("utf-8"))


def test_every_element_is_closed_and_every_name_unique(reader):
    assert reader.faults == []
    names = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(names) == len(set(names)) > 20


def test_reader_finds_what_is_wrong():
    assert Reader("<p><b></p>").faults
    assert Reader("<p>").faults
    assert Reader('<p id="a" id="b"></p>').faults
    assert not Reader("<p><br></p>").faults


def test_links_and_references_lead_somewhere(reader, page):
    content = page.read_text("utf-8")
    names = {attributes.get("id") for _, attributes in reader.elements}
    targets = re.findall(r'href="#([^"]+)"', content) + re.findall(r"url\(#([^)]+)\)", content)
    targets += [each["aria-labelledby"] for each in reader.named("section")]
    assert len(targets) > 10
    assert set(targets) <= names


def test_page_needs_nothing_but_itself(reader, page):
    content = page.read_text("utf-8")
    (policy,) = [
        each["content"]
        for each in reader.named("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'")
    assert "script" not in policy
    for name in ("script", "iframe", "object", "embed", "base", "form"):
        assert not reader.named(name)
    for _, attributes in reader.elements:
        assert not [key for key in attributes if key.startswith("on")]
        for key in ("src", "href", "xlink:href", "srcset", "action"):
            assert attributes.get(key, "#").startswith(("#", "data:"))
    assert "@import" not in content
    assert not re.search(r"url\((?!#)", content)


def test_page_can_be_read_without_seeing_it(reader):
    assert reader.named("html") == [{"lang": "en"}]
    assert reader.named("meta")[2]["content"].startswith("width=device-width")
    assert len(reader.named("h1")) == len(reader.named("main")) == 1
    levels = [int(tag[1]) for tag, _ in reader.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))
    assert all(each["alt"] for each in reader.named("img"))
    assert len(reader.named("img")) == 2
    assert all(each["role"] == "img" and each["aria-label"] for each in reader.named("svg"))
    assert len(reader.named("svg")) >= 5
    assert len(reader.named("figcaption")) == len(reader.named("figure"))
    assert all(each.get("scope") for each in reader.named("th"))
    assert len(reader.named("caption")) == len(reader.named("table"))
    boxes = [each for each in reader.named("div") if each.get("role") == "region"]
    assert all(each["aria-label"] and each["tabindex"] == "0" for each in boxes)
    assert len(boxes) == len(reader.named("table")) + len(reader.named("figure"))


def test_names_that_are_markup_stay_text(reader, page):
    assert WILD in reader.text().replace("\u200b", "")
    assert "<script" not in page.read_text("utf-8")


def test_figures_take_their_colors_from_the_page(page):
    content = page.read_text("utf-8")
    drawn = content[content.index("<svg") :]
    # Shades of a color map remain, of lines and texts of ours none.
    assert "var(--series-1)" in drawn
    assert not re.search("#(?:000000|0072b2|404040|e4e4e4|606060)", drawn)
    style = content[content.index("<style>") : content.index("</style>")]
    used = set(re.findall(r"var\((--[\w-]+)\)", content))
    assert used <= set(re.findall(r"(--[\w-]+):", style))
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style


def test_both_say_what_is_promised_and_what_not(reader):
    text = reader.text()
    assert "Differentially private with epsilon = 0.5" in text
    for expected in ("epsilon", "0.5", "1e-05", "one trip", "add or remove one record", "1,234"):
        assert expected in text
    assert "A person with several trips is protected for each of them" in text
    assert "start_cell × vehicle" in text
    assert "epsilon=0.5: No pair of columns was measured." in text
    assert "3 rows could not be driven at first" in text
    assert "mbi" in text
    assert "prisma evaluate" in text


def test_private_page_says_so_and_holds_every_metric(private_page, measured):
    content = private_page.read_text("utf-8")
    reader = Reader(content)
    text = reader.text()
    assert text.strip().startswith("Private: ")
    assert text.index(" private ") < text.rindex("Synthetic power traces")
    assert "do not publish it" in text
    assert reader.named("body") == [{"class": "private"}]
    assert f"{N_REAL:,} held-out" in text
    for metric in METRICS.values():
        if metric.key.endswith("_x_floor"):
            continue
        start = content.index(f'scope="row">{escape(metric.label)}')
        row = content[start : content.index("</tr>", start)]
        assert escape(metric.meaning) in row
        cells = row.split("<td>")[3:]
        assert len(cells) == len(measured)
        for cell, each in zip(cells, measured.values(), strict=True):
            assert number(each.values[metric.key]) in cell
            multiple = each.values.get(f"{metric.key}_x_floor", math.nan)
            assert math.isnan(multiple) or cell.startswith(f"{number(multiple)} × floor")
    assert f"{N_SYNTHETIC} traces against {N_REAL} real ones" in text
    assert 'id="figure-neighbors"' in private_page.read_text("utf-8")


def test_released_page_has_no_word_about_real_traces(released_page):
    reader = Reader(released_page.read_text("utf-8"))
    text = reader.text()
    assert reader.named("body") == [{"class": "released"}]
    assert text.strip().startswith("Released: ")
    assert text.index(" released ") < text.rindex("Synthetic power traces")
    for metric in METRICS.values():
        assert metric.label not in text
    for word in ("real", "floor", "held-out", f" {N_REAL} "):
        assert not re.search(rf"\b{word.strip()}\b", text), word
    assert "metrics" not in {each.get("id") for each in reader.named("section")}


def test_released_page_takes_no_real_traces():
    names = inspect.signature(write_released_report).parameters
    assert list(names) == ["path", "sets", "region", "seed", "command"]


def test_released_page_shows_known_variables_only(sets, released_page, tmp_path):
    changed = [
        SyntheticSet(name=each.name, traces=poisoned(each.traces), release=each.release)
        for each in sets
    ]
    command = "prisma evaluate --released 'a b.zarr'"
    page = write_released_report(tmp_path / "page.html", changed, command=command)
    assert page.read_bytes() == released_page.read_bytes()


def test_released_page_refuses_sets_without_a_guarantee(real, tmp_path):
    good = make_set("good", seed=2)
    path = tmp_path / "page.html"
    for bad in (
        make_set("none", seed=3, private=False),
        SyntheticSet(name="real", traces=real),
        SyntheticSet(name="lies", traces=good.traces, release={"is_private": False}),
    ):
        with pytest.raises(GuaranteeError, match=f"'{bad.name}' without one"):
            write_released_report(path, [good, bad])
        assert not path.exists()
    assert write_released_report(path, [good]) == path


def test_private_page_warns_of_sets_without_a_guarantee(real, measured, tmp_path):
    bare = make_set("none", seed=2, private=False)
    page = write_report(
        tmp_path / "page.html",
        real,
        [bare],
        measured={"none": next(iter(measured.values()))},
        n_map_traces=0,
    )
    text = Reader(page.read_text("utf-8")).text()
    assert "none: this set has no guarantee. Do not publish it." in text
    assert "NO GUARANTEE" in text
    assert "figure-neighbors" not in page.read_text("utf-8")


@pytest.mark.slow
def test_private_page_repeats_byte_by_byte(real, sets, measured, private_page, tmp_path):
    command = "prisma evaluate real.zarr '<b>.zarr' --report private.html"
    again = write_report(
        tmp_path / "a.html", real, sets, measured=measured, command=command, n_map_traces=30
    )
    assert again.read_bytes() == private_page.read_bytes()


def test_sets_without_places_get_no_map(sets, tmp_path):
    bare = SyntheticSet(name="bare", traces=sets[0].traces.drop_vars("end_lat"))
    page = write_released_report(tmp_path / "page.html", [bare])
    reader = Reader(page.read_text("utf-8"))
    assert not reader.named("img")
    assert "bare: no map" in reader.text()


def test_pages_need_sets_of_different_names_and_equal_length(real, sets, tmp_path):
    path = tmp_path / "page.html"
    for wrong in ([], [sets[0], sets[0]], [make_set("real", seed=2)]):
        with pytest.raises(ValueError, match="names that differ"):
            write_report(path, real, wrong)
    with pytest.raises(ValueError, match="names that differ"):
        write_released_report(path, [])
    short = SyntheticSet(name="short", traces=sets[0].traces.isel(time=slice(0, 30)))
    with pytest.raises(InputDataError, match="equal length"):
        write_released_report(path, [sets[0], short])


def test_release_beside_the_traces_is_believed_only_with_its_statement(tmp_path):
    made = make_set("any", seed=2)
    path = save_traces(made.traces, tmp_path / "synthetic-a.zarr")
    assert read_set(path).release == {}
    folder = tmp_path / "release-a"
    folder.mkdir()
    record = json.loads(json.dumps(made.release))
    for statement, believed in ((made.statement, True), ("another", False)):
        (folder / "release.json").write_text(json.dumps(record | {"statement": statement}))
        assert bool(read_set(path).release) is believed
    (folder / "release.json").write_text("{")
    assert read_set(path).release == {}
    (folder / "release.json").write_text(json.dumps(["release"]))
    found = read_set(path, name="b")
    assert (found.name, found.release, found.is_private) == ("b", {}, True)
    other = tmp_path / "other.zarr"
    shutil.copytree(path, other)
    assert read_set(other).name == "other"


def test_page_is_known_again(private_page, tmp_path):
    assert is_report(private_page)
    other = tmp_path / "other.html"
    assert not is_report(other)
    other.write_text("<html>years of work</html>")
    assert not is_report(other)
    other.write_bytes(b"\xff\xfe")
    assert not is_report(other)


def test_zero_traces_have_a_page(tmp_path):
    made = make_set("zero", seed=2)
    made.traces["power_w"] = made.traces["power_w"] * np.float32(0.0)
    page = write_released_report(tmp_path / "page.html", [made])
    assert "not defined" in Reader(page.read_text("utf-8")).text()


def test_report_without_matplotlib_says_what_to_install(tmp_path):
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from tests.report.conftest import make_set\n"
        "from prisma_sbi.report import write_released_report\n"
        f"path = {str(tmp_path / 'page.html')!r}\n"
        "try:\n    write_released_report(path, [make_set('a', seed=1)])\n"
        "except ImportError as error:\n    assert 'prisma_sbi[plots]' in str(error)\n"
        "else:\n    raise SystemExit('no error')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "page.html").exists()


def test_documentation_names_what_there_is():
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text("utf-8")
    folder = Path(evaluation.__file__).parent
    modules = [
        importlib.import_module(f"prisma_sbi.evaluation.{path.stem}")
        for path in folder.glob("plot_*.py")
    ]
    named = set(re.findall(r"`(plot_\w+)`", text))
    assert len(named) == 9
    assert all(any(hasattr(module, name) for module in modules) for name in named)


@pytest.mark.slow
def test_documentation_runs(real, tmp_path, monkeypatch):
    text = (Path(__file__).parents[2] / "docs" / "report.md").read_text("utf-8")
    (code,) = re.findall("```python\n(.*?)```", text, flags=re.DOTALL)
    made = make_set("a", seed=2)
    save_traces(made.traces, tmp_path / "run" / "synthetic-epsilon=0.5.zarr")
    save_traces(real, tmp_path / "run" / "real.zarr")
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert is_report(tmp_path / "out" / "private.html")
    assert is_report(tmp_path / "out" / "released.html")
