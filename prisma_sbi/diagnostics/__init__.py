"""Diagnostics: whether draws can be trusted, and what they reveal; arrays in, numbers out."""

from prisma_sbi.diagnostics.convergence import Convergence, FitFlag, convergence, flag_counts
from prisma_sbi.diagnostics.crps import crps
from prisma_sbi.diagnostics.equivalence import (
    confusion,
    effective_number,
    equivalence_classes,
    representatives,
)
from prisma_sbi.diagnostics.fisher import (
    Spectrum,
    gaussian_information,
    information_spectrum,
    noise_features,
    trace_information,
)
from prisma_sbi.diagnostics.gain import choice_gain, marginal_gain
from prisma_sbi.diagnostics.modes import has_two_modes
from prisma_sbi.diagnostics.probabilities import (
    BrierScore,
    ProbabilityTest,
    brier_score,
    discrete_pit,
    log_scores,
    probability_test,
    reliability_table,
)
from prisma_sbi.diagnostics.ranks import (
    Envelope,
    Uniformity,
    chi_square,
    coverage_table,
    ecdf_envelope,
    rank_pit,
    uniformity,
)
from prisma_sbi.diagnostics.tarp import tarp

__all__ = [
    "BrierScore",
    "Convergence",
    "Envelope",
    "FitFlag",
    "ProbabilityTest",
    "Spectrum",
    "Uniformity",
    "brier_score",
    "chi_square",
    "choice_gain",
    "confusion",
    "convergence",
    "coverage_table",
    "crps",
    "discrete_pit",
    "ecdf_envelope",
    "effective_number",
    "equivalence_classes",
    "flag_counts",
    "gaussian_information",
    "has_two_modes",
    "information_spectrum",
    "log_scores",
    "marginal_gain",
    "noise_features",
    "probability_test",
    "rank_pit",
    "reliability_table",
    "representatives",
    "tarp",
    "trace_information",
    "uniformity",
]
