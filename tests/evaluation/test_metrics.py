"""Laws over the registry of metrics: identical, symmetric, any order, growing corruption, edges."""

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
    ALL_DISTANCES,
    METRICS,
    SCORE_KEYS,
    Measured,
    compute_floors,
    evaluate,
    measure_all,
    measure_each,
)
from tests.evaluation.conftest import make_dataset, make_traces

N_TRIPS = 160
KEYS = list(METRICS)
MULTIPLES = [f"{name}_x_floor" for name in ALL_DISTANCES]


def dataset(power_w: np.ndarray, *, seed: int) -> xr.Dataset:
    """Traces with places; the longer the drive, the farther the end."""
    traces = make_dataset(power_w, seed=seed)
    return moved(traces, "start_lat", "end_lat", 0.01 * (power_w > 0).mean(axis=1))


def moved(traces: xr.Dataset, origin: str, name: str, shift: np.ndarray) -> xr.Dataset:
    """Replace one variable of each trip by another one plus a shift."""
    return traces.assign({name: ("trip", traces[origin].to_numpy() + shift)})


@pytest.fixture(scope="module")
def real() -> xr.Dataset:
    return dataset(make_traces(N_TRIPS, seed=1), seed=1)


@pytest.fixture(scope="module")
def other() -> xr.Dataset:
    return dataset(make_traces(N_TRIPS, seed=2), seed=2)


@pytest.fixture(scope="module")
def measured(real, other) -> Measured:
    return measure_all(real, other, n_splits=4)


@pytest.fixture(scope="module")
def identical(real) -> Measured:
    return measure_all(real, real.copy(deep=True), n_splits=2)


def test_registry_is_complete_and_readable(measured):
    assert list(measured.values) == KEYS
    groups = [metric.group for metric in METRICS.values()]
    assert [name for at, name in enumerate(groups) if name not in groups[:at]] == [
        name for at, name in enumerate(groups) if at == 0 or groups[at - 1] != name
    ]
    assert len({metric.label for metric in METRICS.values()}) == len(METRICS)
    for key, metric in METRICS.items():
        assert metric.key == key
        assert metric.better in ("lower", "higher", "target")
        assert metric.better != "target" or metric.ideal is not None
        assert metric.meaning.endswith(".")
        assert len(metric.meaning) < 160
    assert set(SCORE_KEYS) <= set(KEYS)
    assert set(MULTIPLES) <= set(KEYS)


# What a copy of the real traces has: value and tolerance. Copies are no good synthesizer, and
# the metrics of privacy and the trained ones say so.
OF_COPIES = {
    **{name: (0.0, 0.0) for name in (*ALL_DISTANCES, *MULTIPLES)},
    **{
        f"{name}_{kind}": (1.0, 0.0)
        for name in ("precision", "recall")
        for kind in ("raw", "standardized")
    },
    "density": (1.2, 1e-9),
    "coverage": (1.0, 0.0),
    "mmd2": (-0.005, 0.005),
    "mmd_p_value": (1.0, 0.0),
    "classifier_auc": (0.25, 0.25),
    "classifier_accuracy": (0.25, 0.25),
    "classifier_p_value": (1.0, 0.1),
    "tstr_next_step": (1.0, 0.05),
    "tstr_energy": (1.0, 0.1),
    "nearest_ratio": (0.0, 0.0),
    "copied": (1.0, 0.0),
}


@pytest.mark.parametrize("key", KEYS)
def test_metric_of_identical_populations(key, identical):
    value, tolerance = OF_COPIES[key]
    assert identical.values[key] == pytest.approx(value, abs=tolerance)


# What another draw from the law has, by far the most of times, at 160 trips.
OF_ANOTHER_DRAW = {
    **{name: (0.2, 2.0) for name in MULTIPLES},
    "precision_standardized": (0.8, 1.0),
    "recall_standardized": (0.8, 1.0),
    "precision_raw": (0.8, 1.0),
    "recall_raw": (0.8, 1.0),
    "density": (0.8, 1.2),
    "coverage": (0.9, 1.0),
    "mmd2": (-0.01, 0.01),
    "mmd_p_value": (0.02, 1.0),
    "classifier_auc": (0.4, 0.6),
    "classifier_accuracy": (0.4, 0.6),
    "classifier_p_value": (0.02, 1.0),
    "tstr_next_step": (0.97, 1.03),
    "tstr_energy": (0.9, 1.15),
    "nearest_ratio": (0.85, 1.15),
    "copied": (0.0, 0.0),
}


