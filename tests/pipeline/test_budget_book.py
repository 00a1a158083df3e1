"""The book of spends: it adds up, refuses in time, and survives accidents."""

import json
import math
import multiprocessing
import os
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi._errors import BudgetError, InputDataError
from prisma_sbi.pipeline import BudgetBook, path_sources
from prisma_sbi.privacy import (
    SynthesisSettings,
    epsilon_from_rho_delta,
    rho_from_epsilon_delta,
)


def wish(epsilon=0.5, delta=1e-5, **changes):
    return SynthesisSettings(epsilon=epsilon, delta=delta, **changes)


def vehicle(epsilon=0.5, **changes):
    return wish(epsilon, unit="vehicle", max_trips_per_vehicle=3, **changes)


def spend(book, settings=None, **changes):
    values = {"release": "key", "mode": "epsilon=0.5", "sources": ("a",)}
    return book.spend(settings or wish(), **(values | changes))


@pytest.fixture
def book(tmp_path):
    return BudgetBook(tmp_path / "out" / "privacy-ledger.jsonl")


def test_empty_book_has_no_total_and_no_file(book):
    assert book.entries() == ()
    assert book.total() is None
    assert not book.path.exists()


def test_entries_survive_the_disk(book):
    written = [spend(book), spend(book, vehicle(2.0, n_rows=7))]
    assert list(BudgetBook(book.path).entries()) == written
    assert book.has("key")
    assert not book.has("other")


def test_two_releases_cost_less_than_the_sum_and_more_than_one(book):
    spend(book)
    spend(book)
    total = book.total()
    assert total.rho == pytest.approx(2 * rho_from_epsilon_delta(0.5, 1e-5))
    assert total.epsilon == epsilon_from_rho_delta(total.rho, 1e-5)
    assert 0.5 < total.epsilon < total.summed_epsilon == 1.0
    assert total.summed_delta == 2e-5
    assert "2 releases were made" in total.text
    assert "each trip" in total.text


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.05, 5.0), min_size=1, max_size=6))
def test_total_is_composition_of_zcdp(tmp_path_factory, epsilons):
    book = BudgetBook(tmp_path_factory.mktemp("book") / "book.jsonl")
    for epsilon in epsilons:
        spend(book, wish(epsilon))
    total = book.total()
    assert total.rho == pytest.approx(sum(rho_from_epsilon_delta(e, 1e-5) for e in epsilons))
    assert max(epsilons) * (1 - 1e-9) <= total.epsilon <= sum(epsilons) * (1 + 1e-9)


def test_a_limit_is_met_exactly_and_not_exceeded(book):
    spend(book, wish(0.5), total_epsilon=0.5)
    with pytest.raises(BudgetError, match="1 earlier releases"):
        spend(book, wish(0.01), total_epsilon=0.5)
    with pytest.raises(BudgetError, match=r"total_epsilon = 0\.5"):
        book.require([wish()], sources=("a",), total_epsilon=0.5)
    assert len(book.entries()) == 1
    spend(book, wish(0.01), total_epsilon=0.6)
    book.require([], sources=("nothing",), total_epsilon=0.5)


def test_a_smaller_delta_grants_less(book):
    spend(book, wish(0.5, 1e-5))
    with pytest.raises(BudgetError):
        spend(book, wish(0.05, 1e-12), total_epsilon=0.55)


def test_data_is_the_same_if_a_source_is_shared(book):
    spend(book, sources=("a", "b"))
    spend(book, sources=("c",))
    assert book.total(("b", "z")).n_releases == 1
    assert book.total(("b", "c")).n_releases == 2
    assert book.total(("z",)) is None
    spend(book, sources=("z",), total_epsilon=0.5)
    with pytest.raises(BudgetError):
        spend(book, sources=("z", "b"), total_epsilon=0.7)


