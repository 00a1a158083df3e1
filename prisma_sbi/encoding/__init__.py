"""Encoding: observed traces in, the posterior of the descriptors per trip out."""

from prisma_sbi.encoding.encode import encode
from prisma_sbi.encoding.methods import (
    EncodeSettings,
    HmcFit,
    LaplaceFit,
    Method,
    QuadratureFit,
)
from prisma_sbi.encoding.predict import add_log_likelihood, add_posterior_predictive, model_of
from prisma_sbi.encoding.status import FitStatus, status_counts
from prisma_sbi.encoding.storage import load_fit, save_fit
from prisma_sbi.encoding.table import descriptor_table

__all__ = [
    "EncodeSettings",
    "FitStatus",
    "HmcFit",
    "LaplaceFit",
    "Method",
    "QuadratureFit",
    "add_log_likelihood",
    "add_posterior_predictive",
    "descriptor_table",
    "encode",
    "load_fit",
    "model_of",
    "save_fit",
    "status_counts",
]
