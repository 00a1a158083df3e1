"""Sixty-four vehicles for which nothing needs to be downloaded."""

import numpy as np

from prisma_sbi import _validate
from prisma_sbi.region.pool import VehiclePool
from prisma_sbi.region.representatives import spread_out

# Medoids of the EPA test-car lists, model years 2008 to 2016 (public domain), and four small or
# electric cars beside them; rounded. Name, model year, mass in kg, A in N, B in N/(m/s),
# C in N/(m/s)^2, displacement in l.
_VEHICLES = (
    ("Smart Fortwo (Coupe)", 2012, 964, 78.0, 2.96, 0.375, 1.0),
    ("Toyota Yaris", 2010, 1191, 109.8, 0.89, 0.463, 1.5),
    ("Chevrolet Sonic", 2012, 1361, 88.3, 2.83, 0.381, 1.4),
    ("Toyota Corolla", 2012, 1417, 108.5, 2.14, 0.408, 1.8),
    ("Toyota Corolla", 2010, 1417, 126.3, -0.46, 0.449, 1.8),
    ("Subaru Impreza AWD", 2012, 1474, 130.1, 3.37, 0.394, 2.0),
    ("Subaru Impreza AWD", 2012, 1474, 165.2, 0.16, 0.447, 2.0),
    ("Toyota Prius", 2016, 1531, 107.4, 3.33, 0.314, 1.8),
    ("Toyota Corolla Matrix", 2009, 1588, 158.7, -0.51, 0.537, 2.4),
    ("Jeep Compass", 2011, 1588, 251.9, -5.82, 0.797, 2.4),
    ("Mitsubishi Galant", 2010, 1644, 105.4, 4.01, 0.348, 2.4),
    ("GM 9-3 Sport Sedan", 2008, 1644, 115.0, 6.70, 0.272, 2.0),
    ("Mazda CX-5", 2013, 1644, 122.5, 2.87, 0.508, 2.0),
    ("Toyota Camry", 2008, 1644, 129.7, 1.65, 0.411, 2.4),
    ("Chevrolet Corvette", 2014, 1644, 157.6, 5.75, 0.280, 6.2),
    ("Suzuki Kizashi FWD", 2010, 1644, 191.1, -3.20, 0.553, 2.4),
    ("Nissan Leaf", 2013, 1644, 131.7, 0.73, 0.489, 0.0),
    ("GM Colorado 2WD", 2009, 1701, 75.8, 9.36, 0.546, 2.9),
    ("Nissan Altima", 2015, 1701, 150.4, 0.84, 0.408, 3.5),
    ("Volkswagen CC", 2010, 1701, 160.1, 2.89, 0.367, 2.0),
    ("Subaru Outback AWD", 2010, 1701, 163.1, 2.93, 0.517, 2.5),
    ("BMW 335i", 2010, 1758, 181.0, 1.19, 0.410, 3.0),
    ("Hyundai Tucson 2WD", 2008, 1758, 213.7, 0.00, 0.639, 2.7),
    ("BMW 228i Convertible", 2015, 1758, 232.2, -3.65, 0.529, 2.0),
    ("Chevrolet Camaro", 2012, 1814, 122.1, 4.18, 0.392, 3.6),
    ("Ford Ranger 2WD", 2008, 1814, 125.0, 5.45, 0.575, 3.0),
    ("Toyota Tacoma 2WD", 2013, 1814, 149.2, 2.16, 0.598, 2.7),
    ("Subaru Outback Wagon AWD", 2008, 1814, 165.7, 6.42, 0.433, 2.5),
    ("Mercedes-Benz C 300 4MATIC", 2013, 1814, 203.1, 5.09, 0.314, 3.5),
    ("Chrysler Dakota Pickup 2WD", 2008, 1928, 137.0, 3.32, 0.689, 3.7),
    ("Nissan M35", 2008, 1928, 148.6, 7.19, 0.267, 3.5),
    ("Buick Lacrosse", 2010, 1928, 169.3, 3.55, 0.377, 3.6),
    ("Lexus RC F", 2015, 1928, 189.1, 3.40, 0.428, 5.0),
    ("BMW 335i xDrive", 2010, 1928, 204.2, 1.69, 0.439, 3.0),
    ("Chevrolet SS", 2016, 1928, 236.1, 1.94, 0.450, 6.2),
    ("Hyundai Genesis", 2009, 2041, 148.2, 5.90, 0.350, 4.6),
    ("Chrysler 300/SRT-8", 2008, 2041, 206.1, 5.45, 0.401, 6.1),
    ("Audi RS4 Cabriolet", 2008, 2041, 217.0, 2.88, 0.412, 4.2),
    ("BMW 535i", 2011, 2041, 230.4, -2.56, 0.498, 3.0),
    ("Kia Borrego", 2010, 2155, 131.6, 10.12, 0.464, 3.8),
    ("Nissan Frontier 4WD", 2008, 2155, 164.9, 9.06, 0.609, 3.9),
    ("Mazda CX-9 FWD", 2011, 2155, 166.2, 5.80, 0.481, 3.7),
    ("Lexus RX 400h 4WD", 2008, 2155, 176.3, 3.53, 0.565, 3.3),
    ("Tesla Model S", 2013, 2155, 177.2, 1.45, 0.354, 0.0),
    ("Lexus RX 350 AWD", 2012, 2155, 192.6, 0.63, 0.642, 3.5),
    ("Nissan Frontier 4WD", 2008, 2155, 193.0, 4.28, 0.777, 3.9),
    ("BMW 750i", 2016, 2155, 236.6, -1.00, 0.478, 4.4),
    ("GM C15 Silverado 2WD", 2009, 2268, 120.9, 7.94, 0.732, 4.8),
    ("Mercedes-Benz S 550 4MATIC", 2010, 2268, 176.5, 8.15, 0.273, 5.5),
    ("Volvo XC 90 FWD", 2008, 2268, 272.1, 2.10, 0.581, 3.2),
    ("Mercedes-Benz ML 350 4MATIC", 2014, 2381, 189.6, 9.79, 0.398, 3.5),
    ("Lincoln MKT AWD", 2011, 2381, 202.9, 5.78, 0.570, 3.7),
    ("BMW X5 xDrive35d", 2016, 2381, 260.7, -4.44, 0.808, 3.0),
    ("Ford F150 FFV 4WD", 2008, 2495, 153.5, 8.95, 0.747, 5.4),
    ("Toyota Tundra 2WD", 2008, 2495, 181.1, 4.39, 0.827, 4.7),
    ("Mercedes-Benz AMG GLE 63 S (Coupe)", 2016, 2495, 216.0, 7.56, 0.508, 5.5),
    ("Bentley Continental GTC", 2010, 2495, 222.4, 2.59, 0.450, 6.0),
    ("Jeep Grand Cherokee 4x4", 2014, 2495, 227.1, 0.44, 0.722, 5.7),
    ("Audi Touareg", 2009, 2495, 263.0, 3.85, 0.658, 4.2),
    ("Nissan Armada 4x4", 2010, 2722, 149.1, 9.92, 0.572, 5.6),
    ("Nissan Titan 4WD", 2008, 2722, 195.9, 5.69, 0.775, 5.6),
    ("Rolls Royce Ghost", 2010, 2722, 269.6, -1.66, 0.543, 6.6),
    ("Lincoln Expedition 4x4", 2011, 2948, 228.8, 8.91, 0.670, 5.4),
    ("Toyota Sequoia 4WD", 2012, 2948, 267.3, 3.76, 0.809, 5.7),
)


