"""Choices that make a release what it is, in one frozen record."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from prisma_sbi import _validate
from prisma_sbi.descriptors.registry import Table

PRIVATE = "private"
"""In place of a number of rows: measure it under the budget."""


class Mechanism(StrEnum):
    """How a table is synthesized."""

    AIM = "aim"
    """Adaptive and iterative mechanism: pairs or triples where the budget allows."""
    MST = "mst"
    """Maximum spanning tree: one tree of pairs, whatever the budget. A simple rival of AIM."""
    INDEPENDENT = "independent"
    """Noisy one-way marginals; every column is drawn on its own."""
    NONE = "none"
    """Rows are passed on as they are. **No guarantee.**"""


class Workload(StrEnum):
    """Marginals that the synthetic table should get right."""

    PAIRS = "pairs"
    TRIPLES = "triples"

    @property
    def n_columns(self) -> int:
        """Columns in each marginal."""
        return 2 if self is Workload.PAIRS else 3


class Neighbors(StrEnum):
    """Which two tables the guarantee cannot tell apart."""

    ADD_REMOVE = "add-remove"
    """One of them has one record more. Hides whether a record is there at all."""
    REPLACE = "replace"
    """One record of the first is another one in the second; both have the same size."""

    @property
    def text(self) -> str:
        """The relation in words."""
        if self is Neighbors.REPLACE:
            return "replace one record by another"
        return "add or remove one record"

    @classmethod
    def _missing_(cls, value: object) -> Any:
        """Read the words that releases of the first format hold."""
        return next((item for item in cls if value == item.text), None)


class PrivacyUnit(StrEnum):
    """What counts as one record."""

    TRIP = "trip"
    """One trip, whoever drove it."""
    VEHICLE = "vehicle"
    """All trips of one recorded vehicle (or person); at most ``max_trips_per_vehicle`` enter."""


@dataclass(frozen=True, kw_only=True)
class SynthesisSettings:
    """Settings of one synthesis.

    Attributes
    ----------
    mechanism
        A :class:`Mechanism`.
    epsilon, delta
        Budget; converted to zCDP by the bound of Canonne, Kamath and Steinke. Not used
        without a mechanism.
    workload
        A :class:`Workload`, for AIM.
    table
        A :class:`~prisma_sbi.descriptors.Table`.
    n_rows
        Rows to draw, a **public** number fixed in advance; by default the number of trips in
        the table, which is thereby declared public. ``"private"`` spends ``count_share`` of the
        budget on measuring that number.
    count_share
        Share of the budget for a private number of rows; not used otherwise.
    neighbors
        A :class:`Neighbors`. A replacement moves counts further, so it buys less.
    unit
        A :class:`PrivacyUnit`. A vehicle needs the variable ``owner`` in the table.
    max_trips_per_vehicle
        Trips that one vehicle may contribute; the rest are left out. Public, and the noise
        grows with it. Only for the unit vehicle.
    max_model_mib
        Largest junction tree that the graphical model may reach.
    rounds_per_column
        AIM plans for this many rounds per column before it anneals.
    measure_share
        AIM's share of the budget for measuring; the rest selects.
    estimation_iterations
        Mirror-descent steps after each round; the last estimation takes four times as many.

    Raises
    ------
    ValueError
        If an option is unknown or a number outside its range.
    """

    mechanism: str = Mechanism.AIM
    epsilon: float = 0.5
    delta: float = 1e-5
    workload: str = Workload.PAIRS
    table: str = Table.PUBLISHED
    n_rows: int | str | None = None
    count_share: float = 0.02
    neighbors: str = Neighbors.ADD_REMOVE
    unit: str = PrivacyUnit.TRIP
    max_trips_per_vehicle: int | None = None
    max_model_mib: float = 8.0
    rounds_per_column: int = 16
    measure_share: float = 0.9
    estimation_iterations: int = 250

    def __post_init__(self) -> None:
        _validate.one_of([item.value for item in Mechanism], mechanism=self.mechanism)
        _validate.one_of([item.value for item in Workload], workload=self.workload)
        object.__setattr__(self, "mechanism", Mechanism(self.mechanism))
        object.__setattr__(self, "workload", Workload(self.workload))
        _validate.one_of([item.value for item in Neighbors], neighbors=self.neighbors)
        object.__setattr__(self, "neighbors", Neighbors(self.neighbors))
        _validate.one_of([item.value for item in PrivacyUnit], unit=self.unit)
        object.__setattr__(self, "unit", PrivacyUnit(self.unit))
        self._require_bound()
        _validate.one_of([item.value for item in Table], table=self.table)
        object.__setattr__(self, "table", Table(self.table))
        self._require_rows()
        _validate.positive(max_model_mib=self.max_model_mib)
        _validate.at_least(1, rounds_per_column=self.rounds_per_column)
        _validate.at_least(1, estimation_iterations=self.estimation_iterations)
        for name in ("measure_share", "count_share"):
            share = getattr(self, name)
            if not 0 < share < 1:
                raise ValueError(f"Expected 0 < {name} < 1; got {name}={share!r}.")

    def _require_rows(self) -> None:
        """Raise unless the rows are a number, left open, or private under a mechanism."""
        if isinstance(self.n_rows, str):
            _validate.one_of([PRIVATE], n_rows=self.n_rows)
            if self.mechanism == Mechanism.NONE:
                raise ValueError(
                    f"Expected a mechanism with n_rows={PRIVATE!r}; got 'none', which hides no "
                    "number. Leave n_rows out."
                )
        elif self.n_rows is not None:
            _validate.at_least(1, n_rows=self.n_rows)

    def _require_bound(self) -> None:
        """Raise unless vehicles, and they alone, have a bound on their trips."""
        bound = self.max_trips_per_vehicle
        if (bound is None) == (self.unit == PrivacyUnit.VEHICLE):
            raise ValueError(
                "Expected max_trips_per_vehicle with the unit 'vehicle', and with no other; got "
                f"unit={str(self.unit)!r}, max_trips_per_vehicle={bound!r}. Choose a number that "
                "most vehicles do not exceed, without a look at the table."
            )
        if bound is not None:
            _validate.at_least(1, max_trips_per_vehicle=bound)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values = asdict(self)
        return values | {
            "mechanism": str(self.mechanism),
            "workload": str(self.workload),
            "table": str(self.table),
            "neighbors": str(self.neighbors),
            "unit": str(self.unit),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "SynthesisSettings":
        """Inverse of :meth:`to_dict`; an unknown name raises ``TypeError``."""
        return cls(**values)
