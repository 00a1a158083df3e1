import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi._errors import InputDataError
from prisma_sbi.descriptors import (
    DESCRIPTORS,
    CategoricalColumn,
    ContinuousColumn,
    DescriptorGrid,
    TableLayout,
    grid_from_region,
)
from prisma_sbi.region.constants import Constants
from tests.descriptors.tiny import random_table, tiny_region

REGION = tiny_region()
GRID = grid_from_region(REGION)


def test_default_bins_are_those_of_the_method():
    default = Constants()
    assert (default.n_place_bins, default.n_aggressiveness_bins, default.n_detour_bins) == (
        32,
        16,
        16,
    )


def test_grid_covers_the_public_domain():
    assert GRID.names == DESCRIPTORS
    assert GRID.shape == (4, 4, 4, 4, 3, 3, 3)
    assert GRID.region_fingerprint == REGION.fingerprint
    box = REGION.bounds
    outer = [(column.edges[0], column.edges[-1]) for column in GRID.columns[:4]]
    assert outer == [(box.south_deg, box.north_deg), (box.west_deg, box.east_deg)] * 2
    assert GRID.columns[5].edges[-1] == REGION.constants.detour_bounds[1]
    assert isinstance(GRID, TableLayout)


def test_single_vehicle_has_one_level():
    grid = grid_from_region(tiny_region(n_vehicles=1))
    assert grid.shape[-1] == 1
    codes = grid.discretize(random_table(tiny_region(n_vehicles=1), 5))
    assert set(codes[:, -1]) == {0}


@settings(deadline=None, max_examples=60)
@given(
    edges=st.lists(
        st.floats(-1e9, 1e9, allow_subnormal=False), min_size=2, max_size=8, unique=True
    ).map(sorted),
    seed=st.integers(0, 2**32 - 1),
    ends=st.sampled_from([0.0, 1.0 - 2**-53, None]),
)
def test_sample_then_code_is_the_identity_on_any_edges(edges, seed, ends):
    column = ContinuousColumn(name="x", edges=tuple(edges))
    rng = np.random.default_rng(seed)
    codes = rng.integers(column.n_bins, size=50)

    class Extreme(np.random.Generator):
        def random(self, size):
            return np.full(size, ends)

    source = rng if ends is None else Extreme(np.random.PCG64(0))
    values = column.sample(codes, source)
    np.testing.assert_array_equal(column.code(values), codes)
    assert not column.outside(values).any()


@settings(deadline=None, max_examples=25)
@given(n_rows=st.integers(0, 40), seed=st.integers(0, 2**32 - 1))
def test_sample_then_discretize_is_the_identity(n_rows, seed):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(size, size=n_rows) for size in GRID.shape], axis=1)
    table = GRID.sample_within_bins(codes, rng)
    np.testing.assert_array_equal(GRID.discretize(table), codes)


def test_draws_fill_their_bin_evenly():
    codes = np.zeros((4000, 7), dtype=np.int32)
    drawn = GRID.sample_within_bins(codes, np.random.default_rng(1))["detour"].values
    low, high = GRID.columns[5].edges[:2]
    share = (drawn - low) / (high - low)
    counts = np.histogram(share, bins=10, range=(0, 1))[0]
    assert counts.sum() == 4000
    assert np.sum((counts - 400) ** 2 / 400) < 27.9  # chi-square, 9 degrees, p = 0.001


def test_values_outside_go_to_the_border_and_are_counted():
    table = random_table(REGION, 6)
    table["detour"][:] = [0.5, 1.0, 2.5, 3.0, 99.0, 1.7]
    assert GRID.discretize(table)[:, 5].tolist() == [0, 0, 2, 2, 2, 1]
    assert GRID.count_outside(table) == {name: 0 for name in DESCRIPTORS} | {"detour": 3}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_value_that_is_not_finite_names_the_trip(bad):
    table = random_table(REGION, 4)
    table["start_lat"][2] = bad
    with pytest.raises(InputDataError, match=r"start_lat of trip '2' \(row 2\).*1 of 4 rows"):
        GRID.discretize(table)


@pytest.mark.parametrize("vehicle", [-1, 3])
def test_unknown_vehicle_names_the_trip(vehicle):
    table = random_table(REGION, 4)
    table["vehicle"][1] = vehicle
    with pytest.raises(InputDataError, match=r"vehicle of trip '1'"):
        GRID.discretize(table)


def test_codes_of_another_grid_are_refused():
    rng = np.random.default_rng(0)
    for codes in (np.zeros((2, 6), int), np.full((2, 7), 4), np.full((2, 7), -1)):
        with pytest.raises(ValueError, match="Expected codes"):
            GRID.sample_within_bins(codes, rng)


def test_dictionary_round_trip_through_json():
    again = DescriptorGrid.from_dict(json.loads(json.dumps(GRID.to_dict())))
    assert again == GRID
    with pytest.raises(InputDataError, match="layout"):
        DescriptorGrid.from_dict(GRID.to_dict() | {"layout": "another"})


def test_columns_refuse_nonsense():
    for edges in ((1.0,), (1.0, 1.0), (0.0, np.nan), (2.0, 1.0)):
        with pytest.raises(ValueError, match="rising edges"):
            ContinuousColumn(name="x", edges=edges)
    with pytest.raises(ValueError, match="n_bins"):
        CategoricalColumn(name="x", n_bins=0)
    with pytest.raises(ValueError, match="Expected the columns"):
        DescriptorGrid(columns=GRID.columns[1:], region_fingerprint="")
