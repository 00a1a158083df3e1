"""Inference: estimators that take a target or a model and know nothing of trips."""

from prisma_sbi.inference.alignment import (
    Aligned,
    AlignSettings,
    Frame,
    align,
    integrate_aligned,
)
from prisma_sbi.inference.batch import ChunkStore, map_trips
from prisma_sbi.inference.box import Box
from prisma_sbi.inference.hmc import HmcDraws, HmcSettings, lockstep_hmc
from prisma_sbi.inference.population import Population, PopulationSettings, populate, survey
from prisma_sbi.inference.quadrature import GridPosterior, GridSettings, integrate
from prisma_sbi.inference.search import Minimum, SearchSettings, coarse_grid, search
from prisma_sbi.inference.target import Objective, PartialTarget, Target
from prisma_sbi.inference.transport import GridTransport

__all__ = [
    "AlignSettings",
    "Aligned",
    "Box",
    "ChunkStore",
    "Frame",
    "GridPosterior",
    "GridSettings",
    "GridTransport",
    "HmcDraws",
    "HmcSettings",
    "Minimum",
    "Objective",
    "PartialTarget",
    "Population",
    "PopulationSettings",
    "SearchSettings",
    "Target",
    "align",
    "coarse_grid",
    "integrate",
    "integrate_aligned",
    "lockstep_hmc",
    "map_trips",
    "populate",
    "search",
    "survey",
]
