"""Single steps: the right noise is not caught, narrower noise and a bare argmax are."""

import math

import pytest

from prisma_sbi.audit import audit_noise, audit_selection
from prisma_sbi.privacy import SeededNoise, ZeroNoise
from tests.audit.broken import GreedySelection, NarrowNoise

SURE = 0.999
"""System noise has no seed: a test of the right mechanism fails by chance this rarely."""


def test_right_noise_is_not_caught_and_the_bound_is_tight():
    seen = []
    found = audit_noise(
        n_runs=2_000, confidence=SURE, progress=lambda done, total: seen.append((done, total))
    )
    assert not found.caught
    assert 0.05 < found.rho_low < found.claim.rho == 0.5
    assert found.epsilon_low > 0.2
    assert "The claim stands" in found.text
    assert seen[-1] == (2_000, 2_000)
    assert len(seen) == 10


@pytest.mark.parametrize(("stddev", "factor"), [(1.0, 2), (3.0, 4)])
def test_narrower_noise_is_caught(stddev, factor):
    """With 2,000 runs: half the noise at a stddev of 1, a quarter at 3, where less is seen."""
    found = audit_noise(stddev=stddev, n_runs=2_000, noise=NarrowNoise(factor))
    assert found.caught
    assert found.rho_low > found.claim.rho
    assert "refuted" in found.text
    assert found.noise == "NarrowNoise"


def test_no_noise_at_all_is_caught_by_epsilon_too():
    found = audit_noise(n_runs=200, noise=ZeroNoise(), stddev=5.0)
    assert found.epsilon_low > found.claim.epsilon
    assert found.rho_low > found.claim.rho
    assert found.rho_attack.true_positive_rate == 1.0


def test_right_selection_is_not_caught():
    found = audit_selection(n_runs=2_000, confidence=SURE)
    assert not found.caught
    assert 0.0 < found.rho_low < found.claim.rho == 1 / 8
    assert found.claim.delta == 0.0


def test_selection_without_noise_is_caught():
    assert audit_selection(n_runs=200, noise=GreedySelection()).caught


def test_seeded_noise_repeats_its_audit():
    first, second = (audit_noise(n_runs=100, noise=SeededNoise(3)) for _ in range(2))
    assert first == second
    assert set(first.to_dict()) >= {"caught", "text", "claim", "epsilon_low", "rho_low"}


@pytest.mark.parametrize(
    "wrong", [{"stddev": 0.0}, {"n_runs": 3}, {"confidence": 1.1}, {"stddev": math.nan}]
)
def test_impossible_numbers_are_refused(wrong):
    with pytest.raises(ValueError, match="Expected"):
        audit_noise(**({"n_runs": 10} | wrong))
    with pytest.raises(ValueError, match="epsilon"):
        audit_selection(epsilon=-1.0)
