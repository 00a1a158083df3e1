"""AIM on a domain small enough to know the truth."""

import itertools

import jax
import numpy as np
import pytest

from prisma_sbi._errors import BudgetError
from prisma_sbi.privacy import Ledger, SeededNoise, SynthesisSettings, SystemNoise, ZeroNoise
from prisma_sbi.privacy.aim import fit_aim, fit_independent
from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.graphical import fit_model
from prisma_sbi.privacy.measurement import Measurement, merge
from prisma_sbi.privacy.schedule import schedule_for

SHAPE = (3, 4, 5)
N_ROWS = 2000


@pytest.fixture(scope="module")
def table() -> CodedTable:
    """Three columns, each of which says a lot about the next."""
    rng = np.random.default_rng(0)
    first = rng.integers(3, size=N_ROWS)
    second = np.where(rng.random(N_ROWS) < 0.8, first, rng.integers(4, size=N_ROWS))
    third = np.where(rng.random(N_ROWS) < 0.8, second + 1, rng.integers(5, size=N_ROWS))
    return CodedTable(shape=SHAPE, codes=np.stack([first, second, third], axis=1))


def aim(table, rho, noise, **options):
    return fit_aim(
        table,
        n_rows=options.pop("n_rows", N_ROWS),
        ledger=Ledger.open(rho),
        settings=SynthesisSettings(**options),
        noise=noise,
    )


def pair_errors(table: CodedTable, codes: np.ndarray) -> list[float]:
    other = CodedTable(shape=SHAPE, codes=codes)
    return [
        float(np.abs(table.count(pair) - other.count(pair)).sum()) / table.n_rows
        for pair in itertools.combinations(range(3), 2)
    ]


def test_huge_budget_recovers_all_pairs(table):
    fit = aim(table, 1000.0, SystemNoise())
    for pair in itertools.combinations(range(3), 2):
        error = np.abs(fit.model.count(pair) - table.count(pair)).sum() / N_ROWS
        assert error < 0.02
    assert max(pair_errors(table, fit.model.sample(0))) < 0.05


def test_independent_columns_recover_singles_and_no_pair(table):
    fit = fit_independent(
        table,
        n_rows=N_ROWS,
        ledger=Ledger.open(1000.0),
        settings=SynthesisSettings(),
        noise=SystemNoise(),
    )
    drawn = CodedTable(shape=SHAPE, codes=fit.model.sample(0))
    for column in range(3):
        assert np.abs(drawn.count((column,)) - table.count((column,))).max() <= 3
    assert min(pair_errors(table, drawn.codes)) > 0.3
    assert [item.columns for item in fit.measurements] == [(0,), (1,), (2,)]


@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.0085, 1.0])
def test_spends_all_of_the_budget_and_no_more(table, rho):
    fit = aim(table, rho, SeededNoise(1))
    ledger = fit.ledger
    assert 0 <= ledger.left_units <= 1e-9 * ledger.budget_units + 4
    names = [item.name for item in ledger.spends]
    assert sum(name.startswith("measure") for name in names) == sum(
        item.n_merged for item in fit.measurements
    )
    assert [name.split()[0] for name in names[3:]] == ["select", "measure"] * (
        (len(names) - 3) // 2
    )


def test_independent_spends_all_of_the_budget_and_no_more(table):
    for rho in (1e-9, 0.0085):
        fit = fit_independent(
            table,
            n_rows=N_ROWS,
            ledger=Ledger.open(rho),
            settings=SynthesisSettings(),
            noise=SeededNoise(1),
        )
        assert 0 <= fit.ledger.left_units <= 1e-9 * fit.ledger.budget_units + 10


