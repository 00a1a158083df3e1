"""Accounting, noise, AIM, and the release: the only way out of the private side."""

from prisma_sbi.privacy.accounting import epsilon_from_rho_delta, rho_from_epsilon_delta
from prisma_sbi.privacy.ledger import Ledger, Spend
from prisma_sbi.privacy.noise import NoiseSource, SeededNoise, SystemNoise, ZeroNoise
from prisma_sbi.privacy.plan import plan_synthesis
from prisma_sbi.privacy.release import Guarantee, MeasuredMarginal, Release
from prisma_sbi.privacy.release_store import load_release, save_release
from prisma_sbi.privacy.settings import (
    Mechanism,
    Neighbors,
    PrivacyUnit,
    SynthesisSettings,
    Workload,
)
from prisma_sbi.privacy.synthesis import synthesize

__all__ = [
    "Guarantee",
    "Ledger",
    "MeasuredMarginal",
    "Mechanism",
    "Neighbors",
    "NoiseSource",
    "PrivacyUnit",
    "Release",
    "SeededNoise",
    "Spend",
    "SynthesisSettings",
    "SystemNoise",
    "Workload",
    "ZeroNoise",
    "epsilon_from_rho_delta",
    "load_release",
    "plan_synthesis",
    "rho_from_epsilon_delta",
    "save_release",
    "synthesize",
]
