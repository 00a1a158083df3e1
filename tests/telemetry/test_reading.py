"""Files in every format, and files that are broken in every way."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prisma_sbi._errors import InputDataError
from prisma_sbi.telemetry import read_trips
from tests.telemetry.tables import plain_trip, ved_trip, write


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_ved_is_read_in_si_with_ids_from_week_vehicle_and_trip(tmp_path, suffix):
    frame = pd.concat([ved_trip(11, 1501, maf=3.0), ved_trip(8, 706), ved_trip(11, 90)])
    raw = read_trips(write(frame, tmp_path / f"VED_171101_week{suffix}"))
    assert raw.trip.tolist() == ["171101/8/706", "171101/11/90", "171101/11/1501"]
    assert raw.vehicle_id.tolist() == ["8", "11", "11"]
    assert raw.first_row.tolist() == [0, 121, 242, 363]
    np.testing.assert_allclose(raw.channels["speed_mps"], 10.0, rtol=1e-12)
    np.testing.assert_array_equal(raw.channels["time_s"][:3], [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(raw.channels["air_mass_flow_g_per_s"][242:], 3.0)
    assert np.isnan(raw.channels["air_mass_flow_g_per_s"][:242]).all()
    assert raw.n_rows_read == 363


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_eved_takes_matched_coordinates_where_there_are_any(tmp_path, suffix):
    frame = ved_trip(maf=3.0)
    extra = [
        "Elevation Raw[m]",
        "Elevation Smoothed[m]",
        "Gradient",
        "Energy_Consumption",
        "Matchted Latitude[deg]",
        "Matched Longitude[deg]",
        "Match Type",
        "Class of Speed Limit",
        "Speed Limit[km/h]",
        "Speed Limit with Direction[km/h]",
        "Intersection",
        "Bus Stops",
        "Focus Points",
    ]
    for column in extra:
        frame[column] = np.nan
    frame["Match Type"] = 1
    frame["Focus Points"] = "crossing;bus_stop"
    frame["Speed Limit[km/h]"] = 36.0
    frame["Energy_Consumption"] = 0.002
    frame.loc[5:9, "Matchted Latitude[deg]"] = 42.9
    frame.loc[5:9, "Matched Longitude[deg]"] = -83.1
    raw = read_trips(write(frame, tmp_path / f"eVED_180502_week{suffix}"))
    assert raw.trip.tolist() == ["180502/8/1"]
    matched = np.zeros(121, dtype=bool)
    matched[5:10] = True
    np.testing.assert_array_equal(raw.channels["lon_deg"], np.where(matched, -83.1, -83.7))
    np.testing.assert_array_equal(raw.channels["lat_deg"] == 42.9, matched)
    np.testing.assert_allclose(raw.channels["speed_limit_mps"], 10.0)
    np.testing.assert_array_equal(raw.channels["energy_consumption"], 0.002)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_plain_table_under_other_names(tmp_path, suffix):
    frame = pd.concat([plain_trip("b"), plain_trip("a")]).rename(
        columns={"trip": "journey", "power_w": "P"}
    )
    frame["vehicle_type"] = "hev"
    path = write(frame, tmp_path / f"mine{suffix}")
    names = {"trip": "journey", "power_w": "P"}
    raw = read_trips(path, column_names=names)
    assert raw.trip.tolist() == ["a", "b"]
    assert raw.vehicle_type.tolist() == ["HEV", "HEV"]
    assert raw.vehicle_id.tolist() == ["unknown", "unknown"]
    with pytest.raises(InputDataError, match="missing: trip, power_w"):
        read_trips(path, file_format="table")
    with pytest.raises(InputDataError, match="missing: travel"):
        read_trips(path, column_names={"trip": "travel"})


def test_numeric_trip_names_lose_their_decimal_point(tmp_path):
    frame = plain_trip().assign(trip=7.0)
    frame.loc[3, "trip"] = np.nan
    raw = read_trips(write(frame, tmp_path / "t.csv"))
    assert raw.trip.tolist() == ["7"]
    assert raw.lost == (("", "1 rows name no trip, the first is data row 4."),)


@given(seed=st.integers(0, 2**32 - 1))
@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_order_of_rows_in_the_file_does_not_matter(tmp_path, seed):
    frame = pd.concat([plain_trip(name, n_rows=9, speed_mps=k) for k, name in enumerate("cab")])
    shuffled = frame.sample(frac=1.0, random_state=seed)
    one = read_trips(write(frame, tmp_path / "one.parquet"))
    two = read_trips(write(shuffled, tmp_path / "two.parquet"))
    assert one.trip.tolist() == two.trip.tolist() == ["a", "b", "c"]
    for name, values in one.channels.items():
        np.testing.assert_array_equal(values, two.channels[name])


@pytest.mark.parametrize(
    ("column", "bad"),
    [
        ("Timestamp(ms)", "soon"),
        ("MAF[g/sec]", "##"),
        ("Latitude[deg]", 420.3),
        ("Longitude[deg]", "W83"),
        ("Timestamp(ms)", np.nan),
    ],
)
def test_one_corrupt_row_is_dropped_and_counted(tmp_path, column, bad):
    frame = pd.concat([ved_trip(8, 1, maf=3.0), ved_trip(9, 1, maf=3.0)], ignore_index=True)
    frame[column] = frame[column].astype(object)
    frame.loc[50, column] = bad
    raw = read_trips(write(frame, tmp_path / "VED_171101_week.csv"))
    assert raw.corrupt_rows.tolist() == [1, 0]
    assert np.diff(raw.first_row).tolist() == [120, 121]
    assert raw.n_rows_read == 242
    assert all(np.isfinite(raw.channels["time_s"]))


def test_row_without_coordinates_is_kept(tmp_path):
    frame = plain_trip()
    frame.loc[5:20, ["lat", "lon"]] = np.nan
    raw = read_trips(write(frame, tmp_path / "t.csv"))
    assert raw.corrupt_rows.tolist() == [0]
    assert np.isnan(raw.channels["lat_deg"]).sum() == 16


def test_line_with_too_few_fields_is_noted_with_its_number(tmp_path):
    path = write(ved_trip(maf=3.0), tmp_path / "VED_171101_week.csv")
    lines = path.read_text().splitlines()
    lines[3] = "1.0,8,1,2000"
    path.write_text("\n".join(lines) + "\n")
    raw = read_trips(path)
    assert len(raw.channels["time_s"]) == 120
    assert raw.n_rows_read == 121
    assert raw.lost[0][0] == ""
    assert "line 4" in raw.lost[0][1]


def test_rows_without_vehicle_and_trips_without_rows_are_told(tmp_path):
    frame = pd.concat([ved_trip(8, 1, maf=3.0), ved_trip(9, 4)], ignore_index=True)
    frame["VehId"] = frame["VehId"].astype(object)
    frame.loc[0, "VehId"] = "x"
    frame.loc[121:, "Latitude[deg]"] = 1000.0
    raw = read_trips(write(frame, tmp_path / "VED_171101_week.csv"))
    assert raw.trip.tolist() == ["171101/8/1"]
    assert [trip for trip, _ in raw.lost] == ["", "171101/9/4"]


def test_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbf" + plain_trip().to_csv(index=False).encode())
    assert read_trips(path).trip.tolist() == ["a"]


def test_missing_columns_are_all_named(tmp_path):
    frame = ved_trip().drop(columns=["Latitude[deg]", "Vehicle Speed[km/h]"])
    with pytest.raises(InputDataError, match=r"VED_1.csv; missing: Latitude\[deg\], Vehicle Speed"):
        read_trips(write(frame, tmp_path / "VED_1.csv"))
    with pytest.raises(InputDataError, match="missing: time_s, power_w"):
        read_trips(write(plain_trip()[["trip", "lat", "lon"]], tmp_path / "t.csv"))
    with pytest.raises(InputDataError, match="Expected the columns of VED"):
        read_trips(write(pd.DataFrame({"x": [1.0]}), tmp_path / "x.csv"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "empty file"),
        ("header.csv", plain_trip().iloc[:0].to_csv(index=False).encode(), "without rows"),
        ("junk.parquet", b"PAR0 not parquet at all", "Expected a CSV or Parquet"),
        ("latin.csv", b"trip,time_s,lat,lon,power_w\n\xff,1,2,3,4\n", "Expected a CSV or Parquet"),
        ("head.csv", b"\xff\xfe,time_s\n1,2\n", "Expected a CSV or Parquet"),
        ("twice.csv", b"trip,time_s,lat,lat,power_w\n1,1,2,3,4\n", "lat several times"),
        ("dates.csv", b"trip,time_s,lat,lon,power_w\n1,2020-01-01 00:00:00,2,3,4\n", "got dates"),
    ],
)
def test_file_that_cannot_be_used_says_why(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputDataError, match=message):
        read_trips(path)


def test_absent_file_and_unknown_format_say_so(tmp_path):
    with pytest.raises(InputDataError, match="Expected a file of trips"):
        read_trips(tmp_path / "nothing.csv")
    with pytest.raises(ValueError, match="file_format"):
        read_trips(tmp_path / "nothing.csv", file_format="gpx")
