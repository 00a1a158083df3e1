"""Figure of fitted against known descriptors."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from prisma_sbi.evaluation.plot_style import (
    SYNTHETIC_COLORS,
    figure_style,
    new_figure,
)
from prisma_sbi.evaluation.recovery import matched_descriptors, recovery

if TYPE_CHECKING:
    import matplotlib.figure


def plot_recovery(
    truth: xr.Dataset | pd.DataFrame,
    fitted: xr.Dataset | pd.DataFrame,
    *,
    vehicle_mass_kg: np.ndarray,
) -> "matplotlib.figure.Figure":
    """Fitted against true aggressiveness, detour and vehicle mass.

    Parameters
    ----------
    truth, fitted
        Descriptor tables, as for :func:`~prisma_sbi.evaluation.recovery`.
    vehicle_mass_kg : (vehicle,)
        Mass of each vehicle in the pool.

    Returns
    -------
    figure
        Three scatter plots with equal axes and the line on which a perfect fit lies.

    Raises
    ------
    InputDataError
        If the tables cannot be matched.
    """
    found = recovery(truth, fitted, vehicle_mass_kg=vehicle_mass_kg)
    matched, _ = matched_descriptors(truth, fitted, n_vehicles=len(vehicle_mass_kg))
    mass_t = np.asarray(vehicle_mass_kg, dtype=np.float64) / 1000.0
    panels = [
        (name, matched[f"{name}_true"], matched[f"{name}_fitted"], _caption(part))
        for name, part in (("aggressiveness", found.aggressiveness), ("detour", found.detour))
    ]
    vehicle = found.vehicle
    panels.append(
        (
            "vehicle mass (t)",
            mass_t[matched["vehicle_true"]],
            mass_t[matched["vehicle_fitted"]],
            f"r {_number(vehicle.mass_correlation)}, same vehicle {vehicle.top1_agreement:.0%}",
        )
    )
    with figure_style():
        figure = new_figure(width_in=11.0, height_in=4.2)
        axes = figure.subplots(1, 3)
        for axis, (name, true, fit, caption) in zip(axes, panels, strict=True):
            _draw_panel(axis, np.asarray(true), np.asarray(fit))
            axis.set_xlabel(f"true {name}")
            axis.set_ylabel(f"fitted {name}")
            axis.set_title(caption)
        missing = f", {found.n_missing:,} without a fit" if found.n_missing else ""
        figure.suptitle(f"Recovery of known descriptors ({found.n_trips:,} trips{missing})")
    return figure


def _draw_panel(axis: Any, true: np.ndarray, fitted: np.ndarray) -> None:
    """Points and the diagonal, on square axes with the same limits."""
    low = float(min(true.min(), fitted.min()))
    high = float(max(true.max(), fitted.max()))
    margin = 0.04 * (high - low) or 0.5
    limits = low - margin, high + margin
    # Fainter points where there are many, so that crowding stays visible.
    alpha = float(np.clip(60.0 / np.sqrt(len(true)) / 10.0, 0.12, 0.8))
    axis.plot(limits, limits, color="#909090", linewidth=1.0, zorder=1)
    axis.scatter(true, fitted, s=12, color=SYNTHETIC_COLORS[0], alpha=alpha, linewidths=0, zorder=2)
    axis.set_xlim(limits)
    axis.set_ylim(limits)
    axis.set_aspect("equal")
    axis.locator_params(nbins=6)


def _caption(part: Any) -> str:
    """Correlation and error of one descriptor."""
    return f"r {_number(part.correlation)}, RMSE {part.rmse:.3f}"


def _number(value: float) -> str:
    """Two decimals, or a dash where undefined."""
    return "–" if np.isnan(value) else f"{value:.2f}"
