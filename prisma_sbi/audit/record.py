"""What an audit found, beside what was claimed."""

from dataclasses import asdict, dataclass
from typing import Any

from prisma_sbi import _validate
from prisma_sbi.audit.bound import Attack, Scores, best_attack


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a mechanism says of itself.

    Attributes
    ----------
    epsilon, delta
        Differential privacy; between which tables, the settings say.
    rho
        The same in zCDP.
    """

    epsilon: float
    delta: float
    rho: float


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """Empirical lower bounds on the privacy parameters, with the claim.

    Attributes
    ----------
    level
        What was attacked: noise, selection, table, or traces.
    claim
        What was claimed.
    epsilon_low, rho_low
        The true parameters are at least this, both together with the confidence. Zero says
        that the attack found nothing, not that there is nothing to find.
    confidence
        Probability, over the runs, that both bounds are below the truth.
    n_runs
        Runs with the canary; as many were made without.
    n_records
        Trips in the table without the canary.
    noise
        Source of the noise.
    epsilon_attack, rho_attack
        The attacks behind the two bounds.
    """

    level: str
    claim: Claim
    epsilon_low: float
    rho_low: float
    confidence: float
    n_runs: int
    n_records: int
    noise: str
    epsilon_attack: Attack
    rho_attack: Attack

    @property
    def caught(self) -> bool:
        """Whether a claim is refuted: a lower bound lies above it."""
        return self.epsilon_low > self.claim.epsilon or self.rho_low > self.claim.rho

    @property
    def text(self) -> str:
        """The finding in words."""
        claim, rates = self.claim, self.rho_attack
        verdict = (
            "The claim is refuted: the mechanism reveals more than it says."
            if self.caught
            else "The claim stands: no attack tried here goes beyond it."
        )
        return (
            f"{self.level}: epsilon is at least {self.epsilon_low:.3g} (claimed "
            f"{claim.epsilon:.3g} at delta = {claim.delta:g}) and rho at least "
            f"{self.rho_low:.3g} (claimed {claim.rho:.3g}), with {100 * self.confidence:g} % "
            f"confidence from {self.n_runs:,} runs with and without a canary. Best guess: "
            f"{rates.statistic}, right with the canary in {rates.true_positive_rate:.1%} and wrong "
            f"without it in {rates.false_positive_rate:.1%}. {verdict}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self) | {"caught": self.caught, "text": self.text}


def judge(
    level: str,
    claim: Claim,
    without: Scores,
    with_canary: Scores,
    *,
    confidence: float,
    n_records: int,
    noise: object,
) -> AuditResult:
    """Compare two worlds of runs with a claim.

    The error is shared equally between the two bounds, and within each between the two rates.
    """
    _validate.in_range(0.5, 1.0, confidence=confidence)
    error = (1.0 - confidence) / 2.0
    epsilon_low, by_epsilon = best_attack(without, with_canary, error=error, delta=claim.delta)
    rho_low, by_rho = best_attack(without, with_canary, error=error, delta=None)
    return AuditResult(
        level=level,
        claim=claim,
        epsilon_low=epsilon_low,
        rho_low=rho_low,
        confidence=confidence,
        n_runs=len(next(iter(with_canary.values()))),
        n_records=n_records,
        noise=type(noise).__name__,
        epsilon_attack=by_epsilon,
        rho_attack=by_rho,
    )
