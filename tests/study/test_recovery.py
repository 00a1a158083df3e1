"""Recovery study: scores with known answers, faults that show, and going on after Ctrl-C."""

import functools
import re

import numpy as np
import pytest
import xarray as xr
from scipy.stats import norm

from prisma_sbi._errors import InputDataError
from prisma_sbi._files import write_zarr
from prisma_sbi.encoding import EncodeSettings, FitStatus, Method, encode
from prisma_sbi.evaluation.plot_recovery_study import plot_estimates
from prisma_sbi.models import TripModel
from prisma_sbi.region import demo_region
from prisma_sbi.region.profiles import RouteStatus
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.simulator import simulate_trips
from prisma_sbi.study import (
    RecoverySettings,
    known_fleet,
    load_recovery,
    recovery,
    recovery_study,
    recovery_table,
    trips_set_aside,
    write_recovery,
)
from prisma_sbi.study.recovery_cells import compared

SD = np.array([0.01, 0.02])
PROBABILITY = 0.25
"""Of the vehicle that the oracle holds for true, which it is that often."""
TIMES = ("seconds_per_trip", "compile_s")
FLEETS = functools.cache(known_fleet)
"""Simulating compiles every time; fleets of the same arguments are the same."""
MANY, SOME = 600, 24


class Oracle:
    """A posterior that is right by construction: normal around a normally wrong mean.

    Attributes
    ----------
    width
        Of the draws over what they should have.
    shuffled
        Whether every trip gets the posterior of another.
    lost
        Trips that are set aside.
    """

    def __init__(self, *, width: float = 1.0, shuffled: bool = False, lost: tuple[int, ...] = ()):
        self.width, self.shuffled, self.lost = width, shuffled, lost
        self.encoded: list[str] = []

    def __call__(self, region, traces, *, model, settings, checkpoint, progress):
        name = type(model.likelihood).__name__
        self.encoded.append(f"{name} {settings.method}")
        progress(0, traces.sizes["trip"])
        fit = self._fit(traces, len(region.vehicles), settings)
        progress(traces.sizes["trip"], traces.sizes["trip"])
        return fit

    def _fit(self, traces: xr.Dataset, n_vehicles: int, settings: EncodeSettings) -> xr.DataTree:
        rng = np.random.default_rng(settings.seed)
        n = traces.sizes["trip"]
        order = rng.permutation(n) if self.shuffled else np.arange(n)
        truth = np.stack([traces[name].values for name in ("aggressiveness", "detour")], -1)[order]
        vehicle = traces["vehicle"].values[order]
        middle = truth + SD * rng.normal(size=(n, 2))
        draws = middle[:, None, None] + self.width * SD * rng.normal(size=(n, 4, 500, 2))
        # The true vehicle is the favorite as often as the favorite is said to be right.
        wrong = rng.uniform(size=n) >= PROBABILITY
        favorite = np.where(wrong, (vehicle + rng.integers(1, n_vehicles, n)) % n_vehicles, vehicle)
        probability = np.full((n, n_vehicles), (1.0 - PROBABILITY) / (n_vehicles - 1))
        probability[np.arange(n), favorite] = PROBABILITY
        status = np.zeros(n, np.int8)
        status[list(self.lost)] = FitStatus.BAD_TRACE
        nothing = np.isin(np.arange(n), self.lost)
        middle[nothing], draws[nothing], probability[nothing] = np.nan, np.nan, np.nan
        stats = {
            "best_aggressiveness": ("trip", middle[:, 0]),
            "best_detour": ("trip", middle[:, 1]),
            "best_vehicle": ("trip", favorite),
            "status": ("trip", status),
            "flags": ("trip", (np.arange(n) % 4 == 0).astype(np.int32)),
        }
        kept = draws if Method(settings.method).has_draws else middle[:, None, None]
        if Method(settings.method).has_draws:
            stats["vehicle_probability"] = (("trip", "pool_vehicle"), probability)
        dims = ("trip", "chain", "draw")
        posterior = {"aggressiveness": (dims, kept[..., 0]), "detour": (dims, kept[..., 1])}
        return xr.DataTree.from_dict(
            {"posterior": xr.Dataset(posterior), "sample_stats": xr.Dataset(stats)}
        )


@pytest.fixture(scope="module")
def city():
    return demo_region()


@pytest.fixture(scope="module", autouse=True)
def _fleets_made_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recovery, "known_fleet", FLEETS)
        yield


@pytest.fixture(scope="module")
def study(city):
    """A fleet large enough for laws of large numbers, read by the oracle."""
    return recovery_study(city, RecoverySettings(n_trips=MANY), encoder=Oracle())


