"""The whole road: an honest release is not caught, broken ones are."""

import json
from dataclasses import replace

import numpy as np
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.audit import audit_synthesis, audit_traces, choose_canary, neighbor_with
from prisma_sbi.descriptors import (
    DESCRIPTORS,
    grid_from_region,
    make_descriptor_table,
    make_weighted_table,
    route_table,
)
from prisma_sbi.privacy import Neighbors, SynthesisSettings, records
from prisma_sbi.region import builtin_pool, demo_region
from prisma_sbi.simulator.fleet import simulate_fleet
from tests.audit.broken import ForgottenColumn, NarrowNoise
from tests.descriptors.tiny import random_table, tiny_region

REGION = tiny_region(n_vehicles=5)
GRID = grid_from_region(REGION)
TABLE = random_table(REGION, 200)
FEW_STEPS = 30


def settings(epsilon, mechanism="independent"):
    return SynthesisSettings(mechanism=mechanism, epsilon=epsilon, estimation_iterations=FEW_STEPS)


@pytest.mark.parametrize("layout", [GRID, route_table(demo_region())], ids=["grid", "route"])
def test_canary_sits_in_an_empty_cell_far_from_the_rows(layout):
    table = TABLE if layout is GRID else simulated_table()
    canary = choose_canary(layout, table, seed=3)
    rows, code = layout.discretize(table), layout.discretize(canary)
    assert code.shape == (1, len(layout.names))
    shared = np.sum(rows == code)
    assert not np.any(np.all(rows == code, axis=1))
    single = [choose_canary(layout, table, seed=seed, n_candidates=1) for seed in range(5)]
    others = [np.sum(rows == layout.discretize(each)) for each in single]
    assert shared <= min(others)
    with_canary = neighbor_with(table, canary, settings(1.0))
    assert with_canary.sizes["trip"] == table.sizes["trip"] + 1
    assert str(with_canary["trip"].values[-1]).startswith("canary")
    np.testing.assert_array_equal(layout.discretize(with_canary)[:-1], rows)
    replaced = neighbor_with(table, canary, replace(settings(1.0), neighbors=Neighbors.REPLACE))
    assert replaced.sizes == table.sizes
    np.testing.assert_array_equal(layout.discretize(replaced)[-1], code[0])
    np.testing.assert_array_equal(layout.discretize(replaced)[:-1], rows[:-1])


def simulated_table():
    region = demo_region()
    fleet = simulate_fleet(region, 30)
    return make_descriptor_table(
        {name: fleet[name].values for name in DESCRIPTORS}, region_fingerprint=region.fingerprint
    )


def test_full_table_has_no_room_for_a_canary():
    region = tiny_region(n_vehicles=1, n_place_bins=1)
    with pytest.raises(InputDataError, match="empty cell"):
        choose_canary(grid_from_region(region), random_table(region, 2_000))


def test_honest_release_is_not_caught():
    seen = []
    found = audit_synthesis(
        REGION,
        TABLE,
        settings(1.0),
        n_runs=100,
        confidence=0.999,
        progress=lambda done, total: seen.append(done),
    )
    assert not found.caught
    assert found.claim.epsilon == 1.0
    assert found.n_records == 200
    assert found.noise == "SystemNoise"
    assert seen == list(range(1, 101))
    json.dumps(found.to_dict())


def test_canary_vehicle_brings_more_trips_than_may_enter():
    vehicles = replace(settings(1.0), unit="vehicle", max_trips_per_vehicle=3)
    owned = TABLE.assign(owner=("trip", np.repeat(np.arange(50).astype(str), 4)))
    canary = choose_canary(GRID, TABLE)
    added = neighbor_with(owned, canary, vehicles)
    assert added.sizes["trip"] == 212
    assert np.sum(added["owner"].values == "canary") == 12
    replaced = neighbor_with(owned, canary, replace(vehicles, neighbors=Neighbors.REPLACE))
    assert replaced.sizes["trip"] == 208
    assert "49" not in replaced["owner"].values


