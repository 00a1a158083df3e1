"""Membership inference: a leaky release is found out, an honest one is not."""

import json

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation import nearness, trace_features
from prisma_sbi.evaluation.nearness import _measures, nearest_distances


def traces(n_trips, seed):
    """Random traces of one law."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(n_trips, 60))
    return 8_000 * np.abs(np.cumsum(steps, axis=1)) * rng.uniform(0.5, 1.5, (n_trips, 1))


MEMBERS, OTHERS, HONEST = traces(150, 0), traces(200, 1), traces(120, 2)


def test_copies_are_found_out():
    found = nearness(MEMBERS, OTHERS, MEMBERS[:140])
    assert found.auc.value > 0.95
    assert found.is_telling
    assert found.n_copied == 140
    assert found.n_copied_held_out == 0
    assert found.true_positive_at_1.value > 0.9
    assert found.distance_ratio.value == 0.0
    assert "nearer to the trips they were made from" in found.text


def test_noisy_copies_are_found_out_too():
    rng = np.random.default_rng(3)
    blurred = MEMBERS * np.exp(0.01 * rng.normal(size=MEMBERS.shape))
    found = nearness(MEMBERS, OTHERS, blurred)
    assert found.auc.value > 0.9
    assert found.n_copied == 0
    assert found.distance_ratio.value < 0.5


def test_honest_release_tells_nothing():
    found = nearness(MEMBERS, OTHERS, HONEST)
    assert found.auc.value == pytest.approx(0.5, abs=0.08)
    assert found.auc.low < 0.5 < found.auc.high
    assert not found.is_telling
    assert found.distance_ratio.value == pytest.approx(1.0, abs=0.25)
    assert "as near to" in found.text
    assert (found.n_members, found.n_held_out, found.n_released) == (150, 200, 120)
    json.dumps(found.to_dict())
    assert [row["chance"] for row in found.rows()] == ["0.5", "0.01", "0.1", "1"]


def test_the_same_trips_on_both_sides_are_at_chance():
    found = nearness(OTHERS, OTHERS, HONEST, n_bootstrap=20)
    assert found.auc.value == pytest.approx(0.5)
    assert found.distance_ratio.value == 1.0
    assert found.true_positive_at_1.value <= 0.01
    assert found.true_positive_at_10.value <= 0.1


def test_order_of_trips_does_not_matter_and_seed_repeats():
    first = nearness(MEMBERS, OTHERS, HONEST, n_bootstrap=20)
    assert first == nearness(MEMBERS, OTHERS, HONEST, n_bootstrap=20)
    turned = nearness(MEMBERS[::-1], OTHERS[::-1], HONEST[::-1], n_bootstrap=20)
    assert turned.auc.value == first.auc.value


def test_distances_agree_with_brute_force():
    near, far = nearest_distances(MEMBERS[:20], OTHERS, HONEST)
    center, spread = trace_features(OTHERS).mean(axis=0), trace_features(OTHERS).std(axis=0)
    release = (trace_features(HONEST) - center) / spread
    for row in range(20):
        point = (trace_features(MEMBERS)[row] - center) / spread
        expected = np.min(np.linalg.norm(release - point, axis=1))
        assert near[row] == pytest.approx(expected)
    assert far.shape == (200,)


def test_area_is_the_statistic_of_mann_and_whitney():
    rng = np.random.default_rng(0)
    near, far = rng.integers(0, 9, 80).astype(float), rng.integers(2, 11, 70).astype(float)
    area = _measures(near, far)[0]
    statistic = np.asarray(mannwhitneyu(far, near))[0]
    assert area == pytest.approx(statistic / (80 * 70))


def test_ties_everywhere_are_chance():
    assert _measures(np.zeros(30), np.zeros(30)) == [0.5, 0.0, 0.0, 1.0]
    assert _measures(np.ones(30), np.zeros(30))[3] == float("inf")


def test_sets_that_do_not_fit_are_refused():
    with pytest.raises(InputDataError, match="member traces"):
        nearness(MEMBERS[:3], OTHERS, HONEST)
    with pytest.raises(InputDataError, match="held-out"):
        nearness(MEMBERS, OTHERS[:3], HONEST)
    with pytest.raises(InputDataError, match="equal length"):
        nearness(MEMBERS, OTHERS, HONEST[:, :30])
    with pytest.raises(ValueError, match="n_bootstrap"):
        nearness(MEMBERS, OTHERS, HONEST, n_bootstrap=0)