@pytest.mark.parametrize("key", [key for key in KEYS if key not in ALL_DISTANCES])
def test_metric_of_another_draw_is_near_its_ideal(key, measured):
    low, high = OF_ANOTHER_DRAW[key]
    assert low <= measured.values[key] <= high


@pytest.mark.parametrize("key", [*ALL_DISTANCES, "mmd2", "classifier_auc", "precision_raw"])
def test_metric_is_symmetric(key, real, other, measured):
    turned = measure_all(other, real, floors=None, n_splits=1)
    there, back = measured.values[key], turned.values[key]
    if key == "fid":  # in units of the real amplitude, squared
        there, back = there * measured.floors.scale_w**2, back * turned.floors.scale_w**2
    if key == "precision_raw":
        back = turned.values["recall_raw"]
    assert there != 0.0
    assert back == pytest.approx(there, rel=1e-4, abs=0.06 if key == "classifier_auc" else 0.0)


def test_metrics_do_not_depend_on_the_order_of_trips(real, other, measured):
    generator = np.random.default_rng(0)
    mixed = other.isel(trip=generator.permutation(N_TRIPS))
    found = measure_all(real, mixed, floors=measured.floors)
    assert found.values == pytest.approx(measured.values, rel=1e-8, abs=1e-9)
    turned = measure_all(real.isel(trip=generator.permutation(N_TRIPS)), other, n_splits=1)
    for key in set(KEYS) - set(MULTIPLES):
        assert turned.values[key] == pytest.approx(measured.values[key], rel=1e-8, abs=1e-9), key


def corrupted(share: float) -> xr.Dataset:
    """Another draw in which a share of the trips are jagged, weak, short and elsewhere."""
    good = make_traces(N_TRIPS, seed=3)
    generator = np.random.default_rng(4)
    bad = 400.0 * generator.gamma(0.2, size=good.shape)
    bad[:, 45:] = 0.0
    wrong = np.arange(N_TRIPS) < share * N_TRIPS
    traces = dataset(np.where(wrong[:, None], bad, good), seed=3)
    return moved(traces, "start_lon", "start_lon", 0.3 * wrong)


@pytest.fixture(scope="module")
def growing(real) -> list[Measured]:
    found = measure_each(real, {f"{s}": corrupted(s) for s in (0.0, 0.3, 0.7, 1.0)}, n_splits=3)
    return list(found.values())


@pytest.mark.parametrize("key", [key for key in KEYS if key != "copied"])
def test_metric_gets_worse_with_growing_corruption(key, growing):
    metric, values = METRICS[key], [each.values[key] for each in growing]
    badness = {
        "lower": values,
        "higher": [-value for value in values],
        "target": [abs(value - (metric.ideal or 0.0)) for value in values],
    }[metric.better]
    # Fewer good traces have larger balls, which makes up for their number: recall alone may rest.
    slack = 0.03 if key.startswith("recall") else 0.0
    assert np.all(np.diff(badness) >= -slack)
    assert badness[-1] > badness[0] + 0.01 + slack


def test_copies_are_counted_as_they_grow(real, other):
    values = []
    for n_copied in (0, 40, 120):
        power_w = np.concatenate(
            [real["power_w"].values[:n_copied], other["power_w"].values[n_copied:]]
        )
        found = measure_all(real, power_w, n_splits=1).values
        assert found["copied"] == n_copied / N_TRIPS
        values.append(found["nearest_ratio"])
    assert values[0] > values[1] > values[2]


def test_values_of_the_published_keys_are_those_of_evaluate(real, other):
    plain, full = evaluate(real, other, n_splits=3), measure_all(real, other, n_splits=3)
    for key in ("acf", "fid", *SCORE_KEYS):
        assert full.values[key] == pytest.approx(getattr(plain, key), rel=1e-12)