@pytest.mark.parametrize(
    ("settings", "n_changed"),
    [
        (wish(neighbors="replace"), 1),
        (wish(), 2),
        (vehicle(neighbors="replace"), 2),
        (vehicle(), 4),
    ],
)
def test_releases_of_two_kinds_are_counted_against_replacing_a_trip(book, settings, n_changed):
    spend(book, settings)
    alone = book.total()
    assert (alone.unit, alone.neighbors) == (settings.unit, settings.neighbors)
    assert alone.rho == rho_from_epsilon_delta(0.5, 1e-5)
    other = vehicle(neighbors="replace") if settings.unit == "trip" else wish(neighbors="replace")
    extra = 4 if settings.unit == "trip" else 1
    spend(book, other)
    mixed = book.total()
    assert (mixed.unit, mixed.neighbors) == ("trip", "replace")
    assert mixed.rho == pytest.approx((n_changed**2 + extra) * alone.rho)
    assert mixed.summed_epsilon == pytest.approx(0.5 * (n_changed + math.sqrt(extra)))
    assert mixed.summed_delta > 2e-5
    assert "replace one record" in mixed.text


def test_limit_counts_a_release_of_another_kind_in_full(book):
    spend(book, wish(0.5))
    with pytest.raises(BudgetError, match="1 earlier"):
        spend(book, vehicle(0.01), total_epsilon=0.9)
    spend(book, wish(0.01), total_epsilon=0.9)


def test_impossible_budget_is_not_written(book):
    with pytest.raises(BudgetError):
        spend(book, wish(-1.0))
    assert book.entries() == ()


@pytest.mark.parametrize(
    "line",
    [
        "no json\n",
        "3\n",
        "{}\n",
        json.dumps({"time": "", "sources": []}) + "\n",
        '{"time": "now", "release": "k", "mode": "m", "sources": ["a"], "epsilon": -1.0, '
        '"delta": 1e-5, "rho": 0.1}\n',
        '{"time": "now", "release": "k", "mode": "m", "sources": ["a"], "epsilon": 1.0, '
        '"delta": 1e-5, "rho": -0.1}\n',
        "{",
    ],
)
def test_broken_book_is_named_and_left_alone(book, line):
    spend(book)
    with book.path.open("a") as file:
        file.write(line)
    before = book.path.read_text()
    for attempt in (book.entries, book.total, lambda: spend(book)):
        with pytest.raises(InputDataError, match="line"):
            attempt()
    assert book.path.read_text() == before


def test_full_disk_leaves_the_book_as_it_was(book, monkeypatch):
    spend(book)
    write = os.write
    monkeypatch.setattr(os, "write", lambda to, content: write(to, content[:9]))
    with pytest.raises(OSError, match="No space left"):
        spend(book)
    monkeypatch.undo()
    assert len(book.entries()) == 1


def _spend_often(path):
    for _ in range(10):
        with suppress(BudgetError):
            spend(BudgetBook(path), wish(0.1), total_epsilon=0.3)


def test_processes_at_once_do_not_overspend_together(book):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_spend_often, args=(book.path,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    alone = BudgetBook(book.path.with_name("alone.jsonl"))
    _spend_often(alone.path)
    assert len(book.entries()) == len(alone.entries()) > 1


def test_files_are_known_by_name_and_by_content(tmp_path):
    first, copy, other = (tmp_path / name for name in ("first", "copy", "other"))
    first.write_text("trips")
    copy.write_text("trips")
    other.write_text("other trips")
    known = set(path_sources([first]))
    assert known & set(path_sources([copy]))
    assert not known & set(path_sources([other]))
    first.write_text("trips, written anew")
    assert known & set(path_sources([first]))
    assert set(path_sources([tmp_path])) - known


def test_folder_is_one_source(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.json").write_text("{}")
    (tmp_path / "b" / "more").write_text("1")
    first, second = path_sources([tmp_path / "a"]), path_sources([tmp_path / "b"])
    assert len(first) == 2
    assert not set(first) & set(second)
