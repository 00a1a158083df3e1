"""Options that cannot be told apart: confusion, classes, and one that stands for each."""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from prisma_sbi import _validate


def confusion(probability: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Mean probability of every option, by the option that was true.

    Parameters
    ----------
    probability : (case, option)
        Posterior probabilities.
    truth : (case,) int
        The option that was true.

    Returns
    -------
    confusion : (option, option)
        Row: true. Column: believed. Rows sum to one; NaN where an option was never true.
    """
    probability, truth = np.asarray(probability, np.float64), np.asarray(truth)
    n_options = probability.shape[1]
    total = np.zeros((n_options, n_options))
    np.add.at(total, truth, probability)
    counts = np.bincount(truth, minlength=n_options)[:, None]
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, total / counts, np.nan)


def effective_number(probability: np.ndarray) -> np.ndarray:
    """Exponential of the entropy over the last axis: as many equal options would have it."""
    probability = np.asarray(probability, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(probability > 0.0, probability * np.log(probability), 0.0)
    return np.asarray(np.exp(-np.sum(terms, axis=-1)))


def equivalence_classes(
    distance: np.ndarray, threshold: float, *, linkage_method: str = "complete"
) -> np.ndarray:
    """Classes of options that are nearer to each other than a threshold.

    Parameters
    ----------
    distance : (option, option)
        Symmetric, zero on the diagonal.
    threshold
        Largest distance within a class.
    linkage_method
        ``"complete"``: no two of a class are farther apart than the threshold. ``"single"``:
        connected components, in which neighbors are near but ends may be far apart.

    Returns
    -------
    label : (option,) int
        From 0, in the order in which classes first appear.

    Raises
    ------
    ValueError
        If the distances are not symmetric, negative, or not numbers.
    """
    _validate.one_of(("complete", "single"), linkage_method=linkage_method)
    if not threshold >= 0.0:
        raise ValueError(f"Expected threshold >= 0; got {threshold!r}.")
    distance = _checked(distance)
    if len(distance) == 1:
        return np.zeros(1, np.int64)
    tree = linkage(squareform(distance, checks=False), method=linkage_method)
    found = fcluster(tree, t=threshold, criterion="distance")
    _, first, label = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[label]


def representatives(distance: np.ndarray, label: np.ndarray) -> np.ndarray:
    """The option of each class ``(class,)`` that is nearest to the farthest of its class."""
    distance = _checked(distance)
    chosen = []
    for number in range(int(np.max(label)) + 1):
        members = np.flatnonzero(label == number)
        worst = distance[np.ix_(members, members)].max(axis=1)
        chosen.append(members[np.argmin(worst)])
    return np.asarray(chosen, np.int64)


def _checked(distance: np.ndarray) -> np.ndarray:
    """A symmetric matrix of distances, exactly so, or a clear error."""
    distance = np.asarray(distance, np.float64)
    square = distance.ndim == 2 and distance.shape[0] == distance.shape[1]
    if not square or not np.all(distance >= 0.0):
        raise ValueError(
            "Expected distances (option, option), none negative or NaN; got an array of shape "
            f"{distance.shape}."
        )
    if not np.allclose(distance, distance.T, rtol=1e-4, atol=1e-6):
        raise ValueError("Expected symmetric distances; got others.")
    distance = 0.5 * (distance + distance.T)
    np.fill_diagonal(distance, 0.0)
    return distance
