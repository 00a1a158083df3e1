"""The pipeline: the only module that knows all stages."""

from prisma_sbi.pipeline.budget_book import (
    BOOK_NAME,
    BookEntry,
    BudgetBook,
    BudgetTotal,
    path_sources,
)
from prisma_sbi.pipeline.config import (
    EvaluateConfig,
    PipelineConfig,
    RegionConfig,
    SplitConfig,
    SynthesizeConfig,
    TelemetryConfig,
    demo_config,
    load_config,
)
from prisma_sbi.pipeline.metrics import trip_facts
from prisma_sbi.pipeline.run import RunResult, run_pipeline
from prisma_sbi.pipeline.stage import Reporter, StageRecord

__all__ = [
    "BOOK_NAME",
    "BookEntry",
    "BudgetBook",
    "BudgetTotal",
    "EvaluateConfig",
    "PipelineConfig",
    "RegionConfig",
    "Reporter",
    "RunResult",
    "SplitConfig",
    "StageRecord",
    "SynthesizeConfig",
    "TelemetryConfig",
    "demo_config",
    "load_config",
    "path_sources",
    "run_pipeline",
    "trip_facts",
]