def test_a_perfect_synthesizer_reaches_half_the_floor_of_a_squared_distance():
    """Sampling noise falls as 1 / n, or its root: halves have twice, or 1.41 times, as much."""
    found = {name: [] for name in ("fid", "acf", "levels_w1", "energy_w1", "spectrum")}
    for draw in range(12):
        power_w = make_traces(600, seed=20 + draw, n_samples=30)
        measured = measure_all(power_w[:300], power_w[300:], n_splits=5)
        for name, multiples in found.items():
            multiples.append(measured.values[f"{name}_x_floor"])
    for name, multiples in found.items():
        error = np.std(multiples) / np.sqrt(len(multiples))
        ideal = METRICS[f"{name}_x_floor"].ideal
        assert np.mean(multiples) == pytest.approx(ideal, abs=3.0 * error + 0.02)
    assert METRICS["fid_x_floor"].ideal == 0.5
    assert abs(np.mean(found["fid"]) - 1.0) > 0.3


def test_floors_serve_other_populations_and_fit_only_theirs(real, other, measured):
    again = measure_all(real, other, floors=measured.floors, seed=0)
    assert again.values == measured.values
    with pytest.raises(ValueError, match="floors of this real population"):
        measure_all(other, real, floors=measured.floors)
    with pytest.raises(ValueError, match="floors of every distance; got those of acf, fid"):
        measure_all(real, other, floors=compute_floors(real, n_splits=1))


def test_measure_each_equals_measure_all_and_tells_progress(real, other):
    steps = []
    found = measure_each(
        real,
        {"a": other, "b": corrupted(0.5)},
        n_splits=2,
        progress=lambda done, total: steps.append((done, total)),
    )
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert found["a"].values == measure_all(real, other, n_splits=2).values
    assert found["a"].floors is found["b"].floors
    assert found["b"].values["mmd2"] > found["a"].values["mmd2"]


def test_spread_of_the_floors_goes_with_its_metric(measured):
    for name in ALL_DISTANCES:
        floor = measured.floors.by_distance[name]
        assert measured.sd[name] == floor.sd
        assert measured.sd[f"{name}_x_floor"] == pytest.approx(floor.sd / floor.mean)
    assert "mmd2" not in measured.sd
    assert measured.floors.by_distance["coverage"].mean > 0.9


def test_seed_moves_chance_alone(real, other, measured):
    found = measure_all(real, other, floors=measured.floors, seed=5).values
    chance = {"mmd_p_value", "tstr_next_step", "tstr_energy"}
    chance |= {"classifier_auc", "classifier_accuracy", "classifier_p_value"}
    for key in KEYS:
        assert (found[key] == measured.values[key]) == (key not in chance), key


def test_to_dict_is_json(real, measured):
    text = json.dumps(measured.to_dict(), allow_nan=False)
    back = json.loads(text)
    assert list(back["values"]) == KEYS
    assert back["values"]["fid"] == measured.values["fid"]
    assert back["floors"]["fid"]["mean"] == measured.floors.by_distance["fid"].mean
    assert back["counts"] == {"real": N_TRIPS, "synthetic": N_TRIPS, "samples": 60, "splits": 4}


def test_units_follow_the_time_step(real, other, measured):
    slow = [side.assign_coords(time=side["time"] * 2.0) for side in (real, other)]
    found = measure_all(*slow, n_splits=1).values
    for key in ("energy_w1", "duration_w1"):
        assert found[key] == pytest.approx(2.0 * measured.values[key])
    for key in ("spectrum", "levels_w1", "acf"):
        assert found[key] == pytest.approx(measured.values[key])


def test_places_are_optional_and_may_be_unknown_for_some_trips(real, other, measured):
    bare = measure_all(real["power_w"], other["power_w"], n_splits=1)
    assert math.isnan(bare.values["start_end"])
    assert math.isnan(bare.values["start_end_x_floor"])
    assert bare.to_dict()["values"]["start_end"] is None
    assert bare.values["fid"] == measured.values["fid"]
    known = np.arange(N_TRIPS) > 9
    holes = moved(other, "end_lon", "end_lon", np.where(known, 0.0, np.nan))
    expected = measure_all(real, other.isel(trip=known), n_splits=1).values["start_end"]
    assert measure_all(real, holes, n_splits=1).values["start_end"] == pytest.approx(expected)
    nowhere = real.assign({name: real[name] * np.nan for name in ("start_lat", "end_lat")})
    assert math.isnan(measure_all(nowhere, other, n_splits=1).values["start_end"])


