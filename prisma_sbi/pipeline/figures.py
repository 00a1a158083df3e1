"""The pictures of a run."""

from pathlib import Path

import xarray as xr

from prisma_sbi.evaluation import (
    plot_mean_acf,
    plot_places,
    plot_power_levels,
    plot_power_spectrum,
    plot_recovery,
    plot_traces,
    save_figures,
)
from prisma_sbi.region.record import Region


def draw_figures(
    region: Region,
    real: xr.Dataset,
    synthetic: dict[str, xr.Dataset],
    truth: tuple[xr.Dataset, xr.Dataset] | None,
    folder: Path,
) -> None:
    """Draw a run into PNG files.

    Parameters
    ----------
    region
        For the roads under the maps.
    real
        Held-out traces; every figure but the recovery shows them, so all are private.
    synthetic
        Traces by mode.
    truth
        Known and fitted descriptors of a simulated fleet.
    folder
        Where the files go.
    """
    figures = {
        "mean_acf": plot_mean_acf(real, synthetic),
        "power_levels": plot_power_levels(real, synthetic),
        "power_spectrum": plot_power_spectrum(
            real, synthetic, time_step_s=region.constants.time_step_s
        ),
    }
    for mode, traces in synthetic.items():
        figures[f"traces-{mode}"] = plot_traces(real, traces, label=mode)
        figures[f"places-{mode}"] = plot_places(real, traces, roads=region.roads, label=mode)
    if truth is not None:
        known, fitted = truth
        figures["recovery"] = plot_recovery(known, fitted, vehicle_mass_kg=region.vehicles.mass_kg)
    save_figures(figures, folder)
