"""How well fitted descriptors recover known ones, trip by trip."""

import math
from dataclasses import asdict, dataclass, fields

import numpy as np
import pandas as pd
import xarray as xr

from prisma_sbi._errors import InputDataError

CONTINUOUS = ("aggressiveness", "detour")


@dataclass(frozen=True, kw_only=True)
class ParameterRecovery:
    """Errors (fitted minus true) of one continuous descriptor over the compared trips.

    ``correlation`` is NaN where either side has no spread.
    """

    bias: float
    rmse: float
    median_abs_error: float
    correlation: float


@dataclass(frozen=True, kw_only=True)
class VehicleRecovery:
    """How often the vehicle is named, and how far its mass is off (fitted / true - 1)."""

    top1_agreement: float
    mass_bias: float
    mass_median_abs_error: float
    mass_correlation: float


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """Recovery of all descriptors.

    Attributes
    ----------
    aggressiveness, detour, vehicle
        Errors per descriptor.
    n_trips
        Trips compared.
    n_missing
        Trips with a known descriptor that have no finite fit; left out of the errors.
    """

    aggressiveness: ParameterRecovery
    detour: ParameterRecovery
    vehicle: VehicleRecovery
    n_trips: int
    n_missing: int

    def to_dict(self) -> dict[str, object]:
        """Nested plain numbers for JSON; NaN becomes ``None``."""
        plain: dict[str, object] = {"n_trips": self.n_trips, "n_missing": self.n_missing}
        for name in (*CONTINUOUS, "vehicle"):
            values = asdict(getattr(self, name))
            plain[name] = {k: v if math.isfinite(v) else None for k, v in values.items()}
        return plain

    def rows(self) -> list[dict[str, str]]:
        """Rows ``descriptor, measure, value`` of text for a terminal table."""
        rows = []
        for name in (*CONTINUOUS, "vehicle"):
            part = getattr(self, name)
            for item in fields(part):
                value = getattr(part, item.name)
                text = "–" if math.isnan(value) else f"{value:.3f}"
                rows.append({"descriptor": name, "measure": _label(item.name), "value": text})
        return rows


def recovery(
    truth: xr.Dataset | pd.DataFrame,
    fitted: xr.Dataset | pd.DataFrame,
    *,
    vehicle_mass_kg: np.ndarray,
) -> Recovery:
    """Compare fitted descriptors with the known ones of simulated trips.

    Parameters
    ----------
    truth, fitted
        Descriptor tables with ``trip``, ``aggressiveness``, ``detour`` and ``vehicle``
        (position in the pool). Matched by trip name; the order may differ.
    vehicle_mass_kg : (vehicle,)
        Mass of each vehicle in the pool.

    Returns
    -------
    recovery
        Bias, root mean square, median absolute error and correlation per descriptor.

    Raises
    ------
    InputDataError
        If a column is missing, a trip occurs twice, no trip occurs in both tables, or a
        vehicle is not in the pool.
    """
    matched, n_missing = matched_descriptors(truth, fitted, n_vehicles=len(vehicle_mass_kg))
    mass_true = np.asarray(vehicle_mass_kg, dtype=np.float64)[matched["vehicle_true"]]
    mass_fitted = np.asarray(vehicle_mass_kg, dtype=np.float64)[matched["vehicle_fitted"]]
    relative = mass_fitted / mass_true - 1.0
    same = matched["vehicle_true"].to_numpy() == matched["vehicle_fitted"].to_numpy()
    parameters = {
        name: _parameter_recovery(
            matched[f"{name}_true"].to_numpy(), matched[f"{name}_fitted"].to_numpy()
        )
        for name in CONTINUOUS
    }
    return Recovery(
        aggressiveness=parameters["aggressiveness"],
        detour=parameters["detour"],
        vehicle=VehicleRecovery(
            top1_agreement=float(same.mean()),
            mass_bias=float(relative.mean()),
            mass_median_abs_error=float(np.median(np.abs(relative))),
            mass_correlation=_correlation(mass_true, mass_fitted),
        ),
        n_trips=len(matched),
        n_missing=n_missing,
    )


def matched_descriptors(
    truth: xr.Dataset | pd.DataFrame, fitted: xr.Dataset | pd.DataFrame, *, n_vehicles: int
) -> tuple[pd.DataFrame, int]:
    """Known and fitted descriptors side by side, by trip, and the number of trips without fit."""
    true_table = _descriptor_frame(truth, name="true")
    fitted_table = _descriptor_frame(fitted, name="fitted")
    usable = np.isfinite(fitted_table.to_numpy(dtype=np.float64)).all(axis=1)
    matched = true_table.add_suffix("_true").join(
        fitted_table[usable].add_suffix("_fitted"), how="inner"
    )
    if matched.empty:
        raise InputDataError(
            f"Expected trips that occur in both descriptor tables; got none among "
            f"{len(true_table)} true and {int(usable.sum())} finite fitted ones. "
            "Check the trip names."
        )
    for side in ("vehicle_true", "vehicle_fitted"):
        matched[side] = matched[side].astype(np.int64)
        vehicle = matched[side].to_numpy()
        outside = matched.index[(vehicle < 0) | (vehicle >= n_vehicles)]
        if len(outside):
            raise InputDataError(
                f"Expected vehicles in [0, {n_vehicles - 1}]; got {matched.at[outside[0], side]} "
                f"in {side} of trip {outside[0]}. Use the pool the table was made with."
            )
    return matched, len(true_table) - len(matched)


def _descriptor_frame(table: xr.Dataset | pd.DataFrame, *, name: str) -> pd.DataFrame:
    """Select the three inferred descriptors, indexed by trip."""
    available = table.columns if isinstance(table, pd.DataFrame) else table.variables
    columns = [*CONTINUOUS, "vehicle"]
    has_trip_index = isinstance(table, pd.DataFrame) and table.index.name == "trip"
    needed = columns if has_trip_index else ["trip", *columns]
    missing = [column for column in needed if column not in available]
    if missing:
        raise InputDataError(
            f"Expected the columns {', '.join(needed)} in the {name} descriptors; "
            f"got no {', '.join(missing)}. Pass a descriptor table."
        )
    if isinstance(table, xr.Dataset):
        frame = pd.DataFrame({column: table[column].to_numpy() for column in needed})
    else:
        frame = table
    if not has_trip_index:
        frame = frame.set_index("trip")
    frame = frame.loc[:, columns]
    repeated = frame.index[frame.index.duplicated()]
    if len(repeated):
        raise InputDataError(
            f"Expected one row per trip in the {name} descriptors; got trip {repeated[0]} more "
            "than once. Drop the repeated rows."
        )
    return frame


def _parameter_recovery(true: np.ndarray, fitted: np.ndarray) -> ParameterRecovery:
    """Error summary of one descriptor."""
    error = fitted - true
    return ParameterRecovery(
        bias=float(error.mean()),
        rmse=float(np.sqrt(np.mean(error**2))),
        median_abs_error=float(np.median(np.abs(error))),
        correlation=_correlation(true, fitted),
    )


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Pearson correlation; NaN where one side has no spread."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def _label(name: str) -> str:
    """Write a field name as words."""
    words = {"rmse": "RMSE", "top1_agreement": "top-1 agreement"}
    return words.get(name, name.replace("_", " ").replace("abs", "absolute"))
