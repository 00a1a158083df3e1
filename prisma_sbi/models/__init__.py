"""Models: what is inferred about a trip, and how well a simulated trace fits an observed one."""

from prisma_sbi.models.likelihood import (
    Likelihood,
    PartialLikelihood,
    SummaryLikelihood,
    TraceLikelihood,
    partial_log_likelihoods,
)
from prisma_sbi.models.objective import SummaryObjective
from prisma_sbi.models.posterior import TripPosterior
from prisma_sbi.models.summary import (
    TraceSummary,
    activity,
    away_from_zero,
    summarize,
    summary_residuals,
)
from prisma_sbi.models.texture import TextureLikelihood, TextureSummary
from prisma_sbi.models.trace_noise import TraceNoise
from prisma_sbi.models.trip_data import TripData
from prisma_sbi.models.trip_model import TripModel, TripPrior, beta_prior, uniform_prior
from prisma_sbi.models.vehicle_choice import (
    FixedVehicle,
    GumbelVehicle,
    MarginalVehicle,
    VehicleChoice,
)

__all__ = [
    "FixedVehicle",
    "GumbelVehicle",
    "Likelihood",
    "MarginalVehicle",
    "PartialLikelihood",
    "SummaryLikelihood",
    "SummaryObjective",
    "TextureLikelihood",
    "TextureSummary",
    "TraceLikelihood",
    "TraceNoise",
    "TraceSummary",
    "TripData",
    "TripModel",
    "TripPosterior",
    "TripPrior",
    "VehicleChoice",
    "activity",
    "away_from_zero",
    "beta_prior",
    "partial_log_likelihoods",
    "summarize",
    "summary_residuals",
    "uniform_prior",
]
