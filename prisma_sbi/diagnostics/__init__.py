"""Diagnostics: whether draws can be trusted, trip by trip."""

from prisma_sbi.diagnostics.convergence import Convergence, FitFlag, convergence, flag_counts
from prisma_sbi.diagnostics.modes import has_two_modes

__all__ = ["Convergence", "FitFlag", "convergence", "flag_counts", "has_two_modes"]
