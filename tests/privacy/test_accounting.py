import math

import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting.dp_event import ZCDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi._errors import BudgetError
from prisma_sbi.privacy import epsilon_from_rho_delta, rho_from_epsilon_delta

CASES = [(0.1, 1e-5), (0.5, 1e-5), (1.0, 1e-6), (2.0, 1e-9), (10.0, 1e-5)]


def test_value_of_the_published_budget():
    assert round(rho_from_epsilon_delta(0.5, 1e-5), 6) == 0.008506


def test_beats_the_conversion_of_bun_and_steinke():
    loose = (math.sqrt(0.5 + math.log(1e5)) - math.sqrt(math.log(1e5))) ** 2
    assert round(loose, 6) == 0.005314
    assert rho_from_epsilon_delta(0.5, 1e-5) > 1.5 * loose


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_agrees_with_dp_accounting(epsilon, delta):
    rho = rho_from_epsilon_delta(epsilon, delta)
    orders = 1.0 + np.geomspace(1e-3, 1e5, 20_000)
    accountant = RdpAccountant(orders.tolist())
    accountant.compose(ZCDpEvent(rho))
    other = accountant.get_epsilon(delta)
    assert other == pytest.approx(epsilon, rel=1e-4)
    assert other <= epsilon * (1 + 1e-4)


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_opendp_grants_the_promise_and_not_much_more(epsilon, delta):
    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="f64")

    def granted(rho: float) -> float:
        gaussian = dp.m.make_gaussian(*space, scale=math.sqrt(1.0 / (2.0 * rho)))
        return dp.c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(delta)

    rho = rho_from_epsilon_delta(epsilon, delta)
    assert granted(rho) <= epsilon * (1 + 1e-9)
    assert granted(rho * 1.001) > epsilon
    assert epsilon_from_rho_delta(rho, delta) == pytest.approx(granted(rho), rel=1e-6)


@settings(deadline=None, max_examples=60)
@given(epsilon=st.floats(1e-3, 50.0), log_delta=st.floats(-30.0, -0.1))
def test_round_trip_is_tight_and_never_optimistic(epsilon, log_delta):
    delta = math.exp(log_delta)
    rho = rho_from_epsilon_delta(epsilon, delta)
    back = epsilon_from_rho_delta(rho, delta)
    assert back <= epsilon * (1 + 1e-8)
    assert epsilon_from_rho_delta(rho * (1 + 1e-6) + 1e-14, delta) > epsilon


def test_result_does_not_depend_on_luck_of_the_search():
    """A dense scan over orders finds nothing better."""
    epsilon, delta = 0.5, 1e-5
    excess = np.geomspace(1e-2, 1e4, 400_000)
    order = 1 + excess
    bound = (
        epsilon - np.log(excess / order) - (math.log(1 / delta) - np.log(order)) / excess
    ) / order
    assert rho_from_epsilon_delta(epsilon, delta) == pytest.approx(bound.max(), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_epsilon_out_of_range_is_refused(epsilon):
    with pytest.raises(BudgetError, match="epsilon"):
        rho_from_epsilon_delta(epsilon, 1e-5)


@pytest.mark.parametrize("delta", [0.0, -0.1, 1.0, 2.0, math.nan])
def test_delta_out_of_range_is_refused(delta):
    with pytest.raises(BudgetError, match="delta"):
        rho_from_epsilon_delta(0.5, delta)
    with pytest.raises(BudgetError, match="delta"):
        epsilon_from_rho_delta(0.5, delta)


@pytest.mark.parametrize("rho", [-1.0, math.nan, math.inf])
def test_rho_out_of_range_is_refused(rho):
    with pytest.raises(BudgetError, match="rho"):
        epsilon_from_rho_delta(rho, 1e-5)


def test_budget_too_small_to_do_anything_is_explained():
    with pytest.raises(BudgetError, match="Raise epsilon"):
        rho_from_epsilon_delta(1e-9, 1e-12)


def test_nothing_spent_costs_nothing():
    assert epsilon_from_rho_delta(0.0, 1e-5) == 0.0
