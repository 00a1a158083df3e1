"""Public vehicle lists: EPA test cars and FASTSim's table, as one table in SI."""

import enum
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.region.catalogue_file import read_text_table
from prisma_sbi.units import (
    AIR_DENSITY_KG_PER_M3,
    KG_PER_LB,
    MPS_PER_MPH,
    NEWTONS_PER_LBF,
    STANDARD_GRAVITY_MPS2,
)

VEHICLE_COLUMNS = (
    "name",
    "mass_kg",
    "road_load_a_n",
    "road_load_b_n_per_mps",
    "road_load_c_n_per_mps2",
    "displacement_l",
    "model_year",
)

_LITERS_PER_CUBIC_INCH = 0.016387064
_LIGHT_DUTY_KG = (500.0, 5000.0)  # neither motorcycles nor lorries
_DRAG_N_PER_MPS2 = (0.2, 1.5)  # drag areas from 0.33 to 2.5 m^2
_LOAD_OVER_WEIGHT = (0.01, 0.05)  # road load at 20 m/s; real cars lie from 0.014 to 0.042
_DISPLACEMENT_L = (0.1, 20.0)  # 0.001 and 99.999 stand for "none" in the lists
_PROBE_MPS = np.array([0.0, 10.0, 20.0, 30.0, 40.0])
_COLD_TEST = 11  # EPA procedure "Cold CO": the road load is raised by a tenth for it
_ELECTRIC_FUELS = (50, 62)  # EPA fuel codes: hydrogen, electricity

# FASTSim names a power but no displacement; median liter outputs of EPA's lists stand in.
_KW_PER_LITER = {"SI": 60.0, "Atkinson": 45.0, "Diesel": 55.0}


class VehicleIssue(enum.StrEnum):
    """Why a row of a vehicle list was set aside."""

    MALFORMED_ROW = "malformed_row"
    MISSING_VALUE = "missing_value"
    YEAR_OUT_OF_RANGE = "year_out_of_range"
    COLD_TEST = "cold_test"
    NOT_LIGHT_DUTY = "not_light_duty"
    IMPLAUSIBLE_ROAD_LOAD = "implausible_road_load"
    IMPLAUSIBLE_DISPLACEMENT = "implausible_displacement"


class _Layout(NamedTuple):
    """A kind of list: the columns by which it is known, and its translation to SI."""

    name: str
    columns: tuple[str, ...]
    translate: Callable[[pd.DataFrame], pd.DataFrame]


