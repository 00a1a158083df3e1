"""A number of rows that is measured, not declared."""

import numpy as np
import pytest

from prisma_sbi._errors import BudgetError, InputDataError
from prisma_sbi.privacy import (
    Ledger,
    Mechanism,
    SeededNoise,
    SynthesisSettings,
    SystemNoise,
    ZeroNoise,
    load_release,
    save_release,
    synthesize,
)
from prisma_sbi.privacy.asking import count_trips
from prisma_sbi.privacy.contribution import Contribution
from prisma_sbi.privacy.settings import PrivacyUnit
from tests.descriptors.tiny import random_table
from tests.privacy.test_noise import P_MIN, variance_test
from tests.privacy.test_vehicle_unit import plain_table, vehicles
from tests.privacy.weighted import REGION, weighted_table

TABLE = random_table(REGION, 400)


def private(**options) -> SynthesisSettings:
    fast = {"mechanism": "independent", "estimation_iterations": 20}
    return SynthesisSettings(n_rows="private", **(fast | options))


@pytest.mark.parametrize("mechanism", ["aim", "mst", "independent"])
def test_count_is_the_first_spend_and_all_is_spent(mechanism):
    release = synthesize(TABLE, REGION, private(mechanism=mechanism, epsilon=0.5))
    assert release.is_private
    first, *others = release.ledger.spends
    assert first.name.startswith("count the trips at stddev 5")
    assert not any(item.name.startswith("count") for item in others)
    assert first.units == pytest.approx(0.02 * release.ledger.budget_units, rel=1e-6)
    assert 0 <= release.ledger.left_units <= 1e-9 * release.ledger.budget_units + 20
    assert release.n_rows == release.guarantee.n_rows
    assert abs(release.n_rows - 400) < 6 * release.guarantee.n_rows_stddev


@pytest.mark.parametrize("trips", [1, 7])
def test_count_has_its_noise_and_another_scale_is_noticed(trips):
    unit = PrivacyUnit.VEHICLE if trips > 1 else PrivacyUnit.TRIP
    bound = Contribution(unit=unit, weight_total=64, trips=trips)
    found = [
        count_trips(10_000, bound, 0.02, Ledger.open(0.25), SystemNoise()) for _ in range(3000)
    ]
    stddev = 10.0 * trips
    assert {round(item[2], 6) for item in found} == {stddev}
    assert found[0][0].used == pytest.approx(0.005, rel=1e-9)
    errors = np.array([item[1] for item in found]) - 10_000
    assert variance_test(errors, stddev) > P_MIN
    assert variance_test(errors, 1.2 * stddev) < P_MIN
    assert variance_test(errors, stddev / 1.2) < P_MIN


def test_trips_are_counted_not_rows_nor_weights():
    weighted = weighted_table(30, weight_total=16, seed=1)
    assert weighted.sizes["trip"] > 40
    assert synthesize(weighted, REGION, private(), noise=ZeroNoise()).n_rows == 30
    cars = vehicles(2, n_rows="private", mechanism="independent", estimation_iterations=20)
    assert synthesize(plain_table(40, 4), REGION, cars, noise=ZeroNoise()).n_rows == 8


def test_there_is_at_least_one_row():
    empty = random_table(REGION, 0)
    assert synthesize(empty, REGION, private(), noise=ZeroNoise()).n_rows == 1
    draws = {synthesize(empty, REGION, private(), noise=SeededNoise(s)).n_rows for s in range(8)}
    assert min(draws) == 1
    assert max(draws) > 1


def test_statement_says_that_the_number_is_protected(tmp_path):
    release = synthesize(TABLE, REGION, private())
    text = release.guarantee_text()
    assert f"the {release.n_rows} rows are a measurement of it" in text
    assert "is public: it was fixed" not in text
    again = load_release(save_release(release, tmp_path / "release"))
    assert again.guarantee == release.guarantee
    assert again.settings == release.settings
    assert again.guarantee_text() == text
    public = synthesize(TABLE, REGION, SynthesisSettings(mechanism="independent"))
    assert "400, is public" in public.guarantee_text()
    assert public.guarantee.n_rows_stddev is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_rows": "many"},
        {"n_rows": "private", "mechanism": "none"},
        {"n_rows": "private", "count_share": 0.0},
        {"n_rows": "private", "count_share": 1.0},
    ],
)
def test_what_cannot_be_counted_is_refused(wrong):
    with pytest.raises(ValueError, match="Expected"):
        SynthesisSettings(**wrong)


def test_a_count_of_nothing_but_noise_is_refused_before_it_is_made():
    with pytest.raises(BudgetError, match="count trips"):
        synthesize(TABLE, REGION, private(epsilon=1e-5, delta=1e-9))
    broken = TABLE.copy(deep=True)
    broken["detour"][3] = np.nan
    with pytest.raises(InputDataError, match="detour"):
        synthesize(broken, REGION, private(mechanism=str(Mechanism.AIM)))
