"""Known channels give known watts, and the best channel wins."""

import numpy as np
import pytest

from prisma_sbi import units
from prisma_sbi.telemetry import power
from prisma_sbi.telemetry.power import VehicleFacts, trip_power
from tests.telemetry.tables import raw_trips

HEAT_PER_AIR_J_PER_KG = 43.4e6 / 14.7


def facts(*types: str, displacement_l: float = 2.0, is_diesel: bool = False) -> VehicleFacts:
    return VehicleFacts(
        vehicle_type=np.array(types),
        displacement_l=np.full(len(types), displacement_l),
        is_diesel=np.full(len(types), is_diesel),
    )


def test_fuel_rate_of_one_liter_per_hour_is_its_heat_over_an_hour():
    assert power.fuel_rate_power_w(np.array([1.0])) == pytest.approx(0.745 * 43.4e6 / 3600)
    diesel = power.fuel_rate_power_w(np.array([1.0]), is_diesel=True)
    assert diesel == pytest.approx(0.832 * 42.8e6 / 3600)


def test_air_flow_of_idling_engine_is_some_kilowatts():
    assert power.air_flow_power_w(np.array([2.5])) == pytest.approx(2.5e-3 * HEAT_PER_AIR_J_PER_KG)
    assert power.air_flow_power_w(np.array([2.5]), fuel_trim=0.1) == pytest.approx(
        1.1 * 2.5e-3 * HEAT_PER_AIR_J_PER_KG
    )


def test_full_load_fills_the_displacement_every_other_turn():
    flow = power.load_air_flow_g_per_s(np.array([100.0]), np.array([120.0]), 2.0)
    assert flow == pytest.approx(1.184 * 2.0)
    assert power.load_air_flow_g_per_s(np.array([50.0]), np.array([6000.0]), 1.5) == pytest.approx(
        0.5 * 1.184 * 1.5 * 50
    )


def test_battery_power_is_positive_on_discharge():
    watts = power.battery_power_w(np.array([300.0, 300.0, 300.0]), np.array([-10.0, 5.0, 0.0]))
    np.testing.assert_array_equal(watts, [3000.0, -1500.0, 0.0])


def test_trip_power_takes_the_best_channel_of_each_trip():
    n = 4
    nan = np.full(n, np.nan)
    raw = raw_trips(
        n,
        n,
        n,
        n,
        fuel_rate_l_per_h=np.concatenate([np.full(n, 3.6), nan, nan, nan]),
        air_mass_flow_g_per_s=np.concatenate([np.full(n, 5.0), np.full(n, 5.0), nan, nan]),
        absolute_load_percent=40.0,
        engine_speed_rpm=np.concatenate([np.full(3 * n, 1200.0), nan]),
    )
    watts, source = trip_power(raw, facts("ICE", "ICE", "HEV", "ICE"))
    assert source.tolist() == ["fuel_rate", "maf", "absolute_load", ""]
    expected = [
        0.745 * 43.4e6 / 1000,
        5e-3 * HEAT_PER_AIR_J_PER_KG,
        0.4 * 1.184 * 2.0 * 10 * 1e-3 * HEAT_PER_AIR_J_PER_KG,
    ]
    np.testing.assert_allclose(watts.reshape(4, n)[:3], np.repeat(expected, n).reshape(3, n))
    assert np.isnan(watts.reshape(4, n)[3]).all()


def test_trip_power_skips_a_channel_that_is_never_positive_or_mostly_missing():
    sparse = np.array([4.0, np.nan, np.nan, np.nan, np.nan])
    raw = raw_trips(5, fuel_rate_l_per_h=0.0, air_mass_flow_g_per_s=5.0)
    assert trip_power(raw, facts("ICE"))[1].tolist() == ["maf"]
    raw = raw_trips(5, fuel_rate_l_per_h=sparse, air_mass_flow_g_per_s=5.0)
    assert trip_power(raw, facts("ICE"))[1].tolist() == ["maf"]
    raw = raw_trips(5, air_mass_flow_g_per_s=0.0)
    assert trip_power(raw, facts("HEV"))[1].tolist() == [""]


