"""Encoding: observed traces in, a descriptor with its fit per trip out."""

from prisma_sbi.encoding.encode import descriptor_table, encode
from prisma_sbi.encoding.status import FitStatus, status_counts
from prisma_sbi.encoding.storage import load_fit, save_fit

__all__ = [
    "FitStatus",
    "descriptor_table",
    "encode",
    "load_fit",
    "save_fit",
    "status_counts",
]
