"""Building a region from files or from records made before."""

import logging
from collections.abc import Sequence
from pathlib import Path

from prisma_sbi._errors import InputDataError
from prisma_sbi.region.assembly import network_bounds
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.catalogue import read_vehicle_files
from prisma_sbi.region.constants import Constants
from prisma_sbi.region.elevation import Elevation
from prisma_sbi.region.elevation_files import read_elevation
from prisma_sbi.region.osm import read_roads
from prisma_sbi.region.pool import VehiclePool
from prisma_sbi.region.record import Region
from prisma_sbi.region.roads import RoadNetwork
from prisma_sbi.region.thinning import thin_pool

_LOG = logging.getLogger(__name__)
_MARGIN_M = 300.0


def build_region(
    *,
    name: str,
    roads: str | Path | RoadNetwork,
    elevation: str | Path | Elevation,
    vehicles: str | Path | Sequence[str | Path] | VehiclePool,
    bounds: Bounds | None = None,
    constants: Constants | None = None,
    pool_size: int = 128,
    first_year: int = 2000,
    last_year: int = 2016,
) -> Region:
    """Put the public inputs together.

    Parameters
    ----------
    name
        For people.
    roads
        A road file (see :func:`read_roads`) or a network.
    elevation
        A raster file or folder (see :func:`read_elevation`) or heights.
    vehicles
        One or several vehicle files (see :func:`read_vehicle_files`), thinned to
        ``pool_size``, or a pool, which is taken as it is.
    bounds
        Bounding box; by default the box around all junctions and 300 m more, since trips start
        and end beside roads and a network is cut at its last junctions. Roads read from a file
        are cut to a given box.
    constants
        Constants of the method; those of :class:`Constants` by default.
    pool_size
        Vehicles to keep from files.
    first_year, last_year
        Model years to keep from files, both included.

    Returns
    -------
    region : Region

    Raises
    ------
    InputDataError
        If a file cannot be used, no junction lies inside the box, or the heights lie
        elsewhere.

    Examples
    --------
    >>> from prisma_sbi.region import build_region, builtin_pool, demo_elevation, demo_roads
    >>> region = build_region(
    ...     name="demo", roads=demo_roads(), elevation=demo_elevation(), vehicles=builtin_pool()
    ... )
    >>> region.bounds.south_deg < 45.0 < region.bounds.north_deg
    True
    """
    network = roads if isinstance(roads, RoadNetwork) else read_roads(roads, bounds=bounds)
    box = network_bounds(network, margin_m=_MARGIN_M) if bounds is None else bounds
    if not box.contains(network.node_lat_deg, network.node_lon_deg).any():
        raise InputDataError(
            f"Expected junctions inside {box}; got roads within {_extent(network)}. "
            "Check the limits of the box and the road file."
        )
    if isinstance(elevation, Elevation):
        heights = elevation
    else:
        heights = read_elevation(Path(elevation), bounds=box)
    _check_cover(network, heights)
    return Region(
        name=name,
        bounds=box,
        roads=network,
        elevation=heights,
        vehicles=_pool(vehicles, size=pool_size, years=(first_year, last_year)),
        constants=Constants() if constants is None else constants,
    )


def _pool(
    vehicles: str | Path | Sequence[str | Path] | VehiclePool, *, size: int, years: tuple[int, int]
) -> VehiclePool:
    """Take a pool as given, or make one out of files."""
    if isinstance(vehicles, VehiclePool):
        return vehicles
    files = [vehicles] if isinstance(vehicles, str | Path) else list(vehicles)
    if not files:
        raise InputDataError("Expected at least one vehicle file; got none. Name one or more.")
    table = read_vehicle_files(
        [Path(file) for file in files], first_year=years[0], last_year=years[1]
    )
    return thin_pool(table, size=size)


def _check_cover(network: RoadNetwork, elevation: Elevation) -> None:
    """Refuse heights of another place; log junctions just outside, which get edge heights."""
    n_rows, n_columns = elevation.height_m.shape
    row = (elevation.north_deg - network.node_lat_deg) / elevation.lat_step_deg
    column = (network.node_lon_deg - elevation.west_deg) / elevation.lon_step_deg
    inside = (row >= -1) & (row <= n_rows) & (column >= -1) & (column <= n_columns)
    n_outside = int((~inside).sum())
    if 2 * n_outside > network.n_nodes:
        raise InputDataError(
            f"Expected heights that cover the roads; got {n_outside} of {network.n_nodes} "
            f"junctions outside the raster {elevation.source!r}. Use a raster of the region "
            f"{_extent(network)}."
        )
    if n_outside:
        _LOG.warning(
            "%d of %d junctions lie outside the elevation raster; the height at its edge counts",
            n_outside,
            network.n_nodes,
        )


def _extent(network: RoadNetwork) -> str:
    """Limits of the junctions in words; they may lie on one line, unlike a box."""
    lat_deg, lon_deg = network.node_lat_deg, network.node_lon_deg
    return (
        f"latitudes {lat_deg.min():.5f} to {lat_deg.max():.5f} and "
        f"longitudes {lon_deg.min():.5f} to {lon_deg.max():.5f}"
    )