def test_canary_in_a_weighted_table_has_full_weight():
    columns = {name: np.repeat(TABLE[name].values[:20], 2) for name in DESCRIPTORS}
    table = make_weighted_table(
        columns,
        source=np.repeat(np.arange(20), 2),
        weight=np.ones(40),
        weight_total=8,
        region_fingerprint=REGION.fingerprint,
    )
    canary = choose_canary(GRID, table)
    added = neighbor_with(table, canary, settings(1.0))
    assert added.sizes["trip"] == 41
    assert added["weight"].values[-1] == 8
    replaced = neighbor_with(table, canary, replace(settings(1.0), neighbors=Neighbors.REPLACE))
    assert replaced.sizes["trip"] == 39
    found = audit_synthesis(REGION, table, settings(1.0), n_runs=10, confidence=0.999)
    assert found.n_records == 20
    assert not found.caught


@pytest.mark.slow
def test_vehicles_whose_trips_are_not_bounded_are_caught(monkeypatch):
    """Twelve trips of the canary enter where the price was for three: 200 runs show it."""
    vehicles = replace(settings(4.0), unit="vehicle", max_trips_per_vehicle=3)
    honest = audit_synthesis(REGION, TABLE, vehicles, n_runs=40, confidence=0.999)
    assert not honest.caught
    monkeypatch.setattr(
        records, "bound_trips", lambda owner, *_, **__: np.ones(len(owner), dtype=bool)
    )
    assert audit_synthesis(REGION, TABLE, vehicles, n_runs=200).caught


def test_release_that_hides_a_replacement_is_not_caught():
    hides = replace(settings(1.0), neighbors=Neighbors.REPLACE)
    assert not audit_synthesis(REGION, TABLE, hides, n_runs=50, confidence=0.999).caught


def test_private_number_of_rows_is_attacked_too():
    """A count without noise gives the canary away whatever the columns hide."""
    counted = replace(settings(1.0), n_rows="private")
    assert not audit_synthesis(REGION, TABLE, counted, n_runs=20, confidence=0.999).caught
    found = audit_synthesis(REGION, TABLE, counted, n_runs=60, noise=ForgottenColumn(1))
    assert found.caught
    assert found.rho_attack.statistic == "rows"


def test_forgotten_column_is_caught():
    """Exact counts of the vehicles, everything else with noise: 150 runs show it."""
    found = audit_synthesis(REGION, TABLE, settings(0.5), n_runs=150, noise=ForgottenColumn(5))
    assert found.caught
    assert found.epsilon_low > 2 * found.claim.epsilon
    assert "vehicle" in found.rho_attack.statistic


def test_much_narrower_noise_is_caught():
    """Four times narrower, 200 runs."""
    found = audit_synthesis(REGION, TABLE, settings(4.0), n_runs=200, noise=NarrowNoise(4))
    assert found.caught


@pytest.mark.slow
def test_halved_noise_is_caught_in_released_rows():
    """Twice as narrow: 1,500 runs show it through the rows alone; the right noise passes."""
    assert audit_synthesis(REGION, TABLE, settings(4.0), n_runs=1_500, noise=NarrowNoise(2)).caught
    assert not audit_synthesis(REGION, TABLE, settings(4.0), n_runs=300, confidence=0.999).caught


@pytest.mark.slow
def test_honest_aim_is_not_caught():
    found = audit_synthesis(REGION, TABLE, settings(1.0, "aim"), n_runs=10, confidence=0.999)
    assert not found.caught


@pytest.mark.slow
def test_traces_of_a_forgotten_column_are_caught_and_honest_ones_are_not():
    region = replace(demo_region(), vehicles=builtin_pool(6))
    fleet = simulate_fleet(region, 40, seed=2)
    leaky = audit_traces(region, fleet, settings(0.5), n_runs=100, noise=ForgottenColumn(6))
    assert leaky.level == "traces"
    assert leaky.caught
    honest = audit_traces(region, fleet, settings(0.5), n_runs=20, confidence=0.999)
    assert not honest.caught


def test_what_claims_nothing_or_holds_nothing_is_refused():
    with pytest.raises(ValueError, match="claims nothing"):
        audit_synthesis(REGION, TABLE, SynthesisSettings(mechanism="none"), n_runs=10)
    with pytest.raises(InputDataError, match="a table with rows"):
        audit_synthesis(REGION, random_table(REGION, 0), settings(1.0), n_runs=10)
    with pytest.raises(InputDataError, match="a canary of one row"):
        audit_synthesis(REGION, TABLE, settings(1.0), n_runs=10, canary=random_table(REGION, 2))
    with pytest.raises(ValueError, match="n_runs"):
        audit_synthesis(REGION, TABLE, settings(1.0), n_runs=2)
