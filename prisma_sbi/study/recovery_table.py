"""Scores of a recovery study: every cell and descriptor in numbers."""

import numpy as np
import pandas as pd
import xarray as xr

from prisma_sbi.diagnostics import FitFlag, brier_score, coverage_table, log_scores, rank_pit
from prisma_sbi.encoding.status import FitStatus
from prisma_sbi.evaluation.recovery import recovery
from prisma_sbi.study.recovery_cells import PARAMETERS

LEVELS = (0.5, 0.9)
DESCRIPTORS = (*PARAMETERS, "vehicle")
MEASURES = {
    "bias": "mean of estimate minus truth",
    "bias_error": "standard error of the bias",
    "rmse": "root mean square of estimate minus truth",
    "correlation": "of estimate and truth",
    "coverage_50": "share of trips whose central 50 % interval holds the truth",
    "coverage_50_error": "its standard deviation by chance, were the level true",
    "coverage_90": "share of trips whose central 90 % interval holds the truth",
    "coverage_90_error": "its standard deviation by chance, were the level true",
    "contraction": "mean of one minus posterior over prior variance",
    "z_mean": "mean of (posterior mean - truth) / posterior standard deviation",
    "z_sd": "standard deviation of the same; above 1 if posteriors are too narrow",
    "crps": "mean continuous ranked probability score, in the units of the descriptor",
    "gain": "mean information beyond the prior, in nats",
    "top_1": "share of trips whose best vehicle is the true one",
    "top_5": "share of trips whose true vehicle is among the five most probable",
    "log_score": "mean log probability of the true vehicle, in nats",
    "brier": "mean Brier score of the probabilities of vehicles; 0 to 2",
}
"""Measure -> what it is. Of a method that gives points: errors and ``top_1`` alone, else NaN."""
COSTS = {
    "n_trips": "trips compared",
    "n_set_aside": "trips without an estimate, which no other number knows of",
    "flagged": "share of compared trips with any flag",
    "seconds_per_trip": "wall time a trip, compilation left out",
    "compile_s": "time for tracing and compilation, once a run",
}


def recovery_summary(tree: xr.DataTree) -> xr.Dataset:
    """Score every cell of a study.

    Parameters
    ----------
    tree
        With ``fleet`` and ``cells``, as :func:`~prisma_sbi.study.recovery_study` makes it.

    Returns
    -------
    xarray.Dataset
        Along ``cell`` and ``descriptor`` (aggressiveness, detour, vehicle): every measure
        of :data:`MEASURES`; along ``cell``: those of :data:`COSTS`, ``likelihood`` and
        ``method``. What a method does not say, or what does not apply, is NaN.
    """
    fleet = tree["fleet"].to_dataset()
    cells = cells_of(tree)
    scores = [_scores(fleet, cell) for cell in cells.values()]
    costs = [_costs(cell) for cell in cells.values()]
    measures = {
        name: (
            ("cell", "descriptor"),
            np.array([[row[d].get(name, np.nan) for d in DESCRIPTORS] for row in scores]),
            {"long_name": text},
        )
        for name, text in MEASURES.items()
    }
    alone = {
        name: ("cell", np.array([row[name] for row in costs]), {"long_name": text})
        for name, text in COSTS.items()
    }
    coords = {
        name: ("cell", [str(cell.attrs[name]) for cell in cells.values()])
        for name in ("likelihood", "method")
    }
    return xr.Dataset(
        measures | alone,
        coords={"cell": list(cells), "descriptor": list(DESCRIPTORS), **coords},
        attrs={"n_vehicles": fleet.sizes["pool_vehicle"]},
    )


def cells_of(tree: xr.DataTree) -> dict[str, xr.Dataset]:
    """Cells that are there, by name; none at the start."""
    if "cells" not in tree.children:
        return {}
    return {str(name): node.to_dataset() for name, node in tree["cells"].children.items()}


def recovery_table(summary: xr.Dataset) -> pd.DataFrame:
    """The summary as a table: a row a cell and descriptor."""
    rows = [
        {
            "likelihood": str(summary["likelihood"].values[i]),
            "method": str(summary["method"].values[i]),
            "descriptor": name,
            **{measure: float(summary[measure].values[i, j]) for measure in MEASURES},
            **{cost: summary[cost].values[i].item() for cost in COSTS},
        }
        for i in range(summary.sizes["cell"])
        for j, name in enumerate(DESCRIPTORS)
    ]
    return pd.DataFrame(rows)


def trips_set_aside(tree: xr.DataTree) -> pd.DataFrame:
    """Trips that a cell has no estimate of: ``cell``, ``trip``, ``reason``, ``detail``."""
    rows = []
    for name, cell in cells_of(tree).items():
        for trip, code in zip(cell["trip"].values, cell["status"].values, strict=True):
            status = FitStatus(int(code))
            if not status.usable:
                reason = {"reason": status.name.lower(), "detail": status.text}
                rows.append({"cell": name, "trip": str(trip), **reason})
    return pd.DataFrame(rows, columns=["cell", "trip", "reason", "detail"])


