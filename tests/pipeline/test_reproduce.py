"""The experiments of the paper on a tiny simulated fleet: made once, resumed, and never filled."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from prisma_sbi._errors import BudgetError, InputDataError
from prisma_sbi.descriptors import make_layout
from prisma_sbi.encoding import load_fit
from prisma_sbi.evaluation import evaluate
from prisma_sbi.pipeline import (
    BOOK_NAME,
    BudgetBook,
    EvaluateConfig,
    PipelineConfig,
    RegionConfig,
    SplitConfig,
    SynthesizeConfig,
    TelemetryConfig,
)
from prisma_sbi.pipeline.reproduce import (
    Recipe,
    plan_reproduction,
    reproduce,
    study_misfit,
    unfitted,
)
from prisma_sbi.pipeline.reproduce import shared as shared_module
from prisma_sbi.pipeline.reproduce import study as study_module
from prisma_sbi.pipeline.reproduce.published import BASELINES
from prisma_sbi.pipeline.reproduce.recipes import make_release, private_table
from prisma_sbi.pipeline.reproduce.rows import Passage, Source
from prisma_sbi.privacy import SynthesisSettings
from prisma_sbi.region import load_region
from prisma_sbi.telemetry import load_traces, save_traces, split_trips

PRIVATE = "independent-route-map-eps0.5"
CHEAP = ("none-map", "none-unfitted", PRIVATE)


def tiny(**changes):
    """80 trips, 60 to encode and 20 held out, and a mechanism that is quick."""
    synthesize = SynthesizeConfig(epsilons=(0.5,), mechanism="independent")
    return PipelineConfig(
        region=RegionConfig(constants={"horizon_s": 150, "n_route_points": 64}),
        telemetry=TelemetryConfig(simulated_trips=80),
        split=SplitConfig(n_train=60, n_holdout=20),
        synthesize=replace(synthesize, **changes),
        evaluate=EvaluateConfig(n_splits=3),
    )


def run(folder, target="table2", *, config=None, rows=CHEAP, n_seeds=2, **options):
    return reproduce(target, folder, config=config or tiny(), n_seeds=n_seeds, rows=rows, **options)


def made_now(found):
    """Titles of the stages that were not found."""
    return [record.name for record in found.stages if not record.reused]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Region, trips and their fit, made by a first run of one row and one seed."""
    place = tmp_path_factory.mktemp("study")
    run(place, rows=["none-map"], n_seeds=1)
    return place


@pytest.fixture(scope="module")
def finished(folder):
    """All cheap rows over two seeds."""
    return run(folder)


@pytest.fixture(scope="module")
def region(folder):
    return load_region(folder / "region")


@pytest.fixture(scope="module")
def fit(folder):
    return load_fit(folder / "fit-map.zarr")


def lines_by_name(found):
    return {line["name"]: line for line in found.lines if line["name"]}


def test_table_equals_a_direct_evaluation(finished):
    trips = load_traces(finished.folder / "trips.zarr")
    table = (finished.folder / "table2.csv").read_text().splitlines()
    for name in CHEAP:
        scores = []
        for seed in (0, 1):
            _, holdout = split_trips(trips, n_train=60, n_holdout=20, seed=seed)
            traces = load_traces(finished.folder / f"seed-{seed}" / name / "synthetic.zarr")
            direct = evaluate(holdout, traces, seed=seed, n_splits=3)
            scores.append(direct.fid_x_floor)
            for metric in ("acf_x_floor", "fid_x_floor", "precision_standardized", "recall_raw"):
                (line,) = [row for row in table if row.startswith(f"{name},{seed},{metric},")]
                assert float(line.split(",")[-1]) == pytest.approx(getattr(direct, metric), 1e-5)
        shown = lines_by_name(finished)[name]
        mean, sd = np.mean(scores), np.std(scores, ddof=1)
        assert shown["fid_x_floor"] == f"{mean:.2f} ± {sd:.2f}"
        assert shown["seeds"] == "2"


