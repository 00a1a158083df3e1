import json
import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from prisma_sbi._errors import BudgetError, GuaranteeError, InputDataError, RegionMismatchError
from prisma_sbi.descriptors import grid_from_region
from prisma_sbi.privacy import (
    Ledger,
    Mechanism,
    Release,
    SeededNoise,
    SynthesisSettings,
    SystemNoise,
    load_release,
    plan_synthesis,
    save_release,
    synthesize,
)
from tests.descriptors.tiny import random_table, tiny_region

REGION = tiny_region()
GRID = grid_from_region(REGION)
TABLE = random_table(REGION, 400)


@pytest.fixture(scope="module")
def aim_release() -> Release:
    return synthesize(TABLE, REGION, SynthesisSettings(epsilon=1.0), seed=1)


@pytest.fixture(scope="module")
def seeded_release() -> Release:
    """Repeatable: which marginals are measured is part of what is tested."""
    return synthesize(TABLE, REGION, SynthesisSettings(epsilon=5.0), noise=SeededNoise(1), seed=1)


@pytest.fixture(scope="module")
def exact_release() -> Release:
    return synthesize(TABLE, REGION, SynthesisSettings(mechanism="none"))


def test_release_carries_its_guarantee(aim_release):
    assert aim_release.is_private
    aim_release.require_private()
    guarantee = aim_release.guarantee
    assert (guarantee.epsilon, guarantee.delta, guarantee.n_rows) == (1.0, 1e-5, 400)
    assert aim_release.ledger.used <= guarantee.rho
    text = aim_release.guarantee_text()
    for word in ("epsilon = 1 ", "1e-05", "add or remove one record", "trip", "400, is public"):
        assert word in text
    assert aim_release.region_fingerprint == REGION.fingerprint
    assert aim_release.versions["mbi"] == "2.0.0"


def test_release_has_rows_within_the_grid(aim_release):
    assert aim_release.n_rows == 400
    bins = aim_release.table["bin"]
    assert bins.dims == ("row", "column")
    assert np.all((bins.values >= 0) & (bins.values < np.array(GRID.shape)))
    np.testing.assert_array_equal(
        GRID.discretize(aim_release.draw_descriptors(np.random.default_rng(0))), aim_release.codes
    )


def test_strong_dependence_survives_a_large_budget(seeded_release):
    """Start and end are equal in the table; mostly so in the release."""
    lat = seeded_release.codes[:, [0, 2]]
    assert np.mean(lat[:, 0] == lat[:, 1]) > 0.8


def test_row_can_be_drawn_again_within_its_bins(aim_release):
    rng = np.random.default_rng(0)
    rows = np.array([3, 3, 7])
    drawn = aim_release.draw_descriptors(rng, rows=rows)
    assert aim_release.can_redraw
    assert drawn["trip"].values.tolist() == ["3", "3", "7"]
    assert drawn["detour"].values[0] != drawn["detour"].values[1]
    np.testing.assert_array_equal(GRID.discretize(drawn), aim_release.codes[rows])


def test_without_mechanism_rows_pass_exactly_and_without_guarantee(exact_release):
    assert not exact_release.is_private
    assert not exact_release.can_redraw
    xr.testing.assert_identical(exact_release.table, TABLE)
    drawn = exact_release.draw_descriptors(np.random.default_rng(0), rows=np.array([5, 2]))
    xr.testing.assert_identical(drawn, TABLE.isel(trip=[5, 2]))
    assert exact_release.guarantee_text().startswith("NO GUARANTEE.")
    assert exact_release.ledger is None
    with pytest.raises(GuaranteeError, match="No mechanism ran"):
        exact_release.require_private()


class Loud(SystemNoise):
    """Changes nothing, but could."""


@pytest.mark.parametrize("noise", [SeededNoise(1), Loud()])
def test_any_other_noise_voids_the_guarantee(noise):
    settings = SynthesisSettings(mechanism="independent", estimation_iterations=50)
    release = synthesize(TABLE, GRID, settings, noise=noise)
    assert not release.is_private
    assert type(noise).__name__ in release.no_guarantee


def test_small_budget_warns_that_no_pair_was_measured():
    release = synthesize(TABLE, REGION, SynthesisSettings(epsilon=0.01), noise=SeededNoise(0))
    assert {len(item.columns) for item in release.measured} == {1}
    assert any("No pair of columns was measured" in sentence for sentence in release.warnings)
    assert "Warning: No pair" in release.guarantee_text()


