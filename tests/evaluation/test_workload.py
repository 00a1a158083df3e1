"""Workload error: by brute force, at its ends, and beside its yardsticks."""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation import workload_error

SHAPE = (3, 4, 2, 5)


def rows(n_rows, seed, shape=SHAPE):
    """Columns that depend on each other."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n_rows)
    blurred = np.clip(hidden[:, None] + 0.1 * rng.normal(size=(n_rows, len(shape))), 0, 0.999)
    return (blurred * np.array(shape)).astype(np.int32)


def by_hand(real, released, n_columns):
    """Mean total variation with dictionaries."""
    found = []
    for columns in combinations(range(real.shape[1]), n_columns):
        shares = {}
        for table, sign in ((real, 1.0), (released, -1.0)):
            for row in table[:, columns]:
                key = tuple(int(code) for code in row)
                shares[key] = shares.get(key, 0.0) + sign / len(table)
        found.append(0.5 * sum(map(abs, shares.values())))
    return np.mean(found)


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_error_agrees_with_brute_force(n_columns):
    real, released = rows(40, 0), rows(25, 1)
    found = workload_error(real, released, SHAPE, n_columns=n_columns)
    assert found.error == pytest.approx(by_hand(real, released, n_columns))
    assert len(found.by_marginal) == math.comb(4, n_columns)
    assert np.mean(list(found.by_marginal.values())) == pytest.approx(found.error)
    assert (found.n_columns, found.n_real, found.n_released) == (n_columns, 40, 25)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 10_000))
def test_error_lies_between_zero_and_one(n_real, n_released, seed):
    found = workload_error(rows(n_real, seed), rows(n_released, seed + 1), SHAPE)
    for value in (found.error, found.independent, found.bootstrap):
        assert -1e-9 <= value <= 1 + 1e-9


def test_the_rows_themselves_have_no_error():
    real = rows(300, 0)
    assert workload_error(real, real[::-1], SHAPE).error == pytest.approx(0.0)
    assert workload_error(real, np.repeat(real, 3, axis=0), SHAPE).error == pytest.approx(0.0)


def test_disjoint_tables_have_the_largest_error():
    found = workload_error(np.zeros((5, 2), int), np.ones((5, 2), int), (2, 2))
    assert found.error == 1.0


def test_shuffled_columns_are_as_bad_as_independent_ones_and_fresh_rows_as_a_bootstrap():
    rng = np.random.default_rng(0)
    real = rows(20_000, 0)
    shuffled = np.column_stack([rng.permutation(column) for column in real.T])
    apart = workload_error(real, shuffled, SHAPE)
    assert apart.x_independent == pytest.approx(1.0, abs=0.05)
    fresh = workload_error(real, rows(20_000, 1), SHAPE)
    assert fresh.x_independent < 0.1
    # Two samples of one law differ by about sqrt(2) times what a bootstrap differs from its own.
    ratios = [workload_error(real, rows(20_000, 1 + seed), SHAPE).x_bootstrap for seed in range(9)]
    assert np.mean(ratios) == pytest.approx(math.sqrt(2), abs=0.5)


def test_independent_yardstick_is_the_product_of_single_columns():
    real = np.array([[0, 0], [1, 1]])
    assert workload_error(real, real, (2, 2)).independent == pytest.approx(0.5)


def test_weights_stand_for_repeated_rows():
    real = rows(30, 0)
    weights = np.random.default_rng(1).integers(1, 5, size=30)
    released = rows(50, 2)
    weighted = workload_error(real, released, SHAPE, weights=weights)
    repeated = workload_error(np.repeat(real, weights, axis=0), released, SHAPE)
    assert weighted.error == pytest.approx(repeated.error)
    assert weighted.independent == pytest.approx(repeated.independent)


def test_seed_repeats_the_bootstrap_and_moves_nothing_else():
    real, released = rows(100, 0), rows(100, 1)
    first = workload_error(real, released, SHAPE, seed=3)
    assert first == workload_error(real, released, SHAPE, seed=3)
    other = workload_error(real, released, SHAPE, seed=4)
    assert other.error == first.error
    assert other.bootstrap != first.bootstrap


def test_single_column_is_its_own_marginal():
    found = workload_error(np.array([[0], [1]]), np.array([[0], [0]]), (2,), names=["x"])
    assert found.by_marginal == {("x",): 0.5}
    assert found.independent == 0.0
    assert found.to_dict()["x_independent"] is None
    assert math.isnan(workload_error(np.array([[0]]), np.array([[0]]), (1,)).x_bootstrap)


def test_plain_values_say_that_they_are_private():
    found = workload_error(rows(9, 0), rows(9, 1), SHAPE, names=["a", "b", "c", "d"]).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["private"] is True
    assert "a x b" in found["by_marginal"]


@pytest.mark.parametrize(
    ("real", "released"),
    [
        (np.zeros((0, 2), int), np.zeros((3, 2), int)),
        (np.zeros((3, 2), int), np.full((3, 2), 2)),
        (np.zeros((3, 3), int), np.zeros((3, 2), int)),
        (np.zeros((3, 2)), np.zeros((3, 2), int)),
    ],
)
def test_codes_outside_the_layout_are_refused(real, released):
    with pytest.raises(InputDataError, match="layout"):
        workload_error(real, released, (2, 2))


def test_wrong_options_are_refused():
    real = rows(4, 0)
    with pytest.raises(ValueError, match="n_columns"):
        workload_error(real, real, SHAPE, n_columns=0)
    with pytest.raises(InputDataError, match="weights"):
        workload_error(real, real, SHAPE, weights=np.zeros(4))
