r"""From :math:`(\epsilon, \delta)` to zCDP and back, never in the optimistic direction."""

import math
from collections.abc import Callable
from fractions import Fraction

from scipy.optimize import minimize_scalar

from prisma_sbi._errors import BudgetError
from prisma_sbi.privacy.ledger import RHO_UNIT

_LOG_ORDER_RANGE = (-20.0, 60.0)
"""Search range for log(alpha - 1); any order gives a valid bound, the best a tight one."""
_RELATIVE_MARGIN = 1e-12
"""Taken off (or put on) results so that rounding of floats cannot favor the optimist."""


def rho_from_epsilon_delta(epsilon: float, delta: float) -> float:
    r"""Largest zCDP parameter that implies :math:`(\epsilon, \delta)`-DP.

    Parameters
    ----------
    epsilon
        Greater than zero and finite.
    delta
        Strictly between 0 and 1.

    Returns
    -------
    rho
        Rounded down, to a whole number of ledger units.

    Raises
    ------
    BudgetError
        If a parameter is outside its range, or epsilon is so small that no unit is left.

    Notes
    -----
    A :math:`\rho`-zCDP mechanism is :math:`(\epsilon, \delta)`-DP if for some
    :math:`\alpha > 1` [1]_

    .. math:: \epsilon \ge \alpha\rho + \log\frac{\alpha - 1}{\alpha}
        + \frac{\log(1/\delta) - \log\alpha}{\alpha - 1}.

    The bound is solved for :math:`\rho` and maximized over :math:`\alpha`. Whatever order
    the search ends at, the result is valid.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy, 2020.
       https://doi.org/10.29012/jpc.784

    Examples
    --------
    >>> round(rho_from_epsilon_delta(0.5, 1e-5), 6)
    0.008506
    """
    _require_epsilon(epsilon)
    _require_delta(delta)

    def negative_rho(log_order: float) -> float:
        order = 1.0 + math.exp(log_order)
        return -(epsilon - _order_terms(log_order, delta)) / order

    rho = -negative_rho(_best_order(negative_rho)) * (1.0 - _RELATIVE_MARGIN)
    n_units = math.floor(Fraction(rho) / RHO_UNIT) if rho > 0 else 0
    if n_units < 1:
        raise BudgetError(
            f"Expected a budget that can pay for something; got epsilon={epsilon!r}, "
            f"delta={delta!r}. Raise epsilon: noise at this level leaves nothing of the data."
        )
    # The nearest float of a fraction may lie above it.
    return math.nextafter(float(n_units * RHO_UNIT), 0.0)


def epsilon_from_rho_delta(rho: float, delta: float) -> float:
    r"""Smallest :math:`\epsilon` that the bound of Canonne, Kamath and Steinke grants.

    Parameters
    ----------
    rho
        zCDP parameter, not negative and finite.
    delta
        Strictly between 0 and 1.

    Returns
    -------
    epsilon
        Rounded up; 0 for ``rho = 0``.

    Raises
    ------
    BudgetError
        If a parameter is outside its range.

    Notes
    -----
    The bound of :func:`rho_from_epsilon_delta`, minimized over :math:`\alpha`.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy, 2020.
       https://doi.org/10.29012/jpc.784

    Examples
    --------
    >>> round(epsilon_from_rho_delta(0.0085, 1e-5), 3)
    0.5
    """
    if not (math.isfinite(rho) and rho >= 0):
        raise BudgetError(f"Expected a finite rho >= 0; got rho={rho!r}.")
    _require_delta(delta)
    if rho == 0:
        return 0.0

    def epsilon_at(log_order: float) -> float:
        return (1.0 + math.exp(log_order)) * rho + _order_terms(log_order, delta)

    epsilon = epsilon_at(_best_order(epsilon_at))
    return max(epsilon, 0.0) * (1.0 + _RELATIVE_MARGIN)


def _order_terms(log_order: float, delta: float) -> float:
    """Terms of the bound that do not depend on rho, at ``log_order = log(alpha - 1)``."""
    excess = math.exp(log_order)
    log_order_itself = math.log1p(excess)
    return (log_order - log_order_itself) - (math.log(delta) + log_order_itself) / excess


def _best_order(objective: Callable[[float], float]) -> float:
    """Where the objective is smallest: a scan, then a bounded search around its best point."""
    low, high = _LOG_ORDER_RANGE
    points = [low + 0.25 * step for step in range(round((high - low) * 4) + 1)]
    best = min(points, key=objective)
    found = minimize_scalar(
        objective, bounds=(best - 0.25, best + 0.25), method="bounded", options={"xatol": 1e-10}
    )
    return float(found.x)


def _require_epsilon(epsilon: float) -> None:
    """Raise unless epsilon is positive and finite."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise BudgetError(
            f"Expected a finite epsilon > 0; got epsilon={epsilon!r}. "
            "For a study without privacy use the mechanism 'none'."
        )


def _require_delta(delta: float) -> None:
    """Raise unless delta lies strictly between 0 and 1."""
    if not 0 < delta < 1:
        raise BudgetError(
            f"Expected 0 < delta < 1; got delta={delta!r}. "
            "Choose it well below one over the number of records, for instance 1e-5."
        )
