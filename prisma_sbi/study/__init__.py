"""Studies of a region: whether posteriors are calibrated, and what a trace can reveal."""

from prisma_sbi.study.calibration import (
    calibrate,
    calibration_pit,
    calibration_table,
    sbc_tree,
    vehicle_test,
)
from prisma_sbi.study.population import Population, PopulationSettings, populate
from prisma_sbi.study.samplers import Draws, EncodeSampler, GridSampler, Sampler
from prisma_sbi.study.simulations import Simulations, simulate

__all__ = [
    "Draws",
    "EncodeSampler",
    "GridSampler",
    "Population",
    "PopulationSettings",
    "Sampler",
    "Simulations",
    "calibrate",
    "calibration_pit",
    "calibration_table",
    "populate",
    "sbc_tree",
    "simulate",
    "vehicle_test",
]