def rows_of(tree: xr.DataTree) -> dict[tuple[str, str], dict]:
    table = recovery_table(tree["summary"].to_dataset())
    return {(row["method"], row["descriptor"]): row for row in table.to_dict("records")}


def test_fleet_is_routed_drawn_from_the_prior_and_free_of_noise_if_asked(city):
    fleet = known_fleet(city, MANY, noise="none", seed=0)
    ends = [fleet[name].values for name in ("start_lat", "start_lon", "end_lat", "end_lon")]
    profiles = route_profiles(city, *ends)
    assert np.all(profiles.status == RouteStatus.OK)
    assert np.array_equal(profiles.length_m, fleet["route_length_m"].values)
    truth = [fleet[name].values for name in ("aggressiveness", "detour", "vehicle")]
    assert np.array_equal(simulate_trips(city, profiles, *truth), fleet["power_w"].values)
    low, high = city.constants.detour_bounds
    assert truth[1].mean() == pytest.approx(0.5 * (low + high), abs=0.06 * (high - low))
    assert len(np.unique(truth[2])) > 0.9 * len(city.vehicles)
    noisy = FLEETS(city, MANY, noise="law", seed=0)
    assert np.array_equal(noisy["detour"], fleet["detour"])
    z = (noisy["power_w"] - fleet["power_w"]) / (1_000.0 + 0.3 * np.abs(fleet["power_w"]))
    assert float(np.median(np.abs(z))) == pytest.approx(0.73, abs=0.08)
    mild = known_fleet(city, MANY, noise="mild", seed=0)["power_w"].values
    moving = fleet["power_w"].values > 0.0
    assert np.all(mild[~moving & (fleet["power_w"].values == 0.0)] == 0.0)
    assert np.std(np.log(mild[moving] / fleet["power_w"].values[moving])) == pytest.approx(
        0.05, abs=0.003
    )


def test_scores_of_a_posterior_that_is_right(study):
    rows = rows_of(study)
    for name, sd in zip(("aggressiveness", "detour"), SD, strict=True):
        row = rows["quadrature", name]
        assert row["n_trips"] == MANY
        assert abs(row["bias"]) < 4 * row["bias_error"]
        assert row["bias_error"] == pytest.approx(sd / np.sqrt(MANY), rel=0.12)
        assert row["rmse"] == pytest.approx(sd, rel=0.12)
        for level in (50, 90):
            error = row[f"coverage_{level}_error"]
            share = level / 100
            assert error == pytest.approx(np.sqrt(share * (1 - share) / MANY))
            assert abs(row[f"coverage_{level}"] - share) < 3.5 * error
        assert row["z_sd"] == pytest.approx(1.0, abs=0.12)
        assert abs(row["z_mean"]) < 0.16
        assert row["crps"] == pytest.approx(sd / np.sqrt(np.pi), rel=0.12)
        assert row["correlation"] > 0.98
        assert np.isnan(row["top_1"])
    vehicle = rows["quadrature", "vehicle"]
    n_vehicles = study["fleet"].sizes["pool_vehicle"]
    rest = (1 - PROBABILITY) / (n_vehicles - 1)
    assert vehicle["top_1"] == pytest.approx(PROBABILITY, abs=0.06)
    # Behind the favorite all are alike, so the other four places go by chance.
    right = vehicle["top_1"]
    assert vehicle["top_5"] == pytest.approx(right + (1 - right) * 4 / (n_vehicles - 1))
    assert vehicle["log_score"] == pytest.approx(
        PROBABILITY * np.log(PROBABILITY) + (1 - PROBABILITY) * np.log(rest), abs=0.2
    )
    squares = PROBABILITY**2 + (n_vehicles - 1) * rest**2
    assert vehicle["brier"] == pytest.approx(1 - squares, abs=0.03)
    assert np.isnan(vehicle["rmse"])
    assert vehicle["flagged"] == 0.25


def test_contraction_is_one_minus_the_ratio_of_variances(study, city):
    low, high = city.constants.detour_bounds
    expected = 1 - 12 * SD[1] ** 2 / (high - low) ** 2
    assert rows_of(study)["quadrature", "detour"]["contraction"] == pytest.approx(
        expected, abs=0.1 * (1 - expected)
    )


def test_points_promise_nothing(study):
    for (method, name), row in rows_of(study).items():
        if method != "map":
            continue
        said = {key for key, value in row.items() if isinstance(value, float) and value == value}
        errors = {"top_1"} if name == "vehicle" else {"bias", "bias_error", "rmse", "correlation"}
        assert said == errors | {"flagged", *TIMES}


