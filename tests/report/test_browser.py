"""The pages as a browser shows them: on a phone and on a desk, light and dark."""

import json
import re
import subprocess
from html import escape, unescape
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

PHONES, DESK = (320, 375), 1200
LIGHT, DARK = "light", "dark"
CHROME_SETTING = {DARK: 0, LIGHT: 1}

# A frame has any width, a window of a browser without a screen has not. The page under test gets
# no script of ours: the frame around it looks inside.
FRAMES = """<!doctype html><meta name="color-scheme" content="light dark"><body>{frames}<script>
addEventListener("load", () => {{
  const found = [...document.querySelectorAll("iframe")].map((frame) => {{
    const page = frame.contentDocument, root = page.documentElement;
    const style = (element) => frame.contentWindow.getComputedStyle(element);
    const boxes = [...page.querySelectorAll("[role=region]")];
    return {{
      width: root.clientWidth,
      needed: root.scrollWidth,
      height: root.scrollHeight,
      paper: style(page.body).backgroundColor,
      ink: style(page.body).color,
      title: style(page.querySelector("svg text")).fill,
      accent: style(page.querySelector(".label")).backgroundColor,
      right: Math.max(...boxes.map((box) => box.getBoundingClientRect().right)),
      scrolling: boxes.filter((box) => box.scrollWidth > box.clientWidth + 1).length,
      smallest: Math.min(...[...page.querySelectorAll("p, li, td, th, figcaption")].map(
        (element) => parseFloat(style(element).fontSize))),
      drawn: [...page.querySelectorAll("svg, img")].filter((e) => e.clientWidth > 100).length,
    }};
  }});
  document.documentElement.dataset.found = JSON.stringify(found);
}});
</script>"""


def run_browser(browser: str, scratch: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the browser once, without a screen."""
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--user-data-dir={scratch / 'profile'}",
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What the page made the browser say: errors, refused fetches, refused scripts."""
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def look(
    browser: str,
    scratch: Path,
    content: str,
    scheme: str,
    *,
    widths: tuple[int, ...] = (*PHONES, DESK),
) -> dict[int, dict[str, Any]]:
    """What a page is like at each width."""
    policy = re.search(r'<meta http-equiv="Content-Security-Policy"[^>]*>', content)
    inside = content.replace(policy.group(0), "") if policy else content
    frames = "".join(
        f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{escape(inside)}"></iframe>'
        for width in widths
    )
    around = scratch / f"frames-{scheme}.html"
    around.write_text(FRAMES.format(frames=frames), encoding="utf-8")
    setting = f"--blink-settings=preferredColorScheme={CHROME_SETTING[scheme]}"
    done = run_browser(browser, scratch, setting, "--dump-dom", around.as_uri())
    found = re.search(r'data-found="([^"]*)"', done.stdout)
    assert found is not None, done.stderr
    return dict(zip(widths, json.loads(unescape(found.group(1))), strict=True))


@pytest.fixture(scope="module")
def seen(browser, private_page, released_page, tmp_path_factory):
    """Both pages in both schemes at every width."""
    scratch = tmp_path_factory.mktemp("browser")
    pages = {"private": private_page, "released": released_page}
    return {
        (name, scheme): look(browser, scratch, path.read_text("utf-8"), scheme)
        for (name, path), scheme in product(pages.items(), (LIGHT, DARK))
    }


def luminance(color: str) -> float:
    """Relative luminance of ``rgb(...)``, as the guidelines for contrast define it."""
    channels = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """From 1 (equal) to 21 (black on white)."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_guidelines():
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21.0)
    assert contrast("rgb(118, 118, 118)", "rgb(255, 255, 255)") == pytest.approx(4.54, abs=0.01)


def test_page_never_scrolls_sideways_and_wide_things_do_so_themselves(seen):
    for key, widths in seen.items():
        for width, found in widths.items():
            assert found["width"] == width
            assert found["needed"] <= width, (key, width)
            assert found["right"] <= width, (key, width)
            assert found["height"] > 2000
            assert found["smallest"] >= 13.0
        assert widths[PHONES[0]]["scrolling"] >= 3
        assert widths[DESK]["scrolling"] == 0
        assert widths[DESK]["drawn"] >= 6


def test_page_follows_light_and_dark(seen):
    for (name, scheme), widths in seen.items():
        found = widths[PHONES[1]]
        paper = luminance(found["paper"])
        assert paper > 0.9 if scheme == LIGHT else paper < 0.02, (name, scheme)
        assert contrast(found["paper"], found["ink"]) > 12.0
        assert contrast(found["paper"], found["title"]) > 12.0, "texts in figures"
        assert contrast(found["paper"], found["accent"]) > 4.5


def test_label_gives_the_page_its_color(seen):
    for scheme in (LIGHT, DARK):
        accents = {name: seen[name, scheme][DESK]["accent"] for name in ("private", "released")}
        assert accents["private"] != accents["released"]


def test_browser_shows_the_page_without_a_complaint(browser, released_page, tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    picture = tmp_path / "page.png"
    done = run_browser(
        *(browser, tmp_path, "--blink-settings=preferredColorScheme=0", "--window-size=375,900"),
        *(f"--screenshot={picture}", released_page.as_uri()),
    )
    assert complaints(done) == []
    image = image_module.open(picture).convert("L")
    assert image.size == (375, 900)
    counts = image.histogram()
    dark, bright = sum(counts[:48]), sum(counts[200:])
    assert dark > 0.8 * 375 * 900
    assert 0 < bright < 0.15 * 375 * 900


def test_print_has_light_paper_and_no_box_that_scrolls(browser, private_page, tmp_path):
    """The style for paper, shown in a frame as wide as a page, in a browser that is dark."""
    content = private_page.read_text("utf-8")
    assert content.count("@media print {") == 1
    printed = content.replace("@media print {", "@media all {")
    found = look(browser, tmp_path, printed, DARK, widths=(700,))[700]
    assert found["needed"] <= 700
    assert found["scrolling"] == 0
    assert luminance(found["paper"]) == 1.0
    assert contrast(found["paper"], found["ink"]) > 12.0


def test_a_page_that_is_wrong_is_found_out(browser, released_page, tmp_path):
    content = released_page.read_text("utf-8")
    wide = content.replace("</main>", '<div style="width:1500px">x</div></main>')
    found = look(browser, tmp_path, wide, LIGHT)
    assert all(each["needed"] >= 1500 for each in found.values())
    fetching = tmp_path / "fetching.html"
    fetching.write_text(content.replace("</main>", '<img src="https://example.invalid/x"></main>'))
    done = run_browser(browser, tmp_path, "--dump-dom", fetching.as_uri())
    assert any("Content Security Policy" in line for line in complaints(done))