def read_vehicle_files(
    paths: str | Path | Sequence[str | Path], *, first_year: int = 2000, last_year: int = 2016
) -> pd.DataFrame:
    r"""Read vehicle lists into one table of distinct vehicles.

    Parameters
    ----------
    paths
        One file or several: EPA test-car lists (``.csv`` or ``.xlsx``, with today's column
        names or the codes used until 2009) or FASTSim's vehicle table. The kind is known by
        the columns.
    first_year, last_year
        Model years to keep, both included.

    Returns
    -------
    table : pandas.DataFrame
        Columns ``name, mass_kg, road_load_a_n, road_load_b_n_per_mps,
        road_load_c_n_per_mps2, displacement_l, model_year``; one row for each vehicle, under
        the first model year in which it occurs. ``table.attrs["set_aside"]`` counts the rows
        left out for each :class:`VehicleIssue`, ``table.attrs["n_repeated"]`` the further
        tests of vehicles already listed.

    Raises
    ------
    InputDataError
        If a file cannot be read, is of no known kind, or no vehicle remains.
    ValueError
        If ``first_year`` lies after ``last_year``.

    Notes
    -----
    EPA: mass is the equivalent test weight and :math:`F = A + B v + C v^2` the *target* road
    load, not the *set* load, which lacks the losses of the dynamometer's rolls. Until 2009
    these are the columns ``TPF_DYN_TRK_*`` and ``TPF_EDYN_TRK_*``. Cold-start tests are left
    out, because their targets are raised by a tenth.

    FASTSim: mass is ``veh_override_kg`` where given, otherwise the sum of glider, cargo and
    components; :math:`A = c_r m g`, :math:`B = 0` and
    :math:`C = \tfrac12 \rho c_d A_f`. Displacement is peak power over 60 kW/l for spark
    ignition, 45 kW/l for Atkinson and 55 kW/l for Diesel engines.

    ========================= =====================================================
    Case                      Result
    ========================= =====================================================
    electric or hydrogen car  displacement 0
    mass beyond 0.5 to 5 t    set aside: motorcycles, lorries
    load at 20 m/s            set aside beyond 1 to 5 % of the weight (typing errors)
    C                         set aside beyond 0.2 to 1.5 N s^2/m^2 (the same)
    ========================= =====================================================

    References
    ----------
    .. [1] US EPA, Annual Certification Data for Vehicles, Test Car List.
       https://www.epa.gov/compliance-and-fuel-economy-data
    .. [2] Brooker et al., FASTSim: A Model to Estimate Vehicle Efficiency, Cost and
       Performance, 2015. https://doi.org/10.4271/2015-01-0973
    """
    if not first_year <= last_year:
        raise ValueError(f"Expected first_year <= last_year; got {first_year} and {last_year}.")
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    _validate.at_least(1, n_paths=len(listed))
    parts, counts = [], dict.fromkeys(VehicleIssue, 0)
    for path in map(Path, listed):
        rows, n_malformed = read_text_table(path)
        counts[VehicleIssue.MALFORMED_ROW] += n_malformed
        parts.append(_layout_of(rows, path).translate(rows))
    table = pd.concat(parts, ignore_index=True).replace([np.inf, -np.inf], np.nan)
    issue = _first_issue(table, first_year, last_year)
    for code, count in issue.value_counts().items():
        counts[VehicleIssue(str(code))] += int(count)
    kept = table.loc[issue.isna(), list(VEHICLE_COLUMNS)]
    distinct = _drop_repeated(kept)
    set_aside = {str(code): count for code, count in counts.items() if count}
    if distinct.empty:
        raise InputDataError(
            f"Expected at least one vehicle of model years {first_year} to {last_year}; got none "
            f"({set_aside}). Check the files and the range of years."
        )
    distinct.attrs = {"set_aside": set_aside, "n_repeated": len(kept) - len(distinct)}
    return distinct


def _layout_of(rows: pd.DataFrame, path: Path) -> _Layout:
    """Find the kind of a list by its columns."""
    missing = {layout.name: sorted(set(layout.columns) - set(rows.columns)) for layout in _LAYOUTS}
    for layout in _LAYOUTS:
        if not missing[layout.name]:
            return layout
    nearest = min(missing, key=lambda name: len(missing[name]))
    raise InputDataError(
        f"Expected the columns of an EPA test-car list or of FASTSim's table in {path.name}; got "
        f"{len(rows.columns)} columns without {missing[nearest]} ({nearest}). "
        "Use the file as published."
    )


def _first_issue(table: pd.DataFrame, first_year: int, last_year: int) -> pd.Series:
    """Name the first reason to set each row aside; missing where there is none."""
    mass = table["mass_kg"]
    a, b, c = (table[column].to_numpy() for column in VEHICLE_COLUMNS[2:5])
    load = a[:, None] + b[:, None] * _PROBE_MPS + c[:, None] * _PROBE_MPS**2
    share = pd.Series(load[:, 2], index=table.index) / (mass * STANDARD_GRAVITY_MPS2)
    displacement = table["displacement_l"]
    checks = {
        VehicleIssue.MISSING_VALUE: table[list(VEHICLE_COLUMNS)].isna().any(axis=1),
        VehicleIssue.YEAR_OUT_OF_RANGE: ~table["model_year"].between(first_year, last_year),
        VehicleIssue.COLD_TEST: table["cold_test"],
        VehicleIssue.NOT_LIGHT_DUTY: ~mass.between(*_LIGHT_DUTY_KG),
        VehicleIssue.IMPLAUSIBLE_ROAD_LOAD: ~share.between(*_LOAD_OVER_WEIGHT)
        | ~table["road_load_c_n_per_mps2"].between(*_DRAG_N_PER_MPS2)
        | (load <= 0).any(axis=1),
        VehicleIssue.IMPLAUSIBLE_DISPLACEMENT: (displacement != 0)
        & ~displacement.between(*_DISPLACEMENT_L),
    }
    issue = pd.Series(pd.NA, index=table.index, dtype=object)
    for code, failed in reversed(checks.items()):
        issue[failed] = str(code)
    return issue


