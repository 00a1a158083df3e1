"""Inference: estimators that take an objective or a model and know nothing of trips."""

from prisma_sbi.inference.batch import minimize_trips
from prisma_sbi.inference.search import Minimum, Objective, SearchSettings, coarse_grid, search

__all__ = [
    "Minimum",
    "Objective",
    "SearchSettings",
    "coarse_grid",
    "minimize_trips",
    "search",
]