def test_measured_pairs_silence_the_warning(seeded_release):
    assert any(len(item.columns) == 2 for item in seeded_release.measured)
    assert seeded_release.warnings == ()


def test_independent_release_measures_single_columns():
    settings = SynthesisSettings(mechanism=Mechanism.INDEPENDENT, n_rows=30)
    release = synthesize(TABLE, REGION, settings)
    assert [item.columns for item in release.measured] == [(name,) for name in GRID.names]
    assert release.n_rows == 30
    assert release.is_private


def test_single_vehicle_and_single_row():
    region = tiny_region(n_vehicles=1)
    settings = SynthesisSettings(estimation_iterations=50)
    release = synthesize(random_table(region, 1), region, settings)
    assert release.n_rows == 1
    assert release.codes[0, -1] == 0


def test_empty_table_needs_a_public_row_count():
    empty = random_table(REGION, 0)
    with pytest.raises(InputDataError, match="at least one row"):
        synthesize(empty, REGION)
    settings = SynthesisSettings(mechanism="independent", n_rows=20)
    release = synthesize(empty, REGION, settings)
    assert release.n_rows == 20
    assert release.is_private


def test_mixing_regions_is_refused():
    other = tiny_region(north_deg=42.4)
    with pytest.raises(RegionMismatchError, match=other.fingerprint):
        synthesize(TABLE, other)
    with pytest.raises(RegionMismatchError, match="unknown region"):
        synthesize(TABLE.assign_attrs(region_fingerprint=""), REGION)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 1e-5), (-1.0, 1e-5), (math.nan, 1e-5), (0.5, 1.0), (0.5, 0.0)]
)
def test_impossible_budget_is_refused(epsilon, delta):
    with pytest.raises(BudgetError, match="Expected"):
        synthesize(TABLE, REGION, SynthesisSettings(epsilon=epsilon, delta=delta))


@pytest.mark.parametrize(
    "wrong",
    [
        {"mechanism": "magic"},
        {"workload": "quadruples"},
        {"n_rows": 0},
        {"max_model_mib": 0.0},
        {"measure_share": 1.0},
        {"rounds_per_column": 0},
    ],
)
def test_unknown_settings_are_refused(wrong):
    with pytest.raises(ValueError, match="Expected"):
        SynthesisSettings(**wrong)


def test_bad_values_are_refused_before_anything_is_spent():
    broken = TABLE.copy(deep=True)
    broken["end_lon"][3] = np.nan
    for mechanism in ("aim", "none"):
        with pytest.raises(InputDataError, match="end_lon of trip '3'"):
            synthesize(broken, REGION, SynthesisSettings(mechanism=mechanism))


def test_row_count_without_mechanism_is_that_of_the_table():
    with pytest.raises(ValueError, match="n_rows=400"):
        synthesize(TABLE, REGION, SynthesisSettings(mechanism="none", n_rows=3))


def test_progress_rises_to_the_whole_budget():
    seen = []
    synthesize(
        TABLE,
        REGION,
        SynthesisSettings(epsilon=0.01),
        noise=SeededNoise(0),
        progress=lambda share, text: seen.append((share, text)),
    )
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("which", ["aim_release", "exact_release"])
def test_release_survives_the_disk(which, request, tmp_path):
    release = request.getfixturevalue(which)
    again = load_release(save_release(release, tmp_path / "release"))
    assert again.layout == release.layout
    assert again.settings == release.settings
    assert again.guarantee == release.guarantee
    assert again.ledger == release.ledger
    assert again.measured == release.measured
    assert again.guarantee_text() == release.guarantee_text()
    assert (again.seed, again.versions) == (release.seed, release.versions)
    xr.testing.assert_identical(again.table, release.table)
    assert again.table.sizes == release.table.sizes
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release"]


def test_failed_save_leaves_the_old_release(aim_release, exact_release, tmp_path, monkeypatch):
    folder = save_release(exact_release, tmp_path / "release")

    def full_disk(*args, **options):
        raise OSError("No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", full_disk)
    with pytest.raises(OSError, match="No space"):
        save_release(aim_release, folder)
    assert load_release(folder).mechanism == Mechanism.NONE
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
    monkeypatch.undo()
    save_release(aim_release, folder)
    assert load_release(folder).mechanism == Mechanism.AIM


