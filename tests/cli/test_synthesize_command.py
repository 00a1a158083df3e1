"""`prisma synthesize`: the plan without data, and the release (slow, because it encodes)."""

import numpy as np
import pytest
import xarray as xr

from prisma_sbi.cli import synthesize_command
from prisma_sbi.encoding import FitStatus, save_fit
from prisma_sbi.privacy import load_release, rho_from_epsilon_delta
from prisma_sbi.telemetry import load_traces, save_traces
from tests.cli.conftest import prisma, prisma_json, refusal


@pytest.fixture
def no_data(monkeypatch):
    """Reading private data fails the test."""

    def fail(*_args, **_options):
        raise AssertionError("private data was read")

    monkeypatch.setattr(synthesize_command, "load_fit", fail)
    monkeypatch.setattr(synthesize_command, "descriptor_table", fail)


def test_explain_reads_no_data(city_folder, no_data):
    found = prisma_json("synthesize", "--region", city_folder, "--explain", "--epsilon", 1)
    assert found["epsilon"] == 1.0
    assert found["rho"] == pytest.approx(rho_from_epsilon_delta(1.0, 1e-5))
    assert {len(row["columns"]) for row in found["plan"]} == {1, 2}
    shown = prisma("synthesize", "fit.zarr", "--region", city_folder, "--explain")
    assert shown.exit_code == 0
    assert "No data was read" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_explain_shows_that_budget_and_rows_buy_marginals(city_folder, no_data):
    def affordable(*options):
        found = prisma_json("synthesize", "--region", city_folder, "--explain", *options)
        return sum(row["affordable"] for row in found["plan"])

    least = affordable("--epsilon", 0.1, "--n-rows", 100)
    assert least < affordable("--epsilon", 5, "--n-rows", 100)
    assert least < affordable("--epsilon", 0.1, "--n-rows", 100_000)


def test_explain_knows_triples(city_folder, no_data):
    found = prisma_json("synthesize", "--region", city_folder, "--explain", "--workload", "triples")
    assert max(len(row["columns"]) for row in found["plan"]) == 3


EXPLAINED = [
    ([], "one trip, added or removed", "one row", 2),
    (["--neighbors", "replace"], "one trip, replaced", "replace one record by another", 2),
    (
        ["--unit", "vehicle", "--max-trips-per-vehicle", 5],
        "one vehicle with at most 5 trips, added or removed",
        "of which at most 5 entered",
        2,
    ),
    (["--rows", "posterior"], "in units of 1/64", "weighted rows", 2),
    (["--n-rows", "private"], "measured with noise of 54.2 trips", "deviation 54.2", 2),
    (["--mechanism", "mst"], "a third each", "", 2),
    (["--mechanism", "independent"], "in equal parts", "", 1),
]


@pytest.mark.parametrize(("options", "fact", "sentence", "largest"), EXPLAINED)
def test_explain_shows_every_choice(city_folder, no_data, options, fact, sentence, largest):
    shown = prisma("synthesize", "--region", city_folder, "--explain", *options)
    assert shown.exit_code == 0, shown.stderr
    text, said = (" ".join(each.split()) for each in (shown.stdout, shown.stderr))
    assert fact in text
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "It would say: Differentially private with epsilon = 0.5" in said
    found = prisma_json("synthesize", "--region", city_folder, "--explain", *options)
    assert max(len(row["columns"]) for row in found["plan"]) == largest
    assert sentence in found["statement"] or sentence in text
    assert found["planned_rows"] == 10_000


