"""Simulation-based inference and private synthesis of in-car power traces.

Five verbs on xarray objects: :func:`import_trips`, :func:`encode`, :func:`synthesize`,
:func:`decode` and :func:`evaluate`; a :class:`~prisma_sbi.region.Region` holds the public
inputs of all of them.
"""

from importlib.metadata import version

from prisma_sbi.decoding import decode
from prisma_sbi.encoding import descriptor_table, encode
from prisma_sbi.evaluation import evaluate
from prisma_sbi.privacy import SynthesisSettings, synthesize
from prisma_sbi.region import Constants, Region, build_region, demo_region, load_region, save_region
from prisma_sbi.simulator.fleet import simulate_fleet
from prisma_sbi.telemetry import import_trips, load_traces, save_traces

__version__ = version("prisma-sbi")

__all__ = [
    "Constants",
    "Region",
    "SynthesisSettings",
    "build_region",
    "decode",
    "demo_region",
    "descriptor_table",
    "encode",
    "evaluate",
    "import_trips",
    "load_region",
    "load_traces",
    "save_region",
    "save_traces",
    "simulate_fleet",
    "synthesize",
]
