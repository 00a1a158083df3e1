"""Classifier two-sample test: can a classifier tell synthetic traces from real ones."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata

from prisma_sbi import _validate
from prisma_sbi.evaluation.pooled import permutation_p_value, pool

N_FOLDS = 5
N_PERMUTATIONS = 499
_RIDGE = 0.01
"""Share of the number of rows that is added to the diagonal."""


class ClassifierTest(NamedTuple):
    """How well unseen traces are told apart, by area under the curve and by accuracy."""

    auc: float
    accuracy: float
    p_value: float


def classifier_test(
    first: Float[np.ndarray, "trip_a feature"],
    second: Float[np.ndarray, "trip_b feature"],
    *,
    n_folds: int = N_FOLDS,
    n_permutations: int = N_PERMUTATIONS,
    seed: int = 0,
) -> ClassifierTest:
    r"""Test of equal laws by a classifier that is judged on traces it has not seen.

    Parameters
    ----------
    first, second : (trip, feature)
        At least two rows each, for instance from :func:`~prisma_sbi.evaluation.trace_features`.
    n_folds
        Parts of the traces; each is judged by a classifier fitted to the others. Fewer are used
        where a sample has fewer rows.
    n_permutations
        Exchanges of the labels behind the p-value; the smallest possible one is
        ``1 / (n_permutations + 1)``.
    seed
        Of the parts and the exchanges.

    Returns
    -------
    test
        ``auc``: probability that a trace of the second sample looks more like one of the second
        than a trace of the first does, mean over the parts; 0.5 by chance, 1 where every trace
        is recognized. ``accuracy``: mean share recognized in the two samples.

    Raises
    ------
    ValueError
        If a sample has fewer than two rows, or an option is out of range.

    Notes
    -----
    The test of [1]_ with Fisher's discriminant by least squares (labels :math:`\pm 1`, a ridge
    of 1 % of the rows) on the normal scores of the features, their squares and products of two
    (:func:`~prisma_sbi.evaluation.pool`): means, spreads and correlations can give a trace
    away. Only the labels change between permutations, not the matrix to invert, so all of them
    cost little more than one, and the p-value needs no approximation: labels are exchanged
    within the parts, which keeps the level exact. The statistic is the AUC. The threshold of
    the accuracy lies halfway between the mean scores of the samples it was fitted to.

    ======================== ==================================================
    Case                     Result
    ======================== ==================================================
    all points equal         AUC 0.5, accuracy 0.5, p-value 1
    second = copy of first   AUC below 0.5 (twins have the other label), p-value 1
    ======================== ==================================================

    References
    ----------
    .. [1] Lopez-Paz and Oquab, Revisiting classifier two-sample tests, 2017.
       https://doi.org/10.48550/arXiv.1610.06545
    """
    _validate.at_least(1, n_permutations=n_permutations)
    _validate.at_least(2, n_first=len(first), n_second=len(second), n_folds=n_folds)
    scores, is_first = pool(first, second)
    generator = np.random.default_rng(seed)
    folds = _folds(is_first, min(n_folds, len(first), len(second)), generator)
    is_second = np.empty((len(scores), n_permutations + 1), dtype=bool)
    is_second[:, 0] = ~is_first
    for fold in folds:
        labels = np.tile(~is_first[fold], (n_permutations, 1))
        is_second[fold, 1:] = generator.permuted(labels, axis=1).T
    design = _design(scores)
    auc, accuracy = np.zeros(n_permutations + 1), 0.0
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(scores)), fold)
        weights = _least_squares(design[rest], np.where(is_second[rest], 1.0, -1.0))
        found = design[fold] @ weights
        share = len(fold) / len(scores)
        auc += share * area_under_curve(found, is_second[fold])
        fitted, truth = design[rest] @ weights[:, 0], is_second[rest, 0]
        threshold = (fitted[truth].mean() + fitted[~truth].mean()) / 2.0
        accuracy += share * _balanced_accuracy(found[:, 0] - threshold, is_second[fold, 0])
    return ClassifierTest(
        auc=float(auc[0]),
        accuracy=accuracy,
        p_value=permutation_p_value(float(auc[0]), auc[1:]),
    )


def area_under_curve(
    scores: Float[np.ndarray, "trip labeling"], is_positive: Bool[np.ndarray, "trip labeling"]
) -> Float[np.ndarray, " labeling"]:
    """Probability that a positive scores higher than a negative, ties counted half."""
    # Scores that differ by rounding alone are ties.
    size = np.abs(scores).max(axis=0, initial=1e-300)
    ranks = np.asarray(rankdata(np.round(scores / size, 10), axis=0))
    n = is_positive.sum(axis=0)
    total = np.sum(ranks * is_positive, axis=0)
    return (total - n * (n + 1) / 2.0) / (n * (len(scores) - n))


def _folds(is_first: np.ndarray, n_folds: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Positions of the parts; each has its share of either sample."""
    part = np.empty(len(is_first), dtype=int)
    for side in (is_first, ~is_first):
        part[side] = generator.permutation(np.arange(side.sum()) % n_folds)
    return [np.flatnonzero(part == number) for number in range(n_folds)]


def _design(scores: np.ndarray) -> np.ndarray:
    """Constant, scores, squares and products of two."""
    left, right = np.triu_indices(scores.shape[1])
    return np.column_stack([np.ones(len(scores)), scores, scores[:, left] * scores[:, right]])


def _least_squares(design: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Ridge solution for every column of targets; the constant is not shrunk."""
    ridge = np.full(design.shape[1], _RIDGE * len(design))
    ridge[0] = 1e-9 * len(design)
    return np.linalg.solve(design.T @ design + np.diag(ridge), design.T @ targets)


def _balanced_accuracy(margin: np.ndarray, truth: np.ndarray) -> float:
    """Mean of the shares recognized on both sides; a margin of 0 counts half."""
    right = np.where(np.abs(margin) < 1e-10, 0.5, (margin > 0) == truth)
    return float(right[truth].mean() + right[~truth].mean()) / 2.0
