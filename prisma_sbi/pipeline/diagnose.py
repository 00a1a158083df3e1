"""A fit in numbers and pictures."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi._files import replacing
from prisma_sbi.diagnostics import FitFlag
from prisma_sbi.encoding import FitStatus, add_posterior_predictive
from prisma_sbi.evaluation import (
    plot_convergence,
    plot_posterior_widths,
    plot_trace_bands,
    save_figures,
)
from prisma_sbi.region import Region

_PARAMETERS = ("aggressiveness", "detour")
_LIMITS = {"r_hat": 1.01, "ess_bulk": 400.0, "ess_tail": 400.0}
_N_WORST = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """What a fit says about itself.

    Attributes
    ----------
    method
        How it was made.
    likelihood
        Name of the likelihood.
    trips
        A row a trip: status, flags, mean and standard deviation of the parameters, most
        probable vehicle, and the diagnostics the method gives.
    worst
        Flagged trips as rows for a table.
    """

    method: str
    likelihood: str
    trips: pd.DataFrame
    worst: list[dict[str, str]]

    def facts(self) -> dict[str, Any]:
        """Numbers for a program."""
        usable: Any = self.trips[self.trips["usable"]]
        facts: dict[str, Any] = {
            "method": self.method,
            "likelihood": self.likelihood,
            "n_trips": len(self.trips),
            "n_fitted": len(usable),
            "n_flagged": int((usable["flags"] != "").sum()),
        }
        for name in (
            "r_hat",
            "ess_bulk",
            "ess_tail",
            "acceptance",
            "n_effective_cells",
            "likeness",
        ):
            if name in usable:
                levels = usable[name].quantile([0.05, 0.5, 0.95])
                facts[name] = {"5 %": levels[0.05], "median": levels[0.5], "95 %": levels[0.95]}
        for name in _PARAMETERS:
            if f"{name}_sd" in usable:
                facts[f"{name}_sd_median"] = float(usable[f"{name}_sd"].median())
        if "vehicle_top_probability" in usable:
            facts["vehicle_top_probability_median"] = float(
                usable["vehicle_top_probability"].median()
            )
        return facts

    def texts(self) -> dict[str, str]:
        """The same for people."""
        result = {}
        for name, value in self.facts().items():
            if isinstance(value, dict):
                text = ", ".join(f"{level}: {number:.4g}" for level, number in value.items())
            else:
                text = f"{value:,.4g}" if isinstance(value, float) else f"{value}"
            result[name.replace("_", " ")] = text
        return result


def diagnose_fit(fit: xr.DataTree) -> Diagnosis:
    """Collect the diagnostics of all trips.

    Parameters
    ----------
    fit
        From :func:`~prisma_sbi.encoding.encode` or :func:`~prisma_sbi.encoding.load_fit`.

    Raises
    ------
    InputDataError
        If the fit holds no trips.
    """
    stats = fit["sample_stats"].dataset
    posterior = fit["posterior"].dataset
    if stats.sizes["trip"] == 0:
        raise InputDataError("Expected a fit of at least one trip; got none. Encode trips first.")
    status = stats["status"].values
    columns: dict[str, Any] = {
        "trip": stats["trip"].values.astype(str),
        "status": [FitStatus(int(value)).name.lower() for value in status],
        "usable": status <= FitStatus.POOR_FIT,
        "flags": [_flag_names(int(value)) for value in stats["flags"].values],
    }
    if posterior.sizes["draw"] > 1:
        for name in _PARAMETERS:
            values = posterior[name].transpose("trip", "chain", "draw").values
            flat = values.reshape(len(values), -1)
            columns[f"{name}_mean"], columns[f"{name}_sd"] = flat.mean(axis=1), flat.std(axis=1)
    for name in stats.data_vars:
        if stats[name].dims == ("trip",) and name not in ("status", "flags"):
            columns[str(name)] = stats[name].values
    if "vehicle_probability" in stats:
        columns["vehicle_top_probability"] = stats["vehicle_probability"].max("pool_vehicle").values
    trips = pd.DataFrame(columns)
    model = json.loads(fit.attrs.get("model", "{}"))
    return Diagnosis(
        method=str(fit.attrs.get("method", "map")),
        likelihood=str(model.get("likelihood", {}).get("name", "summary")),
        trips=trips,
        worst=_worst(trips),
    )


def draw_diagnosis(
    diagnosis: Diagnosis,
    fit: xr.DataTree,
    folder: Path,
    *,
    region: Region | None = None,
    n_bands: int = 6,
) -> list[Path]:
    """Write ``trips.csv`` and figures; bands around traces only if the region is given.

    Returns
    -------
    paths
        The files written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "trips.csv"
    with replacing(table) as partial:
        diagnosis.trips.drop(columns="usable").to_csv(partial, index=False)
    usable: Any = diagnosis.trips[diagnosis.trips["usable"]]
    figures = {}
    has_draws = "aggressiveness_sd" in usable
    if has_draws and len(usable):
        widths = {name: usable[f"{name}_sd"].to_numpy() for name in _PARAMETERS}
        figures["posterior_widths"] = plot_posterior_widths(widths, _prior_widths(fit))
        numbers = {
            name: usable[name].to_numpy()
            for name in ("r_hat", "ess_bulk", "ess_tail", "n_effective_cells", "likeness")
            if name in usable
        }
        if numbers:
            figures["diagnostics"] = plot_convergence(numbers, _LIMITS)
    if region is not None and len(usable):
        figures["trace_bands"] = _bands(diagnosis, fit, region, n_bands)
    return [table, *save_figures(figures, folder)]


