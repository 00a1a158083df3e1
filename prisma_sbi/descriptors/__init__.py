"""The descriptor table, its domain and its bins."""

from prisma_sbi.descriptors.columns import CategoricalColumn, ContinuousColumn
from prisma_sbi.descriptors.grid import DescriptorGrid, grid_from_region
from prisma_sbi.descriptors.layout import TableLayout
from prisma_sbi.descriptors.registry import Table, layout_from_dict, make_layout
from prisma_sbi.descriptors.route_table import RouteTable, route_table
from prisma_sbi.descriptors.table import (
    DESCRIPTORS,
    make_descriptor_table,
    require_descriptor_table,
)

__all__ = [
    "DESCRIPTORS",
    "CategoricalColumn",
    "ContinuousColumn",
    "DescriptorGrid",
    "RouteTable",
    "Table",
    "TableLayout",
    "grid_from_region",
    "layout_from_dict",
    "make_descriptor_table",
    "make_layout",
    "require_descriptor_table",
    "route_table",
]
