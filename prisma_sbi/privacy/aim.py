"""AIM: measure what the model gets wrong, as far as the budget goes."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prisma_sbi.privacy.asking import choose, measure
from prisma_sbi.privacy.candidates import (
    affordable_candidates,
    expected_noise,
    score_candidates,
)
from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.graphical import GraphicalModel, fit_model
from prisma_sbi.privacy.ledger import RHO_UNIT, Ledger
from prisma_sbi.privacy.measurement import Measurement, merge
from prisma_sbi.privacy.noise import NoiseSource
from prisma_sbi.privacy.schedule import Schedule, schedule_for
from prisma_sbi.privacy.settings import SynthesisSettings, Workload
from prisma_sbi.privacy.workload import (
    Columns,
    downward_closure,
    overlap_weights,
    workload_marginals,
)

Progress = Callable[[float, str], None]
"""Called with the share of the budget spent and a line of text; sees released facts only."""
FINAL_ITERATIONS = 4
"""The last estimation takes this many times the steps of the others."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """What a mechanism hands over: a model and the record of how it came about.

    Attributes
    ----------
    model
        Fitted to the measurements.
    measurements
        Noisy marginals.
    ledger
        Every spend.
    """

    model: GraphicalModel
    measurements: list[Measurement]
    ledger: Ledger


def fit_independent(
    table: CodedTable,
    *,
    n_rows: int,
    ledger: Ledger,
    settings: SynthesisSettings,
    noise: NoiseSource,
    progress: Progress | None = None,
) -> Fit:
    r"""Fit every column on its own, the whole budget in equal parts.

    *Guarantee.* Neighboring tables differ by one record, of which ``table.contribution`` says
    how far it moves a count. Released: one noisy marginal per column, under
    :math:`\rho`-zCDP with the :math:`\rho` in the ledger. ``n_rows`` is a public number.

    ========================= =========================================
    Case                      Result
    ========================= =========================================
    an empty table            noise around zero, the same guarantee
    a column with one bin     measured like any other
    ========================= =========================================
    """
    n_columns = len(table.shape)
    share = schedule_for(ledger, 1.0, n_rounds=n_columns)
    measurements: list[Measurement] = []
    for column in range(n_columns):
        ledger, new = measure(table, (column,), share.stddev, ledger, noise)
        measurements = merge(measurements, new)
        if progress is not None:
            share_spent = ledger.used / ledger.budget
            progress(share_spent, f"measured column {column} at stddev {new.stddev:.3g}")
    model = fit_model(
        measurements,
        shape=table.shape,
        n_rows=n_rows,
        n_iterations=FINAL_ITERATIONS * settings.estimation_iterations,
    )
    return Fit(model=model, measurements=measurements, ledger=ledger)


def fit_aim(
    table: CodedTable,
    *,
    n_rows: int,
    ledger: Ledger,
    settings: SynthesisSettings,
    noise: NoiseSource,
    progress: Progress | None = None,
) -> Fit:
    r"""Fit a graphical model by the adaptive and iterative mechanism.

    *Guarantee.* Neighboring tables differ by one record, of which ``table.contribution`` says
    how far it moves a count. Released: noisy marginals and the choice of which to measure, under
    :math:`\rho`-zCDP with :math:`\rho` the budget of the ledger, composed adaptively by a
    zCDP filter: every step is paid before the data is asked, and the ledger refuses what is
    not left. Assumes that ``n_rows``, the bins and all settings are public, and that
    ``noise`` is :class:`~prisma_sbi.privacy.noise.SystemNoise`.

    ============================= ==========================================================
    Case                          Result
    ============================= ==========================================================
    an empty table                noise around zero, the same guarantee
    one column                    only that column is measured
    no pair fits the size limit   one-way marginals are measured again
    a small budget                one-way marginals only; the release carries a warning
    ============================= ==========================================================

    Parameters
    ----------
    table
        The private table.
    n_rows
        Public number of rows to draw later; the total of the model.
    ledger
        A ledger with budget left; all of it is spent.
    settings
        Workload, size limit, and schedule.
    noise
        Source of noise and selections.
    progress
        Called after every round.

    Returns
    -------
    fit
        Model, measurements and the spent ledger.

    Notes
    -----
    Algorithm 4 of [1]_ with its published defaults: :math:`T = 16 d` planned rounds; one-way
    marginals first; the junction tree may use the share of ``max_model_mib`` that has been
    spent of the budget; when a measurement moves its marginal by less than the noise is
    expected to, the next round gets twice :math:`\epsilon` and half :math:`\sigma`; the last
    round takes what is left.

    References
    ----------
    .. [1] McKenna, Mullins, Sheldon and Miklau, AIM: An Adaptive and Iterative Mechanism for
       Differentially Private Synthetic Data, 2022. https://doi.org/10.14778/3551793.3551817
    """
    columns = range(len(table.shape))
    marginals = workload_marginals(Workload(settings.workload), len(columns))
    weights = overlap_weights(downward_closure(marginals), marginals)
    share = settings.measure_share
    schedule = schedule_for(ledger, share, n_rounds=settings.rounds_per_column * len(columns))

    measurements: list[Measurement] = []
    for column in columns:
        ledger, new = measure(table, (column,), schedule.stddev, ledger, noise)
        measurements = merge(measurements, new)
    n_iterations = settings.estimation_iterations
    model = fit_model(measurements, shape=table.shape, n_rows=n_rows, n_iterations=n_iterations)
    fit = Fit(model=model, measurements=measurements, ledger=ledger)

    last = False
    while not last:
        last = fit.ledger.left_units * RHO_UNIT <= 2 * schedule.rho
        if last:
            schedule = schedule_for(fit.ledger, share)
        limit_mib = _spent_share(fit.ledger, schedule) * settings.max_model_mib
        measured = [item.columns for item in fit.measurements]
        open_now = affordable_candidates(
            tuple(weights), measured, shape=table.shape, limit_mib=limit_mib
        )
        chosen, ledger = _select(
            table, fit, {candidate: weights[candidate] for candidate in open_now}, schedule, noise
        )
        ledger, new = measure(table, chosen, schedule.stddev, ledger, noise)
        n_steps = FINAL_ITERATIONS * n_iterations if last else n_iterations
        before = fit.model.count(chosen)
        fit = _refit(fit, new, ledger, n_steps)
        # Safe: both models come from released measurements alone.
        moved = float(np.abs(fit.model.count(chosen) - before).sum())
        if progress is not None:
            progress(
                ledger.used / ledger.budget,
                f"measured columns {chosen} at stddev {new.stddev:.3g}",
            )
        if moved <= expected_noise(new.stddev, len(before)):
            schedule = schedule.anneal()
    return fit


def _spent_share(ledger: Ledger, schedule: Schedule) -> float:
    """Share of the budget that is spent once the next round has been paid."""
    spent = ledger.used_units * RHO_UNIT + schedule.rho
    return min(float(spent / (ledger.budget_units * RHO_UNIT)), 1.0)


def _select(
    table: CodedTable,
    fit: Fit,
    weights: dict[Columns, int],
    schedule: Schedule,
    noise: NoiseSource,
) -> tuple[Columns, Ledger]:
    """Select a marginal that the model gets wrong."""
    stddev = table.contribution.stddev(schedule.stddev)
    scores = score_candidates(table, fit.model, weights, stddev=stddev)
    ledger, index = choose(scores, schedule.epsilon, fit.ledger, noise)
    return tuple(weights)[index], ledger


def _refit(fit: Fit, new: Measurement, ledger: Ledger, n_steps: int) -> Fit:
    """Fit the model again, with one more measurement."""
    measurements = merge(fit.measurements, new)
    model = fit_model(
        measurements,
        shape=fit.model.shape,
        n_rows=fit.model.n_rows,
        n_iterations=n_steps,
        start=fit.model,
    )
    return Fit(model=model, measurements=measurements, ledger=ledger)
