"""The table layouts by name."""

from enum import StrEnum
from typing import Any

from prisma_sbi._errors import InputDataError
from prisma_sbi.descriptors.grid import DescriptorGrid, grid_from_region
from prisma_sbi.descriptors.layout import TableLayout
from prisma_sbi.descriptors.route_table import RouteTable, route_table
from prisma_sbi.region.record import Region


class Table(StrEnum):
    """Which columns a synthesis works on."""

    ROUTE = "route"
    """Start cell, route length, aggressiveness, detour, vehicle: made for small budgets."""
    PUBLISHED = "published"
    """The seven columns of the publication, start and end by coordinates."""


def make_layout(table: str, region: Region) -> TableLayout:
    """The layout of that name for a region; public inputs only."""
    if table == Table.ROUTE:
        return route_table(region)
    return grid_from_region(region)


def layout_from_dict(values: dict[str, Any], region: Region | None = None) -> TableLayout:
    """A layout from its plain values; the route table needs the region it was made for.

    Raises
    ------
    InputDataError
        If the layout is not known, or needs a region and got none.
    RegionMismatchError
        If it belongs to another region.
    """
    name = values.get("layout")
    if name == Table.ROUTE:
        return RouteTable.from_dict(values, region)
    if name == Table.PUBLISHED:
        if region is not None:
            region.require_same(values.get("region_fingerprint"), what="a release")
        return DescriptorGrid.from_dict(values)
    raise InputDataError(
        f"Expected a layout among {[item.value for item in Table]}; got {name!r}. "
        "Use the version of prisma_sbi that wrote it."
    )
