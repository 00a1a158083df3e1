"""What a budget can pay for, before any of it is spent."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from prisma_sbi import _validate
from prisma_sbi.descriptors.layout import TableLayout
from prisma_sbi.privacy.accounting import rho_from_epsilon_delta
from prisma_sbi.privacy.candidates import expected_noise
from prisma_sbi.privacy.graphical import model_size_mib
from prisma_sbi.privacy.ledger import Ledger
from prisma_sbi.privacy.schedule import schedule_for
from prisma_sbi.privacy.settings import SynthesisSettings, Workload
from prisma_sbi.privacy.workload import Columns, downward_closure, workload_marginals


def plan_synthesis(
    layout: TableLayout, settings: SynthesisSettings, *, n_rows: int
) -> pd.DataFrame:
    r"""Estimate which marginals a budget can pay for, from public numbers alone.

    Parameters
    ----------
    layout
        Columns and bins.
    settings
        Budget and workload.
    n_rows
        Public number of rows.

    Returns
    -------
    plan
        One row per candidate: ``columns``, ``n_cells``, ``model_mib`` (junction tree with all
        single columns and this candidate), ``noise_share_first`` and ``noise_share_best``
        (expected L1 noise over ``n_rows``, in the first round and if one round got the whole
        budget), ``fits`` (within the size limit) and ``affordable``. Attributes hold ``rho``,
        ``stddev_first``, ``epsilon_first`` and ``stddev_best``.

    Raises
    ------
    BudgetError
        If epsilon or delta is outside its range.
    ValueError
        If ``n_rows`` is less than one.

    Notes
    -----
    AIM prefers a marginal whose error under the current model,
    :math:`\|M_r(D) - M_r(p)\|_1 \le 2N`, exceeds the expected noise
    :math:`\sqrt{2/\pi}\,\sigma\,n_r`. A marginal counts as affordable if the noise is below
    :math:`N`, half of the largest error there can be.
    """
    _validate.at_least(1, n_rows=n_rows)
    rho = rho_from_epsilon_delta(settings.epsilon, settings.delta)
    shape, share = layout.shape, settings.measure_share
    ledger = Ledger.open(rho)
    first = schedule_for(ledger, share, n_rounds=settings.rounds_per_column * len(shape))
    best = schedule_for(ledger, share)
    candidates = downward_closure(workload_marginals(Workload(settings.workload), len(shape)))
    rows = [_row(columns, layout) for columns in candidates]
    plan = pd.DataFrame(rows)
    for name, schedule in (("noise_share_first", first), ("noise_share_best", best)):
        plan[name] = [expected_noise(schedule.stddev, cells) / n_rows for cells in plan["n_cells"]]
    plan["fits"] = plan["model_mib"] <= settings.max_model_mib
    plan["affordable"] = plan["fits"] & (plan["noise_share_best"] < 1.0)
    plan.attrs.update(
        rho=rho,
        stddev_first=first.stddev,
        epsilon_first=first.epsilon,
        stddev_best=best.stddev,
    )
    return plan


def _row(columns: Columns, layout: TableLayout) -> dict[str, object]:
    """Facts about one candidate."""
    shape: Sequence[int] = layout.shape
    singles: list[Columns] = [(column,) for column in range(len(shape))]
    return {
        "columns": tuple(layout.names[column] for column in columns),
        "n_cells": int(np.prod([shape[column] for column in columns])),
        "model_mib": model_size_mib([*singles, columns], tuple(shape)),
    }
