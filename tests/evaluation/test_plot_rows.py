"""Figures of long tables: scores over seeds, quality over epsilon, loss budget."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation.plot_budget import BETTER_COLOR, WORSE_COLOR, plot_loss_budget
from prisma_sbi.evaluation.plot_epsilon import plot_epsilon_curve
from prisma_sbi.evaluation.plot_rows import spans_decades, spread
from prisma_sbi.evaluation.plot_scores import SCORE_PANELS, plot_scores
from prisma_sbi.evaluation.plot_style import REAL_COLOR, save_figures, synthetic_color
from tests.evaluation.drawn import error_bars, offsets, segments, x_of, y_of


def score_rows(models=("B0", "PRISMA"), n_seeds=3, **more):
    """Scores that are easy to tell apart: 10 times as large in B0, seed s adds s."""
    return pd.DataFrame(
        [
            {
                "model": model,
                "seed": seed,
                "acf_x_floor": (50.0 if model == "B0" else 1.0) + seed,
                "fid_x_floor": 2.0 + 0.1 * seed,
                "precision_standardized": 0.5,
                "recall_standardized": 0.25 * seed,
                **more,
            }
            for model in models
            for seed in range(n_seeds)
        ]
    )


def means(axis):
    """Centers of the error bars of an axis."""
    lines = [bar.lines[0] for bar in error_bars(axis)]
    return [(*x_of(line), *y_of(line)) for line in lines]


def texts(axis):
    return [text.get_text() for text in axis.texts]


def test_spread_is_the_sample_deviation_of_what_is_finite():
    found = spread([1.0, 3.0, np.nan, np.inf])
    assert found.mean == 2.0
    assert found.sd == pytest.approx(np.sqrt(2.0))
    assert found.note == "2 of 4 seeds"
    assert (spread([5.0]).sd, spread([5.0]).note) == (0.0, "")
    assert spread([]).note == "not run"
    assert spread([np.nan]).note == "not defined"


def test_decades_need_positive_values_far_apart():
    assert spans_decades([1.0, 20.0])
    assert not spans_decades([1.0, 2.0])
    assert not spans_decades([0.0, 20.0])
    assert not spans_decades([])


def test_scores_show_means_bars_and_seeds():
    figure = plot_scores(score_rows())
    assert [axis.get_title() for axis in figure.axes] == list(SCORE_PANELS.values())
    acf, fid, precision, recall = figure.axes
    assert means(acf) == [(51.0, 0.0), (2.0, 1.0)]
    bar = segments(error_bars(acf)[0].lines[2][0])[0]
    np.testing.assert_allclose(bar[:, 0], [50.0, 52.0])
    np.testing.assert_allclose(offsets(acf.collections[0])[:, 0], [50.0, 51.0, 52.0])
    assert (acf.get_xscale(), fid.get_xscale(), recall.get_xscale()) == ("log", "linear", "linear")
    for axis in (precision, recall):
        assert axis.get_xlim()[0] <= 0.0 < 1.0 <= axis.get_xlim()[1]
    assert [label.get_text() for label in acf.get_yticklabels()] == ["B0", "PRISMA"]
    assert acf.get_ylim()[0] > acf.get_ylim()[1], "the first model stands on top"
    assert "over 3 seeds" in figure.get_suptitle()


def test_models_that_did_not_run_are_marked_and_get_no_point():
    figure = plot_scores(score_rows(), models=["B0", "TimeGAN", "PRISMA"])
    for axis in figure.axes:
        assert texts(axis) == ["not run"]
        assert [row for _, row in means(axis)] == [0.0, 2.0]
    rows = score_rows()
    rows.loc[rows["model"] == "B0", "acf_x_floor"] = np.nan
    rows.loc[0, "fid_x_floor"] = np.inf
    figure = plot_scores(rows)
    assert texts(figure.axes[0]) == ["not defined"]
    assert len(means(figure.axes[0])) == 1
    assert texts(figure.axes[1]) == ["2 of 3 seeds"]
    assert means(figure.axes[1])[0][0] == pytest.approx(2.15)
    empty = plot_scores(score_rows(models=()).reindex(columns=rows.columns), models=["B0"])
    assert texts(empty.axes[0]) == ["not run"]
    assert "no run yet" in empty.get_suptitle()


def test_variants_stand_beside_each_other_and_a_missing_one_is_a_dash():
    rows = pd.concat(
        [score_rows(privacy="with"), score_rows(models=("PRISMA",), privacy="without")]
    )
    figure = plot_scores(rows, variant="privacy", reference={"acf_x_floor": 0.7})
    acf, fid, *_ = figure.axes
    heights = [row for _, row in means(acf)]
    assert heights == [-0.125, 0.875, 1.125]
    assert texts(acf) == ["–"]
    colors = [bar.lines[0].get_color() for bar in error_bars(acf)]
    assert colors == [synthetic_color(0), synthetic_color(0), synthetic_color(1)]
    assert x_of(acf.lines[0])[0] == 0.7
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["with", "without", "real against real"]


def test_scores_refuse_what_cannot_be_drawn():
    with pytest.raises(InputDataError, match="one row per model, seed"):
        plot_scores(pd.concat([score_rows(), score_rows()]))
    with pytest.raises(InputDataError, match="recall_standardized"):
        plot_scores(score_rows().drop(columns="recall_standardized"))
    with pytest.raises(ValueError, match="at least one model"):
        plot_scores(score_rows(), models=[])


def epsilon_rows():
    """Two tables at two budgets, two runs each, and the limit."""
    rows = [
        {"table": table, "epsilon": epsilon, "run": run, "fid": base / epsilon + run}
        for table, base in (("route", 1.0), ("published", 2.0))
        for epsilon in (2.0, 0.5)
        for run in range(2)
    ]
    rows += [{"table": "no mechanism", "epsilon": np.inf, "run": 0, "fid": 0.4}]
    return pd.DataFrame(rows)


def test_epsilon_curve_runs_over_the_budgets_in_order():
    figure = plot_epsilon_curve(epsilon_rows(), panels={"fid": "FID"})
    (axis,) = figure.axes
    first, second = error_bars(axis)
    np.testing.assert_allclose(x_of(first.lines[0]), [0.5, 2.0])
    np.testing.assert_allclose(y_of(first.lines[0]), [2.5, 1.0])
    np.testing.assert_allclose(y_of(second.lines[0]), [4.5, 1.5])
    bar = segments(first.lines[2][0])[0]
    np.testing.assert_allclose(bar[:, 1], 2.5 + np.sqrt(0.5) * np.array([-1, 1]))
    limit = [line for line in axis.lines if line.get_linestyle() == "--"]
    assert [y_of(line)[0] for line in limit] == [0.4]
    assert limit[0].get_color() == REAL_COLOR
    assert axis.get_xscale() == "log"
    (legend,) = figure.legends
    names = {text.get_text() for text in legend.get_texts()}
    assert names == {"route", "published", "no mechanism"}


def test_epsilon_curve_at_infinity_has_the_color_of_its_table():
    rows = epsilon_rows()
    rows["table"] = rows["table"].replace("no mechanism", "published")
    figure = plot_epsilon_curve(rows, panels={"fid": "FID"})
    (limit,) = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert limit.get_color() == synthetic_color(1)
    assert limit.get_label() == "published, epsilon = ∞"


def test_epsilon_curve_refuses_rows_without_a_budget():
    rows = epsilon_rows()
    with pytest.raises(InputDataError, match="finite epsilon"):
        plot_epsilon_curve(rows.loc[rows["epsilon"] == np.inf], panels={"fid": "FID"})
    with pytest.raises(InputDataError, match="acf_x_floor"):
        plot_epsilon_curve(rows)


STAGES = ("real against real", "encoding", "bins", "mechanism")


def budget_rows(values, metric="fid", n_runs=1):
    return pd.DataFrame(
        [
            {"stage": stage, "metric": metric, "value": value + 0.1 * run}
            for stage, value in zip(STAGES, values, strict=True)
            for run in range(n_runs)
        ]
    )


def bars(axis):
    """Left end and width of each bar."""
    return [(bar.get_x(), bar.get_width()) for bar in axis.patches]


def test_budget_is_a_waterfall_whose_steps_add_up():
    figure = plot_loss_budget(budget_rows([0.5, 1.5, 2.0, 1.25]))
    (axis,) = figure.axes
    assert bars(axis) == [(0.0, 0.5), (0.5, 1.0), (1.5, 0.5), (2.0, -0.75)]
    assert sum(width for _, width in bars(axis)) == 1.25
    assert texts(axis) == ["0.50", "+1.00", "+0.50", "−0.75"]
    colors = [tuple(bar.get_facecolor())[:3] for bar in axis.patches]
    assert colors[1] == colors[2] != colors[3] != colors[0]
    from matplotlib.colors import to_rgb

    assert colors[1] == to_rgb(WORSE_COLOR)
    assert colors[3] == to_rgb(BETTER_COLOR)


def test_budget_goes_on_from_the_last_known_stage():
    rows = budget_rows([0.5, 1.5, 2.0, 1.75])
    rows = rows.loc[rows["stage"] != "bins"]
    other = budget_rows([0.5, 1.0, 1.2, 1.3], metric="acf")
    figure = plot_loss_budget(pd.concat([other, rows]), titles={"fid": "FID", "acf": "ACF"})
    assert [axis.get_title() for axis in figure.axes] == ["FID", "ACF"]
    axis = figure.axes[0]
    assert bars(axis) == [(0.0, 0.5), (0.5, 1.0), (1.5, 0.25)]
    assert texts(axis) == ["0.50", "+1.00", "not run", "+0.25"]
    assert [label.get_text() for label in axis.get_yticklabels()] == list(STAGES)


def test_budget_has_bars_of_the_spread_over_runs():
    figure = plot_loss_budget(budget_rows([0.5, 1.5, 2.0, 1.75], n_runs=2))
    segment = segments(error_bars(figure.axes[0])[0].lines[2][0])[0]
    np.testing.assert_allclose(segment[:, 0], 0.55 + np.sqrt(0.005) * np.array([-1, 1]))


def test_budget_refuses_an_empty_table():
    with pytest.raises(InputDataError, match="got no row"):
        plot_loss_budget(budget_rows([1, 1, 1, 1]).iloc[:0])


def test_names_with_signs_of_formulas_are_drawn_as_they_are(tmp_path):
    wild = r"$\frac$ <b> & _x"
    rows = score_rows(models=(wild,))
    figures = {
        "scores": plot_scores(rows),
        "budget": plot_loss_budget(budget_rows([1, 2, 3, 4]).assign(stage=wild)),
        "curve": plot_epsilon_curve(epsilon_rows().assign(table=wild), panels={"fid": wild[1:]}),
    }
    for path in save_figures(figures, tmp_path, formats=("svg",)):
        assert "&lt;b&gt; &amp; _x" in path.read_text()
