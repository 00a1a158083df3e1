"""Thinning and the built-in list."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.region.builtin_vehicles import builtin_pool
from prisma_sbi.region.catalogue import VEHICLE_COLUMNS, read_vehicle_files
from prisma_sbi.region.pool import VehiclePool
from prisma_sbi.region.thinning import pool_from_table, thin_pool


def make_table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    mass = rng.uniform(1000, 3000, n)
    return pd.DataFrame(
        {
            "name": [f"CAR {i}" for i in range(n)],
            "mass_kg": mass,
            "road_load_a_n": 0.009 * 9.8 * mass * rng.uniform(0.8, 1.2, n),
            "road_load_b_n_per_mps": rng.normal(2.0, 1.0, n),
            "road_load_c_n_per_mps2": rng.uniform(0.3, 0.8, n),
            "displacement_l": rng.uniform(1.0, 6.0, n),
            "model_year": rng.integers(2000, 2017, n),
        }
    )[list(VEHICLE_COLUMNS)]


def rows(pool: VehiclePool) -> list[tuple[str, float, float]]:
    return list(
        zip(pool.name.tolist(), pool.mass_kg.tolist(), pool.displacement_l.tolist(), strict=True)
    )


def test_pool_keeps_the_rows_of_the_table() -> None:
    table = make_table(5)
    pool = pool_from_table(table)
    assert pool.name.tolist() == table["name"].tolist()
    np.testing.assert_array_equal(pool.road_load_a_n, table["road_load_a_n"])
    np.testing.assert_array_equal(pool.model_year, table["model_year"])


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_thinned_pool_consists_of_vehicles_sorted_by_mass(size: int) -> None:
    table = make_table(60)
    pool = thin_pool(table, size=size)
    assert len(pool) == size
    assert np.all(np.diff(pool.mass_kg) >= 0)
    assert set(rows(pool)) <= set(rows(pool_from_table(table)))
    assert len(set(rows(pool))) == size


def test_clear_groups_are_represented_once_each() -> None:
    centers = make_table(6, seed=3)
    centers["mass_kg"] = [1000.0, 1400.0, 1800.0, 2200.0, 2600.0, 3000.0]
    jitter = np.random.default_rng(1).normal(1.0, 1e-3, (120, 1))
    table = centers.loc[np.repeat(np.arange(6), 20)].reset_index(drop=True)
    table[["mass_kg", "road_load_a_n"]] *= jitter
    groups = np.round((thin_pool(table, size=6).mass_kg - 1000) / 400)
    assert groups.tolist() == [0, 1, 2, 3, 4, 5]


def test_thinning_ignores_the_order_of_the_table() -> None:
    table = make_table(200)
    shuffled = table.sample(frac=1.0, random_state=1)
    assert rows(thin_pool(table, size=16)) == rows(thin_pool(shuffled, size=16))


def test_single_vehicle_is_an_average_one() -> None:
    table = make_table(500)
    pool = thin_pool(table, size=1)
    features = table[["mass_kg", "road_load_a_n", "displacement_l"]]
    found = np.array([pool.mass_kg[0], pool.road_load_a_n[0], pool.displacement_l[0]])
    assert np.all(np.abs((found - features.mean()) / features.std()) < 0.7)


def test_repeated_coefficients_give_one_entry() -> None:
    table = make_table(3)
    table = pd.concat([table, table.assign(name="OTHER NAME")], ignore_index=True)
    pool = thin_pool(table, size=128)
    assert len(pool) == 3
    assert sorted(pool.name) == ["CAR 0", "CAR 1", "CAR 2"]


def test_constant_column_is_harmless() -> None:
    table = make_table(30).assign(road_load_b_n_per_mps=0.0)
    assert len(thin_pool(table, size=4)) == 4


def test_unusable_requests_are_refused() -> None:
    table = make_table(5)
    with pytest.raises(ValueError, match="size"):
        thin_pool(table, size=0)
    with pytest.raises(InputDataError, match=r"without \['mass_kg'\]"):
        thin_pool(table.drop(columns="mass_kg"))
    with pytest.raises(InputDataError, match="at least one vehicle"):
        thin_pool(table.iloc[:0])


# ---------------------------------------------------------------- built-in list


def test_builtin_pool_is_plausible() -> None:
    pool = builtin_pool()
    assert len(pool) == 64
    assert len(np.unique(pool.coefficients, axis=0)) == 64
    assert np.all(np.diff(pool.mass_kg) >= 0)
    assert 900 < pool.mass_kg.min() < 1000
    assert 2500 < pool.mass_kg.max() < 3500
    speed = np.linspace(0, 40, 41)[:, None]
    load = pool.road_load_a_n + pool.road_load_b_n_per_mps * speed
    load = load + pool.road_load_c_n_per_mps2 * speed**2
    assert np.all(load > 0)
    weight = pool.mass_kg * 9.80665
    assert np.all((load[20] / weight > 0.01) & (load[20] / weight < 0.05))
    assert (pool.displacement_l == 0).sum() >= 2
    assert np.all((pool.model_year >= 2000) & (pool.model_year <= 2016))


def test_smaller_builtin_pools_are_nested_and_wide() -> None:
    whole, some, one = builtin_pool(), builtin_pool(16), builtin_pool(1)
    assert set(rows(one)) < set(rows(some)) < set(rows(whole))
    assert np.all(np.diff(some.mass_kg) >= 0)
    assert np.ptp(some.mass_kg) > 0.8 * np.ptp(whole.mass_kg)
    assert abs(one.mass_kg[0] - whole.mass_kg.mean()) < whole.mass_kg.std()
    assert rows(builtin_pool(64)) == rows(whole)


@pytest.mark.parametrize("size", [0, 65])
def test_builtin_pool_has_a_limit(size: int) -> None:
    with pytest.raises(ValueError, match="size"):
        builtin_pool(size)


# ---------------------------------------------------------------- the published lists


@pytest.mark.realdata
def test_epa_lists_thin_to_128_medoids(reference_data: Path) -> None:
    table = read_vehicle_files(sorted((reference_data / "epa").glob("[01][0-9]tstcar.csv")))
    pool = thin_pool(table)
    assert len(pool) == 128
    assert pool.mass_kg.min() > 900
    assert pool.mass_kg.max() < 3500
    assert pool.road_load_c_n_per_mps2.min() >= 0.2
    assert pool.road_load_c_n_per_mps2.max() < 1.5
    # The pool covers the fleet: quantization takes away most of the spread.
    features = ["mass_kg", "road_load_a_n", "road_load_c_n_per_mps2", "displacement_l"]
    values = table[features].to_numpy()
    scale = values.std(axis=0)
    centers = np.stack([getattr(pool, name) for name in features], axis=1)
    gap = ((values[:, None] - centers) / scale) ** 2
    assert gap.sum(axis=2).min(axis=1).mean() < 0.1 * len(features)
