"""A trip as several weighted rows: the integers, the bound on them, and what a release says."""

from fractions import Fraction

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi._errors import BudgetError, InputDataError
from prisma_sbi.descriptors import (
    DESCRIPTORS,
    is_weighted,
    make_weighted_table,
    pick_one_row,
    route_table,
    table_from_draws,
)
from prisma_sbi.privacy import (
    Ledger,
    SeededNoise,
    SynthesisSettings,
    SystemNoise,
    ZeroNoise,
    load_release,
    save_release,
    synthesize,
)
from prisma_sbi.privacy.asking import measure
from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.contribution import Contribution
from prisma_sbi.privacy.ledger import gaussian_rho
from prisma_sbi.privacy.records import bounded_table
from prisma_sbi.privacy.settings import Neighbors, PrivacyUnit
from prisma_sbi.region import demo_region
from tests.descriptors.tiny import random_table
from tests.privacy.test_noise import P_MIN, variance_test
from tests.privacy.weighted import (
    CANDIDATES,
    GRID,
    REGION,
    breaches,
    random_model,
    weighted_table,
)

SETTINGS = SynthesisSettings()


def columns(n_rows: int) -> dict[str, np.ndarray]:
    rows = random_table(REGION, n_rows)
    return {name: rows[name].values for name in DESCRIPTORS}


def weigh(weight, *, source=None, weight_total=64):
    return make_weighted_table(
        columns(len(weight)),
        source=["a"] * len(weight) if source is None else source,
        weight=weight,
        weight_total=weight_total,
        region_fingerprint=REGION.fingerprint,
    )["weight"].values


class NoNoise(SystemNoise):
    """Fails when it is asked: nothing may be spent."""

    def gaussian(self, counts, **options):
        raise AssertionError("something was spent")

    select = gaussian


# --- From weights to integers ---------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    weights=st.lists(
        st.one_of(st.just(0.0), st.floats(1e-300, 1e300)), min_size=1, max_size=9
    ).filter(any),
    weight_total=st.integers(1, 2000),
)
def test_integers_sum_to_the_total_and_keep_the_quota(weights, weight_total):
    found = weigh(weights, weight_total=weight_total)
    assert found.sum() == weight_total
    total = sum(map(Fraction, weights))
    exact = np.array([float(Fraction(item) / total * weight_total) for item in weights])
    assert np.all(np.abs(found - exact) < 1 + 1e-9)
    assert np.all(found[np.array(weights) == 0] == 0)


@settings(deadline=None, max_examples=20)
@given(n_trips=st.integers(2, 12), seed=st.integers(0, 2**32 - 1))
def test_integers_of_a_trip_depend_on_its_own_rows_alone(n_trips, seed):
    rng = np.random.default_rng(seed)
    source = rng.integers(n_trips, size=30)
    weight = rng.exponential(size=30)
    together = weigh(weight, source=source)
    for trip in np.unique(source):
        mine = source == trip
        np.testing.assert_array_equal(together[mine], weigh(weight[mine]))


def test_weights_are_rounded_by_largest_remainder():
    assert weigh([1.0, 1.0, 1.0], weight_total=4).tolist() == [2, 1, 1]
    assert weigh([0.5, 0.3, 0.2], weight_total=3).tolist() == [1, 1, 1]
    assert weigh([7.0], weight_total=5).tolist() == [5]


def test_rows_are_named_by_trip_and_position():
    table = make_weighted_table(
        columns(3), source=["x", "y", "x"], weight=[1, 1, 1], region_fingerprint=""
    )
    assert table["trip"].values.tolist() == ["x#0", "y#0", "x#1"]
    assert table["source"].values.tolist() == ["x", "y", "x"]
    assert table.attrs["weight_total"] == 64
    assert is_weighted(table)
    assert not is_weighted(random_table(REGION, 3))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"weight": [1.0, -1.0, 1.0]}, "row 1 .trip 'b'"),
        ({"weight": [1.0, np.nan, 1.0]}, "row 1 .trip 'b'"),
        ({"weight": [1.0, np.inf, 1.0]}, "row 1 .trip 'b'"),
        ({"weight": [1.0, 0.0, 1.0]}, "positive sum for every trip; got none for trip 'b'"),
        ({"weight": [1.0, 1.0]}, "3 numbers as weights"),
        ({"weight": np.array(["1", "1", "1"])}, "3 numbers as weights"),
        ({"source": ["a"]}, "3 values of source"),
        ({"source": ["a", "", "a"]}, "source of row 1"),
        ({"owner": ["a", "b"]}, "3 values of owner"),
        ({"weight_total": 0}, "weight_total"),
        ({"weight_total": 2**40}, "weight_total"),
    ],
)
def test_unusable_weights_are_named(change, part):
    options = {"source": ["a", "b", "a"], "weight": [1.0, 1.0, 1.0]} | change
    with pytest.raises(InputDataError, match=part):
        make_weighted_table(columns(3), region_fingerprint="", **options)


