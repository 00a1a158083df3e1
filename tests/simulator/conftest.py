"""Fixtures of the simulator's tests."""

import jax
import pytest

from prisma_sbi.region.constants import Constants


@pytest.fixture
def x64():
    """Double precision for one test."""
    with jax.enable_x64():
        yield


@pytest.fixture
def constants():
    return Constants(horizon_s=300)
