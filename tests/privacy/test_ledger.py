import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prisma_sbi._errors import BudgetError
from prisma_sbi.privacy import Ledger, Spend
from prisma_sbi.privacy.ledger import RHO_UNIT, gaussian_rho, selection_rho


@given(
    budget=st.floats(1e-12, 1e3),
    prices=st.lists(st.floats(0.0, 1.0).map(lambda share: share**4), max_size=30),
)
def test_no_sequence_of_spends_exceeds_the_budget(budget, prices):
    ledger, granted = Ledger.open(budget), Fraction(0)
    for price in prices:
        before = ledger
        try:
            ledger = ledger.spend("step", price * budget)
        except BudgetError:
            assert before.left_units * RHO_UNIT < Fraction(price * budget)
        else:
            granted += Fraction(price * budget)
            assert len(before.spends) == len(ledger.spends) - 1
    assert granted <= ledger.used_units * RHO_UNIT <= Fraction(budget)


def test_ten_tenths_fit_and_nothing_more():
    ledger = Ledger.open(Fraction(1, 1))
    for _ in range(10):
        ledger = ledger.spend("tenth", Fraction(1, 10))
    assert ledger.left_units == 0
    with pytest.raises(BudgetError, match="last straw"):
        ledger.spend("last straw", 1e-300)


def test_float_drift_cannot_overspend():
    """Three times 0.1 is more than 0.3 as floats are, and the ledger knows."""
    ledger = Ledger.open(0.3).spend("a", 0.1).spend("b", 0.1)
    with pytest.raises(BudgetError):
        ledger.spend("c", 0.1)


@pytest.mark.parametrize("amount", [-1e-9, math.nan, math.inf, -math.inf])
def test_amount_that_is_none_is_refused(amount):
    with pytest.raises(BudgetError):
        Ledger.open(amount)
    with pytest.raises(BudgetError):
        Ledger.open(1.0).spend("x", amount)


def test_ledger_cannot_be_built_overspent():
    with pytest.raises(BudgetError, match="within"):
        Ledger(budget_units=3, spends=(Spend(name="a", units=2), Spend(name="b", units=2)))
    with pytest.raises(BudgetError, match="at least one"):
        Ledger.open(0.0)
    with pytest.raises(BudgetError, match=">= 0"):
        Ledger(budget_units=3, spends=(Spend(name="a", units=-2), Spend(name="b", units=4)))


@given(st.lists(st.integers(0, 10**12), max_size=10))
def test_json_round_trip_is_exact(units):
    spends = tuple(Spend(name=f"s{index}", units=item) for index, item in enumerate(units))
    ledger = Ledger(budget_units=10**14, spends=spends)
    assert Ledger.from_dict(json.loads(json.dumps(ledger.to_dict()))) == ledger


def test_tampered_record_is_refused():
    record = Ledger.open(0.01).spend("counts", 0.004).to_dict()
    record["budget_units"] = 1
    with pytest.raises(BudgetError):
        Ledger.from_dict(record)
    with pytest.raises(BudgetError, match="units"):
        Ledger.from_dict(record | {"unit": "1"})


def test_prices_of_the_two_mechanisms():
    assert gaussian_rho(2.0) == Fraction(1, 8)
    assert gaussian_rho(2.0, l2_squared=9) == Fraction(9, 8)
    assert selection_rho(2.0) == Fraction(1, 2)
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(BudgetError):
            gaussian_rho(bad)
        with pytest.raises(BudgetError):
            selection_rho(bad)
