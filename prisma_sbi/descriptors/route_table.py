"""A table for small budgets: where a trip starts and how far it goes, not where it ends."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.descriptors.checks import refuse, require_codes
from prisma_sbi.descriptors.columns import CategoricalColumn, ContinuousColumn
from prisma_sbi.descriptors.table import (
    DESCRIPTORS,
    make_descriptor_table,
    require_descriptor_table,
)
from prisma_sbi.region.record import Region
from prisma_sbi.region.roads import RoadNetwork
from prisma_sbi.region.routing import network_distances, snap_to_nodes

_LAYOUT = "route"
_SHORTEST_M = 20.0
_FIRST_EDGE_M = 300.0
_N_CANDIDATES, _N_WEIGHTED = 8, 24
"""Junctions that an end is drawn among; more where some of them are likelier than others."""
_CHUNK = 1024


@dataclass(frozen=True, kw_only=True, eq=False)
class RouteTable:
    """Five columns; a :class:`~prisma_sbi.descriptors.layout.TableLayout`.

    Start and end in separate columns say how far a trip goes only through their joint
    distribution, over a million cells, which a small budget cannot measure; measured apart
    they make trips too long and the autocorrelation wrong. Here the length of the shortest
    route is a column of its own, and the end is drawn, with public data, among the junctions
    that far from the start. What is lost is where trips end.

    Attributes
    ----------
    region
        Public inputs; needed to route, and part of nothing that is saved.
    columns
        ``start_cell``, ``route_length``, ``aggressiveness``, ``detour``, ``vehicle``.
    cell_of_node : (node,) int32
        Cell of each junction.
    """

    region: Region
    columns: tuple[ContinuousColumn | CategoricalColumn, ...]
    cell_of_node: np.ndarray = field(repr=False)

    @property
    def region_fingerprint(self) -> str:
        """Fingerprint of the region."""
        return self.region.fingerprint

    @property
    def names(self) -> tuple[str, ...]:
        """Name of every column, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of bins of every column."""
        return tuple(column.n_bins for column in self.columns)

    def discretize(self, table: xr.Dataset) -> np.ndarray:
        """Bin of every value.

        Parameters
        ----------
        table
            A descriptor table.

        Returns
        -------
        codes : (row, column) int32
            Each row depends on its own trip and public data alone, so one trip still moves
            one row. A number beyond the outer edges goes to the border bin; a trip without a
            route to the last bin of the length, a trip that goes nowhere to the first.

        Raises
        ------
        InputDataError
            If the table has another form, a value is NaN, or a vehicle is not in the pool.
        """
        require_descriptor_table(table)
        for name in DESCRIPTORS:
            values = table[name].values
            refuse(~np.isfinite(values), values, table, name, "a finite value")
        ends = [table[name].values for name in ("start_lat", "start_lon", "end_lat", "end_lon")]
        start = snap_to_nodes(self.region, ends[0], ends[1])
        length_m = _route_lengths(self.region, ends, start)
        cell, length, aggressiveness, detour, vehicle = self.columns
        values = table["vehicle"].values
        rule = f"a whole number from 0 to {vehicle.n_bins - 1}"
        refuse(vehicle.outside(values), values, table, "vehicle", rule)
        codes = [
            cell.code(self.cell_of_node[start]),
            length.code(length_m),
            aggressiveness.code(table["aggressiveness"].values),
            detour.code(table["detour"].values),
            vehicle.code(table["vehicle"].values),
        ]
        return np.stack(codes, axis=1).astype(np.int32)

    def sample_within_bins(self, codes: np.ndarray, rng: np.random.Generator) -> xr.Dataset:
        """Turn bins into descriptors with public data alone.

        Parameters
        ----------
        codes : (row, column)
            Bins, one row per trip.
        rng
            Source of the draws; post-processing, may be seeded.

        Returns
        -------
        table
            The start is a random junction of the cell; a length is drawn inside its bin, on a
            logarithmic scale; the end is one of the junctions whose distance by road from the
            start is nearest to it. Both are drawn by ``constants.end_traffic_power``.

        Raises
        ------
        ValueError
            If the codes have another number of columns or lie outside the bins.
        """
        codes = require_codes(codes, self.shape)
        _, length, aggressiveness, detour, vehicle = self.columns
        assert isinstance(length, ContinuousColumn)
        weight = _traffic(self.region)
        start = _nodes_in_cells(self.cell_of_node, codes[:, 0], weight, rng)
        edges = np.log(np.asarray(length.edges))
        low, high = edges[codes[:, 1]], edges[codes[:, 1] + 1]
        target_m = np.exp(low + rng.random(len(codes)) * (high - low))
        end = _nodes_at_distance(self.region, start, target_m, weight, rng)
        roads = self.region.roads
        drawn = {
            "start_lat": roads.node_lat_deg[start],
            "start_lon": roads.node_lon_deg[start],
            "end_lat": roads.node_lat_deg[end],
            "end_lon": roads.node_lon_deg[end],
            "aggressiveness": aggressiveness.sample(codes[:, 2], rng),
            "detour": detour.sample(codes[:, 3], rng),
            "vehicle": vehicle.sample(codes[:, 4], rng),
        }
        return make_descriptor_table(drawn, region_fingerprint=self.region_fingerprint)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; everything else follows from the region."""
        return {
            "layout": _LAYOUT,
            "region_fingerprint": self.region_fingerprint,
            "n_cells": self.shape[0],
            "n_lengths": self.shape[1],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any], region: Region | None) -> "RouteTable":
        """Inverse of :meth:`to_dict`, with the region that it was made for."""
        if region is None:
            raise InputDataError(
                "Expected the region of this release, which its table needs to place trips; got "
                "none. Pass it when loading the release."
            )
        region.require_same(values["region_fingerprint"], what="a release")
        return route_table(region, n_cells=values["n_cells"], n_lengths=values["n_lengths"])


