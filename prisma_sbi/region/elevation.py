"""Heights on a regular grid, sampled between cells."""

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import map_coordinates

from prisma_sbi._errors import InputDataError


@dataclass(frozen=True, kw_only=True, eq=False)
class Elevation:
    """A raster of heights in metres above sea level, in EPSG:4326.

    Attributes
    ----------
    height_m : (row, column) float32
        First row northernmost, first column westernmost; no NaN.
    north_deg, west_deg : float
        Centre of the first cell.
    lat_step_deg, lon_step_deg : float
        Spacing of cell centres, both positive (rows go south, columns east).
    source : str
        Where the heights come from.
    """

    height_m: np.ndarray
    north_deg: float
    west_deg: float
    lat_step_deg: float
    lon_step_deg: float
    source: str = ""

    def __post_init__(self) -> None:
        if self.height_m.ndim != 2 or 0 in self.height_m.shape:
            raise InputDataError(
                f"Expected a raster with rows and columns; got shape {self.height_m.shape}."
            )
        if not np.all(np.isfinite(self.height_m)):
            raise InputDataError(
                "Expected heights without voids; got NaN. Fill voids before building a region."
            )

    def sample(self, lat_deg: np.ndarray, lon_deg: np.ndarray) -> np.ndarray:
        """Heights in metres between cells (bilinear); outside, the nearest edge cell counts."""
        rows = (self.north_deg - np.asarray(lat_deg, dtype=np.float64)) / self.lat_step_deg
        columns = (np.asarray(lon_deg, dtype=np.float64) - self.west_deg) / self.lon_step_deg
        return map_coordinates(
            self.height_m.astype(np.float64), np.stack([rows, columns]), order=1, mode="nearest"
        )
