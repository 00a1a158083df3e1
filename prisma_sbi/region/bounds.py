"""A bounding box on the globe."""

from dataclasses import dataclass

import numpy as np

from prisma_sbi import _validate


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Southern, northern, western and eastern limits in degrees (EPSG:4326).

    Raises
    ------
    ValueError
        If a limit is not finite, outside the globe, or the box has no area.
    """

    south_deg: float
    north_deg: float
    west_deg: float
    east_deg: float

    def __post_init__(self) -> None:
        _validate.in_range(-90.0, 90.0, south_deg=self.south_deg, north_deg=self.north_deg)
        _validate.in_range(-180.0, 180.0, west_deg=self.west_deg, east_deg=self.east_deg)
        if not self.south_deg < self.north_deg or not self.west_deg < self.east_deg:
            raise ValueError(
                f"Expected south < north and west < east; got {self}. "
                "Boxes across the date line are not supported."
            )

    def contains(self, lat_deg: np.ndarray | float, lon_deg: np.ndarray | float) -> np.ndarray:
        """Whether each point lies inside; points with NaN do not."""
        lat_deg, lon_deg = np.asarray(lat_deg), np.asarray(lon_deg)
        return np.asarray(
            (lat_deg >= self.south_deg)
            & (lat_deg <= self.north_deg)
            & (lon_deg >= self.west_deg)
            & (lon_deg <= self.east_deg)
        )