def test_explained_noise_is_that_of_the_release(city, city_folder, fleet, tmp_path):
    fit = save_fit(posterior_fit(city, fleet, 5), tmp_path / "fit.zarr")
    for mechanism in ("mst", "independent"):
        options = ["--region", city_folder, "--mechanism", mechanism, "--n-rows", "private"]
        options += ["--rows", "posterior", "--neighbors", "replace", "--epsilon", 2]
        planned = prisma_json("synthesize", "--explain", *options)
        prisma_json("synthesize", fit, "-o", tmp_path / mechanism, *options)
        release = load_release(tmp_path / mechanism, city)
        assert release.measured[0].stddev == pytest.approx(planned["stddev_first"], rel=1e-6)
        assert release.guarantee is not None
        assert release.ledger is not None
        assert release.guarantee.n_rows_stddev == pytest.approx(planned["count_stddev"], rel=1e-6)
        assert release.ledger.hides == planned["hides"]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--epsilon", "0"], "epsilon"),
        (["--epsilon", "-1"], "epsilon"),
        (["--epsilon", "nan"], "epsilon"),
        (["--epsilon", "inf"], "epsilon"),
        (["--delta", "1"], "delta"),
        (["--delta", "0"], "delta"),
        (["--mechanism", "magic"], "'aim', 'mst', 'independent', 'none'"),
        (["--workload", "quads"], "'pairs', 'triples'"),
        (["--table", "kitchen"], "table"),
        (["--n-rows", "0"], "n_rows"),
        (["--n-rows", "many"], "'private'"),
        (["--n-rows", "private", "--mechanism", "none"], "n_rows"),
        (["--rows", "mean"], "'map', 'posterior'"),
        (["--neighbors", "cousins"], "'add-remove', 'replace'"),
        (["--unit", "person"], "'trip', 'vehicle'"),
        (["--unit", "vehicle"], "max_trips_per_vehicle"),
        (["--max-trips-per-vehicle", "2"], "max_trips_per_vehicle"),
    ],
)
@pytest.mark.parametrize("explain", [True, False])
def test_bad_budget_is_refused_before_data_is_read(
    city_folder, no_data, options, part, explain, tmp_path
):
    target = ["--explain"] if explain else ["fit.zarr", "-o", tmp_path / "release"]
    assert part in refusal("synthesize", *target, "--region", city_folder, *options)
    assert not (tmp_path / "release").exists()


def test_epsilon_that_is_no_number_is_a_usage_error(city_folder, no_data):
    done = prisma("synthesize", "--region", city_folder, "--explain", "--epsilon", "lots")
    assert done.exit_code == 2
    assert "--epsilon" in done.stderr


def test_explain_refuses_no_mechanism(city_folder, no_data):
    line = refusal("synthesize", "--region", city_folder, "--explain", "--mechanism", "none")
    assert "guarantees nothing" in line


@pytest.mark.parametrize("given", [[], ["fit.zarr"], ["-o", "release"]])
def test_a_fit_and_a_folder_are_needed(city_folder, no_data, given):
    assert "FIT and -o" in refusal("synthesize", *given, "--region", city_folder)


def test_missing_fit_is_refused(city_folder, tmp_path):
    out = tmp_path / "release"
    line = refusal("synthesize", tmp_path / "no.zarr", "--region", city_folder, "-o", out)
    assert "no.zarr" in line


def posterior_fit(city, fleet, n_draws):
    """A fit as encode makes it, with the true descriptors and some draws around them."""
    rng = np.random.default_rng(0)
    n_trips = fleet.sizes["trip"]
    shape = (1, n_draws, n_trips)
    dims = ("chain", "draw", "trip")
    aggressiveness = np.clip(fleet["aggressiveness"].values + 0.1 * rng.normal(size=shape), 0, 1)
    posterior = {
        "aggressiveness": (dims, aggressiveness),
        "detour": (dims, np.broadcast_to(fleet["detour"].values, shape)),
        "vehicle": (dims, rng.integers(len(city.vehicles), size=shape)),
    }
    status = np.where(np.arange(n_trips) == 3, FitStatus.NOT_ROUTED, FitStatus.OK)
    names = ("aggressiveness", "detour", "vehicle")
    best = {f"best_{name}": ("trip", posterior[name][1][0, 0]) for name in names}
    ends = ["start_lat", "start_lon", "end_lat", "end_lon"]
    tree = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(posterior, coords={"trip": fleet["trip"]}),
            "sample_stats": xr.Dataset({"status": ("trip", status)} | best),
            "constant_data": fleet[ends],
        }
    )
    tree.attrs = {"kind": "fit", "format_version": 1, "region_fingerprint": city.fingerprint}
    return tree


