"""Two-sample tests: definitions by loops, closed forms, level under the null, power."""

import sys

import numpy as np
import pytest
from scipy.stats import kstest, norm

from prisma_sbi.evaluation import classifier_test, mmd_test, pool, trace_features
from prisma_sbi.evaluation.classifier import area_under_curve
from prisma_sbi.evaluation.mmd import median_distance
from prisma_sbi.evaluation.pooled import permutation_p_value
from prisma_sbi.evaluation.precision_recall import row_blocks
from tests.evaluation.conftest import make_traces

TESTS = {
    "mmd": lambda a, b, **options: mmd_test(a, b, **options),
    "classifier": lambda a, b, **options: classifier_test(a, b, **options),
}
NAMES = sorted(TESTS)


def heavy(generator: np.random.Generator, n_trips: int) -> np.ndarray:
    """Dependent features with heavy tails, ties and very different units."""
    values = generator.standard_t(2, size=(n_trips, 4))
    values[:, 1] = values[:, 0] ** 2 * 1e9
    values[:, 3] = np.round(values[:, 3])
    return values


def mmd2_by_loops(x: np.ndarray, y: np.ndarray, sigma: float) -> float:
    """Definition, pair by pair."""

    def kernel(u, v):
        return np.exp(-np.sum((u - v) ** 2) / (2 * sigma**2))

    n, m = len(x), len(y)
    within_x = sum(kernel(x[i], x[j]) for i in range(n) for j in range(n) if i != j)
    within_y = sum(kernel(y[i], y[j]) for i in range(m) for j in range(m) if i != j)
    across = sum(kernel(u, v) for u in x for v in y)
    return within_x / (n * (n - 1)) + within_y / (m * (m - 1)) - 2 * across / (n * m)


@pytest.mark.parametrize(("n", "m"), [(2, 2), (7, 12), (15, 9)])
def test_mmd_agrees_with_loops(n, m):
    generator = np.random.default_rng(n)
    a, b = heavy(generator, n), heavy(generator, m) + 0.5
    found = mmd_test(a, b, n_permutations=3)
    scores, is_first = pool(a, b)
    pairs = [
        np.linalg.norm(scores[i] - scores[j]) for i in range(n + m) for j in range(i + 1, n + m)
    ]
    assert found.bandwidth == pytest.approx(np.median(pairs))
    expected = mmd2_by_loops(scores[is_first], scores[~is_first], found.bandwidth)
    assert found.mmd2 == pytest.approx(expected, abs=1e-12)


def test_mmd_of_two_points_apart_has_its_closed_form():
    # Ranks of 10 zeros and 30 ones among 40: two values z0 < z1, distance d between them.
    a, b = np.zeros((10, 1)), np.ones((30, 1))
    z0, z1 = norm.ppf([5.5 - 0.5, 25.5 - 0.5] / np.array(40.0))
    found = mmd_test(a, b, n_permutations=9)
    # 300 of 780 pairs lie apart, so the median is 0 and the mean takes its place.
    sigma = (z1 - z0) * 300 / 780
    assert found.bandwidth == pytest.approx(sigma)
    assert found.mmd2 == pytest.approx(2.0 - 2.0 * np.exp(-((z1 - z0) ** 2) / (2 * sigma**2)))


def test_mmd_blocks_do_not_change_the_result(monkeypatch):
    generator = np.random.default_rng(0)
    a, b = heavy(generator, 60), heavy(generator, 45) + 0.3
    whole = mmd_test(a, b, n_permutations=50)
    monkeypatch.setattr(sys.modules[row_blocks.__module__], "BLOCK_ENTRIES", 105 * 8)
    blocks = mmd_test(a, b, n_permutations=50)
    assert blocks.mmd2 == pytest.approx(whole.mmd2, abs=1e-13)
    assert blocks.p_value == whole.p_value


def test_median_distance_uses_points_spread_over_the_union():
    points = np.sort(np.random.default_rng(0).normal(size=(5_000, 1)), axis=0)
    # Of two standard normal values: sqrt(2) times the median of |N(0, 1)|.
    assert median_distance(points) == pytest.approx(np.sqrt(2) * norm.ppf(0.75), rel=0.05)


def test_classifier_reaches_the_best_auc_and_accuracy_of_two_gaussians():
    generator = np.random.default_rng(1)
    shift = np.array([1.0, 0.0, -0.5])
    a = generator.normal(size=(4000, 3))
    b = generator.normal(size=(4000, 3)) + shift
    found = classifier_test(a, b, n_permutations=19)
    distance = np.linalg.norm(shift)
    assert found.auc == pytest.approx(norm.cdf(distance / np.sqrt(2)), abs=0.01)
    assert found.accuracy == pytest.approx(norm.cdf(distance / 2), abs=0.01)


def test_classifier_sees_spread_and_dependence_with_equal_means():
    generator = np.random.default_rng(2)
    a = generator.normal(size=(600, 2))
    wider = 2.0 * generator.normal(size=(600, 2))
    tied = a[:, :1] * [1.0, 0.8] + 0.6 * generator.normal(size=(600, 2)) * [0.0, 1.0]
    tied[:, 0] = a[:, 0]
    assert classifier_test(generator.normal(size=(600, 2)), wider).auc > 0.7
    assert classifier_test(generator.normal(size=(600, 2)), tied).auc > 0.65