def test_rows_without_a_run_say_so_and_hold_no_number(finished):
    page = (finished.folder / "table2.md").read_text()
    absent = lines_by_name(finished)["none-posterior"]
    assert absent["seeds"] == "not run"
    assert {absent[key] for key in ("acf_x_floor", "fid_x_floor", "recall_raw")} == {""}
    assert "none-posterior" in finished.missing
    assert not set(CHEAP) & set(finished.missing)
    for model, published in BASELINES.items():
        (line,) = [
            row for row in page.splitlines() if row.startswith(f"| {model} | without privacy |")
        ]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[2] == "not run"
        assert set(cells[3:9]) == {""}
        assert cells[9].startswith(f"{published[1].acf_x_floor:g} /")
    csv = (finished.folder / "table2.csv").read_text()
    assert not any(name.lower() in csv for name in ("posterior", *BASELINES))


def test_nothing_that_is_there_is_made_again(finished, monkeypatch):
    def never(*_, **__):
        raise AssertionError

    for name in ("decode", "measure_all", "make_release"):
        monkeypatch.setattr(study_module, name, never)
    for name in ("encode", "make_trips", "make_region"):
        monkeypatch.setattr(shared_module, name, never)
    again = run(finished.folder)
    assert made_now(again) == []
    assert again.lines == finished.lines
    assert again.spent == finished.spent


