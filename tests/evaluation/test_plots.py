"""Figures: files, panels, labels, limits and drawn data, read from the Figure objects."""

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

pytest.importorskip("matplotlib")

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation import (
    autocorrelation,
    plot_mean_acf,
    plot_places,
    plot_power_levels,
    plot_power_spectrum,
    plot_recovery,
    plot_traces,
    save_figures,
)
from prisma_sbi.region.roads import RoadNetwork
from tests.evaluation.conftest import make_dataset, make_traces
from tests.evaluation.drawn import segments, sum_of_values, x_of, y_of

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def roads() -> RoadNetwork:
    """Two junctions joined both ways over one bend."""
    return RoadNetwork(
        node_id=np.array([1, 2]),
        node_lat_deg=np.array([42.25, 42.30]),
        node_lon_deg=np.array([-83.8, -83.7]),
        node_control=np.zeros(2, dtype=np.uint8),
        edge_from=np.array([0, 1], dtype=np.int32),
        edge_to=np.array([1, 0], dtype=np.int32),
        edge_length_m=np.array([9000.0, 9000.0]),
        edge_speed_mps=np.array([13.0, 13.0]),
        edge_class=np.array(["primary", "primary"]),
        geometry_offset=np.array([0, 3, 5]),
        geometry_lat_deg=np.array([42.25, 42.28, 42.30, 42.30, 42.25]),
        geometry_lon_deg=np.array([-83.8, -83.75, -83.7, -83.7, -83.8]),
    )


@pytest.fixture(scope="module")
def pair() -> tuple[xr.Dataset, xr.Dataset]:
    return (
        make_dataset(make_traces(80, seed=1), seed=1),
        make_dataset(make_traces(60, seed=2, phi=0.95), seed=2),
    )


def test_plot_traces_pairs_panels_on_shared_axes(pair):
    figure = plot_traces(*pair, n_traces=4, seed=3, label="none")
    axes = figure.axes
    assert len(axes) == 8
    assert [axes[0].get_title(), axes[1].get_title()] == ["real", "none"]
    assert len({axis.get_xlim() for axis in axes}) == 1
    assert len({axis.get_ylim() for axis in axes}) == 1
    assert axes[0].get_xlim() == (0.0, 59.0)
    drawn = np.stack([axis.lines[0].get_ydata() for axis in axes[::2]])
    known = pair[0]["power_w"].to_numpy() / 1000.0
    assert all(np.any(np.all(np.isclose(known, trace), axis=1)) for trace in drawn)
    assert np.all(np.diff(drawn.sum(axis=1)) >= 0.0)
    assert axes[0].get_ylim()[1] >= drawn.max()
    assert "time (s)" in figure.get_supxlabel()
    assert "kW" in figure.get_supylabel()


def test_plot_traces_repeats_with_its_seed_and_takes_fewer_rows(pair):
    first, second, other = (plot_traces(*pair, n_traces=2, seed=seed) for seed in (1, 1, 2))
    lines = [figure.axes[0].lines[0].get_ydata() for figure in (first, second, other)]
    np.testing.assert_array_equal(lines[0], lines[1])
    assert not np.array_equal(lines[0], lines[2])
    few = plot_traces(pair[0], pair[1].isel(trip=slice(0, 3)), n_traces=6)
    assert len(few.axes) == 6


def test_plot_traces_shows_negative_power():
    battery = make_traces(5, seed=0) - 20_000.0
    figure = plot_traces(battery, battery, n_traces=5)
    assert figure.axes[0].get_ylim()[0] <= battery.min() / 1000.0


def test_plot_mean_acf_draws_mean_curves_with_bands(pair):
    real, synthetic = pair
    figure = plot_mean_acf(real, {"none": synthetic, "epsilon=0.5": real})
    assert len(figure.axes) == 2
    for axis, traces in zip(figure.axes, (synthetic, real), strict=True):
        for line, side in zip(axis.lines[:2], (real, traces), strict=True):
            expected = autocorrelation(side["power_w"].to_numpy().astype(float)).mean(axis=0)
            np.testing.assert_allclose(y_of(line), expected)
            np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 33))
        assert len(axis.collections) == 2
        assert axis.get_xlabel() == "lag (samples)"
    assert "mean difference 0.000" in figure.axes[1].get_title()
    assert figure.axes[0].get_ylabel() == "autocorrelation"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["real", "none", "epsilon=0.5"]


@pytest.mark.parametrize("n_modes", [1, 2, 3, 4, 5, 7])
def test_plot_mean_acf_has_a_panel_per_mode(pair, n_modes):
    figure = plot_mean_acf(pair[0], {f"mode {number}": pair[1] for number in range(n_modes)})
    assert len(figure.axes) == n_modes
    colors = [axis.lines[1].get_color() for axis in figure.axes]
    assert len(set(colors)) == min(n_modes, 6)