def _drop_repeated(table: pd.DataFrame) -> pd.DataFrame:
    """Keep each vehicle once, under its first model year."""
    table = table.astype({"model_year": np.int64})
    table = table.sort_values("model_year", kind="stable")
    same = [column for column in VEHICLE_COLUMNS if column != "model_year"]
    return table.drop_duplicates(same).reset_index(drop=True)


def _number(rows: pd.DataFrame, column: str) -> pd.Series:
    """Return a column as numbers; what is none becomes NaN."""
    text = rows[column].str.replace(",", "")
    return pd.Series(pd.to_numeric(text, errors="coerce"), index=rows.index, dtype=np.float64)


def _name(rows: pd.DataFrame, make: str, model: str) -> pd.Series:
    """Join make and model, without surplus blanks."""
    joined = rows[make].fillna("") + " " + rows[model].fillna("")
    return joined.str.split().str.join(" ").str.upper()


def _year(number: pd.Series) -> pd.Series:
    """Model years, two digits completed."""
    return number.where(number >= 100, number + np.where(number < 70, 2000, 1900))


def _from_epa(rows: pd.DataFrame) -> pd.DataFrame:
    """Translate a list with the column names used since 2010."""
    displacement = _number(rows, "Test Veh Displacement (L)")
    return _epa_table(
        rows,
        name=_name(rows, "Represented Test Veh Make", "Represented Test Veh Model"),
        displacement_l=displacement,
        columns=dict(zip(_EPA_ROLES, _EPA_COLUMNS, strict=True)),
    )


def _from_legacy_epa(rows: pd.DataFrame) -> pd.DataFrame:
    """Translate a list with the column codes used until 2009."""
    return _epa_table(
        rows,
        name=_name(rows, "VI_MFR_NM", "CL_NM"),
        displacement_l=_number(rows, "GBE_CID_MSR") * _LITERS_PER_CUBIC_INCH,
        columns=dict(zip(_EPA_ROLES, _LEGACY_COLUMNS, strict=True)),
    )


def _epa_table(
    rows: pd.DataFrame, *, name: pd.Series, displacement_l: pd.Series, columns: dict[str, str]
) -> pd.DataFrame:
    """Convert pounds and miles per hour to SI."""
    fuel = _number(rows, columns["fuel"])
    # A car that runs on electricity has no engine, unless its displacement is a real one.
    no_engine = fuel.isin(_ELECTRIC_FUELS) & ~displacement_l.between(0.2, _DISPLACEMENT_L[1])
    return pd.DataFrame(
        {
            "name": name,
            "mass_kg": _number(rows, columns["mass"]) * KG_PER_LB,
            "road_load_a_n": _number(rows, columns["a"]) * NEWTONS_PER_LBF,
            "road_load_b_n_per_mps": _number(rows, columns["b"]) * NEWTONS_PER_LBF / MPS_PER_MPH,
            "road_load_c_n_per_mps2": _number(rows, columns["c"])
            * NEWTONS_PER_LBF
            / MPS_PER_MPH**2,
            "displacement_l": displacement_l.where(~no_engine, 0.0),
            "model_year": _year(_number(rows, columns["year"])),
            "cold_test": _number(rows, columns["procedure"]) == _COLD_TEST,
        }
    )