def test_schedule_is_the_published_one():
    rho, columns = 0.0085, 7
    first = schedule_for(Ledger.open(rho), 0.9, n_rounds=16 * columns)
    assert first.stddev == pytest.approx(np.sqrt(16 * columns / (2 * 0.9 * rho)), rel=1e-6)
    assert first.epsilon == pytest.approx(np.sqrt(8 * 0.1 * rho / (16 * columns)), rel=1e-6)
    assert float(112 * first.rho) == pytest.approx(rho, rel=1e-6)
    assert first.anneal().stddev == first.stddev / 2
    assert first.anneal().epsilon == first.epsilon * 2


def test_budget_for_less_than_the_planned_rounds_is_explained(table):
    with pytest.raises(BudgetError, match="Raise epsilon"):
        aim(table, 1e-14, SystemNoise())


def test_same_test_noise_gives_the_same_rows(table):
    first, second, other = (
        aim(table, 0.5, SeededNoise(seed)).model.sample(7) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, second)
    assert np.any(first != other)


def test_seed_of_drawing_is_honored_and_numpy_left_alone(table):
    model = aim(table, 1.0, ZeroNoise()).model
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    draws = [model.sample(seed) for seed in (5, 5, 6, None, None)]
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(draws[0], draws[1])
    assert np.any(draws[0] != draws[2])
    assert np.any(draws[3] != draws[4])


def test_size_limit_holds_in_every_round(table):
    fit = aim(table, 100.0, ZeroNoise(), max_model_mib=1e-9)
    assert {len(item.columns) for item in fit.measurements} == {1}


def test_triples_can_be_measured(table):
    fit = aim(table, 1000.0, SystemNoise(), workload="triples")
    assert any(len(item.columns) == 3 for item in fit.measurements)


@pytest.mark.parametrize("n_rows", [1, 50])
@pytest.mark.parametrize("n_private", [0, 1])
def test_empty_table_and_single_row_are_tables(n_private, n_rows):
    tiny = CodedTable(shape=(3, 1, 5), codes=np.zeros((n_private, 3), dtype=np.int64))
    fit = aim(tiny, 0.01, SystemNoise(), n_rows=n_rows)
    drawn = fit.model.sample(0)
    assert drawn.shape == (n_rows, 3)
    assert set(drawn[:, 1]) == {0}


def test_single_column_is_a_table():
    tiny = CodedTable(shape=(4,), codes=np.zeros((30, 1), dtype=np.int64))
    fit = aim(tiny, 1000.0, SystemNoise(), n_rows=30)
    assert np.all(fit.model.sample(0) == 0)


def test_precision_of_the_process_is_left_alone(table):
    with jax.enable_x64(False):
        assert jax.numpy.ones(3).dtype == np.float32
        fit = aim(table, 1.0, ZeroNoise())
        assert not jax.config.jax_enable_x64
        assert jax.numpy.ones(3).dtype == np.float32
    assert all(values.dtype == np.float64 for _, values in fit.model.factors)
    assert next(iter(fit.model.fitted.potentials.tables.values())).values.dtype == np.float64


def test_merging_is_the_average_by_inverse_variance():
    first = Measurement(columns=(0,), values=np.array([1.0, 5.0]), stddev=1.0)
    second = Measurement(columns=(0,), values=np.array([6.0, 0.0]), stddev=2.0)
    other = Measurement(columns=(0, 1), values=np.zeros(4), stddev=3.0)
    (merged, kept) = merge(merge(merge([], other), first), second)
    np.testing.assert_allclose(merged.values, [2.0, 4.0])
    assert merged.stddev == pytest.approx(np.sqrt(0.8))
    assert merged.n_merged == 2
    assert kept is other


def test_merging_gives_the_same_fit_as_both_measurements():
    rng = np.random.default_rng(2)
    both = [
        Measurement(columns=(0,), values=50 + rng.normal(size=4), stddev=stddev)
        for stddev in (1.0, 3.0)
    ]
    fits = [
        fit_model(items, shape=(4,), n_rows=200, n_iterations=2000)
        for items in (both, merge([both[0]], both[1]))
    ]
    np.testing.assert_allclose(fits[0].count((0,)), fits[1].count((0,)), atol=0.02)
