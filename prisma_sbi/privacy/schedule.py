"""How a budget is spread over rounds of selecting and measuring."""

import math
from dataclasses import dataclass
from fractions import Fraction

from prisma_sbi._errors import BudgetError
from prisma_sbi.privacy.ledger import RHO_UNIT, Ledger, gaussian_rho, selection_rho

_SLACK = 1e-12
"""Relative part of a budget that is left for the rounding of square roots."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Noise and selection parameter of one round.

    Attributes
    ----------
    stddev
        Noise multiplier of the measurement: its scale over the L2 sensitivity.
    epsilon
        Parameter of the exponential mechanism.
    """

    stddev: float
    epsilon: float

    @property
    def rho(self) -> Fraction:
        """Price of a round."""
        return gaussian_rho(self.stddev) + selection_rho(self.epsilon)

    def anneal(self) -> "Schedule":
        """Return the schedule with half the noise and twice the selection parameter."""
        return Schedule(stddev=self.stddev / 2, epsilon=self.epsilon * 2)


def schedule_for(ledger: Ledger, measure_share: float, *, n_rounds: int = 1) -> Schedule:
    r"""Spread what is left of a budget over equal rounds.

    Parameters
    ----------
    ledger
        Its remainder is spread.
    measure_share
        Share :math:`\alpha` for measuring; the rest selects.
    n_rounds
        Number of rounds :math:`T`.

    Returns
    -------
    schedule
        ``n_rounds`` rounds of it never exceed the remainder, rounding included.

    Raises
    ------
    BudgetError
        If the remainder is too small to be spread.

    Notes
    -----
    :math:`\sigma = \sqrt{T / (2 \alpha \rho)}` and
    :math:`\epsilon = \sqrt{8 (1 - \alpha) \rho / T}`. The ledger rounds each price up to a
    whole unit, so two units a round are set aside before the rest is spread.
    """
    spendable_units = ledger.left_units - 2 * n_rounds
    if spendable_units < 1:
        raise BudgetError(
            f"Expected enough rho for {n_rounds} rounds; got {ledger.left!r}. Raise epsilon: "
            "noise at this level leaves nothing of the data."
        )
    rho = float(spendable_units * RHO_UNIT) * (1.0 - _SLACK)
    return Schedule(
        stddev=math.sqrt(n_rounds / (2.0 * measure_share * rho)),
        epsilon=math.sqrt(8.0 * (1.0 - measure_share) * rho / n_rounds),
    )
