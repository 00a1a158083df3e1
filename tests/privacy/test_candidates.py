"""Sensitivity by brute force, over all neighbors of random tables."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi._errors import InputDataError
from prisma_sbi.privacy.candidates import (
    FIXED_POINT,
    affordable_candidates,
    expected_noise,
    score_candidates,
)
from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.graphical import GraphicalModel, model_size_mib
from prisma_sbi.privacy.settings import Workload
from prisma_sbi.privacy.workload import downward_closure, overlap_weights, workload_marginals

SHAPE = (3, 4, 5)
RECORDS = np.array(list(itertools.product(*(range(size) for size in SHAPE))), dtype=np.int64)
PAIRS = workload_marginals(Workload.PAIRS, 3)
CANDIDATES = downward_closure(PAIRS)


def random_model(rng: np.random.Generator, n_rows: int) -> GraphicalModel:
    factors = [(pair, rng.normal(size=[SHAPE[c] for c in pair])) for pair in PAIRS]
    return GraphicalModel(shape=SHAPE, n_rows=n_rows, fitted=None, factors=factors)


def random_codes(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    return RECORDS[rng.integers(len(RECORDS), size=n_rows)]


@settings(deadline=None, max_examples=15)
@given(n_rows=st.integers(0, 12), seed=st.integers(0, 2**32 - 1))
def test_one_record_moves_every_marginal_by_one(n_rows, seed):
    codes = random_codes(np.random.default_rng(seed), n_rows)
    table = CodedTable(shape=SHAPE, codes=codes)
    for record in RECORDS:
        neighbor = CodedTable(shape=SHAPE, codes=np.vstack([codes, record]))
        for columns in downward_closure(workload_marginals(Workload.TRIPLES, 3)):
            change = neighbor.count(columns) - table.count(columns)
            assert np.sum(np.abs(change)) == 1
            assert np.sum(change**2) == 1


@settings(deadline=None, max_examples=15)
@given(
    n_rows=st.integers(0, 12),
    n_public=st.integers(1, 40),
    stddev=st.floats(0.1, 50.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_score_sensitivity_holds_for_every_neighbor(n_rows, n_public, stddev, seed):
    rng = np.random.default_rng(seed)
    codes, model = random_codes(rng, n_rows), random_model(rng, n_public)
    weights = overlap_weights(CANDIDATES, PAIRS)
    scores = score_candidates(CodedTable(shape=SHAPE, codes=codes), model, weights, stddev=stddev)
    assert scores.sensitivity == FIXED_POINT * 4
    largest = 0
    for record in RECORDS:
        neighbor = CodedTable(shape=SHAPE, codes=np.vstack([codes, record]))
        other = score_candidates(neighbor, model, weights, stddev=stddev)
        largest = max(largest, int(np.abs(other.values - scores.values).max()))
    assert largest <= scores.sensitivity


def test_stated_sensitivity_is_reached():
    """A smaller one would be wrong, so the test above can fail."""
    model = GraphicalModel(shape=SHAPE, n_rows=1, fitted=None, factors=[])
    weights = overlap_weights(CANDIDATES, PAIRS)
    codes = np.zeros((50, 3), dtype=np.int64)
    tables = [CodedTable(shape=SHAPE, codes=codes[:rows]) for rows in (49, 50)]
    scores = [score_candidates(table, model, weights, stddev=1.0) for table in tables]
    moved = int(np.abs(scores[1].values - scores[0].values).max())
    assert moved == scores[0].sensitivity


def test_scores_are_the_formula_to_the_rounding():
    rng = np.random.default_rng(5)
    table = CodedTable(shape=SHAPE, codes=random_codes(rng, 30))
    model, weights = random_model(rng, 30), overlap_weights(CANDIDATES, PAIRS)
    scores = score_candidates(table, model, weights, stddev=0.7)
    for value, (columns, weight) in zip(scores.values, weights.items(), strict=True):
        distance = np.abs(table.count(columns) - model.count(columns)).sum()
        cells = int(np.prod([SHAPE[column] for column in columns]))
        exact = weight * (distance - np.sqrt(2 / np.pi) * 0.7 * cells)
        assert value / FIXED_POINT == pytest.approx(exact, abs=weight * (cells + 1) / FIXED_POINT)


def test_absurd_noise_does_not_overflow():
    table = CodedTable(shape=SHAPE, codes=np.zeros((1, 3), dtype=np.int64))
    model = GraphicalModel(shape=SHAPE, n_rows=1, fitted=None, factors=[])
    weights = overlap_weights(CANDIDATES, PAIRS)
    assert np.all(score_candidates(table, model, weights, stddev=1e30).values < 0)


def test_expected_noise_is_the_norm_of_gaussian_noise():
    noise = np.random.default_rng(0).normal(scale=3.0, size=(500, 40))
    assert expected_noise(3.0, 40) == pytest.approx(np.abs(noise).sum(axis=1).mean(), rel=0.01)


def test_weights_count_shared_columns():
    pairs = workload_marginals(Workload.PAIRS, 7)
    weights = overlap_weights(downward_closure(pairs), pairs)
    assert len(pairs) == 21
    assert {len(columns): weight for columns, weight in weights.items()} == {1: 6, 2: 12}
    triples = workload_marginals(Workload.TRIPLES, 7)
    assert len(downward_closure(triples)) == 7 + 21 + 35
    assert workload_marginals(Workload.TRIPLES, 2) == ((0, 1),)


def test_size_limit_keeps_out_what_does_not_fit():
    singles = [(0,), (1,), (2,)]
    only_singles = tuple(singles)
    assert affordable_candidates(CANDIDATES, singles, shape=SHAPE, limit_mib=0.0) == only_singles
    measured = [*singles, (0, 1)]
    limit = model_size_mib([*measured, (1, 2)], SHAPE)
    cells = 3 * 4 + 4 * 5
    assert limit == pytest.approx(cells * 8 / 2**20)
    found = affordable_candidates(CANDIDATES, measured, shape=SHAPE, limit_mib=limit)
    assert set(found) == {*singles, (0, 1), (1, 2), (0, 2)} - (
        {(0, 2)} if model_size_mib([*measured, (0, 2)], SHAPE) > limit else set()
    )


def test_codes_outside_their_domain_are_named():
    with pytest.raises(InputDataError, match="column 1, row 2"):
        CodedTable(shape=SHAPE, codes=np.array([[0, 0, 0], [2, 3, 4], [0, 4, 0]]))
    with pytest.raises(InputDataError, match="integer codes"):
        CodedTable(shape=SHAPE, codes=np.zeros((2, 3)))