def test_draws_of_a_posterior_become_weighted_rows():
    rng = np.random.default_rng(0)
    dims = ("chain", "draw", "trip")
    draws = xr.Dataset(
        {
            "aggressiveness": (dims, rng.random((2, 5, 3))),
            "detour": (dims, 1 + rng.random((2, 5, 3))),
            "vehicle": (dims, rng.integers(3, size=(2, 5, 3))),
        },
        coords={"trip": ["a", "b", "c"]},
    )
    ends = random_table(REGION, 3)[["start_lat", "start_lon", "end_lat", "end_lon"]]
    table = table_from_draws(
        draws, ends, owner=["p", "q", "p"], weight_total=20, region_fingerprint="f"
    )
    assert table["source"].values.tolist() == ["a"] * 10 + ["b"] * 10 + ["c"] * 10
    assert table["owner"].values.tolist() == ["p"] * 10 + ["q"] * 10 + ["p"] * 10
    assert np.all(table["weight"].values == 2)
    np.testing.assert_array_equal(
        table["detour"].values[10:20], draws["detour"].values[:, :, 1].ravel()
    )
    assert np.ptp(table["start_lat"].values[10:20]) == 0
    one = xr.zeros_like(draws["detour"]).astype(float)
    one[1, 3, :] = 0.5
    heavy = table_from_draws(draws, ends, weight=one, region_fingerprint="f")
    assert heavy["weight"].values.reshape(3, 10)[:, 8].tolist() == [64, 64, 64]
    with pytest.raises(InputDataError, match="several posterior draws per trip; got 1"):
        table_from_draws(draws.isel(chain=[0], draw=[0]), ends, region_fingerprint="f")


def test_one_row_per_trip_is_drawn_by_weight():
    table = make_weighted_table(
        columns(5),
        source=["b", "a", "a", "b", "a"],
        weight=[3, 0, 1, 1, 0],
        weight_total=4,
        region_fingerprint="",
    )
    rng = np.random.default_rng(1)
    picks = []
    for _ in range(800):
        plain = pick_one_row(table, rng)
        assert plain["trip"].values.tolist() == ["b", "a"]
        assert plain["detour"].values[1] == table["detour"].values[2]
        picks.append(plain["detour"].values[0] == table["detour"].values[0])
    assert abs(np.mean(picks) - 0.75) < 0.06
    assert "weight" not in plain
    assert not is_weighted(plain)
    xr.testing.assert_identical(pick_one_row(random_table(REGION, 3), rng), random_table(REGION, 3))


# --- The bound ------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(
    n_trips=st.integers(1, 7),
    weight_total=st.sampled_from([1, 2, 7, 64]),
    seed=st.integers(0, 2**32 - 1),
)
def test_one_trip_moves_nothing_further_than_the_bound(n_trips, weight_total, seed):
    table = weighted_table(n_trips, weight_total=weight_total, seed=seed)
    model = random_model(n_trips, seed)
    whole, n_found = bounded_table(table, GRID, SETTINGS)
    assert n_found == n_trips
    assert whole.contribution == Contribution(weight_total=weight_total)
    for trip in np.unique(table["source"].values):
        without, _ = bounded_table(table.isel(trip=table["source"].values != trip), GRID, SETTINGS)
        assert breaches(whole, without, model) == []
        for pair in CANDIDATES:
            change = whole.count(pair) - without.count(pair)
            assert change.min() >= 0
            assert change.sum() == weight_total