def flag_table(tree: xr.DataTree) -> pd.DataFrame:
    """How many trips carry a flag: ``cell``, ``flag``, ``n_trips``, ``meaning``."""
    rows = []
    for name, cell in cells_of(tree).items():
        flags = cell["flags"].values
        for flag in FitFlag:
            count = int(np.sum((flags & flag) != 0))
            if count:
                row = {"cell": name, "flag": str(flag.name).lower(), "n_trips": count}
                rows.append({**row, "meaning": flag.text})
    return pd.DataFrame(rows, columns=["cell", "flag", "n_trips", "meaning"])


def pit_of(cell: xr.Dataset) -> dict[str, np.ndarray]:
    """Place of the truth in its posterior, for trips that have one; uniform if calibrated."""
    if "rank" not in cell:
        return {}
    rank = cell["rank"].values[usable(cell)]
    n_draws = cell.sizes["draw"]
    return {name: rank_pit(rank[:, axis], n_draws) for axis, name in enumerate(PARAMETERS)}


def usable(cell: xr.Dataset) -> np.ndarray:
    """Which trips have an estimate ``(trip,)``."""
    return cell["status"].values <= FitStatus.POOR_FIT


def _scores(fleet: xr.Dataset, cell: xr.Dataset) -> dict[str, dict[str, float]]:
    """Measures of one cell by descriptor; what is not known is left out."""
    rows = np.flatnonzero(usable(cell))
    scores: dict[str, dict[str, float]] = {name: {} for name in DESCRIPTORS}
    if not rows.size:
        return scores
    known = fleet.isel(trip=rows)
    seen = cell.isel(trip=rows)
    estimate = seen["estimate"].values
    fitted = xr.Dataset(
        {name: ("trip", estimate[:, axis]) for axis, name in enumerate(PARAMETERS)}
        | {"vehicle": ("trip", seen["vehicle"].values)},
        coords={"trip": seen["trip"].values},
    )
    errors = recovery(known, fitted, vehicle_mass_kg=fleet["vehicle_mass_kg"].values)
    for axis, name in enumerate(PARAMETERS):
        part = getattr(errors, name)
        off = estimate[:, axis] - known[name].values
        scores[name] = {
            "bias": part.bias,
            "bias_error": float(off.std(ddof=1) / np.sqrt(len(off))) if len(off) > 1 else np.nan,
            "rmse": part.rmse,
            "correlation": part.correlation,
        }
    scores["vehicle"] = {"top_1": errors.vehicle.top1_agreement}
    if "draws" in cell:
        _add_posterior_scores(scores, cell, seen, known["vehicle"].values)
    return scores


def _add_posterior_scores(
    scores: dict[str, dict[str, float]],
    cell: xr.Dataset,
    seen: xr.Dataset,
    true_vehicle: np.ndarray,
) -> None:
    """What only a posterior has."""
    for axis, (name, pit) in enumerate(pit_of(cell).items()):
        z = seen["z_score"].values[:, axis]
        scores[name] |= {
            "contraction": float(seen["contraction"].values[:, axis].mean()),
            "z_mean": float(z.mean()),
            "z_sd": float(z.std(ddof=1)) if len(z) > 1 else np.nan,
            "crps": float(seen["crps"].values[:, axis].mean()),
        }
        for row in coverage_table(pit, levels=LEVELS).to_dict("records"):
            level, key = row["level"], f"coverage_{100 * row['level']:.0f}"
            scores[name][key] = row["coverage"]
            scores[name][f"{key}_error"] = float(np.sqrt(level * (1.0 - level) / row["n"]))
    for axis, name in enumerate(DESCRIPTORS):
        scores[name]["gain"] = float(seen["gain"].values[:, axis].mean())
    probability = seen["vehicle_probability"].values
    scores["vehicle"] |= {
        "top_5": float(among_first(probability, true_vehicle)[:5][-1]),
        "log_score": float(np.mean(log_scores(probability, true_vehicle))),
        "brier": brier_score(probability, true_vehicle).score,
    }


def among_first(probability: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Share of trips whose true vehicle is among the 1, 2, ... most probable ones ``(vehicle,)``.

    Where several are as probable as the true one, its place among them counts as random.
    """
    own = probability[np.arange(len(truth)), truth][:, None]
    before = np.sum(probability > own, axis=1)[:, None]
    alike = np.sum(probability == own, axis=1)[:, None]
    count = np.arange(1, probability.shape[1] + 1)
    return np.clip((count - before) / alike, 0.0, 1.0).mean(axis=0)


def _costs(cell: xr.Dataset) -> dict[str, float | int]:
    """What a cell cost, and for how many trips."""
    good = usable(cell)
    timed = int(cell.attrs["n_timed"])
    return {
        "n_trips": int(good.sum()),
        "n_set_aside": int((~good).sum()),
        "flagged": float(np.mean(cell["flags"].values[good] != 0)) if good.any() else np.nan,
        "seconds_per_trip": float(cell.attrs["run_s"]) / timed if timed else np.nan,
        "compile_s": float(cell.attrs["compile_s"]),
    }
