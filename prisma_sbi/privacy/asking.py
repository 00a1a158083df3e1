"""The questions that may be put to a private table, each paid for before it is put."""

import numpy as np

from prisma_sbi._errors import BudgetError
from prisma_sbi.privacy.candidates import Scores
from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.contribution import Contribution
from prisma_sbi.privacy.ledger import Ledger, gaussian_rho, selection_rho
from prisma_sbi.privacy.measurement import Measurement
from prisma_sbi.privacy.noise import NoiseSource
from prisma_sbi.privacy.schedule import schedule_for
from prisma_sbi.privacy.workload import Columns

LARGEST_COUNT_STDDEV = 1e5
"""A number of trips with more noise than this says nothing, and may ask for a huge table."""


def measure(
    table: CodedTable, columns: Columns, multiplier: float, ledger: Ledger, noise: NoiseSource
) -> tuple[Ledger, Measurement]:
    r"""Pay for one noisy marginal, then take it.

    *Guarantee.* Neighboring tables differ by one record, which moves the integer counts by at
    most :math:`\Delta_2`, see :class:`~prisma_sbi.privacy.contribution.Contribution`. Released:
    the counts with discrete Gaussian noise of scale :math:`\sigma \Delta_2`, at the price
    :math:`1 / (2 \sigma^2)`; dividing them by the weight of a trip is post-processing.

    Parameters
    ----------
    table
        The private table.
    columns
        Columns of the marginal.
    multiplier
        :math:`\sigma`.
    ledger
        Pays.
    noise
        Source of the noise.

    Returns
    -------
    ledger
        With the spend.
    measurement
        In trips.
    """
    contribution = table.contribution
    stddev = contribution.stddev(multiplier)
    scale = stddev * contribution.weight_total
    rho = gaussian_rho(scale, l2_squared=contribution.l2_squared)
    ledger = ledger.spend(f"measure columns {columns} at stddev {stddev:.6g}", rho)
    noisy = noise.gaussian(
        table.count(columns), stddev=scale, rho=rho, l2_squared=contribution.l2_squared
    )
    values = noisy.astype(np.float64) / contribution.weight_total
    return ledger, Measurement(columns=columns, values=values, stddev=stddev)


def choose(
    scores: Scores, epsilon: float, ledger: Ledger, noise: NoiseSource
) -> tuple[Ledger, int]:
    """Pay for one private selection, then make it.

    *Guarantee.* Neighboring tables differ by one record, which moves every score by at most
    ``scores.sensitivity``. Released: the position of a high score, by the exponential
    mechanism, at the price ``epsilon**2 / 8``.
    """
    rho = selection_rho(epsilon)
    ledger = ledger.spend(f"select a marginal at epsilon {epsilon:.6g}", rho)
    # Private: the only look at the scores is through the noise source, already paid for.
    index = noise.select(scores.values, sensitivity=scores.sensitivity, epsilon=epsilon, rho=rho)
    return ledger, index


def count_noise(contribution: Contribution, share: float, ledger: Ledger) -> float:
    """Noise in trips on the number of trips, for a share of the budget; from public numbers.

    Raises
    ------
    BudgetError
        If it is so large that the number would be nothing but noise.
    """
    stddev = schedule_for(ledger, share).stddev * contribution.trips
    if stddev > LARGEST_COUNT_STDDEV:
        raise BudgetError(
            f"Expected a budget that can count trips; got noise of {stddev:.3g} trips. "
            "Raise epsilon or count_share, or give a public n_rows."
        )
    return stddev


def count_trips(
    n_trips: int, contribution: Contribution, share: float, ledger: Ledger, noise: NoiseSource
) -> tuple[Ledger, int, float]:
    r"""Pay for the number of trips, then measure it; at least one.

    *Guarantee.* One record more or less moves the number by at most the :math:`k` trips of a
    record, and a replacement moves it no further. Released: the number with discrete Gaussian
    noise of scale :math:`\sigma k`, at the price :math:`1 / (2 \sigma^2)`.

    Returns
    -------
    ledger
        With the spend.
    n_rows
        The noisy number; numbers below one become one.
    stddev
        Its noise, in trips.
    """
    stddev = count_noise(contribution, share, ledger)
    l2_squared = contribution.trips**2
    rho = gaussian_rho(stddev, l2_squared=l2_squared)
    ledger = ledger.spend(f"count the trips at stddev {stddev:.6g}", rho)
    counted = np.array([n_trips], dtype=np.int64)
    noisy = noise.gaussian(counted, stddev=stddev, rho=rho, l2_squared=l2_squared)
    return ledger, max(int(noisy[0]), 1), stddev
