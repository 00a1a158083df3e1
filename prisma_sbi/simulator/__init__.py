"""The simulator: a driver on a road profile, and the power that a vehicle draws on the way."""

from prisma_sbi.simulator.draws import draw_traces
from prisma_sbi.simulator.driver import (
    Drive,
    DriverSetting,
    Road,
    drive,
    driver_setting,
    driver_step,
    initial_state,
    roads_from_profiles,
    safe_sqrt,
    squared_speed_envelope,
)
from prisma_sbi.simulator.drivetrain import Drivetrain, drivetrains
from prisma_sbi.simulator.fleet import simulate_fleet
from prisma_sbi.simulator.restlessness import restless_power
from prisma_sbi.simulator.shrinkage import shrunk_aggressiveness
from prisma_sbi.simulator.traffic import road_with_traffic
from prisma_sbi.simulator.trip import simulate_power, simulate_trips
from prisma_sbi.simulator.vehicle import (
    Vehicle,
    power_trace,
    tank_power,
    traction_features,
    vehicles_from_pool,
)

__all__ = [
    "Drive",
    "DriverSetting",
    "Drivetrain",
    "Road",
    "Vehicle",
    "draw_traces",
    "drive",
    "driver_setting",
    "driver_step",
    "drivetrains",
    "initial_state",
    "power_trace",
    "restless_power",
    "road_with_traffic",
    "roads_from_profiles",
    "safe_sqrt",
    "shrunk_aggressiveness",
    "simulate_fleet",
    "simulate_power",
    "simulate_trips",
    "squared_speed_envelope",
    "tank_power",
    "traction_features",
    "vehicles_from_pool",
]
