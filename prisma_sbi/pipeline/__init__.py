"""The pipeline: the only module that knows all stages."""

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
from prisma_sbi.pipeline.run import RunResult, run_pipeline
from prisma_sbi.pipeline.stage import Reporter, StageRecord

__all__ = [
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
    "run_pipeline",
]
