"""The two sets are disjoint, repeatable, and never silently smaller than asked."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi._errors import InputDataError
from prisma_sbi.telemetry import split_trips
from tests.telemetry.test_storage import traces_of

TRACES = traces_of(30)


@given(st.integers(1, 20), st.integers(0, 10), st.integers(0, 2**32))
@settings(deadline=None, max_examples=40)
def test_sets_are_disjoint_of_the_asked_sizes_and_repeatable(n_train, n_holdout, seed):
    options = {"n_train": n_train, "n_holdout": n_holdout, "seed": seed}
    train, holdout = split_trips(TRACES, **options)
    assert (train.sizes["trip"], holdout.sizes["trip"]) == (n_train, n_holdout)
    names = [*train["trip"].values, *holdout["trip"].values]
    assert len(set(names)) == len(names)
    assert set(names) <= set(TRACES["trip"].values)
    again = split_trips(TRACES, **options)
    assert train.identical(again[0])
    assert holdout.identical(again[1])


@given(st.integers(0, 29), st.integers(1, 20), st.integers(0, 9), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_one_trip_more_moves_at_most_one_trip_of_each_set(row, n_train, n_holdout, seed):
    options = {"n_train": n_train, "n_holdout": n_holdout, "seed": seed}
    without = TRACES.isel(trip=[k for k in range(30) if k != row])
    for more, fewer in zip(
        split_trips(TRACES, **options), split_trips(without, **options), strict=True
    ):
        entered = set(more["trip"].values) - set(fewer["trip"].values)
        assert len(entered) <= 1


def test_order_of_the_trips_does_not_matter():
    options = {"n_train": 12, "n_holdout": 6, "seed": 3}
    backwards = TRACES.isel(trip=slice(None, None, -1))
    for first, second in zip(
        split_trips(TRACES, **options), split_trips(backwards, **options), strict=True
    ):
        assert first.identical(second)


def test_rows_stay_together():
    train, _ = split_trips(TRACES, n_train=5, n_holdout=5, seed=1)
    for name in train["trip"].values:
        assert train.sel(trip=name).identical(TRACES.sel(trip=name))


def test_another_seed_gives_another_split():
    names = [
        split_trips(TRACES, n_train=20, n_holdout=10, seed=seed)[0]["trip"].values.tolist()
        for seed in (0, 1)
    ]
    assert names[0] != names[1]


def test_too_few_trips_says_how_many_there_are():
    with pytest.raises(InputDataError, match=r"at least 31 trips .*got 30"):
        split_trips(TRACES, n_train=21, n_holdout=10, seed=0)


@pytest.mark.parametrize(("option", "value"), [("n_train", 0), ("n_holdout", -1), ("seed", -1)])
def test_settings_out_of_range_raise(option, value):
    options = {"n_train": 5, "n_holdout": 5, "seed": 0} | {option: value}
    with pytest.raises(ValueError, match=option):
        split_trips(TRACES, **options)
