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
from prisma_sbi.descriptors.weighted import (
    DEFAULT_WEIGHT_TOTAL,
    is_weighted,
    make_weighted_table,
    pick_one_row,
    table_from_draws,
)

__all__ = [
    "DEFAULT_WEIGHT_TOTAL",
    "DESCRIPTORS",
    "CategoricalColumn",
    "ContinuousColumn",
    "DescriptorGrid",
    "RouteTable",
    "Table",
    "TableLayout",
    "grid_from_region",
    "is_weighted",
    "layout_from_dict",
    "make_descriptor_table",
    "make_layout",
    "make_weighted_table",
    "pick_one_row",
    "require_descriptor_table",
    "route_table",
    "table_from_draws",
]
