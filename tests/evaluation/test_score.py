"""Scores: extremes, known failures of synthesizers, bad input, tables and JSON."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from prisma_sbi._errors import InputDataError, RegionMismatchError
from prisma_sbi.evaluation import (
    COLUMNS,
    SCORE_KEYS,
    compute_floors,
    evaluate,
    frechet_distance,
    metrics_json,
    score_rows,
)
from tests.evaluation.conftest import make_dataset, make_traces


def test_evaluate_identical_populations(real_w):
    scores = evaluate(real_w, real_w.copy(), n_splits=3)
    assert (scores.acf, scores.fid, scores.acf_x_floor, scores.fid_x_floor) == (0, 0, 0, 0)
    assert scores.precision_raw == scores.recall_raw == 1.0
    assert scores.precision_standardized == scores.recall_standardized == 1.0


def test_evaluate_another_draw_lies_at_the_floor():
    real_w, other_w = make_traces(600, seed=1), make_traces(600, seed=2)
    scores = evaluate(real_w, other_w)
    # Populations twice as large as the halves: 1/2 of the floor, noise aside.
    assert 0.35 < scores.fid_x_floor < 0.7
    assert scores.acf_x_floor < 2.0
    assert scores.precision_standardized > 0.8
    assert scores.recall_standardized > 0.8


def test_evaluate_sees_shuffled_time(real_w, other_w):
    shuffled = np.random.default_rng(0).permuted(other_w, axis=1)
    floors = compute_floors(real_w)
    right, wrong = (
        evaluate(real_w, other_w, floors=floors),
        evaluate(real_w, shuffled, floors=floors),
    )
    assert wrong.acf_x_floor > 8.0
    assert wrong.acf_x_floor > 5.0 * right.acf_x_floor
    assert wrong.precision_standardized < 0.5 * right.precision_standardized


def test_evaluate_sees_a_mean_curve(real_w):
    """The mean curve at random amplitude has no texture and covers nothing."""
    amplitude = np.random.default_rng(0).uniform(0.5, 1.5, size=(200, 1))
    scores = evaluate(real_w, amplitude * real_w.mean(axis=0))
    assert scores.acf_x_floor > 8.0
    assert scores.recall_standardized == 0.0


def test_evaluate_scale_cancels_in_the_multiples(real_w, other_w):
    watt, kilowatt = evaluate(real_w, other_w), evaluate(real_w / 1e3, other_w / 1e3)
    assert kilowatt.fid_x_floor == pytest.approx(watt.fid_x_floor)
    assert kilowatt.fid == pytest.approx(watt.fid)
    scale_w = watt.floors.scale_w
    assert watt.fid == pytest.approx(frechet_distance(real_w, other_w) / scale_w**2)
    assert watt.fid_x_floor == pytest.approx(watt.fid / watt.floors.by_distance["fid"].mean)


def test_evaluate_datasets_arrays_and_other_order_of_dimensions_agree(real_w, other_w):
    real, other = make_dataset(real_w), make_dataset(other_w)
    expected = evaluate(real_w.astype(np.float32), other_w.astype(np.float32), n_splits=2)
    assert evaluate(real, other, n_splits=2) == expected
    assert evaluate(real["power_w"], other.transpose("time", "trip"), n_splits=2) == expected


def test_evaluate_populations_of_different_size(real_w, other_w):
    scores = evaluate(real_w, other_w[:50], n_splits=2)
    assert (scores.n_real, scores.n_synthetic) == (200, 50)


def test_evaluate_reuses_floors_and_rejects_foreign_ones(real_w, other_w):
    floors = compute_floors(real_w, seed=3)
    assert evaluate(real_w, other_w, floors=floors) == evaluate(real_w, other_w, seed=3)
    with pytest.raises(ValueError, match="floors of this real population"):
        evaluate(other_w, real_w, floors=floors)
    with pytest.raises(ValueError, match="floors of 200 traces"):
        evaluate(real_w[:100], other_w, floors=floors)


def test_evaluate_all_zero_synthetic(real_w):
    scores = evaluate(real_w, np.zeros_like(real_w))
    assert math.isfinite(scores.fid_x_floor)
    assert scores.acf_x_floor > 8.0
    assert scores.recall_standardized == 0.0


def test_evaluate_constant_real_traces_have_no_floor():
    constant = np.full((10, 20), 1e9 / 3)
    same = evaluate(constant, constant.copy(), n_splits=2)
    assert math.isnan(same.fid_x_floor)
    assert math.isnan(same.acf_x_floor)
    assert same.precision_raw == 1.0
    other = evaluate(constant, constant + np.arange(20.0) * 1e7, n_splits=2)
    assert other.fid_x_floor == math.inf
    text = json.dumps(metrics_json({"a": same}), allow_nan=False)
    assert json.loads(text)["modes"]["a"]["fid_x_floor"] is None


def test_evaluate_rejects_different_lengths(real_w):
    with pytest.raises(InputDataError, match="60 samples in the real and 59"):
        evaluate(real_w, real_w[:, :-1])


def test_evaluate_rejects_different_time_steps(real_w):
    real, other = make_dataset(real_w), make_dataset(real_w)
    other = other.assign_coords(time=other["time"] * 2)
    with pytest.raises(InputDataError, match="same time steps"):
        evaluate(real, other)


def test_evaluate_names_the_trip_that_is_not_finite(real_w):
    bad = real_w.copy()
    bad[17, 5] = np.nan
    bad[30, 0] = np.inf
    with pytest.raises(InputDataError, match=r"trip 171101/17/7 \(row 17\) at sample 5 \(2 such"):
        evaluate(make_dataset(real_w), make_dataset(bad))
    with pytest.raises(InputDataError, match="real traces; got nan in row 17"):
        evaluate(bad, real_w)


def test_evaluate_rejects_single_traces_and_empty_populations(real_w):
    with pytest.raises(InputDataError, match="shape"):
        evaluate(real_w[0], real_w)
    with pytest.raises(InputDataError, match="shape"):
        evaluate(real_w, real_w[:0])
    with pytest.raises(InputDataError, match="at least 4 synthetic traces; got 1"):
        evaluate(real_w, real_w[:1])
    with pytest.raises(InputDataError, match="at least 4 real traces; got 1"):
        evaluate(real_w[:1], real_w)
    with pytest.raises(InputDataError, match="shape"):
        evaluate(real_w[:, :2], real_w[:, :2])


def test_evaluate_rejects_two_regions_and_accepts_an_untied_one(real_w):
    one = make_dataset(real_w, fingerprint="a" * 16)
    with pytest.raises(RegionMismatchError, match="one region"):
        evaluate(one, make_dataset(real_w, fingerprint="b" * 16))
    assert evaluate(one, make_dataset(real_w), n_splits=1).fid == 0.0


def test_evaluate_rejects_a_dataset_without_power(real_w):
    with pytest.raises(InputDataError, match="Expected the variable power_w"):
        evaluate(real_w, xr.Dataset({"speed_mps": ("trip", np.zeros(4))}))


def test_metrics_json_shape(real_w, other_w):
    floors = compute_floors(real_w)
    modes = {
        "none": evaluate(real_w, other_w, floors=floors),
        "epsilon=0.5": evaluate(real_w, other_w[:100], floors=floors),
    }
    metrics = json.loads(json.dumps(metrics_json(modes), allow_nan=False))
    assert set(metrics) == {"modes", "floors", "counts"}
    assert list(metrics["modes"]) == ["none", "epsilon=0.5"]
    for mode in metrics["modes"].values():
        assert set(mode) == {"acf", "fid", *SCORE_KEYS}
    assert metrics["modes"]["none"]["acf_x_floor"] == modes["none"].acf_x_floor
    assert metrics["floors"]["fid"] == floors.by_distance["fid"].mean
    assert metrics["floors"]["acf_sd"] == floors.by_distance["acf"].sd
    assert metrics["counts"] == {
        "real": 200,
        "samples": 60,
        "synthetic": {"none": 200, "epsilon=0.5": 100},
    }


def test_metrics_json_rejects_mixed_floors_and_nothing(real_w, other_w):
    one, two = (evaluate(real_w, other_w, seed=seed, n_splits=2) for seed in (0, 1))
    with pytest.raises(ValueError, match="same floors"):
        metrics_json({"a": one, "b": two})
    with pytest.raises(ValueError, match="at least one mode"):
        metrics_json({})


def test_score_rows_follow_the_columns(real_w, other_w):
    scores = evaluate(real_w, other_w, n_splits=2)
    (row,) = score_rows({"none": scores})
    assert list(row) == list(COLUMNS)
    assert row["mode"] == "none"
    assert row["n_synthetic"] == "200"
    assert row["precision_raw"] == f"{scores.precision_raw:.3f}"
    assert float(row["fid_x_floor"]) == pytest.approx(scores.fid_x_floor, abs=0.006)


def test_score_rows_of_undefined_numbers():
    constant = np.full((10, 20), 5.0)
    (row,) = score_rows({"x": evaluate(constant, constant.copy(), n_splits=1)})
    assert row["fid_x_floor"] == "–"
    (row,) = score_rows({"x": evaluate(constant, constant + np.arange(20.0), n_splits=1)})
    assert row["fid_x_floor"] == "∞"


@pytest.mark.slow
def test_evaluate_full_size_is_fast():
    """2,000 x 500 against 2,000 x 500 with 15 floors, in processor time of one thread.

    In a process of its own: threads of a linear-algebra library that compete for a busy
    machine would be measured otherwise.
    """
    script = (
        "import time\n"
        "from prisma_sbi.evaluation import evaluate\n"
        "from tests.evaluation.conftest import make_traces\n"
        "a, b = (make_traces(2000, seed=seed, n_samples=500) for seed in (0, 1))\n"
        "start = time.process_time()\n"
        "evaluate(a, b)\n"
        "print(time.process_time() - start)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    assert float(done.stdout) < 20.0
