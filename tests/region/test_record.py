"""The region record: one fingerprint for all content."""

from dataclasses import fields, replace

import numpy as np
import pytest

from prisma_sbi._errors import InputDataError, RegionMismatchError
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.record import Region
from tests.region.conftest import make_pool, make_region


def _array_fields(record: object) -> list[str]:
    return [f.name for f in fields(record) if isinstance(getattr(record, f.name), np.ndarray)]


def _nudged(array: np.ndarray) -> np.ndarray:
    changed = array.copy()
    if changed.dtype.kind in "US":
        return np.asarray([*changed[:-1], str(changed[-1]) + "x"])
    changed.flat[-1] = changed.flat[-1] + 1
    return changed


@pytest.mark.parametrize("part", ["roads", "elevation", "vehicles"])
def test_fingerprint_changes_with_any_array(three_edge_region: Region, part: str):
    record = getattr(three_edge_region, part)
    for name in _array_fields(record):
        changed = replace(record, **{name: _nudged(getattr(record, name))})
        other = replace(three_edge_region, **{part: changed})
        assert other.fingerprint != three_edge_region.fingerprint, name


def test_fingerprint_changes_with_bounds_and_constants(three_edge_region: Region):
    box = Bounds(south_deg=-0.1, north_deg=0.1, west_deg=-0.1, east_deg=0.11)
    assert replace(three_edge_region, bounds=box).fingerprint != three_edge_region.fingerprint
    constants = Constants(creep_speed_mps=2.5)
    other = replace(three_edge_region, constants=constants)
    assert other.fingerprint != three_edge_region.fingerprint


def test_a_constant_added_later_enters_the_fingerprint_only_where_it_acts(three_edge_region):
    values = three_edge_region.constants.to_dict()
    assert values.pop("acceleration_fade_mps") == 0.0
    older = replace(three_edge_region, constants=Constants.from_dict(values))
    assert older.fingerprint == three_edge_region.fingerprint
    acting = replace(three_edge_region.constants, acceleration_fade_mps=8.0)
    assert replace(three_edge_region, constants=acting).fingerprint != three_edge_region.fingerprint


def test_fingerprint_ignores_name_memory_layout_and_string_type(three_edge_region: Region):
    elevation, vehicles = three_edge_region.elevation, three_edge_region.vehicles
    other = replace(
        three_edge_region,
        name="other",
        elevation=replace(elevation, height_m=np.asfortranarray(elevation.height_m)),
        vehicles=replace(vehicles, name=vehicles.name.astype(object)),
    )
    assert other.fingerprint == three_edge_region.fingerprint


def test_fingerprint_tells_neighboring_strings_apart(three_edge_region: Region):
    vehicles = replace(make_pool(), name=np.array(["ab", "c"]))
    moved = replace(make_pool(), name=np.array(["a", "bc"]))
    one = replace(three_edge_region, vehicles=vehicles)
    two = replace(three_edge_region, vehicles=moved)
    assert one.fingerprint != two.fingerprint


def test_require_same_accepts_own_and_refuses_other(three_edge_region: Region):
    three_edge_region.require_same(three_edge_region.fingerprint, what="the traces")
    other = make_region(three_edge_region.roads, constants=Constants(horizon_s=300))
    with pytest.raises(RegionMismatchError, match="Expected the traces derived from region"):
        three_edge_region.require_same(other.fingerprint, what="the traces")
    with pytest.raises(RegionMismatchError, match="an unknown region"):
        three_edge_region.require_same(None, what="the traces")


def test_pool_without_vehicles_is_refused():
    pool = make_pool()
    empty = {name: getattr(pool, name)[:0] for name in _array_fields(pool)}
    with pytest.raises(InputDataError, match="at least one vehicle"):
        type(pool)(**empty)


def test_pool_of_one_vehicle_is_fine():
    pool = make_pool()
    one = type(pool)(**{name: getattr(pool, name)[:1] for name in _array_fields(pool)})
    assert len(one) == 1
    assert one.coefficients.shape == (1, 4)


def test_edge_without_length_is_refused_and_named(three_edge_region: Region):
    roads = three_edge_region.roads
    length_m = roads.edge_length_m.copy()
    length_m[1] = np.nan
    with pytest.raises(InputDataError, match=r"from node 101 to node 102"):
        replace(roads, edge_length_m=length_m)
