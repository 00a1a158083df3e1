"""Classes of options: by hand, by brute force, and what must hold for any distances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prisma_sbi.diagnostics import (
    confusion,
    effective_number,
    equivalence_classes,
    representatives,
)


def line(*places):
    return np.abs(np.subtract.outer(np.asarray(places, float), np.asarray(places, float)))


def test_a_chain_is_one_component_and_several_classes():
    distance = line(0.0, 0.9, 1.8, 5.0, 5.1)
    assert equivalence_classes(distance, 1.0, linkage_method="single").tolist() == [0, 0, 0, 1, 1]
    complete = equivalence_classes(distance, 1.0)
    assert len(np.unique(complete)) == 3
    assert complete[3] == complete[4]
    assert equivalence_classes(distance, 1.8).tolist() == [0, 0, 0, 1, 1]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 15), st.floats(0.0, 3.0), st.integers(0, 2**31))
def test_classes_keep_their_promise(n, threshold, seed):
    places = np.random.default_rng(seed).normal(size=(n, 2))
    distance = np.linalg.norm(places[:, None] - places, axis=-1)
    complete = equivalence_classes(distance, threshold)
    for label in range(complete.max() + 1):
        members = np.flatnonzero(complete == label)
        assert distance[np.ix_(members, members)].max() <= threshold + 1e-12
    # Connected components, by following neighbors until nothing changes.
    reach = distance <= threshold
    for _ in range(n):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    single = equivalence_classes(distance, threshold, linkage_method="single")
    np.testing.assert_array_equal(single[:, None] == single, reach)
    chosen = representatives(distance, complete)
    assert complete[chosen].tolist() == list(range(complete.max() + 1))


def test_representative_is_in_the_middle():
    distance = line(0.0, 1.0, 2.2, 9.0)
    label = np.asarray([0, 0, 0, 1])
    assert representatives(distance, label).tolist() == [1, 3]


def test_confusion_and_effective_number_by_hand():
    probability = np.asarray([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.25, 0.75]])
    found = confusion(probability, np.asarray([0, 0, 2]))
    np.testing.assert_allclose(found[0], [0.75, 0.25, 0.0])
    assert np.all(np.isnan(found[1]))
    np.testing.assert_allclose(found[2], probability[2])
    np.testing.assert_allclose(effective_number(probability)[:2], [2.0, 1.0])
    assert effective_number(np.full(7, 1.0 / 7.0)) == pytest.approx(7.0)


@pytest.mark.parametrize(
    "bad", [np.ones((2, 3)), np.asarray([[0.0, 1.0], [2.0, 0.0]]), np.full((2, 2), np.nan)]
)
def test_wrong_distances_are_refused(bad):
    with pytest.raises(ValueError, match="distances"):
        equivalence_classes(bad, 1.0)
