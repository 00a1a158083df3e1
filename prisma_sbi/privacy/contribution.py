"""How far one record of the unit of privacy can move a count: every price rests on this."""

import math
from dataclasses import dataclass

from prisma_sbi import _validate
from prisma_sbi.privacy.settings import Neighbors, PrivacyUnit, SynthesisSettings


@dataclass(frozen=True, kw_only=True)
class Contribution:
    r"""Bound on what one record adds to any count, in public numbers.

    A trip enters as rows with integer weights of total at most :math:`W`, and a record (a trip
    or a vehicle) as at most :math:`k` trips. Counts are integers in units of :math:`1/W`
    trips. Adding or removing a record changes every marginal by a vector of integers of one
    sign with :math:`\|x\|_1 \le kW`, hence :math:`\|x\|_2 \le kW`, with equality if all falls
    into one cell. Replacing a record changes it by the difference of two such vectors, hence
    :math:`\|x - y\|_2^2 \le \|x\|_2^2 + \|y\|_2^2 \le 2 (kW)^2` and
    :math:`\|x - y\|_1 \le 2kW`.

    Attributes
    ----------
    unit
        What a record is.
    weight_total
        :math:`W`, units of weight in one trip.
    trips
        :math:`k`, trips in one record.
    neighbors
        Which two tables are compared.

    Raises
    ------
    ValueError
        If a number is less than one, or a trip is said to be several.
    """

    unit: PrivacyUnit = PrivacyUnit.TRIP
    weight_total: int = 1
    trips: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE

    def __post_init__(self) -> None:
        _validate.at_least(1, weight_total=self.weight_total, trips=self.trips)
        if self.unit == PrivacyUnit.TRIP and self.trips != 1:
            raise ValueError(f"Expected one trip in a record that is a trip; got {self.trips}.")

    @classmethod
    def of(cls, settings: SynthesisSettings, *, weight_total: int = 1) -> "Contribution":
        """Return the bound that the settings ask for."""
        return cls(
            unit=PrivacyUnit(settings.unit),
            weight_total=weight_total,
            trips=settings.max_trips_per_vehicle or 1,
            neighbors=Neighbors(settings.neighbors),
        )

    @property
    def text(self) -> str:
        """What is hidden, in words."""
        record = "one trip"
        if self.unit == PrivacyUnit.VEHICLE:
            record = f"one vehicle with at most {self.trips} trip{'s' if self.trips > 1 else ''}"
        change = "replaced" if self.neighbors == Neighbors.REPLACE else "added or removed"
        return f"{record}, {change}"

    @property
    def l2_squared(self) -> int:
        """Squared L2 sensitivity of one marginal in units of weight."""
        return self._n_records * (self.trips * self.weight_total) ** 2

    @property
    def l1(self) -> int:
        """L1 sensitivity of one marginal in units of weight; bounds a score's change too."""
        return self._n_records * self.trips * self.weight_total

    def stddev(self, multiplier: float) -> float:
        """Noise in trips on a cell, for a noise multiplier per unit of L2 sensitivity."""
        return multiplier * self.trips * math.sqrt(self._n_records)

    @property
    def _n_records(self) -> int:
        """Records that differ: one goes, and for a replacement another comes."""
        return 2 if self.neighbors == Neighbors.REPLACE else 1
