"""Figures of studies: what is drawn is what was given, read from the Figure objects."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy.stats import chi2

pytest.importorskip("matplotlib")

from prisma_sbi.diagnostics import coverage_table, ecdf_envelope
from prisma_sbi.evaluation.plot_atlas import plot_atlas, plot_route_gain
from prisma_sbi.evaluation.plot_study import (
    plot_confusion,
    plot_contraction,
    plot_coverage,
    plot_profiles,
    plot_rank_ecdf,
    plot_ridge,
)
from prisma_sbi.region import demo_region

EVEN = (np.arange(200) + 0.5) / 200
NARROW = np.where(EVEN < 0.5, 0.5 * (2 * EVEN) ** 3, 1.0 - 0.5 * (2 - 2 * EVEN) ** 3)
"""Ranks that crowd at both ends."""


def test_only_ranks_out_of_the_envelope_are_called_out():
    figure: Any = plot_rank_ecdf({"even": EVEN, "narrow": NARROW})
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == ["even", "narrow: leaves the envelope"]
    curve = figure.axes[1].lines[0]
    x, y = curve.get_xdata(), curve.get_ydata()
    assert len(x) == len(y) == 402
    middle = np.interp([0.25, 0.75], x, y)
    assert middle[0] > 0.1
    assert middle[1] < -0.1
    band = figure.axes[0].collections[0].get_paths()[0].vertices
    envelope = ecdf_envelope(200)
    assert band[:, 1].max() == pytest.approx(np.max(envelope.upper - envelope.point))
    assert np.abs(figure.axes[0].lines[0].get_ydata()).max() <= 0.5 / 200 + 1e-9


def test_coverage_says_which_intervals_are_too_narrow():
    figure: Any = plot_coverage({"even": EVEN, "narrow": NARROW}, levels=(0.5, 0.9))
    panel = figure.axes[0]
    texts = [text.get_text() for text in panel.texts]
    expected = float(coverage_table(NARROW, levels=(0.5,))["coverage"].to_numpy()[0])
    assert f"{100 * expected:.1f} %" in texts
    assert expected < 0.3
    colors = [patch.get_facecolor()[:3] for patch in panel.patches]
    assert colors[0] == colors[1] != colors[2] == colors[3]


@pytest.fixture(scope="module")
def profile() -> xr.Dataset:
    """Parabolas of known widths."""
    sd = np.asarray([[0.01, 0.02], [0.03, 0.05]])
    best = np.asarray([[0.4, 1.2], [0.6, 1.5]])
    value = best[..., None] + sd[..., None] * np.linspace(-4.0, 4.0, 41)
    drop = -0.5 * ((value - best[..., None]) / sd[..., None]) ** 2
    each = ("trip", "parameter")
    return xr.Dataset(
        {
            "value": ((*each, "place"), value),
            "drop": ((*each, "place"), drop),
            "low": (each, best - 1.96 * sd),
            "high": (each, best + 1.96 * sd),
        },
        coords={"parameter": ["aggressiveness", "detour"]},
        attrs={"level": 0.95},
    )


def test_a_profile_crosses_its_cut_at_the_ends_of_its_interval(profile):
    draws = np.random.default_rng(0).normal(1.2, 0.02, (2, 300, 2))
    truth = np.asarray([[0.41, 1.2], [0.6, 1.5]])
    figure: Any = plot_profiles(profile, ["a", "$b"], draws=draws, truth=truth)
    assert len(figure.axes) == 4
    panel = figure.axes[1]
    curve = panel.lines[0]
    cut = panel.lines[1].get_ydata()[0]
    assert cut == pytest.approx(-0.5 * chi2.ppf(0.95, 1))
    high = float(profile["high"].values[0, 1])
    assert np.interp(high, curve.get_xdata(), curve.get_ydata()) == pytest.approx(cut, abs=0.02)
    assert panel.lines[2].get_xdata()[0] == 1.2
    assert "detour" in panel.get_title(loc="left")
    bare: Any = plot_profiles(profile, ["a", "b"])
    assert len(bare.axes[0].lines) == 2


def test_ellipses_hold_their_share_of_a_normal_law():
    covariance = np.asarray([[4e-4, 3e-4], [3e-4, 9e-4]])
    center = np.asarray([0.5, 1.2])
    figure: Any = plot_ridge(np.linalg.inv(covariance)[None], center[None], ["a"])
    inner, outer = (np.stack(line.get_data(), axis=1) for line in figure.axes[0].lines)
    drawn = np.random.default_rng(1).multivariate_normal(center, covariance, 4_000)
    path = pytest.importorskip("matplotlib.path")
    shares = [path.Path(line).contains_points(drawn).mean() for line in (inner, outer)]
    assert shares == pytest.approx([0.5, 0.95], abs=0.025)


def test_vehicles_of_a_class_stand_together_in_a_frame():
    label = np.asarray([0, 1, 0, 2, 1, 0])
    confusion = np.where(label[:, None] == label, 1.0, 0.0)
    figure: Any = plot_confusion(confusion, label, [f"car {i}" for i in range(6)])
    panel = figure.axes[0]
    shown = panel.images[0].get_array()
    assert np.array_equal(shown[:3, :3], np.ones((3, 3)))
    assert np.array_equal(shown[3:5, 3:5], np.ones((2, 2)))
    assert [patch.get_width() for patch in panel.patches] == [3.0, 2.0]
    assert [text.get_text() for text in panel.get_xticklabels()][:3] == ["car 0", "car 2", "car 5"]
    with pytest.raises(ValueError, match="a row a vehicle"):
        plot_confusion(confusion[:2], label)


def test_contraction_counts_what_lies_beyond_two():
    score = np.zeros((20, 2))
    score[:3, 0] = 3.0
    score[0, 1] = -40.0
    found = xr.Dataset(
        {
            "contraction": (("simulation", "parameter"), np.full((20, 2), 0.9)),
            "z_score": (("simulation", "parameter"), score),
        },
        coords={"parameter": ["aggressiveness", "detour"]},
    )
    figure: Any = plot_contraction(found)
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == ["aggressiveness: 15.0 % beyond 2", "detour: 5.0 % beyond 2"]
    assert figure.axes[0].lines[0].get_xdata() == pytest.approx(np.full(20, 0.1))
    assert figure.axes[1].lines[0].get_ydata().min() == -5.0


@pytest.fixture(scope="module")
def atlas() -> xr.Dataset:
    """Three routes over four roads, two of them sharing one."""
    return xr.Dataset(
        {
            "gain": (("route", "descriptor"), np.asarray([[1.0, 4.0], [3.0, 2.0], [5.0, 6.0]])),
            "step_route": ("step", np.asarray([0, 0, 1, 1, 2])),
            "step_edge": ("step", np.asarray([10, 11, 11, 12, 13])),
            "length_m": ("route", np.asarray([900.0, 1_500.0, 4_000.0])),
            "n_stops": ("route", np.asarray([0, 2, 5])),
            "height_range_m": ("route", np.asarray([3.0, 8.0, 20.0])),
            "speed_limit_mps": ("route", np.asarray([11.0, 12.0, 15.0])),
        },
        coords={"descriptor": ["aggressiveness", "detour"]},
    )


def test_a_road_has_the_mean_gain_of_the_routes_that_pass(atlas):
    roads = demo_region().roads
    figure: Any = plot_atlas(atlas, roads, best=np.asarray([2]))
    panel = figure.axes[0]
    gray, colored = panel.collections
    assert len(gray.get_segments()) == len(roads.edge_from)
    assert sorted(colored.get_array().tolist()) == [1.0, 2.0, 3.0, 5.0]
    shared = colored.get_segments()[colored.get_array().tolist().index(2.0)]
    begin, end = roads.geometry_offset[11:13]
    assert shared[:, 0] == pytest.approx(roads.geometry_lon_deg[begin:end])
    begin, end = roads.geometry_offset[13:15]
    assert panel.lines[0].get_ydata() == pytest.approx(roads.geometry_lat_deg[begin:end])


def test_causes_are_drawn_against_gains(atlas):
    figure: Any = plot_route_gain(atlas)
    panels = figure.axes[:6]
    offsets = np.asarray(panels[0].collections[0].get_offsets())
    assert offsets[:, 0] == pytest.approx([0.9, 1.5, 4.0])
    assert offsets[:, 1] == pytest.approx([1.0, 3.0, 5.0])
    assert "height" in panels[4].get_xlabel()
    assert "detour" in panels[3].get_ylabel()
