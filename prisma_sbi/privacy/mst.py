"""MST: a tree of pairs, chosen privately once; the usual rival of AIM."""

from itertools import combinations

from prisma_sbi.privacy.aim import FINAL_ITERATIONS, Fit, Progress
from prisma_sbi.privacy.asking import choose, measure
from prisma_sbi.privacy.candidates import Scores, affordable_candidates, score_candidates
from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.graphical import GraphicalModel, fit_model
from prisma_sbi.privacy.ledger import Ledger
from prisma_sbi.privacy.measurement import Measurement, merge
from prisma_sbi.privacy.noise import NoiseSource
from prisma_sbi.privacy.schedule import schedule_for
from prisma_sbi.privacy.settings import SynthesisSettings
from prisma_sbi.privacy.workload import Columns

SINGLES_SHARE = 1 / 3
"""Share of the budget for single columns; half of the rest chooses pairs, half measures them."""


def mst_schedules(ledger: Ledger, n_columns: int) -> tuple[float, float]:
    """Noise multiplier of single columns, and the parameter of each choice of a pair."""
    singles = schedule_for(ledger, SINGLES_SHARE, n_rounds=n_columns).stddev
    # Of a schedule that measures with two thirds, what is left to select is the third third.
    rounds = max(n_columns - 1, 1)
    return singles, schedule_for(ledger, 2 * SINGLES_SHARE, n_rounds=rounds).epsilon


def fit_mst(
    table: CodedTable,
    *,
    n_rows: int,
    ledger: Ledger,
    settings: SynthesisSettings,
    noise: NoiseSource,
    progress: Progress | None = None,
) -> Fit:
    r"""Fit a graphical model to a spanning tree of pairs.

    *Guarantee.* Neighboring tables differ by one record, of which ``table.contribution`` says
    how far it moves a count. Released: noisy marginals of all columns, the choice of a tree of
    pairs, and their noisy marginals, under :math:`\rho`-zCDP with :math:`\rho` the budget of
    the ledger; every step is paid before the data is asked. Assumes that ``n_rows``, the bins
    and all settings are public, and that ``noise`` is
    :class:`~prisma_sbi.privacy.noise.SystemNoise`.

    ============================= ==========================================================
    Case                          Result
    ============================= ==========================================================
    an empty table                noise around zero, the same guarantee
    one column                    it is measured twice
    a pair too large for the      not a candidate, whatever the data; the tree may fall into
    model's size limit            several
    no pair fits                  single columns are measured again; the release warns
    a small budget                pairs are measured all the same, and mostly noise
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
        Size limit and steps of estimation; the workload is always pairs.
    noise
        Source of noise and selections.
    progress
        Called after every measurement.

    Returns
    -------
    fit
        Model, measurements and the spent ledger.

    Notes
    -----
    As in [1]_ a third of the budget each goes to single columns, to choosing, and to pairs.
    Pairs are weighed by :math:`\|M_{ij}(D) - \hat M_i \hat M_j / N\|_1`, how far the model of
    independent columns is off, and a maximum spanning tree is grown by Kruskal's rule with the
    exponential mechanism in place of the maximum: :math:`d - 1` times one pair is chosen among
    those that join two parts of the forest. What a forest of fewer edges leaves is spent on
    measuring.

    References
    ----------
    .. [1] McKenna, Miklau and Sheldon, Winning the NIST Contest: A scalable and general approach
       to differentially private synthetic data, 2021. https://doi.org/10.29012/jpc.778
    """
    singles: list[Columns] = [(column,) for column in range(len(table.shape))]
    multiplier, epsilon = mst_schedules(ledger, len(singles))
    measurements: list[Measurement] = []
    n_iterations = settings.estimation_iterations

    def ask(targets: list[Columns], multiplier: float, ledger: Ledger) -> Ledger:
        """Measure some marginals."""
        for columns in targets:
            ledger, new = measure(table, columns, multiplier, ledger, noise)
            measurements[:] = merge(measurements, new)
            if progress is not None:
                text = f"measured columns {columns} at stddev {new.stddev:.3g}"
                progress(ledger.used / ledger.budget, text)
        return ledger

    ledger = ask(singles, multiplier, ledger)
    apart = fit_model(measurements, shape=table.shape, n_rows=n_rows, n_iterations=n_iterations)
    ledger, tree = _choose_tree(table, apart, epsilon, ledger, settings, noise)
    targets = tree or singles
    ledger = ask(targets, schedule_for(ledger, 1.0, n_rounds=len(targets)).stddev, ledger)
    model = fit_model(
        measurements,
        shape=table.shape,
        n_rows=n_rows,
        n_iterations=FINAL_ITERATIONS * n_iterations,
        start=apart,
    )
    return Fit(model=model, measurements=measurements, ledger=ledger)


def _choose_tree(
    table: CodedTable,
    apart: GraphicalModel,
    epsilon: float,
    ledger: Ledger,
    settings: SynthesisSettings,
    noise: NoiseSource,
) -> tuple[Ledger, list[Columns]]:
    """Grow a forest of the pairs that the model of single columns gets most wrong."""
    n_columns = len(table.shape)
    singles: list[Columns] = [(column,) for column in range(n_columns)]
    pairs = tuple(combinations(range(n_columns), 2))
    scores = score_candidates(table, apart, dict.fromkeys(pairs, 1), stddev=0.0)
    tree: list[Columns] = []
    while True:
        # Safe: who is a candidate follows from sizes and from pairs already released.
        joining = affordable_candidates(
            _joining(pairs, tree, n_columns),
            [*singles, *tree],
            shape=table.shape,
            limit_mib=settings.max_model_mib,
        )
        if not joining:
            return ledger, tree
        position = [pairs.index(pair) for pair in joining]
        some = Scores(values=scores.values[position], sensitivity=scores.sensitivity)
        ledger, index = choose(some, epsilon, ledger, noise)
        tree.append(joining[index])


def _joining(
    pairs: tuple[Columns, ...], tree: list[Columns], n_columns: int
) -> tuple[Columns, ...]:
    """Pairs whose two columns lie in different parts of the forest."""
    part = list(range(n_columns))
    for left, right in tree:
        old, new = part[right], part[left]
        part = [new if item == old else item for item in part]
    return tuple(pair for pair in pairs if part[pair[0]] != part[pair[1]])
