"""The gallery: each example runs with small settings and finds what its page says."""

import re
from pathlib import Path

import numpy as np
import pytest

from prisma_sbi.evaluation.plot_style import save_figures
from tests.test_examples import load

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("aggressiveness", "gumbel", "hill")


def drawn(example, results, folder: Path) -> None:
    """Figures are written, and are those that the page shows."""
    paths = save_figures(example.draw(results), folder, dpi=60)
    assert all(path.stat().st_size > 5_000 for path in paths)
    shown = {path.name for path in paths}
    page = (ROOT / "docs" / "gallery" / f"{example.__name__.split('/')[-1]}.md").read_text()
    assert shown == set(re.findall(r"\.\./figures/(\w+\.png)", page))


@pytest.mark.parametrize("name", NAMES)
def test_pages_say_how_to_repeat_and_cite(name):
    page = (ROOT / "docs" / "gallery" / f"{name}.md").read_text()
    assert f"python examples/gallery/{name}.py" in page
    assert page.count("https://doi.org/") >= 2
    for figure in re.findall(r"\((\.\./figures/[\w.]+)\)", page):
        assert (ROOT / "docs" / "gallery" / figure).resolve().is_file()
    assert f"({name}.md)" in (ROOT / "docs" / "gallery" / "README.md").read_text()


@pytest.mark.slow
def test_a_hill_tells_the_mass(tmp_path):
    example = load("gallery/hill")
    results = example.run(grades=(0.0, 0.06), n_drivers=8, n_trips=4)
    for table in results.fisher.values():
        assert table["sd_mass"][1] < 0.8 * table["sd_mass"][0]
        assert np.all(table["sd_mass"] < 0.3)
        assert table["vehicle_nats"][1] > table["vehicle_nats"][0] + 0.1
    # By chance alone the true one of 64 cars would have 0.016.
    assert np.all(results.posterior["true_vehicle"] > 0.08)
    np.testing.assert_array_equal(results.roads.speed_mps[0], results.roads.speed_mps[1])
    assert "likelihood summary" in example.report(results)
    drawn(example, results, tmp_path)


@pytest.mark.slow
def test_aggressiveness_is_told_by_traces_more_than_by_summaries(tmp_path):
    example = load("gallery/aggressiveness")
    results = example.run(n_each=3, n_draws=100, n_values=15)
    spread = {name: table["sd"].median() for name, table in results.table.items()}
    assert spread["trace"] < 0.2 * spread["summary"]
    assert "coverage" in example.report(results)
    drawn(example, results, tmp_path)


@pytest.mark.slow
def test_weights_of_a_relaxed_vehicle_are_bolder_than_its_posterior(tmp_path):
    example = load("gallery/gumbel")
    results = example.run(
        n_trips=12, n_steps=100, n_relaxed=4, n_mixtures=64, temperatures=(0.5, 0.1)
    )
    scores = example.score_table(results)
    assert scores["log score"]["exact"] > scores["log score"]["weights at 0.1"]
    np.testing.assert_allclose(results.exact.probability.sum(axis=1), 1.0, atol=1e-3)
    for found in results.optimum.values():
        np.testing.assert_allclose(found.weight.sum(axis=1), 1.0, atol=1e-3)
    table = example.optimum_table(results)
    assert np.all(table["heaviest above it"] > table["mixture above it"])
    assert np.all(table["heaviest above it"] > 0.0)
    assert table["vehicles mixed"]["0.5"] > table["vehicles mixed"]["0.1"]
    assert "The relaxed posterior, 4 trips" in example.report(results)
    drawn(example, results, tmp_path)