def test_intervals_of_half_the_width_show(city):
    tree = recovery_study(city, RecoverySettings(n_trips=MANY), encoder=Oracle(width=0.5))
    for name in ("aggressiveness", "detour"):
        row = rows_of(tree)["quadrature", name]
        for level in (50, 90):
            half = norm.ppf(0.5 + level / 200) * 0.5
            assert row[f"coverage_{level}"] == pytest.approx(2 * norm.cdf(half) - 1, abs=0.08)
            assert row[f"coverage_{level}"] < level / 100 - 5 * row[f"coverage_{level}_error"]
        assert row["z_sd"] == pytest.approx(2.0, abs=0.25)


def test_estimates_of_other_trips_show(city):
    tree = recovery_study(city, RecoverySettings(n_trips=MANY), encoder=Oracle(shuffled=True))
    row = rows_of(tree)["quadrature", "detour"]
    assert abs(row["correlation"]) < 0.2
    assert row["coverage_90"] < 0.3
    assert row["rmse"] > 10 * SD[1]
    assert rows_of(tree)["quadrature", "vehicle"]["top_1"] < 0.1


def test_trips_set_aside_are_counted_named_and_in_no_score(city, study):
    settings = RecoverySettings(n_trips=SOME)
    tree = recovery_study(city, settings, encoder=Oracle(lost=(3, 11)))
    row = rows_of(tree)["quadrature", "detour"]
    assert (row["n_trips"], row["n_set_aside"]) == (SOME - 2, 2)
    assert np.isfinite(row["rmse"])
    lost = trips_set_aside(tree)
    assert lost["trip"].tolist() == 2 * ["simulated/3", "simulated/11"]
    assert set(lost["reason"]) == {"bad_trace"}
    cell = tree["cells/trace-quadrature"]
    assert np.all(np.isnan(cell["estimate"].values[[3, 11]]))
    assert np.all(np.isfinite(cell["estimate"].values[[0, 4]]))
    assert len(trips_set_aside(study)) == 0


def assert_same_numbers(first: xr.DataTree, second: xr.DataTree) -> None:
    """Bit for bit, but for times."""
    assert [node.path for node in first.subtree] == [node.path for node in second.subtree]
    for node in first.subtree:
        xr.testing.assert_identical(
            node.to_dataset().drop_attrs().drop_vars(TIMES, errors="ignore"),
            second[node.path].to_dataset().drop_attrs().drop_vars(TIMES, errors="ignore"),
        )


def stop_at(cell: str, done_before: int = 0):
    def progress(name: str, done: int, _total: int) -> None:
        if name == cell and done >= done_before:
            raise KeyboardInterrupt

    return progress


def test_interrupted_study_goes_on_with_the_next_cell(city, tmp_path):
    settings = RecoverySettings(n_trips=SOME)
    oracle = Oracle()
    with pytest.raises(KeyboardInterrupt):
        recovery_study(
            city, settings, folder=tmp_path, encoder=oracle, progress=stop_at("trace-quadrature")
        )
    kept = load_recovery(tmp_path)
    assert list(kept["cells"].children) == ["trace-map"]
    assert kept["summary"]["cell"].values.tolist() == ["trace-map"]
    again = Oracle()
    resumed = recovery_study(city, settings, folder=tmp_path, encoder=again)
    assert oracle.encoded == ["TraceLikelihood map", "TraceLikelihood quadrature"]
    assert again.encoded == ["TraceLikelihood quadrature"]
    whole = recovery_study(city, settings, encoder=Oracle())
    assert_same_numbers(resumed, whole)
    finished = Oracle()
    assert_same_numbers(recovery_study(city, settings, folder=tmp_path, encoder=finished), whole)
    assert finished.encoded == []
    assert not (tmp_path / "chunks").exists()