SILENT = {"tstr_next_step", "tstr_energy"}


def test_synthetic_traces_of_zeros_have_defined_metrics(real):
    found = measure_all(real, np.zeros((50, 60)), n_splits=2).values
    for key, value in found.items():
        # Nothing can be learned from trips that never run, and there are no places.
        assert math.isfinite(value) == (key not in SILENT and "start_end" not in key), key
    assert found["mmd_p_value"] == found["classifier_p_value"] == 0.002
    assert found["classifier_auc"] == 1.0
    assert found["coverage"] == found["density"] == 0.0
    assert found["energy_w1"] == pytest.approx(
        real["power_w"].sum("time").mean().item() / 1e6, rel=1e-5
    )


@pytest.mark.parametrize("level_w", [0.0, 1e9 / 3])
def test_populations_of_one_constant_trace_have_defined_metrics(level_w):
    constant = np.full((20, 60), level_w)
    found = measure_all(constant, constant.copy(), n_splits=2)
    undefined = {key for key, value in found.values.items() if not math.isfinite(value)}
    assert undefined == {*MULTIPLES, "start_end", *SILENT}
    assert all(found.values[name] == 0.0 for name in ALL_DISTANCES if name != "start_end")
    assert found.values["mmd_p_value"] == found.values["classifier_p_value"] == 1.0
    assert found.values["classifier_auc"] == 0.5
    json.dumps(found.to_dict(), allow_nan=False)
    moved = measure_all(constant, constant + np.arange(60.0) * 1e6, n_splits=2)
    assert moved.values["fid_x_floor"] == moved.values["acf_x_floor"] == math.inf
    assert moved.values["mmd_p_value"] < 0.01


def test_bad_input_is_refused(real, other):
    bad = other.copy(deep=True)
    bad["power_w"][17, 5] = np.nan
    with pytest.raises(InputDataError, match=r"trip 171101/17/7 \(row 17\) at sample 5"):
        measure_all(real, bad)
    with pytest.raises(InputDataError, match="equal length; got 60 samples in the real and 59"):
        measure_all(real, other.isel(time=slice(0, 59)))
    with pytest.raises(InputDataError, match="12 synthetic traces for all metrics; got 1"):
        measure_all(real, other.isel(trip=[0]))
    with pytest.raises(InputDataError, match="12 real traces for all metrics; got 11"):
        measure_all(real.isel(trip=slice(0, 11)), other)
    with pytest.raises(InputDataError, match="shape"):
        measure_all(real["power_w"].values[0], other["power_w"].values)
    with pytest.raises(ValueError, match="n_splits >= 1"):
        measure_all(real, other, n_splits=0)
    with pytest.raises(ValueError, match="at least one synthetic population"):
        measure_each(real, {})
    one = real.assign_attrs(region_fingerprint="a" * 16)
    with pytest.raises(RegionMismatchError, match="one region"):
        measure_all(one, other.assign_attrs(region_fingerprint="b" * 16))


def test_smallest_populations_have_defined_metrics():
    found = measure_all(make_traces(12, seed=0), make_traces(12, seed=1), n_splits=2)
    undefined = {key for key, value in found.values.items() if not math.isfinite(value)}
    assert undefined == {"start_end", "start_end_x_floor"}


@pytest.mark.slow
def test_all_metrics_of_full_size_take_less_than_a_minute():
    """2,000 x 500 against 2,000 x 500 with 15 floors, in processor time of one thread.

    In a process of its own, see the same test of ``evaluate``.
    """
    script = (
        "import time\n"
        "from prisma_sbi.evaluation import measure_all\n"
        "from tests.evaluation.conftest import make_traces\n"
        "a, b = (make_traces(2000, seed=seed, n_samples=500) for seed in (0, 1))\n"
        "start = time.process_time()\n"
        "measure_all(a, b)\n"
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
    assert float(done.stdout) < 40.0
