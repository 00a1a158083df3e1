"""The route table: what it keeps, and that it needs nothing but public data."""

import numpy as np
import pytest

from prisma_sbi._errors import InputDataError, RegionMismatchError
from prisma_sbi.descriptors import DESCRIPTORS, layout_from_dict, make_descriptor_table, route_table
from prisma_sbi.region import Constants, demo_region, route_profiles
from prisma_sbi.region.routing import snap_to_nodes
from prisma_sbi.simulator.fleet import simulate_fleet


@pytest.fixture(scope="module")
def region():
    return demo_region()


@pytest.fixture(scope="module")
def table(region):
    fleet = simulate_fleet(region, 300)
    return make_descriptor_table(
        {name: fleet[name].values for name in DESCRIPTORS}, region_fingerprint=region.fingerprint
    )


def test_cells_hold_equally_many_junctions(region):
    layout = route_table(region)
    counts = np.bincount(layout.cell_of_node, minlength=layout.shape[0])
    assert counts.max() - counts.min() <= 1


def test_drawn_rows_fall_into_their_bins(region, table):
    layout = route_table(region)
    codes = layout.discretize(table)
    drawn = layout.sample_within_bins(codes, np.random.default_rng(0))
    again = layout.discretize(drawn)
    # Cell, aggressiveness, detour and vehicle come back exactly; a length only as nearly as the
    # network has a junction at the right distance.
    np.testing.assert_array_equal(again[:, [0, 2, 3, 4]], codes[:, [0, 2, 3, 4]])
    assert np.mean(np.abs(again[:, 1] - codes[:, 1]) <= 1) > 0.95


def test_independent_columns_keep_the_length_of_routes(region, table):
    layout = route_table(region)
    codes = layout.discretize(table)
    rng = np.random.default_rng(1)
    shuffled = np.stack([rng.permutation(column) for column in codes.T], axis=1)
    drawn = layout.sample_within_bins(shuffled, rng)

    def mean_length(rows):
        ends = (rows[name].values for name in DESCRIPTORS[:4])
        return route_profiles(region, *ends).length_m.mean()

    assert mean_length(drawn) == pytest.approx(mean_length(table), rel=0.1)
    # The published columns shuffled the same way do not.
    apart = table.copy()
    order = rng.permutation(table.sizes["trip"])
    for name in ("end_lat", "end_lon"):
        apart[name] = ("trip", table[name].values[order])
    assert mean_length(apart) > 1.25 * mean_length(table)


def test_ends_are_drawn_where_the_traffic_is(region, table):
    busy = demo_region(constants=Constants(end_traffic_power=4.0))
    layout, roads = route_table(busy), busy.roads
    fastest = np.zeros(roads.n_nodes)
    for node in (roads.edge_from, roads.edge_to):
        np.maximum.at(fastest, node, roads.edge_speed_mps)
    expected = fastest**4
    # One cell over and over: each junction comes by its traffic.
    code = layout.discretize(table.assign_attrs(region_fingerprint=busy.fingerprint))[:1]
    n = 20_000
    drawn = layout.sample_within_bins(np.repeat(code, n, axis=0), np.random.default_rng(3))
    start = snap_to_nodes(busy, drawn["start_lat"].values, drawn["start_lon"].values)
    inside = layout.cell_of_node == code[0, 0]
    assert np.all(inside[start])
    share = np.where(inside, expected, 0.0) / expected[inside].sum()
    found = np.bincount(start, minlength=roads.n_nodes)
    chance = np.sqrt(n * share * (1.0 - share))
    assert np.all(np.abs(found - n * share) <= 5.0 * chance + 1e-9)
    assert np.ptp(expected[inside]) > 0.0
    # Ends too: faster than those drawn without, and their lengths as good.
    end = snap_to_nodes(busy, drawn["end_lat"].values, drawn["end_lon"].values)
    plain = route_table(region).sample_within_bins(
        np.repeat(code, n, axis=0), np.random.default_rng(3)
    )
    plain_end = snap_to_nodes(region, plain["end_lat"].values, plain["end_lon"].values)
    assert fastest[end].mean() > 1.1 * fastest[plain_end].mean()
    again = layout.discretize(drawn)
    assert np.mean(np.abs(again[:, 1] - code[0, 1]) <= 1) > 0.95


def test_one_trip_moves_one_row(region, table):
    layout = route_table(region)
    codes = layout.discretize(table)
    without = layout.discretize(table.isel(trip=slice(1, None)))
    np.testing.assert_array_equal(codes[1:], without)


def test_bad_values_are_named_and_layouts_need_their_region(region, table):
    layout = route_table(region)
    broken = table.copy(deep=True)
    broken["detour"].values[5] = np.nan
    with pytest.raises(InputDataError, match="detour.*'5'"):
        layout.discretize(broken)
    broken = table.copy(deep=True)
    broken["vehicle"].values[2] = 64
    with pytest.raises(InputDataError, match="vehicle"):
        layout.discretize(broken)
    with pytest.raises(InputDataError, match="region"):
        layout_from_dict(layout.to_dict())
    other = demo_region(constants=Constants(n_detour_bins=5))
    with pytest.raises(RegionMismatchError):
        layout_from_dict(layout.to_dict(), other)
    assert layout_from_dict(layout.to_dict(), region).shape == layout.shape
