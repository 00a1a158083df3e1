"""Vehicle tables: texts of engines, two names for one column, contradictions."""

import numpy as np
import pandas as pd
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.telemetry import read_vehicle_tables
from prisma_sbi.telemetry.vehicles import parse_displacement_l

ENGINE = "Engine Configuration & Displacement"


@pytest.mark.parametrize(
    ("engine", "liters"),
    [
        ("4-FI 2.4L", 2.4),
        ("4-GAS/ELECTRIC 1.8L", 1.8),
        ("4-FI 2.0L T/C", 2.0),
        ("4-FI T/C 1.4L", 1.4),
        ("3-FI 1.0L GAS/ELEC.", 1.0),
        ("H-4 2.0 L/122", 2.0),
        ("6-242-MFI 4.0L", 4.0),
        ("2.3L Gasoline I4", 2.3),
        ("8-DSL 6.7L T/C", 6.7),
        ("3.0L 6cyl 4A", 3.0),
        ("ELECTRIC", np.nan),
        ("", np.nan),
    ],
)
def test_displacement_is_read_from_the_text(engine, liters):
    np.testing.assert_equal(parse_displacement_l(engine), liters)


def books(tmp_path, rows_1, rows_2):
    paths = []
    for name, kind, rows in (("a.csv", "Vehicle Type", rows_1), ("b.xlsx", "EngineType", rows_2)):
        table = pd.DataFrame(rows, columns=["VehId", kind, ENGINE])
        path = tmp_path / name
        table.to_csv(path, index=False) if name.endswith("csv") else table.to_excel(
            path, index=False
        )
        paths.append(path)
    return paths


def test_two_tables_with_different_names_become_one(tmp_path):
    paths = books(
        tmp_path,
        [(2, "ICE", "4-FI 2.0L"), (119, "ICE", "8-DSL 6.7L T/C")],
        [(10, "EV", "ELECTRIC"), (2, "ICE", "4-FI 2.0L")],
    )
    table = read_vehicle_tables(paths)
    assert table.index.tolist() == ["2", "119", "10"]
    assert table["vehicle_type"].tolist() == ["ICE", "ICE", "EV"]
    assert table["is_diesel"].tolist() == [False, True, False]
    np.testing.assert_array_equal(table["displacement_l"], [2.0, 6.7, np.nan])


def test_contradiction_and_missing_column_and_no_table_say_so(tmp_path):
    paths = books(tmp_path, [(2, "ICE", "4-FI 2.0L")], [(2, "EV", "ELECTRIC")])
    with pytest.raises(InputDataError, match=r"\['2'\] with different facts"):
        read_vehicle_tables(paths)
    pd.DataFrame({"VehId": [1], ENGINE: ["2.0L"]}).to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(InputDataError, match="missing: Vehicle Type or EngineType"):
        read_vehicle_tables(tmp_path / "c.csv")
    with pytest.raises(InputDataError, match="at least one"):
        read_vehicle_tables([])
    (tmp_path / "d.xlsx").write_bytes(b"no book")
    with pytest.raises(InputDataError, match="readable vehicle table"):
        read_vehicle_tables(tmp_path / "d.xlsx")


@pytest.mark.realdata
def test_published_tables(reference_data):
    table = read_vehicle_tables(sorted((reference_data / "ved" / "raw").glob("*.xlsx")))
    counts = table["vehicle_type"].value_counts().to_dict()
    assert counts == {"ICE": 264, "HEV": 93, "PHEV": 24, "EV": 3}
    assert table.index[table["is_diesel"]].tolist() == ["119"]
    assert table.index[table["displacement_l"].isna()].tolist() == ["10", "455", "541"]
