"""Figures of the gap: what is drawn, read from the Figure objects."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation.plot_gap import plot_gap, plot_gap_groups, plot_swaps
from prisma_sbi.evaluation.texture_gap import PUBLISHED, gap_table
from tests.evaluation.conftest import make_traces
from tests.evaluation.drawn import x_of, y_of


@pytest.fixture(scope="module")
def traces():
    return [make_traces(30, seed=seed, n_samples=150) for seed in (1, 2)]


def test_views_show_each_population_and_the_true_means(traces):
    real_w, decoded_w = traces
    figure = plot_gap(real_w, {"one": decoded_w, "two": 2.0 * decoded_w})
    start, *_, curve = figure.axes
    assert [line.get_label() for line in start.lines] == ["recorded", "one", "two"]
    np.testing.assert_allclose(y_of(start.lines[0]), real_w[:, :60].mean(axis=0) / 1e3)
    np.testing.assert_allclose(y_of(start.lines[2]), 2.0 * y_of(start.lines[1]))
    # Autocorrelation does not see the scale.
    np.testing.assert_allclose(y_of(curve.lines[0]), y_of(curve.lines[1]), atol=1e-12)


def test_colors_are_logarithms_of_ratios(traces):
    real_w, _ = traces
    table = gap_table(real_w, 2.0 * real_w)
    figure = plot_gap_groups(table)
    values = np.asarray(figure.axes[0].images[0].get_array()).ravel()
    by_fact = dict(zip(dict.fromkeys(table["fact"]), values, strict=True))
    assert by_fact["mean"] == pytest.approx(np.log(2.0))
    assert by_fact["band_3"] == pytest.approx(np.log(2.0))
    assert by_fact["acf_4"] == pytest.approx(0.0)
    assert by_fact["zeros"] == 0.0  # none on either side


def test_dots_are_the_scores_of_the_swaps():
    names = [("none", ""), ("repair", "order"), ("repair", "everything"), ("break", "order")]
    table = pd.DataFrame(
        [
            {"direction": direction, "swap": swap, "title": swap}
            | {score: 10.0 * row + column for column, score in enumerate(PUBLISHED)}
            for row, (direction, swap) in enumerate(names)
        ]
    )
    for direction, row in (("repair", 1), ("break", 3)):
        figure = plot_swaps({"run": table}, direction=direction)
        for column, axis in enumerate(figure.axes):
            best, decoded, dots = axis.lines
            assert x_of(best)[0] == 20.0 + column
            assert x_of(decoded)[0] == float(column)
            assert x_of(dots).tolist() == [10.0 * row + column]
    with pytest.raises(InputDataError, match="recall"):
        plot_swaps({"run": table.drop(columns="recall_standardized")})
