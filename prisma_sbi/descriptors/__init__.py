"""The descriptor table, its domain and its bins."""

from prisma_sbi.descriptors.columns import CategoricalColumn, ContinuousColumn
from prisma_sbi.descriptors.grid import DescriptorGrid, grid_from_region
from prisma_sbi.descriptors.layout import TableLayout
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
    "TableLayout",
    "grid_from_region",
    "make_descriptor_table",
    "require_descriptor_table",
]
