"""Studies of a region: whether posteriors are calibrated, and what a trace can reveal."""

from prisma_sbi.study.around import posterior_calibrate
from prisma_sbi.study.atlas import best_routes, draw_routes, information_atlas, vehicle_of_pool
from prisma_sbi.study.averages import averaged_information
from prisma_sbi.study.calibration import (
    calibrate,
    calibration_pit,
    calibration_table,
    sbc_tree,
    vehicle_test,
)
from prisma_sbi.study.design import DesignSettings, best_designs, information_design
from prisma_sbi.study.discrepancies import DISCREPANCIES, discrepancies, trip_end
from prisma_sbi.study.gain import fit_information, information_gain
from prisma_sbi.study.local import local_information, spread_over_bound
from prisma_sbi.study.misfit import (
    Prediction,
    fit_prediction,
    misfit_by,
    misfit_table,
    trip_misfit,
    worst_trips,
)
from prisma_sbi.study.power_scaling import PriorRole, power_scaling
from prisma_sbi.study.profiles import ProfileSettings, profile_likelihood
from prisma_sbi.study.recovery import RecoverySettings, load_recovery, recovery_study
from prisma_sbi.study.recovery_cells import Encoder, compared
from prisma_sbi.study.recovery_fleet import Noise, known_fleet
from prisma_sbi.study.recovery_page import write_recovery
from prisma_sbi.study.recovery_table import recovery_summary, recovery_table, trips_set_aside
from prisma_sbi.study.samplers import Draws, EncodeSampler, GridSampler, Sampler
from prisma_sbi.study.sensitivity import (
    SensitivitySettings,
    constant_sensitivity,
    constant_table,
)
from prisma_sbi.study.simulations import Simulations, simulate
from prisma_sbi.study.vehicles import (
    expected_confusion,
    reduced_pool,
    vehicle_classes,
    vehicle_distances,
)

__all__ = [
    "DesignSettings",
    "DISCREPANCIES",
    "Draws",
    "EncodeSampler",
    "Encoder",
    "GridSampler",
    "Noise",
    "Prediction",
    "PriorRole",
    "ProfileSettings",
    "RecoverySettings",
    "Sampler",
    "SensitivitySettings",
    "Simulations",
    "averaged_information",
    "best_designs",
    "best_routes",
    "calibrate",
    "calibration_pit",
    "calibration_table",
    "compared",
    "constant_sensitivity",
    "constant_table",
    "discrepancies",
    "draw_routes",
    "expected_confusion",
    "fit_information",
    "fit_prediction",
    "information_atlas",
    "information_design",
    "information_gain",
    "known_fleet",
    "load_recovery",
    "local_information",
    "misfit_by",
    "misfit_table",
    "posterior_calibrate",
    "power_scaling",
    "profile_likelihood",
    "recovery_study",
    "recovery_summary",
    "recovery_table",
    "reduced_pool",
    "sbc_tree",
    "simulate",
    "spread_over_bound",
    "trip_end",
    "trip_misfit",
    "trips_set_aside",
    "vehicle_classes",
    "vehicle_distances",
    "vehicle_of_pool",
    "vehicle_test",
    "worst_trips",
    "write_recovery",
]