@settings(deadline=None, max_examples=25)
@given(n_trips=st.integers(2, 6), seed=st.integers(0, 2**32 - 1))
def test_a_replaced_trip_moves_nothing_further_than_its_bound(n_trips, seed):
    table = weighted_table(n_trips, weight_total=9, seed=seed)
    source = table["source"].values
    first, second = (
        bounded_table(
            table.isel(trip=source != trip), GRID, SynthesisSettings(neighbors="replace")
        )[0]
        for trip in ("t0", "t1")
    )
    assert first.contribution.l2_squared == 2 * 9**2
    assert first.contribution.l1 == 2 * 9
    assert breaches(first, second, random_model(n_trips, seed)) == []


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_stated_bounds_are_reached(neighbors):
    """A smaller bound would be wrong: all rows of a trip in one cell, those of another apart."""
    bound = Contribution(unit=PrivacyUnit.VEHICLE, weight_total=5, trips=3, neighbors=neighbors)
    codes = np.array([[0] * 7, [1] * 7])
    weights = [np.array([15, 0]), np.array([0, 15 if neighbors == Neighbors.REPLACE else 0])]
    one, other = (
        CodedTable(shape=GRID.shape, codes=codes, weights=item, contribution=bound)
        for item in weights
    )
    change = one.count((2,)) - other.count((2,))
    assert int(np.sum(change**2)) == bound.l2_squared
    assert int(np.sum(np.abs(change))) == bound.l1
    assert breaches(one, other, random_model(1, 0)) == []


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_weights_that_nobody_bounds_are_caught(seed):
    """The wrong version: rows are counted with whatever weights they bring."""
    table = weighted_table(4, weight_total=8, seed=seed)
    mine = table["source"].values == "t0"
    table["weight"] = ("trip", np.where(mine, 3, 1) * table["weight"].values)
    codes, weights = GRID.discretize(table), table["weight"].values
    bound = Contribution(weight_total=8)
    whole = CodedTable(shape=GRID.shape, codes=codes, weights=weights, contribution=bound)
    without = CodedTable(
        shape=GRID.shape, codes=codes[~mine], weights=weights[~mine], contribution=bound
    )
    found = breaches(whole, without, random_model(4, seed))
    assert "L1 of (0,)" in found
    with pytest.raises(InputDataError, match="'t0'.*got"):
        synthesize(table.assign_attrs(weight_total=24 - 1), REGION, noise=NoNoise())


def test_overweight_trips_are_refused_before_anything_is_spent():
    table = weighted_table(5, weight_total=8, seed=3)
    good = table["weight"].values.copy()
    row = int(np.flatnonzero(table["source"].values == "t2")[0])
    for change, part in ((1, "'t2'.*; got"), (-100, "row"), (2**40, "row")):
        table["weight"].values[row] = good[row] + change
        for mechanism in ("aim", "independent", "none"):
            with pytest.raises(InputDataError, match=part):
                synthesize(table, REGION, SynthesisSettings(mechanism=mechanism), noise=NoNoise())
    table["weight"].values[:] = np.where(table["source"].values == "t2", 0, good)
    with pytest.raises(InputDataError, match="'t2'; got 0"):
        synthesize(table, REGION, noise=NoNoise())
    table["weight"].values[:] = good // 2 + (good == 1)
    synthesize(table, REGION, SynthesisSettings(mechanism="independent", estimation_iterations=9))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda table: table.drop_vars("weight"),
        lambda table: table.drop_vars("source"),
        lambda table: table.drop_attrs(deep=False).assign_attrs(
            {k: v for k, v in table.attrs.items() if k != "weight_total"}
        ),
        lambda table: table.assign_attrs(weight_total=1.5),
        lambda table: table.assign(weight=table["weight"].astype(float)),
        lambda table: table.assign(source=table["source"].astype("S")),
    ],
)
def test_half_a_weighted_table_is_refused(wrong):
    with pytest.raises(InputDataError, match="weight"):
        synthesize(wrong(weighted_table(4, weight_total=8, seed=0)), REGION, noise=NoNoise())


# --- Noise and prices -----------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("weight_total", [1, 64])
def test_weights_leave_noise_in_trips_and_price_as_they_are(weight_total, neighbors):
    bound = Contribution(weight_total=weight_total, neighbors=neighbors)
    table = CodedTable(shape=(9000,), codes=np.zeros((0, 1), dtype=np.int64), contribution=bound)
    ledger, found = measure(table, (0,), 10.0, Ledger.open(1.0), SystemNoise())
    assert ledger.used == pytest.approx(1 / 200, rel=1e-9)
    factor = np.sqrt(2) if neighbors == Neighbors.REPLACE else 1.0
    assert found.stddev == pytest.approx(10.0 * factor)
    assert variance_test(found.values, 10.0 * factor) > P_MIN
    assert variance_test(found.values, 11.0 * factor) < P_MIN
    np.testing.assert_allclose(found.values * weight_total % 1, 0)


def test_noise_for_one_row_is_not_sold_for_a_heavy_trip():
    counts = np.zeros(3, np.int64)
    rho = gaussian_rho(20.0, l2_squared=25)
    SystemNoise().gaussian(counts, stddev=20.0, rho=rho, l2_squared=25)
    for l2_squared in (26, 36, 50):
        with pytest.raises(BudgetError, match="Nothing was released"):
            SystemNoise().gaussian(counts, stddev=20.0, rho=rho, l2_squared=l2_squared)


