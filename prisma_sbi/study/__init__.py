"""Studies of a region: whether posteriors are calibrated, and what a trace can reveal."""

from prisma_sbi.study.calibration import (
    calibrate,
    calibration_pit,
    calibration_table,
    sbc_tree,
    vehicle_test,
)
from prisma_sbi.study.local import local_information, spread_over_bound
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
    "local_information",
    "populate",
    "sbc_tree",
    "simulate",
    "spread_over_bound",
    "vehicle_test",
]
