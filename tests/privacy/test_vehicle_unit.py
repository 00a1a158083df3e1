"""The vehicle as unit of privacy: who enters, how far a vehicle moves a count, what is said."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi._errors import InputDataError
from prisma_sbi.privacy import Ledger, SynthesisSettings, load_release, save_release, synthesize
from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.contribution import Contribution
from prisma_sbi.privacy.records import bound_trips, bounded_table
from prisma_sbi.privacy.settings import Neighbors, PrivacyUnit
from tests.descriptors.tiny import random_table
from tests.privacy.test_weighted_rows import NoNoise
from tests.privacy.weighted import GRID, REGION, breaches, random_model, weighted_table


def vehicles(limit: int, **options) -> SynthesisSettings:
    return SynthesisSettings(unit="vehicle", max_trips_per_vehicle=limit, **options)


def plain_table(n_trips: int, n_owners: int, seed: int = 0):
    owner = np.random.default_rng(seed).integers(n_owners, size=n_trips).astype("U")
    return random_table(REGION, n_trips, seed).assign(owner=("trip", owner))


@settings(deadline=None, max_examples=25)
@given(
    n_trips=st.integers(1, 10),
    n_owners=st.integers(1, 4),
    limit=st.integers(1, 4),
    weight_total=st.sampled_from([None, 1, 5]),
    neighbors=st.sampled_from(list(Neighbors)),
    seed=st.integers(0, 2**32 - 1),
)
def test_one_vehicle_moves_nothing_further_than_the_bound(
    n_trips, n_owners, limit, weight_total, neighbors, seed
):
    table = (
        plain_table(n_trips, n_owners, seed)
        if weight_total is None
        else weighted_table(n_trips, weight_total=weight_total, seed=seed, n_owners=n_owners)
    )
    chosen = vehicles(limit, neighbors=str(neighbors))
    whole, n_whole = bounded_table(table, GRID, chosen)
    units = limit * (weight_total or 1)
    assert whole.contribution.l1 == units * (2 if neighbors == Neighbors.REPLACE else 1)
    model, owner = random_model(n_trips, seed), table["owner"].values
    without = {
        name: bounded_table(table.isel(trip=owner != name), GRID, chosen)
        for name in np.unique(owner)
    }
    for other, n_other in without.values():
        assert breaches(whole, other, model) == []
        assert 1 <= n_whole - n_other <= limit
    if neighbors == Neighbors.REPLACE:
        first, *others = (other for other, _ in without.values())
        for other in others:
            assert breaches(first, other, model) == []


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_vehicles_that_nobody_bounds_are_caught(seed):
    """The wrong version: the price of three trips for all trips of a vehicle."""
    table = plain_table(12, 1, seed)
    table["detour"][:] = 1.2
    bound = Contribution(unit=PrivacyUnit.VEHICLE, trips=3)
    codes = GRID.discretize(table)
    whole = CodedTable(shape=GRID.shape, codes=codes, contribution=bound)
    without = CodedTable(shape=GRID.shape, codes=codes[:0], contribution=bound)
    assert {"L2 of (5,)", "L1 of (5,)"} <= set(breaches(whole, without, random_model(9, seed)))
    entered, _ = bounded_table(table, GRID, vehicles(3))
    assert breaches(entered, without, random_model(9, seed)) == []


@settings(deadline=None, max_examples=30)
@given(owner=st.lists(st.integers(0, 4), max_size=30), limit=st.integers(1, 5), order=st.randoms())
def test_who_enters_depends_on_the_own_trips_alone(owner, limit, order):
    names = np.array([f"171101/{index}" for index in range(len(owner))], dtype="U12")
    owner = np.array(owner, dtype=np.int64)
    kept = bound_trips(owner, names, limit=limit)
    counts = np.bincount(owner, minlength=5)
    np.testing.assert_array_equal(np.bincount(owner[kept], minlength=5), np.minimum(counts, limit))
    for mine in range(5):
        alone = bound_trips(owner[owner == mine], names[owner == mine], limit=limit)
        np.testing.assert_array_equal(kept[owner == mine], alone)
    shuffled = np.array(order.sample(range(len(owner)), len(owner)), dtype=np.int64)
    np.testing.assert_array_equal(
        bound_trips(owner[shuffled], names[shuffled], limit=limit), kept[shuffled]
    )


def test_early_trips_are_not_preferred():
    names = np.arange(1000).astype("U")
    kept = bound_trips(np.zeros(1000, np.int64), names, limit=500)
    assert 200 < kept[:500].sum() < 300


def test_release_says_what_a_record_is(tmp_path):
    table = weighted_table(60, weight_total=16, seed=5, n_owners=9)
    release = synthesize(table, REGION, vehicles(4, mechanism="independent", n_rows=30))
    guarantee = release.guarantee
    assert (guarantee.unit, guarantee.max_trips, guarantee.weight_total) == ("vehicle", 4, 16)
    text = release.guarantee_text()
    assert "one record is one vehicle with all of its trips, of which at most 4 entered" in text
    assert "several vehicles is protected for each" in text
    assert "in units of 1/16" in text
    assert "one vehicle may have put trips of several others out" in text
    assert "more than 4 trips only that many entered" in text
    assert release.ledger.hides == "one vehicle with at most 4 trips, added or removed"
    again = load_release(save_release(release, tmp_path / "release"))
    assert again.guarantee == guarantee
    assert again.ledger == release.ledger
    assert again.settings == release.settings
    assert again.guarantee_text() == text


def test_ledgers_of_older_releases_are_of_single_trips():
    record = Ledger.open(1.0, hides="something").to_dict()
    assert Ledger.from_dict(record).hides == "something"
    del record["hides"]
    assert Ledger.from_dict(record).hides == "one trip, added or removed"


def test_noise_grows_with_the_trips_and_rows_are_those_that_enter():
    table = plain_table(50, 5)
    trips = synthesize(table, REGION, SynthesisSettings(mechanism="independent"))
    cars = synthesize(table, REGION, vehicles(3, mechanism="independent"))
    assert cars.measured[0].stddev == pytest.approx(3 * trips.measured[0].stddev)
    assert cars.ledger.used == pytest.approx(trips.ledger.used, rel=1e-6)
    assert (trips.n_rows, cars.n_rows) == (50, 15)


def test_vehicle_needs_an_owner_for_every_trip():
    with pytest.raises(InputDataError, match="'owner'.*unit='trip'"):
        synthesize(random_table(REGION, 5), REGION, vehicles(2), noise=NoNoise())
    table = plain_table(5, 2)
    for nobody in ("", None, float("nan")):
        owner = table["owner"].values.astype(object)
        owner[3] = nobody
        with pytest.raises(InputDataError, match="row 3 .trip '3'"):
            synthesize(table.assign(owner=("trip", owner)), REGION, vehicles(2), noise=NoNoise())
    mixed = weighted_table(5, weight_total=8, seed=0, n_owners=1)
    source = mixed["source"].values
    heavy = next(name for name in np.unique(source) if np.sum(source == name) > 1)
    mixed["owner"] = ("trip", mixed["owner"].values.astype("U9"))
    mixed["owner"][int(np.flatnonzero(source == heavy)[0])] = "other"
    with pytest.raises(InputDataError, match=f"one owner for all rows of trip '{heavy}'"):
        synthesize(mixed, REGION, vehicles(2), noise=NoNoise())


@pytest.mark.parametrize(
    "wrong",
    [
        {"unit": "vehicle"},
        {"max_trips_per_vehicle": 3},
        {"unit": "vehicle", "max_trips_per_vehicle": 0},
        {"unit": "person", "max_trips_per_vehicle": 3},
    ],
)
def test_a_unit_without_its_bound_is_refused(wrong):
    with pytest.raises(ValueError, match="Expected"):
        SynthesisSettings(**wrong)
    with pytest.raises(ValueError, match="Expected one trip"):
        Contribution(trips=2)


def test_a_table_of_nobody_is_a_table():
    release = synthesize(
        plain_table(5, 1).isel(trip=slice(0)),
        REGION,
        vehicles(2, mechanism="independent", n_rows=4, estimation_iterations=9),
    )
    assert release.n_rows == 4
