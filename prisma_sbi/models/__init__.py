"""Models: what is inferred about a trip, and how well a simulated trace fits an observed one."""

from prisma_sbi.models.objective import SummaryObjective
from prisma_sbi.models.summary import (
    TraceSummary,
    activity,
    away_from_zero,
    summarize,
    summary_residuals,
)

__all__ = [
    "SummaryObjective",
    "TraceSummary",
    "activity",
    "away_from_zero",
    "summarize",
    "summary_residuals",
]
