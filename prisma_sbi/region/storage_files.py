"""The single files of a saved region; each writer has a reader that gives back equal arrays."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from prisma_sbi._errors import InputDataError
from prisma_sbi._optional import optional_import
from prisma_sbi.region.elevation import Elevation
from prisma_sbi.region.osm_tags import CONTROL_TAGS
from prisma_sbi.region.pool import VehiclePool
from prisma_sbi.region.roads import RoadNetwork
from prisma_sbi.units import MPS_PER_KMH

_NODE_FIELDS = ("node_id", "node_lat_deg", "node_lon_deg", "node_control")
_EDGE_FIELDS = ("edge_from", "edge_to", "edge_length_m", "edge_speed_mps", "edge_class")
_SHAPE_FIELDS = ("geometry_lat_deg", "geometry_lon_deg")
_OFFSET = "geometry_offset"
_SAME_PLACE_CELLS = 1e-3  # tolerance between the tags of a GeoTIFF and the exact numbers


def write_roads_tables(roads: RoadNetwork, nodes: Path, edges: Path) -> None:
    """Write the junctions and the edges, the shape of an edge as a list."""
    pq.write_table(pa.table(*_columns(roads, _NODE_FIELDS)), nodes)
    columns, names = _columns(roads, _EDGE_FIELDS)
    offsets = pa.array(roads.geometry_offset, type=pa.int64())
    for name in _SHAPE_FIELDS:
        columns.append(pa.LargeListArray.from_arrays(offsets, pa.array(getattr(roads, name))))
        names.append(name)
    pq.write_table(pa.table(columns, names=names), edges)


def read_roads_tables(nodes: Path, edges: Path, *, attribution: str) -> RoadNetwork:
    """Inverse of :func:`write_roads_tables`."""
    node_table, edge_table = pq.read_table(nodes), pq.read_table(edges)
    shapes = {}
    for name in _SHAPE_FIELDS:
        lists = edge_table.column(name).combine_chunks()
        shapes[name] = lists.flatten().to_numpy(zero_copy_only=False)
        shapes[_OFFSET] = np.asarray(lists.offsets.to_numpy(), dtype=np.int64)
    return RoadNetwork(
        **_arrays(node_table, _NODE_FIELDS),
        **_arrays(edge_table, _EDGE_FIELDS),
        **shapes,
        attribution=attribution,
    )


def write_pool(vehicles: VehiclePool, path: Path) -> None:
    """Write the vehicles, one a row."""
    columns, names = _columns(vehicles, tuple(item.name for item in fields(vehicles)))
    pq.write_table(pa.table(columns, names=names), path)


def read_pool(path: Path) -> VehiclePool:
    """Inverse of :func:`write_pool`."""
    names = tuple(item.name for item in fields(VehiclePool))
    return VehiclePool(**_arrays(pq.read_table(path), names))


def write_raster(elevation: Elevation, path: Path) -> None:
    """Write the heights as a GeoTIFF in EPSG:4326."""
    rasterio = optional_import("rasterio", extra="geo")
    transform = rasterio.transform.from_origin(
        elevation.west_deg - 0.5 * elevation.lon_step_deg,
        elevation.north_deg + 0.5 * elevation.lat_step_deg,
        elevation.lon_step_deg,
        elevation.lat_step_deg,
    )
    n_rows, n_columns = elevation.height_m.shape
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=n_columns,
        height=n_rows,
        count=1,
        dtype=elevation.height_m.dtype.name,
        crs="EPSG:4326",
        transform=transform,
        compress="deflate",
    ) as raster:
        raster.write(np.ascontiguousarray(elevation.height_m), 1)


def read_raster(
    path: Path,
    *,
    north_deg: float,
    west_deg: float,
    lat_step_deg: float,
    lon_step_deg: float,
    source: str,
) -> Elevation:
    """Inverse of :func:`write_raster`, with the exact numbers of the grid given beside it."""
    rasterio = optional_import("rasterio", extra="geo")
    try:
        with rasterio.open(path) as raster:
            height_m, transform = raster.read(1), raster.transform
    except rasterio.errors.RasterioError as error:
        raise InputDataError(f"Expected a GeoTIFF; got {path}: {error}.") from error
    east_cells = (transform.c - west_deg) / lon_step_deg + 0.5
    north_cells = (transform.f - north_deg) / lat_step_deg - 0.5
    if not max(abs(east_cells), abs(north_cells)) < _SAME_PLACE_CELLS:
        raise InputDataError(
            f"Expected {path} to start at {north_deg}, {west_deg}; got a raster that is "
            f"{north_cells} cells north and {east_cells} cells east of it."
        )
    return Elevation(
        height_m=height_m,
        north_deg=north_deg,
        west_deg=west_deg,
        lat_step_deg=lat_step_deg,
        lon_step_deg=lon_step_deg,
        source=source,
    )


def write_graphml(roads: RoadNetwork, path: Path) -> None:
    """Write the network as GraphML that OSMnx loads; all values are text, as OSMnx has it."""
    networkx = optional_import("networkx", extra="geo")
    graph = networkx.MultiDiGraph(crs="epsg:4326", simplified="True", created_with="prisma_sbi")
    for node in range(roads.n_nodes):
        tags = {"x": _text(roads.node_lon_deg[node]), "y": _text(roads.node_lat_deg[node])}
        control = CONTROL_TAGS.get(int(roads.node_control[node]))
        if control is not None:
            tags["highway"] = control
        graph.add_node(int(roads.node_id[node]), **tags)
    for edge in range(roads.n_edges):
        shape = slice(roads.geometry_offset[edge], roads.geometry_offset[edge + 1])
        points = zip(roads.geometry_lon_deg[shape], roads.geometry_lat_deg[shape], strict=True)
        line = ", ".join(f"{_text(lon)} {_text(lat)}" for lon, lat in points)
        graph.add_edge(
            int(roads.node_id[roads.edge_from[edge]]),
            int(roads.node_id[roads.edge_to[edge]]),
            osmid=str(edge),
            highway=str(roads.edge_class[edge]),
            maxspeed=_text(roads.edge_speed_mps[edge] / MPS_PER_KMH),
            length=_text(roads.edge_length_m[edge]),
            oneway="True",
            reversed="False",
            geometry=f"LINESTRING ({line})",
        )
    networkx.write_graphml(graph, path)


def _text(value: Any) -> str:
    """Shortest text that reads back as the same number."""
    return repr(float(value))


def _columns(record: Any, names: tuple[str, ...]) -> tuple[list[pa.Array], list[Any]]:
    """Arrays of a record as Arrow columns."""
    arrays = [np.asarray(getattr(record, name)) for name in names]
    columns = [
        pa.array(array.astype(str).tolist(), type=pa.string())
        if array.dtype.kind in "OUT"
        else pa.array(np.ascontiguousarray(array))
        for array in arrays
    ]
    return columns, list(names)


def _arrays(table: pa.Table, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Inverse of :func:`_columns`."""
    arrays = {}
    for name in names:
        column = table.column(name)
        if pa.types.is_string(column.type):
            arrays[name] = np.asarray(column.to_pylist(), dtype=np.str_)
        else:
            arrays[name] = column.to_numpy()
    return arrays