def test_posterior_rows_weigh_one_trip(city, city_folder, fleet, tmp_path):
    fit = save_fit(posterior_fit(city, fleet, 5), tmp_path / "fit.zarr")
    options = ["--region", city_folder, "--mechanism", "independent", "--rows", "posterior"]
    found = prisma_json("synthesize", fit, "-o", tmp_path / "release", *options)
    assert found["n_rows"] == fleet.sizes["trip"] - 1
    assert "weighted rows" in found["statement"]
    plain = prisma_json("synthesize", fit, "-o", tmp_path / "plain", *options[:-2])
    assert "weighted rows" not in plain["statement"]
    counted = prisma_json("synthesize", fit, "-o", tmp_path / "n", *options, "--n-rows", "private")
    assert f"the {counted['n_rows']} rows are a measurement" in counted["statement"]
    save_fit(posterior_fit(city, fleet, 1), fit)
    line = refusal("synthesize", fit, "-o", tmp_path / "other", *options)
    assert "several posterior draws" in line
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("method", "rows", "refused"),
    [
        ("hmc", "posterior", True),
        ("svi", "map", True),
        ("hmc", "map", False),
        ("quadrature", "posterior", False),
    ],
)
def test_rows_that_lean_on_other_trips_get_no_guarantee(
    city, city_folder, fleet, method, rows, refused, tmp_path
):
    tree = posterior_fit(city, fleet, 5)
    tree.attrs |= {"method": method, "format_version": 2}
    fit, out = save_fit(tree, tmp_path / "fit.zarr"), tmp_path / "release"
    options = ["--region", city_folder, "--mechanism", "independent", "--rows", rows]
    if refused:
        assert "that trip alone" in refusal("synthesize", fit, "-o", out, *options)
        assert not out.exists()
    else:
        assert prisma_json("synthesize", fit, "-o", out, *options)["n_rows"]


def test_vehicles_are_named_by_the_traces(city, city_folder, fleet, tmp_path):
    fit = save_fit(posterior_fit(city, fleet, 5), tmp_path / "fit.zarr")
    ids = np.array([f"car {index // 4}" for index in range(fleet.sizes["trip"])])
    named = save_traces(fleet.assign(vehicle_id=("trip", ids)), tmp_path / "traces.zarr")
    options = ["--region", city_folder, "--mechanism", "independent"]
    options += ["--unit", "vehicle", "--max-trips-per-vehicle", 2]
    for rows in ("map", "posterior"):
        out = tmp_path / rows
        found = prisma_json(
            "synthesize", fit, "-o", out, "--traces", named, "--rows", rows, *options
        )
        assert found["n_rows"] == 2 * 6  # one of 24 trips has no fit, and each car has four
        assert "one vehicle with all of its trips, of which at most 2" in found["statement"]
    line = refusal("synthesize", fit, "-o", tmp_path / "other", *options)
    assert "--traces" in line
    few = save_traces(load_traces(named).isel(trip=slice(5)), tmp_path / "few.zarr")
    line = refusal("synthesize", fit, "-o", tmp_path / "other", "--traces", few, *options)
    assert "not there" in line


@pytest.mark.slow
def test_release_of_a_fit(demo_run, city_folder, city, tmp_path):
    folder, _ = demo_run
    out = tmp_path / "release"
    arguments = ["synthesize", folder / "fit.zarr", "--region", folder / "region", "-o", out]
    arguments += ["--mechanism", "independent", "--epsilon", 2, "--n-rows", 30]
    found = prisma_json(*arguments)
    assert found["is_private"]
    assert found["n_rows"] == 30
    assert load_release(out, city).settings.epsilon == 2.0
    assert "--force" in refusal(*arguments)

    again = prisma(*arguments, "--force")
    assert again.exit_code == 0, again.stderr
    assert again.stdout == ""
    assert "epsilon" in again.stderr

    exact = prisma_json(
        *("synthesize", folder / "fit.zarr", "--region", folder / "region"),
        *("-o", tmp_path / "exact", "--mechanism", "none"),
    )
    assert not exact["is_private"]
    assert "30" in refusal(*arguments[:5], tmp_path / "e2", "--mechanism", "none", "--n-rows", 30)


def test_releases_of_one_fit_add_up_in_a_ledger(city, city_folder, fleet, tmp_path):
    fit = save_fit(posterior_fit(city, fleet, 5), tmp_path / "fit.zarr")
    book = tmp_path / "privacy-ledger.jsonl"
    options = ["--region", city_folder, "--mechanism", "independent", "--ledger", book]
    options += ["--epsilon", "0.5", "--total-epsilon", "0.9"]
    prisma_json("synthesize", fit, "-o", tmp_path / "first", *options)
    prisma_json("synthesize", fit, "-o", tmp_path / "second", *options)
    line = refusal("synthesize", fit, "-o", tmp_path / "third", *options)
    assert "0.9" in line
    assert not (tmp_path / "third").exists()
    assert len(book.read_text().splitlines()) == 2
    alone = refusal(
        "synthesize", fit, "--region", city_folder, "-o", tmp_path / "x", "--total-epsilon", "1"
    )
    assert "--ledger" in alone
