"""Metrics of synthetic traces, recovery of known descriptors, figures and tables."""

from prisma_sbi.evaluation.autocorrelation import autocorrelation, autocorrelation_distance
from prisma_sbi.evaluation.classifier import ClassifierTest, classifier_test
from prisma_sbi.evaluation.copying import Copying, copying
from prisma_sbi.evaluation.density_coverage import (
    DensityCoverage,
    density_coverage,
    expected_coverage,
)
from prisma_sbi.evaluation.distances import ALL_DISTANCES, DISTANCES
from prisma_sbi.evaluation.energy_statistic import energy_statistic
from prisma_sbi.evaluation.features import FEATURE_NAMES, band_energy, trace_features
from prisma_sbi.evaluation.floor import Floor, Floors, compute_floors
from prisma_sbi.evaluation.frechet import (
    GaussianFit,
    fit_gaussian,
    frechet_distance,
    gaussian_frechet_distance,
    gaussian_from_covariance,
)
from prisma_sbi.evaluation.marginals import (
    power_levels,
    trace_durations,
    trace_energies,
    wasserstein,
)
from prisma_sbi.evaluation.metrics import Measured, measure_all, measure_each
from prisma_sbi.evaluation.mmd import MmdTest, mmd_test
from prisma_sbi.evaluation.nearness import Interval, Nearness, nearness
from prisma_sbi.evaluation.plot_atlas import plot_atlas, plot_route_gain
from prisma_sbi.evaluation.plot_budget import plot_loss_budget
from prisma_sbi.evaluation.plot_curves import plot_mean_acf, plot_power_spectrum
from prisma_sbi.evaluation.plot_epsilon import plot_epsilon_curve
from prisma_sbi.evaluation.plot_places import plot_places
from prisma_sbi.evaluation.plot_posterior import (
    plot_convergence,
    plot_posterior_widths,
    plot_trace_bands,
)
from prisma_sbi.evaluation.plot_recovery import plot_recovery
from prisma_sbi.evaluation.plot_scores import plot_scores
from prisma_sbi.evaluation.plot_study import (
    plot_confusion,
    plot_contraction,
    plot_coverage,
    plot_profiles,
    plot_rank_ecdf,
    plot_ridge,
)
from prisma_sbi.evaluation.plot_style import save_figures
from prisma_sbi.evaluation.plot_traces import plot_power_levels, plot_traces
from prisma_sbi.evaluation.plot_tsne import plot_tsne, tsne_map
from prisma_sbi.evaluation.pooled import Pooled, pool
from prisma_sbi.evaluation.population import Population, amplitude_scale_w
from prisma_sbi.evaluation.precision_recall import (
    PrecisionRecall,
    precision_recall,
    standardize_features,
)
from prisma_sbi.evaluation.recovery import (
    ParameterRecovery,
    Recovery,
    VehicleRecovery,
    recovery,
)
from prisma_sbi.evaluation.registry import METRICS, Metric
from prisma_sbi.evaluation.score import SCORE_KEYS, Scores, evaluate
from prisma_sbi.evaluation.spectrum import log_spectral_distance, periodogram
from prisma_sbi.evaluation.table import COLUMNS, metrics_json, score_rows
from prisma_sbi.evaluation.texture_gap import gap_table, swap_table
from prisma_sbi.evaluation.trips import (
    TRIP_DISTANCES,
    TripFacts,
    local_plane_km,
    trip_floors,
    trip_scores,
)
from prisma_sbi.evaluation.usefulness import (
    TASKS,
    Task,
    energy_task,
    next_step_task,
    transfer_ratio,
)
from prisma_sbi.evaluation.workload import WorkloadError, workload_error

__all__ = [
    "ALL_DISTANCES",
    "COLUMNS",
    "DISTANCES",
    "FEATURE_NAMES",
    "METRICS",
    "SCORE_KEYS",
    "TASKS",
    "TRIP_DISTANCES",
    "ClassifierTest",
    "Copying",
    "DensityCoverage",
    "Floor",
    "Floors",
    "GaussianFit",
    "Interval",
    "Measured",
    "Metric",
    "MmdTest",
    "Nearness",
    "ParameterRecovery",
    "Pooled",
    "Population",
    "PrecisionRecall",
    "Recovery",
    "Scores",
    "Task",
    "TripFacts",
    "VehicleRecovery",
    "WorkloadError",
    "amplitude_scale_w",
    "autocorrelation",
    "autocorrelation_distance",
    "band_energy",
    "classifier_test",
    "compute_floors",
    "copying",
    "density_coverage",
    "energy_statistic",
    "energy_task",
    "evaluate",
    "expected_coverage",
    "fit_gaussian",
    "frechet_distance",
    "gap_table",
    "gaussian_frechet_distance",
    "gaussian_from_covariance",
    "local_plane_km",
    "log_spectral_distance",
    "measure_all",
    "measure_each",
    "metrics_json",
    "mmd_test",
    "nearness",
    "next_step_task",
    "periodogram",
    "plot_atlas",
    "plot_confusion",
    "plot_contraction",
    "plot_convergence",
    "plot_coverage",
    "plot_epsilon_curve",
    "plot_loss_budget",
    "plot_mean_acf",
    "plot_places",
    "plot_posterior_widths",
    "plot_power_levels",
    "plot_power_spectrum",
    "plot_profiles",
    "plot_rank_ecdf",
    "plot_recovery",
    "plot_ridge",
    "plot_route_gain",
    "plot_scores",
    "plot_trace_bands",
    "plot_traces",
    "plot_tsne",
    "pool",
    "power_levels",
    "precision_recall",
    "recovery",
    "save_figures",
    "score_rows",
    "standardize_features",
    "swap_table",
    "trace_durations",
    "trace_energies",
    "trace_features",
    "transfer_ratio",
    "trip_floors",
    "trip_scores",
    "tsne_map",
    "wasserstein",
    "workload_error",
]
