"""Audits of single steps: one noisy count, one private selection."""

from collections.abc import Callable

import numpy as np

from prisma_sbi import _validate
from prisma_sbi.audit.record import AuditResult, Claim, judge
from prisma_sbi.privacy import NoiseSource, SystemNoise, epsilon_from_rho_delta
from prisma_sbi.privacy.ledger import gaussian_rho, selection_rho

Progress = Callable[[int, int], None]
"""Called with runs done and runs in all."""
_N_BINS = 4
_N_CALLS = 200
"""Runs between two reports of progress."""


def audit_noise(
    *,
    stddev: float = 1.0,
    n_runs: int = 10_000,
    noise: NoiseSource | None = None,
    delta: float = 1e-5,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> AuditResult:
    r"""Attack one noisy one-way marginal, to see whether the noise is as wide as was paid for.

    Parameters
    ----------
    stddev
        Scale that is asked for; the claim is :math:`\rho = 1 / (2 \sigma^2)`.
    n_runs
        Calls with the canary, and as many without.
    noise
        By default the system's.
    delta
        For the claim in epsilon.
    confidence
        Of the bounds.
    progress
        Called now and then.

    Returns
    -------
    result

    Raises
    ------
    ValueError
        If a number is outside its range.

    Notes
    -----
    The two tables are empty but for the canary, so the bin of the canary holds 0 or 1 and
    nothing hides it. The best guess shows up to :math:`2/\pi` of :math:`\rho` if the noise
    is right and four times as much if it is half as wide: 10,000 runs tell these apart.
    """
    _validate.positive(stddev=stddev)
    _validate.at_least(4, n_runs=n_runs)
    source = noise or SystemNoise()
    rho = gaussian_rho(stddev)
    empty = np.zeros(_N_BINS, np.int64)
    counts = {False: empty, True: empty + np.eye(1, _N_BINS, dtype=np.int64)[0]}

    def run(*, canary: bool) -> float:
        return float(source.gaussian(counts[canary], stddev=stddev, rho=rho)[0])

    scores = _repeat(run, n_runs, progress)
    claim = Claim(epsilon=epsilon_from_rho_delta(float(rho), delta), delta=delta, rho=float(rho))
    return judge(
        "noise",
        claim,
        {"noisy count": scores[False]},
        {"noisy count": scores[True]},
        confidence=confidence,
        n_records=0,
        noise=source,
    )


def audit_selection(
    *,
    epsilon: float = 1.0,
    n_runs: int = 10_000,
    noise: NoiseSource | None = None,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> AuditResult:
    r"""Attack one private selection between two candidates.

    Parameters
    ----------
    epsilon
        Of the exponential mechanism; the claim is :math:`\rho = \epsilon^2 / 8`.
    n_runs
        Calls with the canary, and as many without.
    noise
        By default the system's.
    confidence
        Of the bounds.
    progress
        Called now and then.

    Returns
    -------
    result

    Raises
    ------
    ValueError
        If a number is outside its range.

    Notes
    -----
    The canary turns the order of the two around: it raises one score and lowers the other by
    the sensitivity, the most that the guarantee allows. At a small epsilon the guess by the
    selected candidate shows all of :math:`\rho`.
    """
    _validate.positive(epsilon=epsilon)
    _validate.at_least(4, n_runs=n_runs)
    source = noise or SystemNoise()
    rho, sensitivity = selection_rho(epsilon), 1024
    half = np.array([sensitivity, -sensitivity]) // 2
    scores_of = {False: -half, True: half}

    def run(*, canary: bool) -> float:
        chosen = source.select(scores_of[canary], sensitivity=sensitivity, epsilon=epsilon, rho=rho)
        return float(chosen == 0)

    scores = _repeat(run, n_runs, progress)
    return judge(
        "selection",
        Claim(epsilon=epsilon, delta=0.0, rho=float(rho)),
        {"candidate": scores[False]},
        {"candidate": scores[True]},
        confidence=confidence,
        n_records=0,
        noise=source,
    )


def _repeat(
    run: Callable[..., float], n_runs: int, progress: Progress | None
) -> dict[bool, np.ndarray]:
    """Scores of many runs, the two worlds in turn."""
    scores = {canary: np.empty(n_runs) for canary in (False, True)}
    for row in range(n_runs):
        for canary, found in scores.items():
            found[row] = run(canary=canary)
        if progress is not None and ((row + 1) % _N_CALLS == 0 or row + 1 == n_runs):
            progress(row + 1, n_runs)
    return scores
