"""Vehicle lists: units, layouts, encodings, and rows that are set aside."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.region.catalogue import VEHICLE_COLUMNS, VehicleIssue, read_vehicle_files

MODERN = {
    "Model Year": "2012",
    "Represented Test Veh Make": "ACME",
    "Represented Test Veh Model": "Coupé",
    "Test Veh Displacement (L)": "2.0",
    "Equivalent Test Weight (lbs.)": "4000",
    "Target Coef A (lbf)": "35",
    "Target Coef B (lbf/mph)": "0.3",
    "Target Coef C (lbf/mph**2)": "0.02",
    "Set Coef A (lbf)": "8",
    "Set Coef B (lbf/mph)": "0.1",
    "Set Coef C (lbf/mph**2)": "0.018",
    "Test Fuel Type Cd": "61",
    "Test Procedure Cd": "21",
}
LEGACY = {
    "MDLYR_DT": "2008",
    "VI_MFR_NM": "ACME",
    "CL_NM": "COUPE  4WD",
    "GBE_CID_MSR": "122",
    "VC_DSN_ETW_MSR": "4000",
    "TPF_DYN_TRK_A_MSR": "35",
    "TPF_DYN_TRK_B_MSR": "0.3",
    "TPF_DYN_TRK_C_MSR": "0.02",
    "TPF_EDYN_TRK_A_MSR": "8",
    "TPF_EDYN_TRK_B_MSR": "0.1",
    "TPF_EDYN_TRK_C_MSR": "0.018",
    "VEH_FL_TYP_CD": "61",
    "TST_PRC_CD": "21",
}
FASTSIM = {
    "Scenario name": "2012 ACME Coupe",
    "veh_year": "",
    "drag_coef": "0.3",
    "frontal_area_m2": "2.0",
    "glider_kg": "1000",
    "cargo_kg": "136",
    "veh_override_kg": "",
    "fs_kwh": "400",
    "fs_kwh_per_kg": "10",
    "fc_max_kw": "120",
    "fc_eff_type": "SI",
    "fc_base_kg": "60",
    "fc_kw_per_kg": "2",
    "mc_max_kw": "0",
    "mc_pe_kg_per_kw": "0.8",
    "mc_pe_base_kg": "20",
    "ess_max_kwh": "0",
    "ess_kg_per_kwh": "8",
    "ess_base_kg": "75",
    "wheel_rr_coef": "0.01",
    "trans_kg": "100",
    "comp_mass_multiplier": "1.5",
}


def write_csv(path: Path, *changes: dict[str, str], base: dict[str, str] = MODERN) -> Path:
    """One row for each set of changes to the base row."""
    rows = [base | change for change in changes or ({},)]
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    path.write_bytes(("\n".join(lines) + "\n").encode("latin-1"))
    return path


def assert_acme(table: pd.DataFrame) -> None:
    row = table.iloc[0]
    assert list(table.columns) == list(VEHICLE_COLUMNS)
    assert row["mass_kg"] == pytest.approx(1814.36948)
    # 35 lbf, 0.3 lbf/mph and 0.02 lbf/mph^2 with 1 lbf = 4.44822 N and 1 mph = 0.44704 m/s.
    assert row["road_load_a_n"] == pytest.approx(155.687752)
    assert row["road_load_b_n_per_mps"] == pytest.approx(2.985116)
    assert row["road_load_c_n_per_mps2"] == pytest.approx(0.445168, rel=1e-5)
    assert row["displacement_l"] == pytest.approx(2.0, abs=1e-3)


# ---------------------------------------------------------------- layouts and units


def test_modern_list_is_converted_to_si(tmp_path: Path) -> None:
    table = read_vehicle_files(write_csv(tmp_path / "12tstcar.csv"))
    assert_acme(table)
    assert table["name"].tolist() == ["ACME COUPÉ"]
    assert table["model_year"].tolist() == [2012]
    assert table.attrs == {"set_aside": {}, "n_repeated": 0}


@pytest.mark.parametrize("year", ["2008", "8"])
def test_legacy_list_gives_the_target_coefficients(tmp_path: Path, year: str) -> None:
    path = write_csv(tmp_path / "08tstcar.csv", {"MDLYR_DT": year}, base=LEGACY)
    table = read_vehicle_files(path)
    assert_acme(table)
    assert table["name"].tolist() == ["ACME COUPE 4WD"]
    assert table["model_year"].tolist() == [2008]


def test_workbook_reads_like_text(tmp_path: Path) -> None:
    frame = pd.DataFrame([MODERN]).apply(pd.to_numeric, errors="coerce")
    for column in ("Represented Test Veh Make", "Represented Test Veh Model"):
        frame[column] = MODERN[column]
    frame.to_excel(tmp_path / "12tstcar.xlsx", index=False)
    assert_acme(read_vehicle_files(tmp_path / "12tstcar.xlsx"))


@pytest.mark.parametrize(
    ("encoding", "line_end"),
    [("latin-1", "\n"), ("latin-1", "\r"), ("utf-8-sig", "\n"), ("utf-8", "\r\n")],
)
def test_encodings_and_line_ends_do_not_matter(
    tmp_path: Path, encoding: str, line_end: str
) -> None:
    text = (write_csv(tmp_path / "plain.csv")).read_text(encoding="latin-1")
    path = tmp_path / "other.csv"
    path.write_bytes(text.replace("\n", line_end).encode(encoding))
    table = read_vehicle_files(path)
    assert_acme(table)
    assert table["name"].tolist() == ["ACME COUPÉ"]


def test_fastsim_mass_is_the_sum_of_its_parts(tmp_path: Path) -> None:
    changes = [
        {},
        {"Scenario name": "2013 ACME Override", "veh_override_kg": "1600"},
        {
            "Scenario name": "ACME Electric",
            "veh_year": "2014",
            "fs_kwh": "0",
            "fc_max_kw": "0",
            "mc_max_kw": "100",
            "ess_max_kwh": "30",
        },
        {"Scenario name": "2015 ACME Diesel", "fc_eff_type": "Diesel", "fc_max_kw": "110"},
        {"Scenario name": "2016 ACME Cell", "fc_eff_type": "H2FC", "fc_max_kw": "100"},
        {"Scenario name": "ACME of no year"},
    ]
    table = read_vehicle_files(write_csv(tmp_path / "f.csv", *changes, base=FASTSIM))
    # 1136 kg + 1.5 (tank 40 + engine 60 + 60 + transmission 100); and so on.
    assert table["mass_kg"].tolist() == pytest.approx(
        [
            1136 + 1.5 * (40 + 120 + 100),
            1600,
            1136 + 1.5 * (100 + 100 + 315),
            1136 + 1.5 * (40 + 115 + 100),
            1136 + 1.5 * (40 + 110 + 100),
        ]
    )
    assert table["displacement_l"].tolist() == pytest.approx([2.0, 2.0, 0.0, 2.0, 0.0])
    assert table["model_year"].tolist() == [2012, 2013, 2014, 2015, 2016]
    assert table["road_load_a_n"][1] == pytest.approx(0.01 * 1600 * 9.80665)
    assert table["road_load_b_n_per_mps"].tolist() == [0.0] * 5
    assert table["road_load_c_n_per_mps2"].tolist() == pytest.approx([0.36] * 5)
    assert table.attrs["set_aside"] == {VehicleIssue.MISSING_VALUE: 1}


def test_kinds_of_list_join(tmp_path: Path) -> None:
    paths = [
        write_csv(tmp_path / "a.csv"),
        write_csv(tmp_path / "b.csv", base=LEGACY),
        write_csv(tmp_path / "c.csv", base=FASTSIM),
    ]
    table = read_vehicle_files(paths)
    assert table["model_year"].tolist() == [2008, 2012, 2012]


@pytest.mark.parametrize(
    ("fuel", "displacement", "expected"),
    [("62", "0.001", 0.0), ("62", "99.999", 0.0), ("50", "0.001", 0.0), ("62", "1.4", 1.4)],
)
def test_cars_without_engine_have_no_displacement(
    tmp_path: Path, fuel: str, displacement: str, expected: float
) -> None:
    change = {"Test Fuel Type Cd": fuel, "Test Veh Displacement (L)": displacement}
    table = read_vehicle_files(write_csv(tmp_path / "a.csv", change))
    assert table["displacement_l"].tolist() == [expected]


# ---------------------------------------------------------------- rows left out


def test_repeated_tests_count_once_under_the_first_year(tmp_path: Path) -> None:
    changes = [
        {"Model Year": "2013"},
        {"Test Procedure Cd": "3"},
        {"Model Year": "2014"},
        {"Target Coef A (lbf)": "36"},
    ]
    table = read_vehicle_files(write_csv(tmp_path / "a.csv", *changes))
    assert table["model_year"].tolist() == [2012, 2012]
    assert table.attrs["n_repeated"] == 2


@pytest.mark.parametrize(
    ("change", "issue"),
    [
        ({"Equivalent Test Weight (lbs.)": ""}, VehicleIssue.MISSING_VALUE),
        ({"Target Coef B (lbf/mph)": "n/a"}, VehicleIssue.MISSING_VALUE),
        ({"Target Coef B (lbf/mph)": "inf"}, VehicleIssue.MISSING_VALUE),
        ({"Model Year": ""}, VehicleIssue.MISSING_VALUE),
        ({"Model Year": "1999"}, VehicleIssue.YEAR_OUT_OF_RANGE),
        ({"Model Year": "2017"}, VehicleIssue.YEAR_OUT_OF_RANGE),
        ({"Test Procedure Cd": "11"}, VehicleIssue.COLD_TEST),
        ({"Equivalent Test Weight (lbs.)": "-4000"}, VehicleIssue.NOT_LIGHT_DUTY),
        ({"Equivalent Test Weight (lbs.)": "400"}, VehicleIssue.NOT_LIGHT_DUTY),
        ({"Target Coef C (lbf/mph**2)": "0.2"}, VehicleIssue.IMPLAUSIBLE_ROAD_LOAD),
        ({"Target Coef C (lbf/mph**2)": "0"}, VehicleIssue.IMPLAUSIBLE_ROAD_LOAD),
        ({"Target Coef A (lbf)": "-40"}, VehicleIssue.IMPLAUSIBLE_ROAD_LOAD),
        ({"Target Coef A (lbf)": "150"}, VehicleIssue.IMPLAUSIBLE_ROAD_LOAD),
        ({"Test Veh Displacement (L)": "99.999"}, VehicleIssue.IMPLAUSIBLE_DISPLACEMENT),
    ],
)
def test_unusable_row_is_set_aside_and_counted(
    tmp_path: Path, change: dict[str, str], issue: VehicleIssue
) -> None:
    table = read_vehicle_files(write_csv(tmp_path / "a.csv", {}, change, change))
    assert len(table) == 1
    assert table.attrs["set_aside"] == {issue: 2}


def test_rows_of_wrong_width_are_counted(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv")
    good = path.read_bytes()
    path.write_bytes(good + b"2012,ACME,Long" + b",1" * 40 + b"\n\n2012,ACME,Short,2.0\n")
    table = read_vehicle_files(path)
    assert_acme(table)
    assert table.attrs["set_aside"] == {"malformed_row": 1, "missing_value": 1}


# ---------------------------------------------------------------- files that cannot be used


def test_no_vehicle_left_says_why(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", {"Model Year": "1999"}, {"Test Procedure Cd": "11"})
    with pytest.raises(InputDataError, match=r"'year_out_of_range': 1, 'cold_test': 1"):
        read_vehicle_files(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "empty file"),
        ("a.csv", b"\n\n", "0 columns"),
        ("a.csv", b"x,y\n1,2\n", "a.csv; got 2 columns"),
        ("a.xlsx", b"no workbook", "readable workbook; got a.xlsx"),
        ("a.pdf", b"x", "ends in .csv or .xlsx"),
    ],
)
def test_unusable_file_is_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputDataError, match=message):
        read_vehicle_files(tmp_path / name)


def test_missing_column_is_named(tmp_path: Path) -> None:
    short = {key: value for key, value in MODERN.items() if key != "Target Coef A (lbf)"}
    with pytest.raises(InputDataError, match=r"without \['Target Coef A \(lbf\)'\] \(EPA\)"):
        read_vehicle_files(write_csv(tmp_path / "a.csv", base=short))


def test_missing_file_and_bad_years_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputDataError, match="does not exist"):
        read_vehicle_files(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="first_year <= last_year"):
        read_vehicle_files(tmp_path / "a.csv", first_year=2010, last_year=2009)
    with pytest.raises(ValueError, match="n_paths"):
        read_vehicle_files([])


# ---------------------------------------------------------------- the published lists


@pytest.mark.realdata
def test_epa_lists_give_thousands_of_plausible_vehicles(reference_data: Path) -> None:
    paths = sorted((reference_data / "epa").glob("[01][0-9]tstcar.csv"))
    assert len(paths) == 9
    table = read_vehicle_files(paths)
    assert 4000 < len(table) < 8000
    assert table["model_year"].unique().tolist() == list(range(2008, 2017))
    speed = 20.0
    load = table["road_load_a_n"] + table["road_load_b_n_per_mps"] * speed
    load += table["road_load_c_n_per_mps2"] * speed**2
    coast_down = load / table["mass_kg"]
    assert 0.15 < coast_down.median() < 0.3
    # Target coefficients in every year: set coefficients would lie a third lower.
    yearly = coast_down.groupby(table["model_year"]).median()
    assert yearly.max() < 1.2 * yearly.min()


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "year"), [("19tstcar_cr_line_ends.csv", 2019), ("22tstcar_utf8_bom.csv", 2022)]
)
def test_epa_lists_in_awkward_encodings(reference_data: Path, name: str, year: int) -> None:
    table = read_vehicle_files(reference_data / "epa" / name, last_year=2022)
    assert len(table) > 1000
    assert set(table["model_year"]) == {year}


@pytest.mark.realdata
def test_fastsim_table_is_read(reference_data: Path) -> None:
    path = reference_data / "fastsim" / "FASTSim_py_veh_db.csv"
    table = read_vehicle_files(path, last_year=2030).set_index("name")
    assert len(table) > 50
    # The components of these add up to the EPA's test weight classes.
    assert table.loc["2012 FORD FUSION", "mass_kg"] == pytest.approx(3625 * 0.45359237, abs=0.01)
    assert table.loc["2016 CHEVROLET SPARK EV", "displacement_l"] == 0
    assert np.isclose(table.loc["2016 TOYOTA CAMRY 4CYL 2WD", "displacement_l"], 2.5, atol=0.1)
