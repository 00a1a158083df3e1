"""Distances between populations of trips: how long, how much energy, from where to where."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation.energy_statistic import energy_statistic
from prisma_sbi.evaluation.floor import MINIMUM_TRIPS, N_SPLITS, Floor
from prisma_sbi.evaluation.marginals import wasserstein

_KM_PER_DEGREE = 111.195


@dataclass(frozen=True, kw_only=True, eq=False)
class TripFacts:
    """What is compared of each trip.

    Attributes
    ----------
    length_m : (trip,)
        Length of the shortest route from start to end.
    energy_j : (trip,)
        Energy drawn within the horizon.
    ends_km : (trip, 4)
        East and north of the start, east and north of the end, on a local plane.

    Raises
    ------
    InputDataError
        If there are fewer than 4 trips, lengths differ, or a value is not finite.
    """

    length_m: np.ndarray
    energy_j: np.ndarray
    ends_km: np.ndarray

    def __post_init__(self) -> None:
        n_trips = len(self.length_m)
        shapes = (self.length_m.shape, self.energy_j.shape, self.ends_km.shape)
        if n_trips < MINIMUM_TRIPS or shapes != ((n_trips,), (n_trips,), (n_trips, 4)):
            raise InputDataError(
                f"Expected at least {MINIMUM_TRIPS} trips with a length, an energy and two ends; "
                f"got arrays of shape {', '.join(map(str, shapes))}."
            )
        for name in ("length_m", "energy_j", "ends_km"):
            if not np.all(np.isfinite(getattr(self, name))):
                raise InputDataError(
                    f"Expected finite {name}; got others. Leave out trips without a route."
                )

    def __len__(self) -> int:
        return len(self.length_m)

    def take(self, trips: np.ndarray) -> "TripFacts":
        """Select the trips at these positions."""
        return TripFacts(
            length_m=self.length_m[trips],
            energy_j=self.energy_j[trips],
            ends_km=self.ends_km[trips],
        )


def local_plane_km(
    start_lat: np.ndarray,
    start_lon: np.ndarray,
    end_lat: np.ndarray,
    end_lon: np.ndarray,
    *,
    center_lat: float,
) -> np.ndarray:
    """Ends ``(trip, 4)`` on a plane true to scale at one latitude, for :class:`TripFacts`."""
    east = _KM_PER_DEGREE * np.cos(np.radians(center_lat))
    return np.column_stack(
        [start_lon * east, start_lat * _KM_PER_DEGREE, end_lon * east, end_lat * _KM_PER_DEGREE]
    )


def length_distance(real: TripFacts, synthetic: TripFacts) -> float:
    """Wasserstein distance in m between the laws of the route length."""
    return wasserstein(real.length_m, synthetic.length_m)


def energy_distance(real: TripFacts, synthetic: TripFacts) -> float:
    """Wasserstein distance in J between the laws of the energy of a trip."""
    return wasserstein(real.energy_j, synthetic.energy_j)


def origin_destination_distance(real: TripFacts, synthetic: TripFacts) -> float:
    """Energy statistic of start and end in four dimensions, in the square root of km."""
    return energy_statistic(real.ends_km, synthetic.ends_km)


TripDistance = Callable[[TripFacts, TripFacts], float]

TRIP_DISTANCES: Mapping[str, TripDistance] = MappingProxyType(
    {
        "length": length_distance,
        "energy": energy_distance,
        "origin_destination": origin_destination_distance,
    }
)
"""Name of a distance -> its function; zero on identical populations and symmetric."""


def trip_floors(real: TripFacts, *, seed: int = 0, n_splits: int = N_SPLITS) -> dict[str, Floor]:
    """Floor of each distance: mean and standard deviation over random halves of the real trips.

    See :func:`~prisma_sbi.evaluation.compute_floors`; a perfect synthesizer with as many trips
    as are held out reaches about 0.7.
    """
    _validate.at_least(1, n_splits=n_splits)
    if len(real) < 2 * MINIMUM_TRIPS:
        raise InputDataError(
            f"Expected at least {2 * MINIMUM_TRIPS} real trips for two halves; got {len(real)}."
        )
    rng, n_half = np.random.default_rng(seed), len(real) // 2
    found: dict[str, list[float]] = {name: [] for name in TRIP_DISTANCES}
    for _ in range(n_splits):
        order = rng.permutation(len(real))
        halves = real.take(order[:n_half]), real.take(order[n_half : 2 * n_half])
        for name, distance in TRIP_DISTANCES.items():
            found[name].append(distance(*halves))
    return {
        name: Floor(mean=float(np.mean(values)), sd=float(np.std(values)))
        for name, values in found.items()
    }


def trip_scores(
    real: TripFacts, synthetic: TripFacts, floors: Mapping[str, Floor]
) -> dict[str, float]:
    """Every distance, plain and as ``..._x_floor``."""
    scores = {}
    for name, distance in TRIP_DISTANCES.items():
        scores[name] = distance(real, synthetic)
        scores[f"{name}_x_floor"] = floors[name].multiple(scores[name])
    return scores