def builtin_pool(size: int | None = None) -> VehiclePool:
    """Pool of representative public vehicles, without a file.

    Parameters
    ----------
    size
        Number of vehicles, at most 64; all of them by default. A smaller pool still spans the
        whole list.

    Returns
    -------
    pool : VehiclePool
        Sorted by mass.

    Raises
    ------
    ValueError
        If ``size`` is not in [1, 64].

    Notes
    -----
    A smaller pool starts with the vehicle nearest the mean of the standardized coefficients
    and takes, again and again, the vehicle farthest from those taken (Gonzalez 1985) [1]_.
    So a pool of one is an average car, and each pool contains every smaller one.

    References
    ----------
    .. [1] Gonzalez, Clustering to minimize the maximum intercluster distance, 1985.
       https://doi.org/10.1016/0304-3975(85)90224-5

    Examples
    --------
    >>> len(builtin_pool()), len(builtin_pool(8))
    (64, 8)
    """
    if size is not None:
        _validate.in_range(1, len(_VEHICLES), size=size)
    values = np.array([row[1:] for row in _VEHICLES], dtype=np.float64)
    taken = np.arange(len(values)) if size is None else spread_out(values[:, 1:], size)
    values = values[taken]
    return VehiclePool(
        name=np.array([_VEHICLES[row][0] for row in taken], dtype=str),
        model_year=values[:, 0].astype(np.int64),
        mass_kg=values[:, 1],
        road_load_a_n=values[:, 2],
        road_load_b_n_per_mps=values[:, 3],
        road_load_c_n_per_mps2=values[:, 4],
        displacement_l=values[:, 5],
    )
