"""MST: the tree of the strongest pairs where the budget is large, its price in every case."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi._errors import BudgetError
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
from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.mst import _joining, fit_mst, mst_schedules
from tests.descriptors.tiny import random_table, tiny_region

SHAPE = (3, 4, 5, 3)
N_ROWS = 3000


@pytest.fixture(scope="module")
def table() -> CodedTable:
    """A chain 0 - 1 - 2, and a last column that follows column 1."""
    rng = np.random.default_rng(0)
    first = rng.integers(3, size=N_ROWS)
    second = np.where(rng.random(N_ROWS) < 0.8, first, rng.integers(4, size=N_ROWS))
    third = np.where(rng.random(N_ROWS) < 0.8, second + 1, rng.integers(5, size=N_ROWS))
    fourth = np.where(rng.random(N_ROWS) < 0.7, second % 3, rng.integers(3, size=N_ROWS))
    return CodedTable(shape=SHAPE, codes=np.stack([first, second, third, fourth], axis=1))


def mst(table, rho, noise, **options):
    return fit_mst(
        table,
        n_rows=options.pop("n_rows", N_ROWS),
        ledger=Ledger.open(rho),
        settings=SynthesisSettings(mechanism="mst", **options),
        noise=noise,
    )


def measured_pairs(fit):
    return [item.columns for item in fit.measurements if len(item.columns) == 2]


def brute_force_tree(table: CodedTable) -> set[tuple[int, int]]:
    """The best of all spanning trees by the summed L1 distance from independence."""
    n_columns = len(table.shape)
    pairs = tuple(itertools.combinations(range(n_columns), 2))
    weight = {}
    for i, j in pairs:
        apart = np.outer(table.count((i,)), table.count((j,))) / table.n_rows
        weight[i, j] = np.abs(table.count((i, j)) - apart.ravel()).sum()
    trees = [
        set(edges)
        for edges in itertools.combinations(pairs, n_columns - 1)
        if not _joining(pairs, list(edges), n_columns)
    ]
    return max(trees, key=lambda edges: sum(weight[pair] for pair in edges))


@pytest.mark.parametrize("noise", [ZeroNoise(), SystemNoise()])
def test_large_budget_finds_the_maximum_spanning_tree(table, noise):
    fit = mst(table, 1000.0, noise)
    assert set(measured_pairs(fit)) == brute_force_tree(table) == {(0, 1), (1, 2), (1, 3)}
    for pair in measured_pairs(fit):
        assert np.abs(fit.model.count(pair) - table.count(pair)).sum() / N_ROWS < 0.02


def test_pairs_are_chosen_by_chance_where_the_budget_is_small(table):
    trees = {
        tuple(measured_pairs(mst(table, 1e-7, SeededNoise(seed), estimation_iterations=1)))
        for seed in range(4)
    }
    assert len(trees) > 1


@settings(deadline=None, max_examples=40)
@given(
    n_columns=st.integers(1, 7),
    picks=st.lists(st.integers(0, 1000), min_size=6, max_size=6),
)
def test_edges_that_join_parts_make_a_spanning_tree(n_columns, picks):
    pairs = tuple((i, j) for i in range(n_columns) for j in range(i + 1, n_columns))
    tree = []
    for pick in picks:
        joining = _joining(pairs, tree, n_columns)
        if joining:
            tree.append(joining[pick % len(joining)])
    assert len(tree) == n_columns - 1
    reached = {0}
    for _ in tree:
        reached |= {c for pair in tree if reached & set(pair) for c in pair}
    assert reached == set(range(n_columns))


@pytest.mark.parametrize("rho", [1e-9, 0.0085, 1.0])
def test_spends_thirds_all_of_the_budget_and_no_more(table, rho):
    ledger = mst(table, rho, SeededNoise(1), estimation_iterations=5).ledger
    assert 0 <= ledger.left_units <= 1e-9 * ledger.budget_units + 20
    parts = [item.name.split()[0] for item in ledger.spends]
    assert parts == ["measure"] * 4 + ["select"] * 3 + ["measure"] * 3
    for part in (slice(0, 4), slice(4, 7), slice(7, 10)):
        spent = sum(item.units for item in ledger.spends[part])
        assert spent == pytest.approx(ledger.budget_units / 3, rel=1e-4)


def test_noise_and_choices_have_their_prices(table):
    multiplier, epsilon = mst_schedules(Ledger.open(0.3), 4)
    assert 4 / (2 * multiplier**2) == pytest.approx(0.1, rel=1e-9)
    assert 3 * epsilon**2 / 8 == pytest.approx(0.1, rel=1e-9)
    fit = mst(table, 0.3, ZeroNoise())
    assert {item.stddev for item in fit.measurements if len(item.columns) == 1} == {multiplier}
    assert 3 / (2 * fit.measurements[-1].stddev ** 2) == pytest.approx(0.1, rel=1e-6)
    with pytest.raises(BudgetError, match="Raise epsilon"):
        mst(table, 3e-15, ZeroNoise())


def test_pairs_beyond_the_size_limit_are_skipped(table):
    cells = 8 / 2**20
    none = mst(table, 10.0, ZeroNoise(), max_model_mib=1e-9)
    assert measured_pairs(none) == []
    assert [item.n_merged for item in none.measurements] == [2] * 4
    assert none.ledger.left_units <= 1e-9 * none.ledger.budget_units + 20
    some = measured_pairs(mst(table, 10.0, ZeroNoise(), max_model_mib=24 * cells))
    assert some
    assert (1, 2) not in some
    assert len(some) < 3


@pytest.mark.parametrize("n_private", [0, 1])
def test_empty_table_single_row_and_single_column_are_tables(n_private):
    for shape in [(3, 1, 5), (4,)]:
        codes = np.zeros((n_private, len(shape)), dtype=np.int64)
        fit = mst(CodedTable(shape=shape, codes=codes), 0.01, SystemNoise(), n_rows=7)
        assert fit.model.sample(0).shape == (7, len(shape))
        assert len(measured_pairs(fit)) == len(shape) - 1


def test_release_of_a_tree(tmp_path):
    region = tiny_region()
    table = random_table(region, 400)
    chosen = SynthesisSettings(mechanism="mst", epsilon=8.0)
    seen = []
    release = synthesize(
        table, region, chosen, noise=SeededNoise(2), seed=1, progress=lambda *now: seen.append(now)
    )
    pairs = [item.columns for item in release.measured if len(item.columns) == 2]
    assert len(pairs) == 6
    assert {("start_lat", "end_lat"), ("start_lon", "end_lon")} <= set(pairs)
    assert np.mean(release.codes[:, 0] == release.codes[:, 2]) > 0.8
    assert seen[-1][0] == pytest.approx(1.0)
    assert release.warnings == ()
    private = synthesize(table, region, chosen)
    assert private.is_private
    assert load_release(save_release(private, tmp_path / "r")).settings == chosen


def test_small_budget_warns_that_pairs_are_noise():
    region = tiny_region()
    chosen = SynthesisSettings(mechanism="mst", epsilon=0.1, estimation_iterations=20)
    release = synthesize(random_table(region, 40), region, chosen)
    assert any("6 of the 6 measured pairs" in sentence for sentence in release.warnings)
