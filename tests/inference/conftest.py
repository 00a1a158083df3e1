"""Fixtures of the estimators' tests."""

import jax
import pytest


@pytest.fixture
def x64():
    """Double precision for one test."""
    with jax.enable_x64():
        yield