def test_a_study_grows_by_methods_and_refuses_other_settings(city, tmp_path):
    settings = RecoverySettings(n_trips=SOME, methods=("quadrature",))
    recovery_study(city, settings, folder=tmp_path, encoder=Oracle())
    more = Oracle()
    tree = recovery_study(
        city,
        RecoverySettings(n_trips=SOME, methods=("laplace",)),
        folder=tmp_path,
        encoder=more,
    )
    assert more.encoded == ["TraceLikelihood laplace"]
    assert tree["summary"]["method"].values.tolist() == ["laplace", "quadrature"]
    for other, words in (
        (RecoverySettings(n_trips=25), "n_trips=24; got n_trips=25"),
        (RecoverySettings(n_trips=SOME, seed=1), "seed=0; got seed=1"),
        (RecoverySettings(n_trips=SOME, noise="none"), "noise='law'; got noise='none'"),
    ):
        with pytest.raises(InputDataError, match=re.escape(words)):
            recovery_study(city, other, folder=tmp_path, encoder=Oracle())
    with pytest.raises(InputDataError, match="encoder='Oracle'; got encoder='encode'"):
        recovery_study(city, settings, folder=tmp_path)
    tree["cells/trace-quadrature"].attrs["settings"] = "EncodeSettings(of old)"
    write_zarr(tree, tmp_path / "recovery.zarr")
    with pytest.raises(InputDataError, match="trace-quadrature encoded as .* other settings"):
        recovery_study(city, settings, folder=tmp_path, encoder=Oracle())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n_trips": 1}, "n_trips >= 2"),
        ({"noise": "loud"}, "noise to be one of"),
        ({"methods": ("magic",)}, "methods to be one of 'map'"),
        ({"methods": ()}, "one or more methods"),
        ({"likelihoods": ("prior",)}, "likelihoods to be one of"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        RecoverySettings(**wrong)


def test_a_damaged_or_foreign_study_is_refused(city, tmp_path):
    with pytest.raises(InputDataError, match="got nothing"):
        load_recovery(tmp_path)
    (tmp_path / "recovery.zarr").mkdir()
    (tmp_path / "recovery.zarr" / "zarr.json").write_text("{")
    with pytest.raises(InputDataError, match="--force"):
        recovery_study(city, RecoverySettings(n_trips=4), folder=tmp_path, encoder=Oracle())


def test_figure_counts_as_the_table_does(study):
    figure = plot_estimates(
        study["fleet"].to_dataset(), {"one": study["cells/trace-quadrature"].to_dataset()}
    )
    for panel, name in zip(figure.axes, ("aggressiveness", "detour"), strict=True):
        share = rows_of(study)["quadrature", name]["coverage_90"]
        assert f"{100 * share:.0f} % held" in panel.get_title(loc="left")


def test_page_holds_the_numbers_and_says_who_may_read_it(city, tmp_path):
    tree = recovery_study(city, RecoverySettings(n_trips=SOME), encoder=Oracle(lost=(7,)))
    paths = write_recovery(tree, tmp_path, command="prisma study recover --trips 60")
    assert all(path.stat().st_size > 0 for path in paths)
    names = {path.name for path in paths}
    assert names == {"recovery.csv", "set_aside.csv", "report.html", "estimates-trace.png",
                     "coverage.png", "vehicles.png", "time.png"}  # fmt: skip
    page = (tmp_path / "report.html").read_text()
    assert "may be shown to anybody" in page
    assert "prisma study recover --trips 60" in page
    assert "1 trip set aside" in page
    assert "simulated/7" in page
    row = rows_of(tree)["quadrature", "detour"]
    assert f"{100 * row['coverage_90']:.0f} ± 6" in page
    points = re.findall(r'<th scope="row">trace-map</th>(.*?)</tr>', page)
    assert all("<td>-</td>" in cells for cells in points[:3])


@pytest.mark.slow
def test_real_encoders_recover_and_go_on_within_a_cell(city, tmp_path):
    settings = RecoverySettings(n_trips=48, methods=("map", "quadrature"), seed=2)
    with pytest.raises(KeyboardInterrupt):
        recovery_study(
            city, settings, folder=tmp_path, progress=stop_at("trace-quadrature", done_before=16)
        )
    n_kept = len(list((tmp_path / "chunks" / "trace-quadrature").glob("chunk-*.npz")))
    assert n_kept >= 2
    resumed = recovery_study(city, settings, folder=tmp_path)
    cell = resumed["cells/trace-quadrature"]
    assert cell.attrs["n_timed"] == 48 - 8 * n_kept
    assert_same_numbers(resumed, recovery_study(city, settings))
    rows = rows_of(resumed)
    for name in ("aggressiveness", "detour"):
        row = rows["quadrature", name]
        assert row["correlation"] > 0.9
        assert abs(row["coverage_90"] - 0.9) < 4 * row["coverage_90_error"]
        assert row["contraction"] > 0.9
    assert rows["quadrature", "vehicle"]["top_5"] > 0.3


@pytest.mark.slow
def test_compilation_is_timed_apart(city):
    fleet = known_fleet(city, 16, seed=1)
    model = TripModel.of(city, likelihood="summary")
    fit = encode(city, fleet, method="map", model=model)
    found = compared(model, fleet, fit)
    assert "draws" not in found
    assert "rank" not in found
    settings = RecoverySettings(n_trips=17, methods=("map",), likelihoods=("texture",))
    first, second = (recovery_study(city, settings)["summary"] for _ in range(2))
    assert first["compile_s"].item() > 4 * second["compile_s"].item()
    assert first["seconds_per_trip"].item() < first["compile_s"].item()
