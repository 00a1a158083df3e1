"""Reports of synthetic traces: one self-contained HTML page, private or to be released."""

from prisma_sbi.report.sets import SyntheticSet, read_set
from prisma_sbi.report.write import is_report, write_released_report, write_report

__all__ = [
    "SyntheticSet",
    "is_report",
    "read_set",
    "write_released_report",
    "write_report",
]
