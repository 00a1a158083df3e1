import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi.privacy.elimination import marginal_probabilities

SHAPE = (3, 4, 5, 2)


@settings(deadline=None, max_examples=40)
@given(
    scopes=st.lists(
        st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True).map(sorted), max_size=5
    ),
    keep=st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True).map(sorted),
    scale=st.sampled_from([1.0, 300.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_marginals_equal_brute_force(scopes, keep, scale, seed):
    rng = np.random.default_rng(seed)
    factors = [
        (tuple(scope), scale * rng.normal(size=[SHAPE[column] for column in scope]))
        for scope in scopes
    ]
    joint = np.zeros(SHAPE)
    for scope, table in factors:
        joint = joint + table.reshape([SHAPE[i] if i in scope else 1 for i in range(4)])
    joint = np.exp(joint - joint.max())
    hidden = tuple(column for column in range(4) if column not in keep)
    expected = joint.sum(axis=hidden) / joint.sum()
    found = marginal_probabilities(factors, SHAPE, tuple(keep))
    assert found.shape == tuple(SHAPE[column] for column in keep)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_potentials_of_any_size_stay_finite():
    huge = np.array([[0.0, 1e5], [-1e5, 0.0], [3.0, 0.0]])
    found = marginal_probabilities([((0, 3), huge), ((3,), np.array([0.0, -1e5]))], SHAPE, (0,))
    assert np.all(np.isfinite(found))
    assert found.sum() == pytest.approx(1.0)