def test_trip_power_averages_banks_sums_terms_and_clips_trims():
    raw = raw_trips(
        3,
        air_mass_flow_g_per_s=10.0,
        short_fuel_trim_1_percent=[4.0, 4.0, -100.0],
        short_fuel_trim_2_percent=[8.0, np.nan, -100.0],
        long_fuel_trim_1_percent=[2.0, np.nan, 0.0],
    )
    watts, _ = trip_power(raw, facts("ICE"))
    np.testing.assert_allclose(watts / (0.01 * HEAT_PER_AIR_J_PER_KG), [1.08, 1.04, 0.5])


def test_hybrid_with_its_engine_off_draws_nothing():
    raw = raw_trips(
        4,
        air_mass_flow_g_per_s=[6.0, 0.87, 0.0, 6.0],
        engine_speed_rpm=[1500.0, 0.0, 0.0, np.nan],
    )
    watts, source = trip_power(raw, facts("HEV"))
    assert source.tolist() == ["maf"]
    on = 6e-3 * HEAT_PER_AIR_J_PER_KG
    np.testing.assert_allclose(watts, [on, 0.0, 0.0, on])


def test_diesel_needs_a_fuel_rate():
    channels = {"air_mass_flow_g_per_s": 20.0, "absolute_load_percent": 50.0}
    raw = raw_trips(3, engine_speed_rpm=1500.0, **channels)
    assert trip_power(raw, facts("ICE", is_diesel=True))[1].tolist() == [""]
    raw = raw_trips(3, fuel_rate_l_per_h=2.0, **channels)
    watts, source = trip_power(raw, facts("ICE", is_diesel=True))
    assert source.tolist() == ["fuel_rate"]
    np.testing.assert_allclose(watts, 2.0 * 0.832 * 42.8e6 / 3600)


def test_plug_in_adds_engine_to_battery_and_needs_the_battery():
    battery = {"battery_voltage_v": 300.0, "battery_current_a": [-10.0, 5.0, -20.0]}
    engine = {
        "air_mass_flow_g_per_s": [0.17, 4.0, 4.0],
        "engine_speed_rpm": [0.0, 1500.0, 1500.0],
    }
    watts, source = trip_power(raw_trips(3, **battery, **engine), facts("PHEV"))
    burn = 4e-3 * HEAT_PER_AIR_J_PER_KG
    assert source.tolist() == ["battery"]
    np.testing.assert_allclose(watts, [3000.0, burn - 1500.0, burn + 6000.0])
    watts, source = trip_power(raw_trips(3, **battery), facts("EV"))
    np.testing.assert_allclose(watts, [3000.0, -1500.0, 6000.0])
    assert trip_power(raw_trips(3, **engine), facts("PHEV"))[1].tolist() == [""]
    dead = raw_trips(3, battery_voltage_v=300.0, battery_current_a=0.0)
    assert trip_power(dead, facts("EV"))[1].tolist() == [""]


def test_hybrid_counts_its_tank_only_and_an_unknown_vehicle_its_battery_too():
    raw = raw_trips(
        3,
        air_mass_flow_g_per_s=5.0,
        battery_voltage_v=200.0,
        battery_current_a=-5.0,
    )
    tank = 5e-3 * HEAT_PER_AIR_J_PER_KG
    watts, source = trip_power(raw, facts("HEV"))
    assert source.tolist() == ["maf"]
    np.testing.assert_allclose(watts, tank)
    watts, source = trip_power(raw, facts("unknown"))
    assert source.tolist() == ["battery"]
    np.testing.assert_allclose(watts, tank + 1000.0)


def test_given_power_comes_first_and_may_be_negative():
    raw = raw_trips(3, 3, power_w=[-5.0, -6.0, np.nan, 0.0, 0.0, 0.0])
    watts, source = trip_power(raw, facts("unknown", "unknown"))
    assert source.tolist() == ["given", ""]
    np.testing.assert_array_equal(watts[:3], [-5.0, -6.0, np.nan])


def test_petrol_constants_are_those_of_units():
    assert units.GASOLINE_HEATING_VALUE_J_PER_KG == 43.4e6
    assert units.STOICHIOMETRIC_AIR_FUEL_RATIO == 14.7
