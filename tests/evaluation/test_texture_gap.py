"""Facts of populations in closed form, groups as subsets, and swaps that find a planted flaw."""

import numpy as np
import pytest

from prisma_sbi.evaluation import evaluate
from prisma_sbi.evaluation.texture_gap import (
    ALL_TRIPS,
    BAND_EDGES_HZ,
    FACTS,
    PUBLISHED,
    Driven,
    band_variance_w2,
    gap_table,
    run_lengths,
    swap_table,
)
from tests.evaluation.conftest import make_traces


def fact(name, *trips, horizon=100):
    """A fact of trips that are padded to one horizon."""
    power_w = np.zeros((len(trips), horizon))
    for row, trip in enumerate(trips):
        power_w[row, : len(trip)] = trip
    return FACTS[name].measure(Driven(power_w))


def test_runs_by_brute_force():
    generator = np.random.default_rng(0)
    for _ in range(50):
        mask = generator.random(generator.integers(0, 30)) < 0.6
        words = "".join("x" if each else " " for each in mask).split()
        np.testing.assert_array_equal(run_lengths(mask), [len(word) for word in words])


@pytest.mark.parametrize("n_samples", [1, 7, 128, 301])
def test_bands_add_up_to_the_variance(n_samples):
    power_w = np.random.default_rng(1).normal(20e3, 5e3, size=n_samples)
    bands = band_variance_w2(power_w)
    assert len(bands) == len(BAND_EDGES_HZ) - 1
    assert bands.sum() == pytest.approx(power_w.var(), abs=1e-6)


def test_a_tone_lies_in_its_band():
    time = np.arange(256)
    for number, period in enumerate((256, 64, 20, 12, 5, 3)):
        tone = 3e3 * np.sin(2 * np.pi * time / period)
        assert np.argmax(band_variance_w2(tone)) == number


def test_facts_of_a_car_that_waits():
    trip = np.concatenate([[40e3] * 20, [0.0] * 10, [30e3] * 10, [10e3] * 5, [50e3] * 15])
    assert fact("mean", trip) == pytest.approx((800 + 300 + 50 + 750) / 60)
    assert fact("zeros", trip) == pytest.approx(100 * 10 / 60)
    assert fact("quiet", trip) == pytest.approx(100 * 15 / 60)
    assert fact("quiet_count", trip) == pytest.approx(2 / 0.060)
    assert fact("quiet_50", trip) == 7.5
    assert fact("falls", trip) == pytest.approx(2 / 0.060)
    assert fact("repeats", trip) == pytest.approx(100 * (60 - 5 - 9) / 50)
    assert fact("start_1", trip) == 40.0
    assert fact("start_60", trip) == pytest.approx((300 + 50 + 750) / 40)
    assert fact("end_20", trip) == pytest.approx((10 * 5 + 50 * 15) / 20)
    assert fact("level_75", trip) == pytest.approx(42.5)


def test_ends_are_those_of_trips_that_end():
    ends, goes_on = np.full(50, 10e3), np.full(100, 90e3)
    assert fact("end_20", ends, goes_on) == 10.0
    assert np.isnan(fact("end_20", goes_on))
    assert np.isnan(fact("start_60", ends))


def test_groups_are_the_tables_of_their_trips():
    real_w, decoded_w = (make_traces(60, seed=seed, n_samples=80) for seed in (1, 2))
    labels = np.where(np.arange(60) < 20, "HEV", "ICE")
    table = gap_table(real_w, decoded_w, {"type": labels}, fewest=20)
    assert list(dict.fromkeys(table["group"])) == [ALL_TRIPS, "HEV", "ICE"]
    own = gap_table(real_w[20:], decoded_w[20:])
    part = table[table["group"] == "ICE"]
    np.testing.assert_allclose(part[["real", "synthetic"]], own[["real", "synthetic"]])
    assert set(part["n_trips"]) == {40}
    fewer = gap_table(real_w, decoded_w, {"type": labels}, fewest=21)
    assert "HEV" not in set(fewer["group"])
    with pytest.raises(ValueError, match="Pass what belongs together"):
        gap_table(real_w, decoded_w, {"type": labels[:-1]})


@pytest.fixture(scope="module")
def planted():
    """Decoded traces that are recorded ones but for a first minute of noise."""
    real_w, judge_w = (make_traces(60, seed=seed, n_samples=150) for seed in (1, 2))
    decoded_w = real_w.copy()
    decoded_w[:, :60] = 40e3 * np.random.default_rng(3).random((60, 60))
    return real_w, decoded_w, judge_w, swap_table(real_w, decoded_w, judge_w, n_splits=3)


def test_the_planted_flaw_is_found(planted):
    table = planted[-1]
    repairs = table[table["direction"] == "repair"].set_index("swap")
    explained = repairs[[f"explained_{score}" for score in PUBLISHED]]
    for score in ("acf_x_floor", "fid_x_floor", "precision_standardized"):
        assert explained.loc["first minute", f"explained_{score}"] == pytest.approx(1.0)
        assert explained.loc["everything", f"explained_{score}"] == pytest.approx(1.0)
    others = explained["explained_fid_x_floor"].drop(["first minute", "everything"])
    assert others.max() < 0.9
    # Trips of 75 to 150 s: the last minute is in part the first of many.
    assert abs(others["last minute"]) < 0.5
    breaks = table[table["direction"] == "break"].set_index("swap")
    np.testing.assert_allclose(
        breaks.loc["first minute", list(PUBLISHED)].astype(float),
        table.loc[0, list(PUBLISHED)].astype(float),
    )
    assert breaks.loc["first minute", "explained_fid_x_floor"] == pytest.approx(1.0)


def test_scores_are_those_of_the_populations(planted):
    real_w, decoded_w, judge_w, table = planted
    for line, traces in (
        (table.iloc[0], decoded_w),
        (table[table.swap == "everything"].iloc[0], real_w),
    ):
        direct = evaluate(judge_w, traces, n_splits=3)
        for score in PUBLISHED:
            assert line[score] == getattr(direct, score)


def test_no_share_where_there_is_no_gap():
    real_w, judge_w = (make_traces(30, seed=seed) for seed in (1, 2))
    ticks = []
    table = swap_table(
        real_w, real_w, judge_w, n_splits=2, progress=lambda *done: ticks.append(done)
    )
    assert np.isnan(table[[f"explained_{score}" for score in PUBLISHED]].to_numpy()).all()
    assert ticks[-1] == (len(table), len(table))
