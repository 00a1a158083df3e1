"""The experiments of the paper over seeds and budgets: resumable, cached by content."""

from prisma_sbi.pipeline.reproduce.experiments import (
    PlannedStep,
    Reproduction,
    Target,
    demo_study_config,
    plan_reproduction,
    reproduce,
    with_changes,
)
from prisma_sbi.pipeline.reproduce.misfit import MISFIT, MisfitStudy, study_misfit
from prisma_sbi.pipeline.reproduce.recipes import unfitted
from prisma_sbi.pipeline.reproduce.rows import Recipe, Row, ablation_rows, table_rows

__all__ = [
    "MISFIT",
    "MisfitStudy",
    "PlannedStep",
    "Recipe",
    "Reproduction",
    "Row",
    "Target",
    "ablation_rows",
    "demo_study_config",
    "plan_reproduction",
    "reproduce",
    "study_misfit",
    "table_rows",
    "unfitted",
    "with_changes",
]
