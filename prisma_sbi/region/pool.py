"""The pool of candidate vehicles, in SI."""

from dataclasses import dataclass

import numpy as np

from prisma_sbi._errors import InputDataError


@dataclass(frozen=True, kw_only=True, eq=False)
class VehiclePool:
    """Road-load coefficients of public vehicles.

    The resistance at constant speed on flat road is ``a + b v + c v^2``.

    Attributes
    ----------
    name : (vehicle,) str
    mass_kg : (vehicle,)
    road_load_a_n, road_load_b_n_per_mps, road_load_c_n_per_mps2 : (vehicle,)
    displacement_l : (vehicle,)
        Engine displacement; 0 for an electric vehicle.
    model_year : (vehicle,) int
    """

    name: np.ndarray
    mass_kg: np.ndarray
    road_load_a_n: np.ndarray
    road_load_b_n_per_mps: np.ndarray
    road_load_c_n_per_mps2: np.ndarray
    displacement_l: np.ndarray
    model_year: np.ndarray

    def __post_init__(self) -> None:
        if len(self.name) == 0:
            raise InputDataError(
                "Expected at least one vehicle; got an empty pool. "
                "Check the files and the range of model years."
            )
        for field in (
            "mass_kg",
            "road_load_a_n",
            "road_load_b_n_per_mps",
            "road_load_c_n_per_mps2",
            "displacement_l",
        ):
            values = getattr(self, field)
            if len(values) != len(self.name) or not np.all(np.isfinite(values)):
                raise InputDataError(
                    f"Expected {len(self.name)} finite values of {field}; got {values!r}."
                )
        if not np.all(self.mass_kg > 0):
            raise InputDataError(f"Expected mass_kg > 0; got {float(self.mass_kg.min())!r}.")

    def __len__(self) -> int:
        return len(self.name)

    @property
    def coefficients(self) -> np.ndarray:
        """Coefficients ``(vehicle, 4)`` of (acceleration + g sin) v, v^3, v^2 and v."""
        return np.stack(
            [
                self.mass_kg,
                self.road_load_c_n_per_mps2,
                self.road_load_b_n_per_mps,
                self.road_load_a_n,
            ],
            axis=-1,
        )
