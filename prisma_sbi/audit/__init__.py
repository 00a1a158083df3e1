"""Attacks that test whether a release keeps what it promises."""

from prisma_sbi.audit.bound import Attack, epsilon_bound, lower_limit, rho_bound, upper_limit
from prisma_sbi.audit.canary import choose_canary, neighbor_with
from prisma_sbi.audit.mechanism import audit_noise, audit_selection
from prisma_sbi.audit.record import AuditResult, Claim
from prisma_sbi.audit.synthesis import audit_synthesis, audit_traces

__all__ = [
    "Attack",
    "AuditResult",
    "Claim",
    "audit_noise",
    "audit_selection",
    "audit_synthesis",
    "audit_traces",
    "choose_canary",
    "epsilon_bound",
    "lower_limit",
    "neighbor_with",
    "rho_bound",
    "upper_limit",
]