def _bands(diagnosis: Diagnosis, fit: xr.DataTree, region: Region, n_bands: int) -> Any:
    """Observed traces and predictions, for trips over the range of losses."""
    usable: Any = diagnosis.trips[diagnosis.trips["usable"]]
    usable = usable.sort_values("loss")
    rows = np.unique(np.linspace(0, len(usable) - 1, min(n_bands, len(usable))).astype(int))
    shown = usable.iloc[rows]
    predicted = add_posterior_predictive(region, fit, trips=shown["trip"].tolist(), n_draws=50)
    power_w = predicted["posterior_predictive"].dataset["power_w"].values
    titles = [
        f"{row.trip}: loss {row.loss:.2g}" + (f", {row.flags}" if row.flags else "")
        for row in shown.itertuples()
    ]
    return plot_trace_bands(
        predicted["observed_data"].dataset["power_w"].values,
        power_w.reshape(-1, *power_w.shape[2:]),
        titles,
    )


def _prior_widths(fit: xr.DataTree) -> dict[str, float]:
    """Standard deviations of flat priors over the ranges that the fit names."""
    ranges = json.loads(fit.attrs["parameter_ranges"])
    return {name: (ranges[name][1] - ranges[name][0]) / 12.0**0.5 for name in _PARAMETERS}


def _flag_names(flags: int) -> str:
    """Names of the flags that are set."""
    return " ".join(flag.name.lower() for flag in FitFlag if flag.name and flags & flag)


def _worst(trips: pd.DataFrame) -> list[dict[str, str]]:
    """Trips whose draws should not be trusted as they are, worst first."""
    doubtful = FitFlag.R_HAT | FitFlag.LOW_ESS | FitFlag.DIVERGING | FitFlag.COARSE_GRID
    names = {flag.name.lower() for flag in FitFlag if flag.name and flag & doubtful}
    marked: Any = trips[[bool(names & set(text.split())) for text in trips["flags"]]]
    if "r_hat" in marked:
        marked = marked.sort_values("r_hat", ascending=False)
    return [
        {
            "trip": row["trip"],
            "flags": row["flags"],
            "r_hat": f"{row['r_hat']:.3f}" if "r_hat" in row else "",
            "ess": f"{row['ess_bulk']:.0f}" if "ess_bulk" in row else "",
        }
        for row in marked.head(_N_WORST).to_dict("records")
    ]
