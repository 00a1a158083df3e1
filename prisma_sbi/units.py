"""Conversions to and from SI, in one place.

Everything inside the package is SI; other units occur only where files are read or
results are shown. Each constant is the factor by which one multiplies to get SI.
"""

MPS_PER_KMH = 1.0 / 3.6
MPS_PER_MPH = 0.44704
METERS_PER_MILE = 1609.344
KG_PER_LB = 0.45359237
NEWTONS_PER_LBF = 4.4482216152605
SECONDS_PER_HOUR = 3600.0
WATTS_PER_HP = 745.6998715822702
STANDARD_GRAVITY_MPS2 = 9.80665
EARTH_RADIUS_M = 6_371_009.0
"""Mean earth radius, as OSMnx has it, so that lengths agree with its graphs."""

GASOLINE_DENSITY_KG_PER_L = 0.745
GASOLINE_HEATING_VALUE_J_PER_KG = 43.4e6
"""Lower heating value of petrol."""
STOICHIOMETRIC_AIR_FUEL_RATIO = 14.7
AIR_DENSITY_KG_PER_M3 = 1.2
