"""Power drawn from tank and battery, at the native samples of each trip."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from prisma_sbi import units
from prisma_sbi.telemetry.trips import RawTrips, max_by_trip, sum_by_trip

DIESEL_DENSITY_KG_PER_L = 0.832
DIESEL_HEATING_VALUE_J_PER_KG = 42.8e6
"""Lower heating value of diesel fuel."""
LOAD_AIR_DENSITY_KG_PER_M3 = 1.184
"""Air at 25 degC and 101.3 kPa, to which SAE J1979 refers absolute load."""
MAX_FUEL_TRIM = 0.5
"""Larger corrections are sensor errors (VED has -100 %) and are clipped to this."""
MIN_SIGNAL_SHARE = 0.5
"""A channel with fewer finite rows than this share of a trip counts as absent."""
_PLUG_INS = ("PHEV", "EV")


class PowerSource(StrEnum):
    """Where the power of a trip comes from, best first; empty where there is none."""

    GIVEN = "given"
    BATTERY = "battery"
    FUEL_RATE = "fuel_rate"
    MAF = "maf"
    ABSOLUTE_LOAD = "absolute_load"
    NONE = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class VehicleFacts:
    """What the vehicle table says about the vehicle of each trip.

    Attributes
    ----------
    vehicle_type : (n_trips,) str
        ICE, HEV, PHEV, EV or unknown.
    displacement_l : (n_trips,)
        NaN if unknown.
    is_diesel : (n_trips,) bool
        Whether it burns diesel fuel.
    """

    vehicle_type: np.ndarray
    displacement_l: np.ndarray
    is_diesel: np.ndarray


def fuel_rate_power_w(fuel_rate_l_per_h: np.ndarray, *, is_diesel: bool = False) -> np.ndarray:
    """Heat of the fuel that flows at a given rate."""
    density = DIESEL_DENSITY_KG_PER_L if is_diesel else units.GASOLINE_DENSITY_KG_PER_L
    heat = DIESEL_HEATING_VALUE_J_PER_KG if is_diesel else units.GASOLINE_HEATING_VALUE_J_PER_KG
    return fuel_rate_l_per_h * (density * heat / units.SECONDS_PER_HOUR)


def air_flow_power_w(
    air_mass_flow_g_per_s: np.ndarray, *, fuel_trim: np.ndarray | float = 0.0
) -> np.ndarray:
    r"""Heat of the petrol that burns with a given flow of air.

    Parameters
    ----------
    air_mass_flow_g_per_s
        Mass air flow.
    fuel_trim
        Short plus long term correction as a ratio; 0.05 means 5 % more fuel.

    Returns
    -------
    power_w
        Heat per second, same shape.

    Notes
    -----
    .. math:: P = \dot m_\text{air} (1 + \tau) H / \lambda, \quad \lambda = 14.7.

    Three-way catalysts hold petrol engines at the stoichiometric ratio; a diesel runs lean,
    so the formula does not hold for it.
    """
    heat = units.GASOLINE_HEATING_VALUE_J_PER_KG / units.STOICHIOMETRIC_AIR_FUEL_RATIO
    return air_mass_flow_g_per_s * 1e-3 * (1.0 + fuel_trim) * heat


def load_air_flow_g_per_s(
    absolute_load_percent: np.ndarray,
    engine_speed_rpm: np.ndarray,
    displacement_l: np.ndarray | float,
) -> np.ndarray:
    """Mass air flow from absolute load: the charge of a four-stroke engine, rpm / 120 a second."""
    grams_per_cycle = LOAD_AIR_DENSITY_KG_PER_M3 * np.asarray(displacement_l)
    return absolute_load_percent / 100.0 * grams_per_cycle * engine_speed_rpm / 120.0


def battery_power_w(voltage_v: np.ndarray, current_a: np.ndarray) -> np.ndarray:
    """Power out of the battery; the current is negative while it discharges."""
    return 0.0 - voltage_v * current_a


def trip_power(raw: RawTrips, facts: VehicleFacts) -> tuple[np.ndarray, np.ndarray]:
    """Power from tank and battery at each row, from the best channel that a trip has.

    Parameters
    ----------
    raw
        Trips of one file.
    facts
        Type, displacement and fuel of their vehicles.

    Returns
    -------
    power_w : (n_rows,)
        NaN where the channel is missing, and on all rows of a trip without signal.
    power_source : (n_trips,) str
        A :class:`PowerSource` each.

    Notes
    -----
    A trip has a channel if at least half of its rows are finite and one is positive (for a
    battery: the current is not always zero). The order for engines is fuel rate, air flow
    with fuel trims, absolute load with speed and displacement. An engine whose logged speed
    is zero burns nothing: air flow sensors of hybrids rest at up to 0.9 g/s, which would be
    2.6 kW. Plug-in and electric vehicles need the battery channel; the power of a plug-in's
    engine is added to it. Vehicles of unknown type count as plug-ins if the battery is
    logged. Air flow and load say nothing about a diesel.
    """
    source = np.full(raw.n_trips, PowerSource.NONE.value, dtype="<U16")
    row = raw.trip_of_row
    given = raw.channel("power_w")
    if given is not None:
        alive = max_by_trip(raw.first_row, np.abs(given)) > 0
        has = alive & _has_signal(raw, given, positive=False)
        source[has] = PowerSource.GIVEN
        return np.where(has[row], given, np.nan), source
    engine_w, engine_source = _engine_power(raw, facts)
    battery_w, has_battery = _battery_power(raw)
    plug_in = np.isin(facts.vehicle_type, _PLUG_INS)
    electric = has_battery & (plug_in | (facts.vehicle_type == "unknown"))
    source = np.where(plug_in, PowerSource.NONE.value, engine_source)
    source[electric] = PowerSource.BATTERY
    power_w = np.where(electric[row], battery_w + np.nan_to_num(engine_w), engine_w)
    return np.where((source != PowerSource.NONE)[row], power_w, np.nan), source


def _has_signal(raw: RawTrips, values: np.ndarray, *, positive: bool = True) -> np.ndarray:
    """Which trips have the channel: enough finite rows, and one that is positive."""
    n_rows = np.diff(raw.first_row)
    enough = sum_by_trip(raw.first_row, np.isfinite(values)) >= MIN_SIGNAL_SHARE * n_rows
    if not positive:
        return enough
    return enough & (max_by_trip(raw.first_row, values) > 0)


def _engine_power(raw: RawTrips, facts: VehicleFacts) -> tuple[np.ndarray, np.ndarray]:
    """Fuel power per row and its source per trip, the best channel of each trip."""
    row = raw.trip_of_row
    diesel = facts.is_diesel[row]
    power_w = np.full(len(row), np.nan)
    source = np.full(raw.n_trips, PowerSource.NONE.value, dtype="<U16")

    def take(candidate_w: np.ndarray, name: PowerSource, *, diesel_too: bool) -> None:
        has = _has_signal(raw, candidate_w) & (source == PowerSource.NONE)
        has &= diesel_too | ~facts.is_diesel
        source[has] = name
        np.copyto(power_w, candidate_w, where=has[row])

    fuel_rate = raw.channel("fuel_rate_l_per_h")
    if fuel_rate is not None:
        fuel_w = np.where(
            diesel, fuel_rate_power_w(fuel_rate, is_diesel=True), fuel_rate_power_w(fuel_rate)
        )
        take(fuel_w, PowerSource.FUEL_RATE, diesel_too=True)
    air_flow = raw.channel("air_mass_flow_g_per_s")
    if air_flow is not None:
        air_w = air_flow_power_w(air_flow, fuel_trim=_fuel_trim(raw))
        take(air_w, PowerSource.MAF, diesel_too=False)
    load, speed = raw.channel("absolute_load_percent"), raw.channel("engine_speed_rpm")
    if load is not None and speed is not None:
        load_flow = load_air_flow_g_per_s(load, speed, facts.displacement_l[row])
        take(air_flow_power_w(load_flow), PowerSource.ABSOLUTE_LOAD, diesel_too=False)
    if speed is not None:
        power_w[(speed <= 0) & np.isfinite(power_w)] = 0.0
    return power_w, source


def _fuel_trim(raw: RawTrips) -> np.ndarray:
    """Short plus long term trim as a ratio, each the mean over its banks; 0 if not logged."""
    total = np.zeros(int(raw.first_row[-1]))
    for term in ("short", "long"):
        banks = [raw.channel(f"{term}_fuel_trim_{bank}_percent") for bank in (1, 2)]
        logged = [bank for bank in banks if bank is not None]
        if logged:
            stacked = np.stack(logged)
            finite = np.isfinite(stacked)
            total += np.nansum(stacked, axis=0) / np.maximum(finite.sum(axis=0), 1) / 100.0
    return np.clip(total, -MAX_FUEL_TRIM, MAX_FUEL_TRIM)


def _battery_power(raw: RawTrips) -> tuple[np.ndarray, np.ndarray]:
    """Battery power per row, and which trips log it."""
    voltage, current = raw.channel("battery_voltage_v"), raw.channel("battery_current_a")
    if voltage is None or current is None:
        return np.full(int(raw.first_row[-1]), np.nan), np.zeros(raw.n_trips, dtype=bool)
    power_w = battery_power_w(voltage, current)
    alive = max_by_trip(raw.first_row, np.abs(power_w)) > 0
    return power_w, alive & _has_signal(raw, power_w, positive=False)
