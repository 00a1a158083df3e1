"""The two questions that may be put to a private table, each paid for before it is put."""

import numpy as np

from prisma_sbi.privacy.candidates import Scores
from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.ledger import Ledger, gaussian_rho, selection_rho
from prisma_sbi.privacy.measurement import Measurement
from prisma_sbi.privacy.noise import NoiseSource
from prisma_sbi.privacy.workload import Columns


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