def test_broken_folders_are_refused(aim_release, tmp_path):
    with pytest.raises(InputDataError, match="Expected a release"):
        load_release(tmp_path)
    folder = save_release(aim_release, tmp_path / "release")
    record = json.loads((folder / "release.json").read_text())
    (folder / "release.json").write_text(json.dumps(record | {"format_version": 9}))
    with pytest.raises(InputDataError, match="version 9"):
        load_release(folder)
    (folder / "release.json").write_text(json.dumps(record | {"n_rows": 3}))
    with pytest.raises(InputDataError, match="Expected 3 rows"):
        load_release(folder)


def test_contradicting_parts_make_no_release(aim_release):
    parts = {"layout": GRID, "settings": SynthesisSettings(), "codes": aim_release.codes}
    with pytest.raises(GuaranteeError, match="the reason why"):
        Release(**parts)
    with pytest.raises(GuaranteeError, match="either synthetic codes"):
        Release(**parts, exact=TABLE, no_guarantee="x")
    with pytest.raises(GuaranteeError, match="a ledger"):
        Release(**parts, guarantee=aim_release.guarantee)
    with pytest.raises(GuaranteeError, match="not private"):
        Release(
            layout=GRID,
            settings=SynthesisSettings(),
            exact=TABLE,
            guarantee=aim_release.guarantee,
            ledger=Ledger.open(1.0),
        )


def test_plan_tells_what_a_budget_affords():
    columns = ["columns", "n_cells", "model_mib", "affordable"]
    poor = plan_synthesis(GRID, SynthesisSettings(epsilon=0.1), n_rows=100)
    rich = plan_synthesis(GRID, SynthesisSettings(epsilon=10.0), n_rows=10_000)
    assert set(columns) <= set(poor.columns)
    assert len(poor) == 7 + 21
    pairs = poor["columns"].map(len) == 2
    assert not poor["affordable"][pairs].any()
    assert rich["affordable"].all()
    assert rich.attrs["stddev_best"] < rich.attrs["stddev_first"]
    with pytest.raises(ValueError, match="n_rows"):
        plan_synthesis(GRID, SynthesisSettings(), n_rows=0)


@pytest.mark.parametrize("mechanism", ["aim", "mst", "independent"])
def test_plan_follows_unit_neighbors_and_count(mechanism):
    def plan(**options):
        chosen = SynthesisSettings(mechanism=mechanism, **options)
        return plan_synthesis(GRID, chosen, n_rows=1000)

    plain = plan()
    assert plain.attrs["hides"] == "one trip, added or removed"
    assert plain.attrs["count_stddev"] is None
    for options, factor in (
        ({"neighbors": "replace"}, np.sqrt(2)),
        ({"unit": "vehicle", "max_trips_per_vehicle": 3}, 3.0),
        ({"n_rows": "private"}, 1 / np.sqrt(0.98)),
    ):
        other = plan(**options)
        assert other.attrs["stddev_first"] == pytest.approx(factor * plain.attrs["stddev_first"])
        np.testing.assert_allclose(
            other["noise_share_best"], factor * plain["noise_share_best"], rtol=1e-6
        )
    assert plan(n_rows="private").attrs["count_stddev"] == pytest.approx(54.2, abs=0.1)


def test_plan_of_a_tree_is_what_is_measured():
    chosen = SynthesisSettings(mechanism="mst", epsilon=2.0, estimation_iterations=20)
    release = synthesize(TABLE, REGION, chosen)
    plan = plan_synthesis(GRID, chosen, n_rows=400)
    shares = dict(zip(plan["columns"], plan["noise_share_best"], strict=True))
    for item in release.measured:
        cells = int(np.prod([GRID.shape[GRID.names.index(name)] for name in item.columns]))
        expected = np.sqrt(2 / np.pi) * item.stddev * cells / 400
        assert shares[item.columns] == pytest.approx(expected, rel=1e-6)


def test_no_mechanism_has_no_plan():
    with pytest.raises(ValueError, match="no plan"):
        plan_synthesis(GRID, SynthesisSettings(mechanism="none"), n_rows=10)
