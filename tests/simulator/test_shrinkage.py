"""Shrinkage: none where none is asked for, the order kept, and less spread by what it says."""

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from prisma_sbi.region.constants import Constants
from prisma_sbi.region.demo import demo_region
from prisma_sbi.simulator import draw_traces, shrunk_aggressiveness, simulate_trips
from prisma_sbi.study.atlas import draw_routes

shares = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20)


def test_published_values_come_back_as_they_are():
    values = np.asarray([0.1, 0.9])
    assert shrunk_aggressiveness(values, Constants()) is values


@given(shares, st.floats(0.01, 0.99), st.floats(0.05, 1.0))
def test_order_and_domain_stay_and_the_typical_driver_does_not_move(values, shrinkage, typical):
    constants = Constants(aggressiveness_shrinkage=shrinkage, typical_aggressiveness=typical)
    values = np.asarray([*values, typical])
    found = shrunk_aggressiveness(values, constants)
    assert np.all((found >= 0.0) & (found <= 1.0))
    assert np.all(np.diff(found[np.argsort(values)]) >= 0.0)
    assert found[-1] == pytest.approx(typical)
    np.testing.assert_array_equal(found == 0.0, values == 0.0)


def test_logs_scatter_less_by_the_shrinkage():
    values = np.random.default_rng(0).uniform(0.05, 1.0, 500)
    constants = Constants(aggressiveness_shrinkage=0.25)
    found = shrunk_aggressiveness(values, constants)
    assert np.std(np.log(found)) == pytest.approx(0.75 * np.std(np.log(values)))


def test_all_of_it_makes_every_driver_the_typical_one():
    constants = Constants(aggressiveness_shrinkage=1.0, typical_aggressiveness=0.4)
    np.testing.assert_allclose(shrunk_aggressiveness(np.asarray([0.1, 0.9]), constants), 0.4)


def test_traces_are_drawn_with_it():
    region = demo_region()
    region = replace(region, constants=replace(region.constants, aggressiveness_shrinkage=0.5))
    profiles = draw_routes(region, 4, seed=1)
    detour, vehicle = np.full(4, 1.1), np.arange(4)
    at = np.asarray([0.2, 0.4, 0.6, 0.9])
    found = draw_traces(region, profiles, at, detour, vehicle, np.random.default_rng(0))
    expected = simulate_trips(region, profiles, np.sqrt(0.6 * at), detour, vehicle)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1.0)


@pytest.mark.parametrize("wrong", [-0.1, 1.1])
def test_impossible_shrinkage_is_refused(wrong):
    with pytest.raises(ValueError, match="aggressiveness_shrinkage"):
        Constants(aggressiveness_shrinkage=wrong)