def _from_fastsim(rows: pd.DataFrame) -> pd.DataFrame:
    """Translate FASTSim's table; the model year may stand in the name only."""
    mass = _fastsim_mass(rows)
    power = _number(rows, "fc_max_kw")
    per_liter = rows["fc_eff_type"].map(lambda kind: _KW_PER_LITER.get(kind, np.nan))
    # Fuel cells have no displacement, and neither have cars without a fuel converter.
    displacement = (power / per_liter).where(power > 0, 0.0)
    displacement = displacement.where(rows["fc_eff_type"] != "H2FC", 0.0)
    in_name = rows["Scenario name"].str.extract(r"\b(?P<year>20\d\d|19\d\d)\b")
    return pd.DataFrame(
        {
            "name": rows["Scenario name"].str.split().str.join(" ").str.upper(),
            "mass_kg": mass,
            "road_load_a_n": _number(rows, "wheel_rr_coef") * mass * STANDARD_GRAVITY_MPS2,
            "road_load_b_n_per_mps": 0.0,
            "road_load_c_n_per_mps2": 0.5
            * AIR_DENSITY_KG_PER_M3
            * _number(rows, "drag_coef")
            * _number(rows, "frontal_area_m2"),
            "displacement_l": displacement,
            "model_year": _number(rows, "veh_year").fillna(_number(in_name, "year")),
            "cold_test": False,
        }
    )


def _fastsim_mass(rows: pd.DataFrame) -> pd.Series:
    """Mass with cargo: as stated, else glider plus storage, engine, motor and transmission."""
    fuel_store = _per(_number(rows, "fs_kwh"), _number(rows, "fs_kwh_per_kg"))
    engine_kw = _number(rows, "fc_max_kw")
    engine = _per(engine_kw, _number(rows, "fc_kw_per_kg")) + _number(rows, "fc_base_kg")
    motor_kw = _number(rows, "mc_max_kw")
    motor = motor_kw * _number(rows, "mc_pe_kg_per_kw") + _number(rows, "mc_pe_base_kg")
    battery_kwh = _number(rows, "ess_max_kwh")
    battery = battery_kwh * _number(rows, "ess_kg_per_kwh") + _number(rows, "ess_base_kg")
    components = fuel_store + _number(rows, "trans_kg")
    for part, size in ((engine, engine_kw), (motor, motor_kw), (battery, battery_kwh)):
        components += part.where(size > 0, 0.0)
    total = _number(rows, "glider_kg") + _number(rows, "cargo_kg")
    total += _number(rows, "comp_mass_multiplier") * components
    stated = _number(rows, "veh_override_kg")
    return stated.where(stated > 0, total)


def _per(amount: pd.Series, per_kg: pd.Series) -> pd.Series:
    """Mass that holds an amount; none for nothing."""
    return (amount / per_kg.where(per_kg > 0)).where(amount > 0, 0.0)


_EPA_ROLES = ("year", "mass", "a", "b", "c", "fuel", "procedure")
_EPA_COLUMNS = (
    "Model Year",
    "Equivalent Test Weight (lbs.)",
    "Target Coef A (lbf)",
    "Target Coef B (lbf/mph)",
    "Target Coef C (lbf/mph**2)",
    "Test Fuel Type Cd",
    "Test Procedure Cd",
)
_LEGACY_COLUMNS = (
    "MDLYR_DT",
    "VC_DSN_ETW_MSR",
    "TPF_DYN_TRK_A_MSR",
    "TPF_DYN_TRK_B_MSR",
    "TPF_DYN_TRK_C_MSR",
    "VEH_FL_TYP_CD",
    "TST_PRC_CD",
)
_FASTSIM_COLUMNS = (
    ("Scenario name", "veh_year", "drag_coef", "frontal_area_m2", "wheel_rr_coef")
    + ("glider_kg", "cargo_kg", "trans_kg", "comp_mass_multiplier", "veh_override_kg")
    + ("fs_kwh", "fs_kwh_per_kg", "fc_max_kw", "fc_eff_type", "fc_base_kg", "fc_kw_per_kg")
    + ("mc_max_kw", "mc_pe_kg_per_kw", "mc_pe_base_kg")
    + ("ess_max_kwh", "ess_kg_per_kwh", "ess_base_kg")
)
_LAYOUTS = (
    _Layout(
        "EPA",
        (
            *_EPA_COLUMNS,
            "Represented Test Veh Make",
            "Represented Test Veh Model",
            "Test Veh Displacement (L)",
        ),
        _from_epa,
    ),
    _Layout(
        "EPA until 2009", (*_LEGACY_COLUMNS, "VI_MFR_NM", "CL_NM", "GBE_CID_MSR"), _from_legacy_epa
    ),
    _Layout("FASTSim", _FASTSIM_COLUMNS, _from_fastsim),
)