def test_plot_power_spectrum_has_the_level_of_white_noise():
    """White noise of variance s^2 (kW^2) has the density 2 s^2 per Hz everywhere."""
    noise = 3000.0 * np.random.default_rng(0).normal(size=(400, 256))
    figure = plot_power_spectrum(noise, {"same": noise})
    (axis,) = figure.axes
    frequency_hz, density = x_of(axis.lines[0]), y_of(axis.lines[0])
    assert axis.get_xscale() == axis.get_yscale() == "log"
    assert axis.get_xlim() == (1 / 256, 0.5)
    # Groups of many frequencies: median and mean of their averages agree.
    np.testing.assert_allclose(density[frequency_hz > 0.1], 18.0, rtol=0.08)


def test_plot_power_levels_shares_add_up(pair):
    from matplotlib.patches import StepPatch

    real, synthetic = pair
    figure = plot_power_levels(real, {"none": synthetic})
    linear, logarithmic = figure.axes
    assert logarithmic.get_yscale() == "log"
    assert linear.get_xlabel() == "power (kW)"
    steps = linear.patches[0]
    assert isinstance(steps, StepPatch)
    values, edges, _ = steps.get_data()
    assert 99.0 < values.sum() <= 100.0 + 1e-9
    np.testing.assert_allclose(np.diff(edges), 1.0)


def test_plot_places_counts_every_trip_on_an_equal_scale(pair, roads):
    figure = plot_places(*pair, roads=roads, n_cells=20, label="none")
    maps = figure.axes[:4]
    titles = [axis.get_title() for axis in maps]
    assert titles[0] == "real: start of 80 trips"
    assert titles[3] == "none: end of 60 trips"
    for axis in maps:
        assert sum_of_values(axis.collections[1]) == pytest.approx(100.0)
        assert axis.get_aspect() == pytest.approx(1 / np.cos(np.deg2rad(42.275)), rel=1e-6)
        assert axis.get_xlim()[0] < -83.8 < -83.7 < axis.get_xlim()[1]
        assert len(segments(axis.collections[0])) == 2
    assert len(segments(maps[0].collections[0])[0]) == 3
    limits = {axis.collections[1].get_clim() for axis in maps}
    assert len(limits) == 1
    assert "share of trips" in figure.axes[4].get_ylabel()


def test_plot_places_without_roads_and_with_places_missing(pair):
    real, synthetic = pair
    partial = synthetic.copy(deep=True)
    partial["start_lat"][:10] = np.nan
    figure = plot_places(real, partial)
    assert figure.axes[1].get_title() == "synthetic: start of 50 trips"
    one_place = real.isel(trip=[0])
    assert len(plot_places(one_place, one_place).axes) == 5


def test_plot_places_rejects_a_dataset_without_places(pair):
    with pytest.raises(InputDataError, match="Expected start_lat in the synthetic traces"):
        plot_places(pair[0], pair[1].drop_vars("start_lat"))
    lost = pair[1].assign(end_lon=("trip", np.full(60, np.nan)))
    with pytest.raises(InputDataError, match="finite end position"):
        plot_places(pair[0], lost)


def test_plot_places_draws_a_map_when_all_places_lie_outside_it(pair, roads):
    far = pair[0].assign(
        {name: pair[0][name] + 5.0 for name in ("start_lat", "end_lat", "start_lon", "end_lon")}
    )
    figure = plot_places(far, far, roads=roads)
    assert len(figure.axes) == 5


def test_plot_recovery_puts_truth_across_and_fit_up():
    generator = np.random.default_rng(0)
    truth = xr.Dataset(
        {
            "aggressiveness": ("trip", generator.random(30)),
            "detour": ("trip", 1.0 + generator.random(30)),
            "vehicle": ("trip", generator.integers(0, 3, 30)),
        },
        coords={"trip": np.arange(30).astype(str)},
    )
    fitted = truth.assign(detour=truth["detour"] + 0.1).isel(trip=slice(0, 28))
    figure = plot_recovery(truth, fitted, vehicle_mass_kg=np.array([1000.0, 1500.0, 2000.0]))
    assert [axis.get_xlabel() for axis in figure.axes] == [
        "true aggressiveness",
        "true detour",
        "true vehicle mass (t)",
    ]
    points = np.asarray(figure.axes[1].collections[0].get_offsets())
    np.testing.assert_allclose(points[:, 1] - points[:, 0], 0.1)
    assert "RMSE 0.100" in figure.axes[1].get_title()
    assert "same vehicle 100%" in figure.axes[2].get_title()
    assert "28 trips, 2 without a fit" in figure.get_suptitle()
    for axis in figure.axes:
        assert axis.get_xlim() == axis.get_ylim()


def drawn_values(figure) -> np.ndarray:
    """Every number that a figure shows: lines, bands, steps and maps."""
    found = []
    for axis in figure.axes:
        found += [np.ravel(line.get_data()) for line in axis.lines]
        found += [np.ravel(path.vertices) for c in axis.collections for path in c.get_paths()]
        found += [np.ravel(patch.get_path().vertices) for patch in axis.patches]
    return np.concatenate(found)


