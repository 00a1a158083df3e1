"""Column names of the file formats, and which format a file has."""

from collections.abc import Collection, Mapping
from enum import StrEnum

from prisma_sbi._errors import InputDataError


class TripFormat(StrEnum):
    """File formats that :func:`prisma_sbi.telemetry.read_trips` understands."""

    VED = "ved"
    EVED = "eved"
    TABLE = "table"


VEHICLE_COLUMN = "VehId"
TRIP_COLUMN = "Trip"

VED_CHANNELS: Mapping[str, str] = {
    "Timestamp(ms)": "time_ms",
    "Latitude[deg]": "lat_deg",
    "Longitude[deg]": "lon_deg",
    "Vehicle Speed[km/h]": "speed_kmh",
    "MAF[g/sec]": "air_mass_flow_g_per_s",
    "Engine RPM[RPM]": "engine_speed_rpm",
    "Absolute Load[%]": "absolute_load_percent",
    "Fuel Rate[L/hr]": "fuel_rate_l_per_h",
    "HV Battery Current[A]": "battery_current_a",
    "HV Battery Voltage[V]": "battery_voltage_v",
    "Short Term Fuel Trim Bank 1[%]": "short_fuel_trim_1_percent",
    "Short Term Fuel Trim Bank 2[%]": "short_fuel_trim_2_percent",
    "Long Term Fuel Trim Bank 1[%]": "long_fuel_trim_1_percent",
    "Long Term Fuel Trim Bank 2[%]": "long_fuel_trim_2_percent",
}
"""VED column -> channel, for the columns that have a use here."""

VED_REQUIRED = (
    VEHICLE_COLUMN,
    TRIP_COLUMN,
    "Timestamp(ms)",
    "Latitude[deg]",
    "Longitude[deg]",
    "Vehicle Speed[km/h]",
)

EVED_CHANNELS: Mapping[str, str] = {
    "Matchted Latitude[deg]": "matched_lat_deg",
    "Matched Longitude[deg]": "matched_lon_deg",
    "Elevation Raw[m]": "elevation_raw_m",
    "Elevation Smoothed[m]": "elevation_m",
    "Gradient": "grade",
    "Energy_Consumption": "energy_consumption",
    "Speed Limit[km/h]": "speed_limit_kmh",
}
"""eVED's further columns with a use; the first is misspelt in the published files."""

TABLE_CHANNELS: Mapping[str, str] = {
    "time_s": "time_s",
    "lat": "lat_deg",
    "lon": "lon_deg",
    "power_w": "power_w",
    "speed_mps": "speed_mps",
}
TABLE_REQUIRED = ("trip", "time_s", "lat", "lon", "power_w")
TABLE_LABELS = ("vehicle_id", "vehicle_type")
TABLE_OPTIONAL = ("speed_mps", *TABLE_LABELS)


def detect_format(columns: Collection[str], *, source: str) -> TripFormat:
    """Tell the format of a file from its column names.

    Parameters
    ----------
    columns
        Names as they stand in the file.
    source
        Name of the file, for the message.

    Returns
    -------
    format
        ``eved`` if a column occurs that only the extended set has, ``ved`` if the original
        columns occur, otherwise ``table``.

    Raises
    ------
    InputDataError
        If the names fit no format; the message lists what is missing from each.
    """
    names = set(columns)
    if {VEHICLE_COLUMN, "Timestamp(ms)"} & names:
        extended = set(EVED_CHANNELS) & names
        return TripFormat.EVED if extended else TripFormat.VED
    if {"trip", "time_s", "power_w"} & names:
        return TripFormat.TABLE
    raise InputDataError(
        f"Expected the columns of VED ({', '.join(VED_REQUIRED)}) or of a plain table "
        f"({', '.join(TABLE_REQUIRED)}) in {source}; got {sorted(names)}. "
        "Name your own columns with column_names={'trip': ..., 'time_s': ...}."
    )


def require_columns(columns: Collection[str], required: Collection[str], *, source: str) -> None:
    """Raise :class:`InputDataError` that names every column missing from a file."""
    missing = [name for name in required if name not in columns]
    if missing:
        raise InputDataError(
            f"Expected the columns {', '.join(required)} in {source}; "
            f"missing: {', '.join(missing)}. Add them, or map your own names to these "
            "with column_names."
        )