def test_measurements_are_in_trips():
    table = weighted_table(30, weight_total=16, seed=2)
    coded, _ = bounded_table(table, GRID, SETTINGS)
    _, found = measure(coded, (6,), 1.0, Ledger.open(1.0), ZeroNoise())
    assert found.values.sum() == 30
    codes = GRID.discretize(table)[:, 6]
    np.testing.assert_allclose(
        found.values, np.bincount(codes, weights=table["weight"].values / 16, minlength=3)
    )


def test_a_plain_table_is_the_case_of_weight_one():
    plain = random_table(REGION, 50)
    weighted = make_weighted_table(
        {name: plain[name].values for name in DESCRIPTORS},
        source=plain["trip"].values,
        weight=np.full(50, 0.3),
        weight_total=1,
        region_fingerprint=REGION.fingerprint,
    )
    one, other = (
        synthesize(table, REGION, SynthesisSettings(epsilon=3.0), noise=SeededNoise(1), seed=1)
        for table in (plain, weighted)
    )
    np.testing.assert_array_equal(one.codes, other.codes)
    assert one.ledger == other.ledger


# --- Releases -------------------------------------------------------------------------------


def test_release_of_weighted_rows_says_so_and_survives_the_disk(tmp_path):
    table = weighted_table(40, weight_total=64, seed=5)
    settings = SynthesisSettings(mechanism="independent", neighbors="replace")
    release = synthesize(table, REGION, settings)
    assert release.n_rows == 40
    text = release.guarantee_text()
    assert "weighted rows that together weigh at most one trip, in units of 1/64" in text
    assert "replace one record by another; one record is one trip" in text
    assert "only among tables with equally many trips" in text
    again = load_release(save_release(release, tmp_path / "release"))
    assert again.guarantee == release.guarantee
    assert again.settings == release.settings
    assert again.guarantee_text() == text


def test_replacement_pays_more_for_the_same_noise():
    table = random_table(REGION, 40)
    noises = [
        synthesize(table, REGION, SynthesisSettings(mechanism="independent", neighbors=str(item)))
        .measured[0]
        .stddev
        for item in (Neighbors.ADD_REMOVE, Neighbors.REPLACE)
    ]
    assert noises[1] == pytest.approx(np.sqrt(2) * noises[0])


def test_words_of_older_releases_are_read():
    assert Neighbors("add or remove one record") is Neighbors.ADD_REMOVE
    with pytest.raises(ValueError, match="magic"):
        Neighbors("magic")


def test_without_mechanism_each_trip_gives_one_row():
    table = weighted_table(12, weight_total=8, seed=1)
    first, second, other = (
        synthesize(table, REGION, SynthesisSettings(mechanism="none"), seed=seed).exact
        for seed in (1, 1, 2)
    )
    assert first.sizes["trip"] == 12
    xr.testing.assert_identical(first, second)
    assert np.any(first["detour"].values != other["detour"].values)


def test_adaptive_release_of_a_posterior_keeps_its_mean():
    """Half of each trip's weight goes to either of two vehicles, and so does the release."""
    n_trips = 300
    rows = columns(n_trips)
    twice = {name: np.repeat(values, 2) for name, values in rows.items()}
    twice["vehicle"] = np.tile([0, 2], n_trips)
    table = make_weighted_table(
        twice,
        source=np.repeat(np.arange(n_trips), 2),
        weight=np.tile([1.0, 1.0], n_trips),
        region_fingerprint=REGION.fingerprint,
    )
    release = synthesize(
        table, REGION, SynthesisSettings(epsilon=5.0), noise=SeededNoise(3), seed=1
    )
    counts = np.bincount(release.codes[:, 6], minlength=3) / release.n_rows
    np.testing.assert_allclose(counts, [0.5, 0.0, 0.5], atol=0.1)


def test_route_table_takes_weighted_rows():
    region = demo_region()
    box = region.bounds
    rng = np.random.default_rng(0)
    values = {
        "start_lat": rng.uniform(box.south_deg, box.north_deg, 30),
        "start_lon": rng.uniform(box.west_deg, box.east_deg, 30),
        "end_lat": rng.uniform(box.south_deg, box.north_deg, 30),
        "end_lon": rng.uniform(box.west_deg, box.east_deg, 30),
        "aggressiveness": rng.random(30),
        "detour": rng.uniform(1.0, 2.5, 30),
        "vehicle": rng.integers(len(region.vehicles), size=30),
    }
    table = make_weighted_table(
        values,
        source=np.arange(30) // 3,
        weight=rng.random(30),
        owner=np.arange(30) // 6,
        region_fingerprint=region.fingerprint,
    )
    coded, n_trips = bounded_table(table, route_table(region), SETTINGS)
    assert n_trips == 10
    assert coded.count((0,)).sum() == 640
