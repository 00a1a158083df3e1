"""R-hat, effective sizes and heaps: known answers, and chains that fail."""

import numpy as np
import pytest
import xarray as xr

from prisma_sbi.diagnostics import FitFlag, convergence, flag_counts, has_two_modes

NAMES = ("aggressiveness", "detour")
DIMS = ("chain", "draw", "trip")


def chains(values):
    """Chains of one parameter; the other one is fine."""
    rng = np.random.default_rng(9)
    return xr.Dataset(
        {"aggressiveness": (DIMS, values), "detour": (DIMS, rng.normal(size=values.shape))}
    )


def flags_of(values, **limits):
    return FitFlag(int(convergence(chains(values), NAMES).flags(**limits)[0]))


def test_independent_draws_pass():
    values = np.random.default_rng(0).normal(size=(4, 1000, 3))
    found = convergence(chains(values), NAMES)
    assert np.all(found.r_hat < 1.01)
    assert np.all(found.ess_bulk > 3000)
    assert not found.flags().any()


def test_chains_that_disagree_are_flagged_and_their_neighbors_are_not():
    values = np.random.default_rng(1).normal(size=(4, 1000, 3))
    values[0, :, 1] += 3.0
    flags = convergence(chains(values), NAMES).flags()
    assert flags[1] & FitFlag.R_HAT
    assert flags[1] & FitFlag.LOW_ESS
    assert flags[[0, 2]].tolist() == [0, 0]


def test_sticky_chains_have_few_effective_draws():
    rng = np.random.default_rng(2)
    values = np.empty((4, 1000, 1))
    values[:, 0] = rng.normal(size=(4, 1))
    for step in range(1, 1000):
        values[:, step] = 0.98 * values[:, step - 1] + np.sqrt(1 - 0.98**2) * rng.normal(
            size=(4, 1)
        )
    assert flags_of(values) & FitFlag.LOW_ESS


def test_a_chain_that_never_moved_does_not_pass():
    assert flags_of(np.zeros((4, 1000, 1))) & FitFlag.R_HAT


def test_limits_are_those_given():
    values = np.random.default_rng(3).normal(size=(4, 200, 1))
    assert not flags_of(values, max_r_hat=1.1) & FitFlag.LOW_ESS
    assert flags_of(values, max_r_hat=1.1, least_ess=5000.0) & FitFlag.LOW_ESS


@pytest.mark.parametrize("distance", [5.0, 8.0])
def test_two_heaps_are_found(distance):
    rng = np.random.default_rng(4)
    left = rng.random((20, 1000)) < 0.4
    draws = rng.normal(size=(20, 1000)) + distance * left
    assert has_two_modes(draws).mean() >= 0.95


@pytest.mark.parametrize("law", ["normal", "uniform", "exponential", "t"])
def test_one_heap_is_not_two(law):
    rng = np.random.default_rng(5)
    draw = {"t": lambda size: rng.standard_t(3, size)}.get(law) or (
        lambda size: getattr(rng, law)(size=size)
    )
    assert has_two_modes(draw((100, 1000))).mean() <= 0.05


def test_a_rare_second_heap_and_nothing_at_all_do_not_count():
    rng = np.random.default_rng(6)
    rare = rng.normal(size=(20, 1000)) + 8.0 * (rng.random((20, 1000)) < 0.03)
    assert not has_two_modes(rare).any()
    assert not has_two_modes(np.full((2, 100), np.nan)).any()
    assert not has_two_modes(np.ones((2, 100))).any()


def test_counts_by_name():
    counts = flag_counts(np.array([0, 1, 5, 4]))
    assert (counts["at_bound"], counts["r_hat"], counts["low_ess"]) == (2, 2, 0)
    assert all(flag.text for flag in FitFlag)
