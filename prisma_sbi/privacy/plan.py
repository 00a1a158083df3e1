"""What a budget can pay for, before any of it is spent."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from prisma_sbi import _validate
from prisma_sbi.descriptors.layout import TableLayout
from prisma_sbi.privacy.accounting import rho_from_epsilon_delta
from prisma_sbi.privacy.asking import count_noise
from prisma_sbi.privacy.candidates import expected_noise
from prisma_sbi.privacy.contribution import Contribution
from prisma_sbi.privacy.graphical import model_size_mib
from prisma_sbi.privacy.ledger import Ledger, gaussian_rho
from prisma_sbi.privacy.mst import SINGLES_SHARE, mst_schedules
from prisma_sbi.privacy.release import Guarantee
from prisma_sbi.privacy.schedule import schedule_for
from prisma_sbi.privacy.settings import Mechanism, SynthesisSettings, Workload
from prisma_sbi.privacy.workload import Columns, downward_closure, workload_marginals


def plan_synthesis(
    layout: TableLayout, settings: SynthesisSettings, *, n_rows: int, weight_total: int = 1
) -> pd.DataFrame:
    r"""Estimate which marginals a budget can pay for, from public numbers alone.

    Parameters
    ----------
    layout
        Columns and bins.
    settings
        Mechanism, budget, unit, workload.
    n_rows
        Public number of rows; with a private one, the number to plan for.
    weight_total
        Units of weight in one trip, more than one for posterior draws. It changes no noise.

    Returns
    -------
    plan
        One row per marginal that the mechanism may measure: ``columns``, ``n_cells``,
        ``model_mib`` (junction tree with all single columns and this one),
        ``noise_share_first`` and ``noise_share_best`` (expected L1 noise over ``n_rows``; for
        AIM in the first round and if one round got the whole budget, for others the same),
        ``fits`` (within the size limit) and ``affordable``. Attributes hold ``rho``,
        ``stddev_first``, ``epsilon_first`` and ``stddev_best``, in trips for a single column,
        ``count_stddev`` (of a private number of rows, or None), ``hides`` (what a record is)
        and ``statement`` (the guarantee that the release would carry).

    Raises
    ------
    BudgetError
        If epsilon or delta is outside its range, or the budget too small.
    ValueError
        If ``n_rows`` is less than one, or there is no mechanism.

    Notes
    -----
    AIM prefers a marginal whose error under the current model,
    :math:`\|M_r(D) - M_r(p)\|_1 \le 2N`, exceeds the expected noise
    :math:`\sqrt{2/\pi}\,\sigma\,n_r`. A marginal counts as affordable if the noise is below
    :math:`N`, half of the largest error there can be.
    """
    _validate.at_least(1, n_rows=n_rows)
    if settings.mechanism == Mechanism.NONE:
        raise ValueError("Expected a mechanism that spends a budget; got 'none'. There is no plan.")
    contribution = Contribution.of(settings, weight_total=weight_total)
    rho = rho_from_epsilon_delta(settings.epsilon, settings.delta)
    ledger, count_stddev = Ledger.open(rho), None
    if isinstance(settings.n_rows, str):
        count_stddev = count_noise(contribution, settings.count_share, ledger)
        price = gaussian_rho(count_stddev, l2_squared=contribution.trips**2)
        ledger = ledger.spend("count the trips", price)
    first, best, epsilon = _multipliers(settings, ledger, len(layout.shape))
    plan = pd.DataFrame([_row(item, layout) for item in _candidates(settings, len(layout.shape))])
    for name, multipliers in (("noise_share_first", first), ("noise_share_best", best)):
        plan[name] = [
            expected_noise(contribution.stddev(multipliers[len(columns)]), cells) / n_rows
            for columns, cells in zip(plan["columns"], plan["n_cells"], strict=True)
        ]
    plan["fits"] = plan["model_mib"] <= settings.max_model_mib
    plan["affordable"] = plan["fits"] & (plan["noise_share_best"] < 1.0)
    guarantee = Guarantee(
        epsilon=settings.epsilon,
        delta=settings.delta,
        rho=rho,
        n_rows=n_rows,
        unit=contribution.unit,
        neighbors=contribution.neighbors,
        weight_total=weight_total,
        max_trips=contribution.trips,
        n_rows_stddev=count_stddev,
    )
    plan.attrs.update(
        rho=rho,
        stddev_first=contribution.stddev(first[1]),
        epsilon_first=epsilon,
        stddev_best=contribution.stddev(best[1]),
        count_stddev=count_stddev,
        hides=contribution.text,
        statement=guarantee.text,
    )
    return plan


def _candidates(settings: SynthesisSettings, n_columns: int) -> tuple[Columns, ...]:
    """Marginals that the mechanism may measure."""
    if settings.mechanism == Mechanism.INDEPENDENT:
        return tuple((column,) for column in range(n_columns))
    workload = Workload.PAIRS if settings.mechanism == Mechanism.MST else settings.workload
    return downward_closure(workload_marginals(Workload(workload), n_columns))


def _multipliers(
    settings: SynthesisSettings, ledger: Ledger, n_columns: int
) -> tuple[dict[int, float], dict[int, float], float | None]:
    """Noise multipliers by number of columns, first and best, and the first selection's epsilon."""
    if settings.mechanism == Mechanism.INDEPENDENT:
        each = {1: schedule_for(ledger, 1.0, n_rounds=n_columns).stddev}
        return each, each, None
    if settings.mechanism == Mechanism.MST:
        singles, epsilon = mst_schedules(ledger, n_columns)
        pairs = schedule_for(ledger, SINGLES_SHARE, n_rounds=max(n_columns - 1, 1)).stddev
        each = {1: singles, 2: pairs}
        return each, each, epsilon if n_columns > 1 else None
    n_rounds = settings.rounds_per_column * n_columns
    first = schedule_for(ledger, settings.measure_share, n_rounds=n_rounds)
    best = schedule_for(ledger, settings.measure_share)
    sizes = range(1, Workload(settings.workload).n_columns + 1)
    return (
        dict.fromkeys(sizes, first.stddev),
        dict.fromkeys(sizes, best.stddev),
        first.epsilon,
    )


def _row(columns: Columns, layout: TableLayout) -> dict[str, object]:
    """Facts about one candidate."""
    shape: Sequence[int] = layout.shape
    singles: list[Columns] = [(column,) for column in range(len(shape))]
    return {
        "columns": tuple(layout.names[column] for column in columns),
        "n_cells": int(np.prod([shape[column] for column in columns])),
        "model_mib": model_size_mib([*singles, columns], tuple(shape)),
    }
