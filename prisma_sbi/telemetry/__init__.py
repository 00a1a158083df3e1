"""Private inputs: files of trips in, traces of power out."""

from prisma_sbi.telemetry.importing import Imported, import_trips
from prisma_sbi.telemetry.power import PowerSource
from prisma_sbi.telemetry.quality import QualityRules, Reason
from prisma_sbi.telemetry.reading import read_trips
from prisma_sbi.telemetry.resample import resample_mean
from prisma_sbi.telemetry.split import split_trips
from prisma_sbi.telemetry.storage import load_traces, save_traces
from prisma_sbi.telemetry.traces import require_traces
from prisma_sbi.telemetry.trips import RawTrips
from prisma_sbi.telemetry.vehicles import read_vehicle_tables

__all__ = [
    "Imported",
    "PowerSource",
    "QualityRules",
    "RawTrips",
    "Reason",
    "import_trips",
    "load_traces",
    "read_trips",
    "read_vehicle_tables",
    "require_traces",
    "resample_mean",
    "save_traces",
    "split_trips",
]