def test_classifier_of_sizes_apart_keeps_a_fair_threshold():
    generator = np.random.default_rng(3)
    a, b = generator.normal(size=(3000, 2)), generator.normal(size=(300, 2)) + [1.0, 0.0]
    found = classifier_test(a, b, n_permutations=9)
    assert found.auc == pytest.approx(norm.cdf(1 / np.sqrt(2)), abs=0.03)
    assert found.accuracy == pytest.approx(norm.cdf(0.5), abs=0.04)


def test_classifier_keeps_up_with_logistic_regression_of_another_library():
    linear_model = pytest.importorskip("sklearn.linear_model")
    model_selection = pytest.importorskip("sklearn.model_selection")
    a = trace_features(make_traces(300, seed=0, phi=0.8))
    b = trace_features(make_traces(300, seed=1, phi=0.75))
    scores, is_first = pool(a, b)
    left, right = np.triu_indices(scores.shape[1])
    design = np.column_stack([scores, scores[:, left] * scores[:, right]])
    model = linear_model.LogisticRegression(C=0.05, max_iter=2000)
    rival = model_selection.cross_val_score(model, design, ~is_first, scoring="roc_auc", cv=5)
    assert 0.55 < rival.mean() < 0.95
    assert classifier_test(a, b).auc == pytest.approx(rival.mean(), abs=0.03)


def test_area_under_curve_agrees_with_loops():
    generator = np.random.default_rng(4)
    scores = np.round(generator.normal(size=(30, 3)), 1)
    positive = generator.random((30, 3)) < 0.4
    for column, found in enumerate(area_under_curve(scores, positive)):
        pairs = [
            0.5 * np.sign(p - q) + 0.5
            for p in scores[positive[:, column], column]
            for q in scores[~positive[:, column], column]
        ]
        assert found == pytest.approx(np.mean(pairs))


def null_p_values(name: str, n_draws: int, n: int, m: int) -> np.ndarray:
    return np.array(
        [
            TESTS[name](
                *(
                    heavy(np.random.default_rng([draw, side]), size)
                    for side, size in ((0, n), (1, m))
                ),
                n_permutations=39,
                seed=draw,
            ).p_value
            for draw in range(n_draws)
        ]
    )


def keeps_level(p_values: np.ndarray, grid: int = 40) -> bool:
    """Uniform on multiples of 1 / grid, by Kolmogorov and by the share at 5 and at 10 %."""
    uniform = p_values - np.random.default_rng(0).random(len(p_values)) / grid
    shares = [np.mean(p_values <= level) for level in (0.05, 0.1)]
    errors = [np.sqrt(level * (1 - level) / len(p_values)) for level in (0.05, 0.1)]
    near = all(
        abs(share - level) < 3.0 * error
        for share, level, error in zip(shares, (0.05, 0.1), errors, strict=True)
    )
    return near and kstest(uniform, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_level_is_right_under_the_null(name):
    p_values = null_p_values(name, n_draws=600, n=14, m=21)
    assert keeps_level(p_values)
    # The check has teeth: p-values that are a third too small would not pass.
    assert not keeps_level(p_values / 1.5)


@pytest.mark.parametrize("name", NAMES)
def test_power_grows_with_the_difference(name):
    def power(shift: float) -> float:
        rejected = 0
        for draw in range(60):
            generator = np.random.default_rng(draw)
            a, b = heavy(generator, 40), heavy(generator, 40) + shift
            rejected += TESTS[name](a, b, n_permutations=39, seed=draw).p_value <= 0.05
        return rejected / 60

    weak, strong = power(0.5), power(1.5)
    assert weak < strong
    assert strong > 0.9


@pytest.mark.parametrize("name", NAMES)
def test_result_does_not_depend_on_order_or_units(name):
    generator = np.random.default_rng(5)
    a, b = heavy(generator, 50), heavy(generator, 40) + 0.4
    plain = TESTS[name](a, b, n_permutations=99)
    shuffled = TESTS[name](generator.permutation(a), generator.permutation(b), n_permutations=99)
    assert shuffled == pytest.approx(plain)
    factor = np.array([1e-6, 1.0, 3.0, 1e7])
    assert TESTS[name](factor * a + 7.0, factor * b + 7.0, n_permutations=99) == pytest.approx(
        plain
    )


@pytest.mark.parametrize("name", NAMES)
def test_p_value_of_copies_and_of_constants_is_one(name):
    points = heavy(np.random.default_rng(6), 40)
    assert TESTS[name](points, points.copy(), n_permutations=99).p_value > 0.9
    constant = TESTS[name](np.ones((20, 3)), np.ones((20, 3)), n_permutations=99)
    assert constant.p_value == 1.0
    assert constant[0] == pytest.approx(0.5 if name == "classifier" else 0.0)
    apart = TESTS[name](np.zeros((20, 3)), np.ones((20, 3)), n_permutations=99)
    assert apart.p_value == 0.01


def test_p_value_counts_the_observed_and_ties():
    assert permutation_p_value(2.0, np.array([1.0, 2.0, 3.0])) == 0.75
    assert permutation_p_value(9.0, np.array([1.0, 2.0, 3.0])) == 0.25
    assert permutation_p_value(0.3, np.array([0.1 + 0.2, 0.3 - 1e-16])) == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_too_few_points_are_refused(name):
    with pytest.raises(ValueError, match="n_first >= 2"):
        TESTS[name](np.zeros((1, 2)), np.zeros((5, 2)))
    with pytest.raises(ValueError, match="n_permutations >= 1"):
        TESTS[name](np.zeros((5, 2)), np.zeros((5, 2)), n_permutations=0)