def test_figures_without_real_traces_show_the_synthetic_ones_alone(pair, roads):
    real, synthetic = pair
    for plot, names in (
        (plot_mean_acf, ["none"]),
        (plot_power_spectrum, ["none"]),
        (plot_power_levels, ["none"]),
    ):
        figure = plot(None, {"none": synthetic})
        both = plot(real, {"none": synthetic})
        assert [text.get_text() for text in figure.legends[0].get_texts()] == names
        assert len(figure.axes[0].lines) <= len(both.axes[0].lines)
        assert "mean difference" not in figure.axes[0].get_title()
        assert len(drawn_values(figure)) < len(drawn_values(both))
    curve = y_of(plot_mean_acf(None, {"none": synthetic}).axes[0].lines[0])
    expected = autocorrelation(synthetic["power_w"].to_numpy().astype(float)).mean(axis=0)
    np.testing.assert_allclose(curve, expected)


def test_traces_without_real_ones_fill_both_columns(pair):
    known = pair[1]["power_w"].to_numpy() / 1000.0
    figure = plot_traces(None, pair[1].isel(trip=slice(0, 7)), n_traces=6)
    drawn = np.stack([axis.lines[0].get_ydata() for axis in figure.axes])
    assert len(drawn) == 7, "an odd one leaves the last panel out"
    assert len(np.unique(drawn, axis=0)) == 7, "none is shown twice"
    assert all(np.any(np.all(np.isclose(known, trace), axis=1)) for trace in drawn)
    assert "7 random trips of synthetic" in figure.get_suptitle()
    assert len(plot_traces(None, known[:1], n_traces=6).axes) == 1


def test_places_without_real_ones_are_two_maps(pair, roads):
    figure = plot_places(None, pair[1], roads=roads, label="none")
    titles = [axis.get_title() for axis in figure.axes[:2]]
    assert titles == ["none: start of 60 trips", "none: end of 60 trips"]
    assert len(figure.axes) == 3
    for axis in figure.axes[:2]:
        assert sum_of_values(axis.collections[1]) == pytest.approx(100.0)


def test_labels_are_shown_as_they_are(pair, tmp_path):
    wild = r"_$\frac$ <b>"
    figures = {
        "acf": plot_mean_acf(pair[0], {wild: pair[1]}),
        "spectrum": plot_power_spectrum(pair[0], {wild: pair[1]}),
        "levels": plot_power_levels(pair[0], {wild: pair[1]}),
        "traces": plot_traces(*pair, n_traces=1, label=wild),
        "places": plot_places(*pair, label=wild),
    }
    for path in save_figures(figures, tmp_path, formats=("svg",)):
        assert r"_$\frac$ &lt;b&gt;" in path.read_text(), path.name


def test_figures_of_all_zero_traces_are_defined(tmp_path):
    zero = np.zeros((5, 20))
    figures = {
        "traces": plot_traces(zero, zero),
        "acf": plot_mean_acf(zero, {"none": zero}),
        "levels": plot_power_levels(zero, {"none": zero}),
        "spectrum": plot_power_spectrum(zero, {"none": zero}),
    }
    assert len(save_figures(figures, tmp_path)) == 4


def test_plots_reject_populations_that_cannot_be_compared(pair):
    short = make_traces(10, seed=0, n_samples=30)
    with pytest.raises(InputDataError, match="equal length"):
        plot_traces(pair[0], short)
    with pytest.raises(InputDataError, match="equal length"):
        plot_mean_acf(pair[0], {"none": short})
    with pytest.raises(ValueError, match="at least one synthetic"):
        plot_mean_acf(pair[0], {})


def test_save_figures_writes_every_format(tmp_path, pair):
    figure = plot_traces(*pair, n_traces=1)
    paths = save_figures({"traces": figure}, tmp_path / "new", formats=("png", "pdf", "svg"))
    assert [path.name for path in paths] == ["traces.png", "traces.pdf", "traces.svg"]
    content = [path.read_bytes() for path in paths]
    assert content[0].startswith(PNG_SIGNATURE)
    assert content[1].startswith(b"%PDF")
    assert b"<svg" in content[2]
    width, height = (int.from_bytes(content[0][start : start + 4], "big") for start in (16, 20))
    assert (width, height) == tuple(int(side * 150) for side in figure.get_size_inches())
    with pytest.raises(ValueError, match="file_format"):
        save_figures({"traces": figure}, tmp_path, formats=("bmp",))


def test_plots_leave_the_settings_of_the_caller_alone(pair):
    import matplotlib

    before = dict(matplotlib.rcParams)
    plot_traces(*pair, n_traces=1)
    assert dict(matplotlib.rcParams) == before


def test_evaluation_imports_without_matplotlib():
    """The extra is needed for figures only."""
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import numpy as np\n"
        "from prisma_sbi.evaluation import evaluate, plot_traces\n"
        "x = np.random.default_rng(0).normal(size=(8, 9))\n"
        "assert evaluate(x, x).fid == 0.0\n"
        "try:\n    plot_traces(x, x)\n"
        "except ImportError as error:\n    assert 'prisma_sbi[plots]' in str(error)\n"
        "else:\n    raise SystemExit('no error')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