def route_table(region: Region, *, n_cells: int = 64, n_lengths: int = 20) -> RouteTable:
    """Cut the region into cells of equally many junctions and lengths on a logarithmic scale.

    Parameters
    ----------
    region
        Public inputs; nothing private enters the bins.
    n_cells
        Cells of the start: a power of two, or the next one below the number of junctions.
    n_lengths
        Bins of the route length, from 300 m to the longest distance from a spread of junctions,
        shorter routes in a first bin of their own.
    """
    _validate.at_least(1, n_cells=n_cells)
    _validate.at_least(2, n_lengths=n_lengths)
    roads, constants = region.roads, region.constants
    depth = int(np.log2(min(n_cells, roads.n_nodes)))
    probes = np.linspace(0, roads.n_nodes - 1, min(64, roads.n_nodes)).astype(np.int32)
    reach = network_distances(region, probes)
    longest = float(np.max(reach, where=np.isfinite(reach), initial=2.0 * _FIRST_EDGE_M))
    lengths = (_SHORTEST_M, *np.geomspace(_FIRST_EDGE_M, longest, n_lengths).tolist())
    continuous = {
        "aggressiveness": (constants.aggressiveness_bounds, constants.n_aggressiveness_bins),
        "detour": (constants.detour_bounds, constants.n_detour_bins),
    }
    return RouteTable(
        region=region,
        cell_of_node=equal_cells(roads, depth),
        columns=(
            CategoricalColumn(name="start_cell", n_bins=2**depth),
            ContinuousColumn(name="route_length", edges=lengths),
            *(
                ContinuousColumn(name=name, edges=tuple(np.linspace(*bounds, n + 1).tolist()))
                for name, (bounds, n) in continuous.items()
            ),
            CategoricalColumn(name="vehicle", n_bins=len(region.vehicles)),
        ),
    )


