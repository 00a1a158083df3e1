"""The map of neighbors and its contours."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation.plot_style import REAL_COLOR, synthetic_color
from prisma_sbi.evaluation.plot_tsne import CONTOUR_SHARES, contour_levels, plot_tsne, tsne_map
from tests.evaluation.conftest import make_traces


@pytest.fixture(scope="module")
def groups():
    """Two kinds of traces that no map should mix."""
    low = make_traces(40, seed=0)
    return {"low": low, "high": low[::-1] + 200_000.0}


@pytest.fixture(scope="module")
def places(groups):
    return tsne_map(groups, perplexity=10, seed=1)


def test_map_keeps_neighbors_and_parts_groups(places):
    both = np.concatenate(list(places.values()))
    kind = np.repeat([0, 1], 40)
    distance = np.linalg.norm(both[:, None] - both[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert (kind[distance.argmin(axis=1)] == kind).mean() > 0.97
    assert [points.shape for points in places.values()] == [(40, 2), (40, 2)]


def test_map_repeats_with_its_seed_and_changes_with_another(groups, places):
    again = tsne_map(groups, n_traces=20, perplexity=10, seed=1)
    once_more = tsne_map(groups, n_traces=20, perplexity=10, seed=1)
    other = tsne_map(groups, n_traces=20, perplexity=10, seed=2)
    np.testing.assert_array_equal(again["low"], once_more["low"])
    assert not np.allclose(again["low"], other["low"])
    assert again["low"].shape == (20, 2)


def test_populations_of_one_law_lie_over_each_other():
    whole = make_traces(120, seed=3)
    places = tsne_map({"one": whole[::2], "other": whole[1::2]}, perplexity=15, seed=0)
    one, other = places.values()
    spread = np.concatenate([one, other]).std(axis=0)
    assert np.all(np.abs(one.mean(axis=0) - other.mean(axis=0)) < 0.5 * spread)


def test_contours_hold_their_share():
    """Of a round Gaussian the densest region with share p lies within sqrt(-2 log(1 - p))."""
    line = np.linspace(-6, 6, 400)
    x, y = np.meshgrid(line, line)
    density = np.exp(-(x**2 + y**2) / 2) / (2 * np.pi) * (line[1] - line[0]) ** 2
    levels = contour_levels(density, CONTOUR_SHARES)
    assert levels == sorted(levels)
    for share, level in zip(CONTOUR_SHARES, levels, strict=True):
        assert density[density >= level].sum() == pytest.approx(share, abs=2e-3)
        radius = np.sqrt(-2.0 * np.log(1.0 - share))
        assert level == pytest.approx(density.max() * np.exp(-(radius**2) / 2), rel=0.02)


def test_figure_has_a_panel_per_population_over_the_real_one(groups):
    figure = plot_tsne(groups["low"], {"same": groups["low"], "other": groups["high"]}, n_traces=30)
    assert [axis.get_title() for axis in figure.axes] == ["same", "other"]
    from matplotlib.colors import to_rgb

    for number, axis in enumerate(figure.axes):
        *filled, lines = axis.collections
        assert len(filled) == len(CONTOUR_SHARES)
        assert tuple(np.asarray(filled[0].get_facecolor())[0, :3]) == to_rgb(REAL_COLOR)
        assert tuple(np.asarray(lines.get_edgecolor())[0, :3]) == to_rgb(synthetic_color(number))
    assert "30 random traces" in figure.get_suptitle()
    corners = [axis.get_xlim() + axis.get_ylim() for axis in figure.axes]
    assert corners[0] == corners[1], "one map for all"


def test_map_refuses_what_has_no_neighbors():
    traces = make_traces(20, seed=0)
    with pytest.raises(InputDataError, match="at least 8 traces"):
        tsne_map({"one": traces[:1], "other": traces[:1]})
    with pytest.raises(InputDataError, match="differ"):
        tsne_map({"one": np.zeros((20, 30)), "other": np.zeros((20, 30))})
    with pytest.raises(InputDataError, match="equal length"):
        plot_tsne(traces, {"short": traces[:, :30]})
    with pytest.raises(ValueError, match="at least one synthetic"):
        plot_tsne(traces, {})
