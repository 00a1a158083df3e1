"""A record of privacy spends that cannot be overspent."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from prisma_sbi._errors import BudgetError

RHO_UNIT = Fraction(1, 10**15)
"""The ledger counts rho in whole multiples of this; sums of integers do not drift."""


@dataclass(frozen=True, kw_only=True)
class Spend:
    """One named spend.

    Attributes
    ----------
    name
        What the budget was spent on.
    units
        Price in multiples of ``RHO_UNIT``.
    """

    name: str
    units: int

    @property
    def rho(self) -> float:
        """Price in zCDP, for display."""
        return float(self.units * RHO_UNIT)


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """A zCDP budget and what has been spent of it.

    Frozen: :meth:`spend` returns a new ledger, so an older one stays as evidence. Amounts
    are integers; a budget is rounded down to whole units and a price up, so the ledger
    never grants more than it should.

    Attributes
    ----------
    budget_units
        What may be spent, in multiples of ``RHO_UNIT``.
    spends
        What was spent, in order.
    hides
        What the prices are for: the record that is hidden, and how tables differ in it.

    Raises
    ------
    BudgetError
        If the budget is not positive, a spend is negative, or the spends exceed the budget.

    Examples
    --------
    >>> ledger = Ledger.open(0.01).spend("counts", 0.004)
    >>> round(ledger.left, 6)
    0.006
    """

    budget_units: int
    spends: tuple[Spend, ...] = ()
    hides: str = "one trip, added or removed"

    def __post_init__(self) -> None:
        if not self.budget_units > 0:
            raise BudgetError(
                f"Expected a budget of at least one unit; got {self.budget_units} units."
            )
        for item in self.spends:
            if item.units < 0:
                raise BudgetError(f"Expected spends >= 0; got {item.units} units ({item.name!r}).")
        if self.used_units > self.budget_units:
            raise BudgetError(
                f"Expected spends within {self.budget_units} units of rho; "
                f"got {self.used_units} units. Nothing may be released from this ledger."
            )

    @classmethod
    def open(cls, rho: float | Fraction, *, hides: str | None = None) -> "Ledger":
        """Return an empty ledger over the budget ``rho``, rounded down to whole units."""
        budget_units = math.floor(_amount(rho) / RHO_UNIT)
        if hides is None:
            return cls(budget_units=budget_units)
        return cls(budget_units=budget_units, hides=hides)

    @property
    def used_units(self) -> int:
        """Sum of all spends, in units."""
        return sum(item.units for item in self.spends)

    @property
    def left_units(self) -> int:
        """What may still be spent, in units."""
        return self.budget_units - self.used_units

    @property
    def budget(self) -> float:
        """Budget in rho, for display and scheduling."""
        return float(self.budget_units * RHO_UNIT)

    @property
    def used(self) -> float:
        """Spent rho, for display and scheduling."""
        return float(self.used_units * RHO_UNIT)

    @property
    def left(self) -> float:
        """Remaining rho, for display and scheduling."""
        return float(self.left_units * RHO_UNIT)

    def spend(self, name: str, rho: float | Fraction) -> "Ledger":
        """Return the ledger after one more spend.

        Parameters
        ----------
        name
            What it is spent on.
        rho
            Price; rounded up to whole units.

        Returns
        -------
        ledger
            With the spend appended.

        Raises
        ------
        BudgetError
            If the price is negative, not finite, or more than is left. Pay before looking
            at data: an exception then comes before any leak.
        """
        units = price_units(rho)
        if units > self.left_units:
            raise BudgetError(
                f"Expected a spend within the {self.left:.6g} rho left; got {float(rho):.6g} for "
                f"{name!r}. The data may not be asked again under this budget."
            )
        return replace(self, spends=(*self.spends, Spend(name=name, units=units)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "unit": str(RHO_UNIT),
            "hides": self.hides,
            "budget_units": self.budget_units,
            "spends": [{"name": item.name, "units": item.units} for item in self.spends],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Ledger":
        """Inverse of :meth:`to_dict`; the checks of a new ledger apply."""
        if values.get("unit") != str(RHO_UNIT):
            raise BudgetError(
                f"Expected a ledger in units of {RHO_UNIT}; got {values.get('unit')!r}. "
                "Use the version of prisma_sbi that wrote it."
            )
        spends = tuple(Spend(name=item["name"], units=item["units"]) for item in values["spends"])
        ledger = cls(budget_units=values["budget_units"], spends=spends)
        return replace(ledger, hides=values.get("hides", ledger.hides))


def price_units(rho: float | Fraction) -> int:
    """Whole units that pay for ``rho``, rounded up."""
    return math.ceil(_amount(rho) / RHO_UNIT)


def gaussian_rho(stddev: float, *, l2_squared: int = 1) -> Fraction:
    r"""Price of Gaussian noise, :math:`\Delta_2^2 / (2 \sigma^2)`, exactly."""
    if not (math.isfinite(stddev) and stddev > 0):
        raise BudgetError(f"Expected a finite stddev > 0; got stddev={stddev!r}.")
    return Fraction(l2_squared) / (2 * Fraction(stddev) ** 2)


def selection_rho(epsilon: float) -> Fraction:
    r"""Price of one exponential mechanism, :math:`\epsilon^2 / 8`, exactly."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise BudgetError(f"Expected a finite epsilon > 0; got epsilon={epsilon!r}.")
    return Fraction(epsilon) ** 2 / 8


def _amount(rho: float | Fraction) -> Fraction:
    """Exact value of an amount; negative, infinite and NaN raise."""
    if isinstance(rho, float) and not math.isfinite(rho):
        raise BudgetError(f"Expected a finite rho; got rho={rho!r}.")
    if rho < 0:
        raise BudgetError(f"Expected rho >= 0; got rho={float(rho)!r}.")
    return Fraction(rho)
