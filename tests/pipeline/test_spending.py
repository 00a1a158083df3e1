"""Runs in one folder: what they spend adds up, and a limit stops them in time."""

import json
from dataclasses import replace

import numpy as np
import pytest

from prisma_sbi._errors import BudgetError, InputDataError
from prisma_sbi.pipeline import (
    BOOK_NAME,
    BudgetBook,
    EvaluateConfig,
    SynthesizeConfig,
    TelemetryConfig,
    demo_config,
    load_config,
    run_pipeline,
)
from prisma_sbi.pipeline import run as pipeline_run
from prisma_sbi.privacy import load_release
from prisma_sbi.region import load_region
from prisma_sbi.telemetry import load_traces, save_traces


def config(**changes):
    synthesize = SynthesizeConfig(epsilons=(0.5,), mechanism="independent", without_mechanism=False)
    return replace(
        demo_config(n_trips=16),
        synthesize=replace(synthesize, **changes),
        evaluate=EvaluateConfig(n_splits=2, figures=False),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("run")


class Notes:
    """A reporter that keeps what was said."""

    def __init__(self):
        self.said = []

    def stage(self, *_):
        pass

    progress = finished = stage

    def note(self, text):
        self.said.append(text)


def test_spends_of_all_runs_add_up(folder):
    notes = Notes()
    first = run_pipeline(config(), folder, reporter=notes)
    assert first.spent.n_releases == 1
    assert first.spent.epsilon == pytest.approx(0.5, abs=1e-6)
    assert any("1 release was made" in text for text in notes.said)
    assert not any("release" in text for text in first.warnings)

    resumed = run_pipeline(config(), folder)
    assert resumed.spent == first.spent

    forced = run_pipeline(config(), folder, force=True)
    assert forced.spent.n_releases == 2
    assert forced.spent.rho == pytest.approx(2 * first.spent.rho)
    assert any("2 releases were made" in text for text in forced.warnings)
    log = json.loads((folder / "log.json").read_text())
    assert log["privacy"] == forced.spent.to_dict()

    other_split = replace(config(), split=replace(config().split, seed=5))
    assert run_pipeline(other_split, folder).spent.n_releases == 3


def test_other_trips_do_not_add_up_with_these(folder):
    other = replace(config(), telemetry=TelemetryConfig(simulated_trips=20, simulated_seed=99))
    assert run_pipeline(other, folder).spent.n_releases == 1


def test_run_beyond_the_limit_is_refused_before_it_spends(tmp_path):
    run_pipeline(config(total_epsilon=0.6), tmp_path)
    before = (tmp_path / BOOK_NAME).read_text()
    release = (tmp_path / "release-epsilon=0.5" / "release.json").read_text()
    with pytest.raises(BudgetError, match="1 earlier releases"):
        run_pipeline(config(total_epsilon=0.6), tmp_path, force=True)
    # Each of the two would fit on its own; together they do not, so neither is made.
    with pytest.raises(BudgetError, match="and 2 more"):
        run_pipeline(config(epsilons=(0.2, 0.25), total_epsilon=0.6), tmp_path)
    assert (tmp_path / BOOK_NAME).read_text() == before
    assert (tmp_path / "release-epsilon=0.5" / "release.json").read_text() == release
    assert run_pipeline(config(total_epsilon=0.6), tmp_path).spent.n_releases == 1


def test_release_that_dies_in_its_mechanism_has_spent(tmp_path, monkeypatch):
    def dies(*_, **__):
        assert len(BudgetBook(tmp_path / BOOK_NAME).entries()) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline_run, "synthesize", dies)
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(config(), tmp_path)
    monkeypatch.undo()
    assert run_pipeline(config(), tmp_path).spent.n_releases == 2


def test_release_from_before_the_book_is_entered(tmp_path):
    run_pipeline(config(), tmp_path)
    (tmp_path / BOOK_NAME).unlink()
    assert run_pipeline(config(), tmp_path).spent.n_releases == 1
    (tmp_path / BOOK_NAME).unlink()
    assert run_pipeline(config(), tmp_path, force=True).spent.n_releases == 2


def test_vehicles_need_trips_that_name_them(tmp_path):
    vehicles = config(unit="vehicle", max_trips_per_vehicle=2)
    with pytest.raises(InputDataError, match="recorded vehicle"):
        run_pipeline(vehicles, tmp_path)
    assert not (tmp_path / BOOK_NAME).exists()
    named = load_traces(tmp_path / "train.zarr")
    n_trips = named.sizes["trip"]
    save_traces(
        named.assign(vehicle_id=("trip", np.arange(n_trips).astype(str))), tmp_path / "train.zarr"
    )
    spent = run_pipeline(vehicles, tmp_path).spent
    assert (spent.n_releases, spent.unit) == (1, "vehicle")
    release = load_release(tmp_path / "release-epsilon=0.5", load_region(tmp_path / "region"))
    assert release.settings.max_trips_per_vehicle == 2
    assert "vehicle" in release.guarantee_text()


def test_replacement_is_asked_for_in_the_file(tmp_path):
    (tmp_path / "c.toml").write_text('[synthesize]\nneighbors = "replace"\n')
    settings = load_config(tmp_path / "c.toml").synthesize.settings("epsilon=0.5", n_rows=9)
    assert settings.neighbors == "replace"
    (tmp_path / "c.toml").write_text('[synthesize]\nunit = "vehicle"\n')
    with pytest.raises(InputDataError, match="max_trips_per_vehicle"):
        load_config(tmp_path / "c.toml")


def test_mode_without_mechanism_is_in_no_book(tmp_path):
    done = run_pipeline(config(epsilons=(), without_mechanism=True), tmp_path)
    assert done.spent is None
    assert not (tmp_path / BOOK_NAME).exists()


def test_limit_comes_from_the_file_and_is_checked_with_it(tmp_path):
    text = "[synthesize]\nepsilons = [0.5, 1.0]\n"
    (tmp_path / "c.toml").write_text(text + "total_epsilon = 2\n")
    assert load_config(tmp_path / "c.toml").synthesize.total_epsilon == 2.0
    for limit, message in (("1.0", "total_epsilon = 1"), ("'x'", "total_epsilon"), ("0", "epsi")):
        (tmp_path / "c.toml").write_text(text + f"total_epsilon = {limit}\n")
        with pytest.raises(InputDataError, match=message):
            load_config(tmp_path / "c.toml")
