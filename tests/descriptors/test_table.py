import numpy as np
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.descriptors import DESCRIPTORS, make_descriptor_table, require_descriptor_table
from tests.descriptors.tiny import random_table, tiny_region


def columns(n_trips: int = 3) -> dict[str, np.ndarray]:
    numbers = {name: np.linspace(0.0, 1.0, n_trips) for name in DESCRIPTORS}
    return numbers | {"vehicle": np.arange(n_trips)}


def test_made_table_meets_the_contract():
    table = make_descriptor_table(columns(), trip=["a", "b", "c"], region_fingerprint="f")
    require_descriptor_table(table)
    assert table["trip"].values.tolist() == ["a", "b", "c"]
    assert table["vehicle"].dtype == np.int32
    assert table["detour"].dtype == np.float64
    assert table.attrs == {
        "kind": "descriptors",
        "format_version": 1,
        "region_fingerprint": "f",
    }
    assert all("units" in table[name].attrs for name in DESCRIPTORS)


def test_empty_table_is_a_table():
    require_descriptor_table(make_descriptor_table(columns(0), region_fingerprint=""))


def test_missing_column_is_named():
    some = columns()
    del some["detour"]
    with pytest.raises(InputDataError, match="detour"):
        make_descriptor_table(some, region_fingerprint="")


@pytest.mark.parametrize("vehicle", [[0.5, 1, 2], [np.nan, 1, 2]])
def test_vehicle_that_is_no_index_names_the_trip(vehicle):
    with pytest.raises(InputDataError, match="trip 'a'"):
        make_descriptor_table(
            columns() | {"vehicle": np.array(vehicle)}, trip=list("abc"), region_fingerprint=""
        )


def test_columns_of_other_length_or_type_are_refused():
    with pytest.raises(InputDataError, match="end_lat"):
        make_descriptor_table(columns() | {"end_lat": np.zeros(2)}, region_fingerprint="")
    with pytest.raises(InputDataError, match="end_lat"):
        make_descriptor_table(columns() | {"end_lat": np.array(list("abc"))}, region_fingerprint="")
    with pytest.raises(InputDataError, match="trip names"):
        make_descriptor_table(columns(), trip=["a"], region_fingerprint="")


def test_other_datasets_are_refused():
    table = random_table(tiny_region(), 4)
    with pytest.raises(InputDataError, match="kind"):
        require_descriptor_table(table.assign_attrs(kind="traces"))
    with pytest.raises(InputDataError, match="version 2"):
        require_descriptor_table(table.assign_attrs(format_version=2))
    with pytest.raises(InputDataError, match="'start_lon'"):
        require_descriptor_table(table.drop_vars("start_lon"))
    with pytest.raises(InputDataError, match="'detour'"):
        require_descriptor_table(table.assign(detour=table["detour"].expand_dims(draw=2)))
