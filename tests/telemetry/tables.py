"""Small files of trips, in the formats that the readers know."""

from pathlib import Path

import numpy as np
import pandas as pd

from prisma_sbi.region.bounds import Bounds
from prisma_sbi.telemetry import RawTrips

BOUNDS = Bounds(south_deg=42.0, north_deg=43.0, west_deg=-84.0, east_deg=-83.0)
METERS_PER_DEGREE = 6_371_009.0 * np.pi / 180.0


def plain_trip(
    name: str = "a", *, n_rows: int = 121, power_w: float = 10_000.0, speed_mps: float = 10.0
) -> pd.DataFrame:
    """A drive due north at constant speed and power, one row a second."""
    time_s = np.arange(n_rows, dtype=float)
    return pd.DataFrame(
        {
            "trip": name,
            "time_s": time_s,
            "lat": 42.3 + speed_mps * time_s / METERS_PER_DEGREE,
            "lon": -83.7,
            "power_w": power_w,
            "speed_mps": speed_mps,
        }
    )


def ved_trip(vehicle: int = 8, trip: int = 1, *, n_rows: int = 121, **channels) -> pd.DataFrame:
    """The same drive under the column names of VED; channels by short name."""
    names = {
        "maf": "MAF[g/sec]",
        "rpm": "Engine RPM[RPM]",
        "load": "Absolute Load[%]",
        "fuel_rate": "Fuel Rate[L/hr]",
        "current": "HV Battery Current[A]",
        "voltage": "HV Battery Voltage[V]",
        "short_trim": "Short Term Fuel Trim Bank 1[%]",
        "long_trim": "Long Term Fuel Trim Bank 1[%]",
    }
    plain = plain_trip(n_rows=n_rows)
    frame = pd.DataFrame(
        {
            "DayNum": 1.0,
            "VehId": vehicle,
            "Trip": trip,
            "Timestamp(ms)": (plain["time_s"] * 1000).astype(int),
            "Latitude[deg]": plain["lat"],
            "Longitude[deg]": plain["lon"],
            "Vehicle Speed[km/h]": plain["speed_mps"] * 3.6,
        }
    )
    for short, column in names.items():
        frame[column] = channels.get(short, np.nan)
    return frame


def write(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table by suffix; missing values as VED writes them."""
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, na_rep="NaN")
    return path


def raw_trips(*lengths: int, **channels) -> RawTrips:
    """Trips without a file; channels are given for all rows, or as one value."""
    n_rows = sum(lengths)
    base = {
        "time_s": np.concatenate([np.arange(n, dtype=float) for n in lengths]),
        "lat_deg": 42.3,
        "lon_deg": -83.7,
    }
    full = {
        name: np.broadcast_to(np.asarray(value, dtype=float), (n_rows,)).copy()
        for name, value in (base | channels).items()
    }
    n_trips = len(lengths)
    return RawTrips(
        source="made.csv",
        trip=np.array([f"t{k}" for k in range(n_trips)]),
        vehicle_id=np.full(n_trips, "1"),
        vehicle_type=np.full(n_trips, "unknown"),
        first_row=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        channels=full,
        corrupt_rows=np.zeros(n_trips, dtype=np.int64),
        n_rows_read=n_rows,
    )