def test_interrupted_command_goes_on(folder, tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    _copy_fit(folder, copy)
    real_decode, calls = study_module.decode, []

    def dies_late(*arguments, **options):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real_decode(*arguments, **options)

    monkeypatch.setattr(study_module, "decode", dies_late)
    with pytest.raises(KeyboardInterrupt):
        run(copy)
    assert "not run" in (copy / "table2.md").read_text()  # written before it died
    plan = plan_reproduction("table2", copy, config=tiny(), n_seeds=2, rows=CHEAP)
    missing = [step.title for step in plan if not step.is_done]
    assert missing[0] == "none-unfitted seed 1"
    calls[:] = [1] * 4
    found = run(copy)
    assert made_now(found) == missing
    assert len(calls) - 4 == sum("scores" not in title for title in missing)


def test_another_budget_runs_its_rows_alone(finished):
    before = BudgetBook(finished.folder / BOOK_NAME).entries()
    other = tiny(epsilons=(0.5, 2.0))
    rows = [*CHEAP, "independent-route-map-eps2"]
    found = run(finished.folder, config=other, rows=rows)
    assert made_now(found) == [
        f"independent-route-map-eps2 seed {seed}{part}"
        for seed in (0, 1)
        for part in ("", ", scores")
    ]
    added = BudgetBook(finished.folder / BOOK_NAME).entries()[len(before) :]
    assert [entry.epsilon for entry in added] == [2.0, 2.0]
    assert lines_by_name(found)[PRIVATE] == lines_by_name(finished)[PRIVATE]
    drawn = run(finished.folder, "fig1", config=other, run=False)
    assert "epsilon_curve.png" in {path.name for path in drawn.files}


def test_other_floors_score_again_and_spend_nothing(folder, tmp_path):
    copy = tmp_path / "copy"
    _copy_fit(folder, copy)
    first = run(copy, rows=[PRIVATE], n_seeds=1)
    other = replace(tiny(), evaluate=EvaluateConfig(n_splits=2))
    again = run(copy, config=other, rows=[PRIVATE], n_seeds=1)
    assert made_now(again) == ["real seed 0", f"{PRIVATE} seed 0, scores"]
    assert again.spent == first.spent
    values = [json.loads((copy / "seed-0" / PRIVATE / "scores.json").read_text())["counts"]]
    assert values[0]["splits"] == 2


def test_results_of_other_settings_do_not_count(finished):
    other = replace(tiny(), split=SplitConfig(n_train=50, n_holdout=20))
    found = run(finished.folder, config=other, run=False)
    assert {line["seeds"] for line in found.lines} == {"not run"}
    found = run(finished.folder, run=False)  # and nothing was lost by looking
    assert lines_by_name(found)["none-map"] == lines_by_name(finished)["none-map"]


def test_every_private_release_is_in_the_book_before_it_is_made(folder, tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    _copy_fit(folder, copy)

    def dies(*_, **__):
        assert len(BudgetBook(copy / BOOK_NAME).entries()) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(study_module, "make_release", dies)
    with pytest.raises(KeyboardInterrupt):
        run(copy, rows=[PRIVATE])
    monkeypatch.undo()
    done = run(copy, rows=[PRIVATE])
    assert done.spent.n_releases == 3  # the one that died, and two seeds
    assert done.spent.summed_epsilon == pytest.approx(1.5)
    exact = run(copy, rows=["independent-route-map-exact", "none-*map"], n_seeds=1)
    assert exact.spent == done.spent
    facts = json.loads((copy / "seed-0" / "independent-route-map-exact" / "facts.json").read_text())
    assert facts["statement"].startswith("NO GUARANTEE")
    with pytest.raises(BudgetError, match="total_epsilon"):
        run(copy, config=tiny(epsilons=(1.0,), total_epsilon=1.0), rows=["independent-route-map*"])


def test_unfitted_rows_ignore_what_was_fitted(region, fit):
    trips = fit["sample_stats"]["trip"].values
    shuffled = fit.copy()
    stats = fit["sample_stats"].to_dataset()
    order = np.random.default_rng(0).permutation(len(trips))
    for name in ("best_aggressiveness", "best_detour", "best_vehicle"):
        stats[name] = ("trip", stats[name].values[order])
    shuffled["sample_stats"] = xr.DataTree(stats)
    one, other = (
        private_table(region, each, trips, Source.UNFITTED, seed=3) for each in (fit, shuffled)
    )
    assert one.identical(other)
    fitted = [private_table(region, each, trips, Source.MAP, seed=3) for each in (fit, shuffled)]
    assert not fitted[0].identical(fitted[1])
    for name in ("start_lat", "end_lon"):  # the ends are as recorded
        np.testing.assert_array_equal(one[name], fitted[0][name])


def test_unfitted_rows_follow_the_prior_trip_by_trip(region, fit):
    table = private_table(region, fit, fit["sample_stats"]["trip"].values, Source.MAP, seed=0)
    many = xr.concat([table.assign_coords(trip=table["trip"] + f"/{n}") for n in range(20)], "trip")
    drawn = unfitted(region, many, seed=0)
    n = drawn.sizes["trip"]
    low, high = region.constants.detour_bounds
    for name, (lower, upper) in {"aggressiveness": (0.02, 1.0), "detour": (low, high)}.items():
        share = np.sort((drawn[name].values - lower) / (upper - lower))
        assert 0.0 <= share[0] < share[-1] <= 1.0
        gap = np.abs(share - np.arange(n) / n).max()  # Kolmogorov-Smirnov
        assert gap < 1.95 / math.sqrt(n)
    counts = np.bincount(drawn["vehicle"].values, minlength=len(region.vehicles))
    assert len(counts) == len(region.vehicles)
    expected = n / len(counts)
    assert np.sum((counts - expected) ** 2) / expected < len(counts) + 5 * math.sqrt(
        2 * len(counts)
    )
    alone = unfitted(region, many.isel(trip=[7]), seed=0)
    assert alone.identical(drawn.isel(trip=[7]))
    assert not drawn.identical(unfitted(region, many, seed=1))


def test_posterior_rows_weigh_each_trip_once(region, fit):
    trips = fit["sample_stats"]["trip"].values
    several = fit.copy()
    posterior = fit["posterior"].to_dataset()
    draws = xr.concat([posterior] * 3, "draw").assign_coords(draw=[0, 1, 2])
    draws["detour"] = draws["detour"] + xr.DataArray([0.0, 1e-3, 2e-3], dims="draw")
    several["posterior"] = xr.DataTree(draws)
    chosen = trips[[5, 2, 9]]
    table = private_table(region, several, chosen, Source.POSTERIOR, seed=0)
    assert table["source"].values.tolist() == np.repeat(chosen, 3).tolist()
    weights = table["weight"].values.reshape(3, 3)
    np.testing.assert_array_equal(weights.sum(axis=1), table.attrs["weight_total"])
    best = private_table(region, fit, chosen, Source.MAP, seed=0)
    assert best["trip"].values.tolist() == chosen.tolist()
    np.testing.assert_allclose(table["detour"].values[::3], best["detour"].values, atol=1e-6)
    settings = SynthesisSettings(mechanism="independent", epsilon=1.0)
    picked = make_release(
        Recipe(source=Source.POSTERIOR), table, region, settings, seed=0, progress=_silent
    )
    assert picked.n_rows == 3  # one draw per trip


def test_binned_rows_stay_in_their_bins(region, fit):
    trips = fit["sample_stats"]["trip"].values
    table = private_table(region, fit, trips, Source.MAP, seed=0)
    recipe = Recipe(passage=Passage.BINNED, table="published")
    release = make_release(recipe, table, region, SynthesisSettings(), seed=0, progress=_silent)
    layout = make_layout("published", region)
    drawn = release.draw_descriptors(np.random.default_rng(0))
    np.testing.assert_array_equal(layout.discretize(drawn), layout.discretize(table))
    assert not np.array_equal(drawn["detour"].values, table["detour"].values)
    assert not release.is_private


def test_figures_come_from_what_is_there(finished):
    drawn = run(finished.folder, "fig1", run=False)
    assert {path.name for path in drawn.files} == {
        *("fig1.png", "fig1.pdf", "table2.md", "table2.csv")
    }
    assert drawn.lines == run(finished.folder, run=False).lines
    places = run(finished.folder, "fig5", rows=["none-map"])
    assert made_now(places) == []
    assert [path.suffix for path in places.files] == [".png", ".pdf"] * len(places.files[::2])
    assert any("none-map" in path.name for path in places.files)
    traces = run(finished.folder, "fig4", rows=["none-map"])
    assert {path.name for path in traces.files} == {"fig4.png", "fig4.pdf"}
    assert traces.lines == []
    assert all(path.stat().st_size > 0 for path in (*drawn.files, *places.files, *traces.files))


def test_targets_without_any_run_are_drawn_as_not_run(tmp_path):
    for target in ("fig1", "ablations"):
        found = run(tmp_path, target, rows=None, run=False)
        assert {line["seeds"] for line in found.lines} == {"not run"}
        assert all(path.is_file() for path in found.files)
    assert run(tmp_path, "fig4", rows=None, run=False).files == []
    assert not list(tmp_path.glob("seed-*"))


@pytest.mark.slow
def test_ablations_of_the_roads(finished):
    found = run(finished.folder, "ablations", rows=["none-map-f*", "binned-route-map"], n_seeds=1)
    done = lines_by_name(found)
    assert {name for name, line in done.items() if line["seeds"] == "1"} == {
        *("real", "none-map-flat", "none-map-free", "binned-route-map", *CHEAP)
    }
    assert (finished.folder / "figures" / "loss_budget-route-eps0.5.png").is_file()
    assert done["none-map-flat"]["fid_x_floor"] != done["none-map"]["fid_x_floor"]


@pytest.mark.slow
def test_posterior_rows_end_to_end(folder):
    found = run(folder, rows=["none-posterior", "*-posterior-*"], n_seeds=1)
    assert lines_by_name(found)["none-posterior"]["seeds"] == "1"
    assert not (folder / "fit-posterior.chunks").exists()


def test_what_cannot_be_reproduced_is_refused(tmp_path):
    with pytest.raises(ValueError, match="table3"):
        reproduce("table3", tmp_path)
    with pytest.raises(ValueError, match="n_seeds"):
        reproduce("table2", tmp_path, n_seeds=0)
    vehicles = tiny(unit="vehicle", max_trips_per_vehicle=2)
    with pytest.raises(InputDataError, match="unit = 'trip'"):
        reproduce("table2", tmp_path, config=vehicles)
    with pytest.raises(InputDataError, match="mechanism"):
        reproduce("table2", tmp_path, config=tiny(mechanism="none"))
    assert list(tmp_path.iterdir()) == []


def _copy_fit(source, target):
    """A folder with region, trips and fit of another, and nothing else."""
    target.mkdir()
    for name in ("region", "trips.zarr", "set_aside.csv", "fit-map.zarr", ".stages"):
        item = source / name
        (shutil.copytree if item.is_dir() else shutil.copy2)(item, target / name)


def _silent(done, total):
    """No progress."""


@pytest.fixture(scope="module")
def finished_run(folder, tmp_path_factory):
    """What a misfit study reads of a run, made from the shared stages."""
    run_folder = tmp_path_factory.mktemp("runs") / "published"
    run_folder.mkdir()
    for source, name in (("region", "region"), ("trips", "train"), ("fit-map", "fit")):
        ending = "" if name == "region" else ".zarr"
        shutil.copytree(folder / f"{source}{ending}", run_folder / f"{name}{ending}")
    return run_folder


def test_misfit_study_compares_training_trips_with_their_own_fits(finished_run, tmp_path):
    found = study_misfit([finished_run], tmp_path, n_trips=12)
    assert all(path.is_file() and path.stat().st_size > 0 for path in found.files)
    assert {"misfit.png", "misfit_groups-published.png"} <= {path.name for path in found.files}
    every = found.gaps[found.gaps["grouping"] == "all trips"].set_index("fact").to_dict("index")
    assert {fact["n_trips"] for fact in every.values()} == {12}
    assert set(found.gaps["group"]) == {"all trips"}  # classes of fewer than 50 trips are not shown
    trips = load_traces(finished_run / "train.zarr")["power_w"].values[:12].astype(float)
    assert every["start_1"]["real"] == pytest.approx(trips[:, 0].mean() / 1e3)
    # The fleet was simulated without noise worth a name, so best fits have the power of the trips.
    assert every["mean"]["synthetic"] == pytest.approx(every["mean"]["real"], rel=0.1)
    table = found.swaps.set_index(["direction", "swap"])
    judge = load_traces(finished_run / "train.zarr")["power_w"].values[12:24].astype(float)
    direct = evaluate(judge, trips).fid_x_floor
    assert table.loc[("repair", "everything"), "fid_x_floor"] == pytest.approx(direct)
    page = (tmp_path / "misfit.md").read_text()
    assert "| mean power | kW |" in page
    assert "| published | repair | first minute |" in page


def test_misfit_study_refuses_what_is_no_run_and_what_is_another_fleet(finished_run, tmp_path):
    with pytest.raises(InputDataError, match="finished run"):
        study_misfit([], tmp_path)
    with pytest.raises(InputDataError, match=r"without region"):
        study_misfit([tmp_path], tmp_path)
    with pytest.raises(InputDataError, match="different names"):
        study_misfit([finished_run, finished_run], tmp_path)
    other = tmp_path / "other"
    shutil.copytree(finished_run, other)
    shutil.rmtree(other / "train.zarr")
    trips = load_traces(finished_run / "train.zarr").isel(trip=slice(1, None))
    save_traces(trips, other / "train.zarr")
    with pytest.raises(InputDataError, match="others in other than in published"):
        study_misfit([finished_run, other], tmp_path)