def equal_cells(roads: RoadNetwork, depth: int) -> np.ndarray:
    """Cells ``(node,)`` of a k-d tree: halved along the longer side, equally many junctions."""
    shrink = np.cos(np.radians(np.mean(roads.node_lat_deg)))
    place = np.column_stack([roads.node_lat_deg, roads.node_lon_deg * shrink])
    cells = np.zeros(roads.n_nodes, np.int32)
    groups = [np.arange(roads.n_nodes)]
    for _ in range(depth):
        halves = []
        for group in groups:
            axis = int(np.argmax(np.ptp(place[group], axis=0)))
            order = group[np.argsort(place[group, axis], kind="stable")]
            halves += [order[: len(order) // 2], order[len(order) // 2 :]]
        groups = halves
    for cell, group in enumerate(groups):
        cells[group] = cell
    return cells


def _route_lengths(region: Region, ends: list[np.ndarray], start: np.ndarray) -> np.ndarray:
    """Length of each trip's shortest route; 0 if it goes nowhere or leaves the region.

    Infinite where no route leads to the end. Only lengths are looked up, one search per
    distinct start, so a million rows need no million road profiles.
    """
    inside = region.bounds.contains(ends[0], ends[1]) & region.bounds.contains(ends[2], ends[3])
    end = snap_to_nodes(region, ends[2], ends[3])
    length_m = np.zeros(len(start))
    rows = np.flatnonzero(inside & (start != end))
    rows = rows[np.argsort(start[rows], kind="stable")]
    distinct, first = np.unique(start[rows], return_index=True)
    bound = np.append(first, len(rows))
    for begin in range(0, len(distinct), _CHUNK):
        last = min(begin + _CHUNK, len(distinct))
        distance = network_distances(region, distinct[begin:last])
        part = rows[bound[begin] : bound[last]]
        length_m[part] = distance[np.searchsorted(distinct, start[part]) - begin, end[part]]
    return length_m


def _traffic(region: Region) -> np.ndarray | None:
    """Traffic at every junction, relative; None if all are alike."""
    power, roads = region.constants.end_traffic_power, region.roads
    if power == 0.0:
        return None
    fastest = np.zeros(roads.n_nodes)
    for node in (roads.edge_from, roads.edge_to):
        np.maximum.at(fastest, node, roads.edge_speed_mps)
    return (fastest / np.max(fastest)) ** power


def _nodes_in_cells(
    cell_of_node: np.ndarray,
    cells: np.ndarray,
    weight: np.ndarray | None,
    rng: np.random.Generator,
) -> np.ndarray:
    """A random junction of each cell."""
    order = np.argsort(cell_of_node, kind="stable")
    counts = np.bincount(cell_of_node)
    first = np.cumsum(counts) - counts
    ticket = rng.random(len(cells))
    if weight is None:
        pick = (ticket * counts[cells]).astype(np.int64)
        return order[first[cells] + pick].astype(np.int32)
    upto = np.append(0.0, np.cumsum(weight[order]))
    low, high = upto[first[cells]], upto[first[cells] + counts[cells]]
    place = np.searchsorted(upto, low + ticket * (high - low), side="right") - 1
    # Rounding may carry a ticket over an edge of its cell.
    place = np.clip(place, first[cells], first[cells] + counts[cells] - 1)
    return order[place].astype(np.int32)


def _nodes_at_distance(
    region: Region,
    start: np.ndarray,
    target_m: np.ndarray,
    weight: np.ndarray | None,
    rng: np.random.Generator,
) -> np.ndarray:
    """One of the junctions whose distance by road comes nearest to the target."""
    end = np.empty(len(start), np.int32)
    wanted = _N_CANDIDATES if weight is None else _N_WEIGHTED
    n_candidates = min(wanted, region.roads.n_nodes - 1)
    for begin in range(0, len(start), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        distinct, position = np.unique(start[rows], return_inverse=True)
        distance = network_distances(region, distinct)[position].astype(np.float64)
        miss = np.abs(np.where(np.isfinite(distance), distance, 1e12) - target_m[rows, None])
        miss[np.arange(len(miss)), start[rows]] = np.inf
        nearest = np.argpartition(miss, n_candidates - 1, axis=1)[:, :n_candidates]
        if weight is None:
            pick = rng.integers(n_candidates, size=len(miss))
        else:
            upto = np.cumsum(weight[nearest], axis=1)
            pick = np.argmax(upto > rng.random((len(miss), 1)) * upto[:, -1:], axis=1)
        end[rows] = nearest[np.arange(len(miss)), pick]
    return end
