"""Usefulness: models fitted to synthetic traces, judged on real ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from jaxtyping import Float

from prisma_sbi import _validate
from prisma_sbi.evaluation.marginals import trace_durations

N_LAGS = 10
FIRST_SAMPLES = 60
N_HALVINGS = 15
_RIDGE = 1e-6
"""Share of the mean square of the predictors that is added to the diagonal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A regression, kept as sums of products: all that fitting and judging need.

    Attributes
    ----------
    moments : (trip, term, term)
        For each trip the sum over its cases of the outer product of the terms: a constant, the
        predictors, and last the quantity to predict.
    n_cases : (trip,)
        Cases of each trip.
    """

    moments: np.ndarray
    n_cases: np.ndarray

    def __len__(self) -> int:
        return len(self.n_cases)

    def sorted(self) -> "Task":
        """The same trips in an order that depends on their values alone."""
        order = np.lexsort(self.moments[:, -1].T)
        return Task(moments=self.moments[order], n_cases=self.n_cases[order])

    def fit(self, trips: np.ndarray) -> np.ndarray:
        """Ridge coefficients ``(term - 1,)`` by the cases of these trips; the constant is free."""
        moments = self.moments[trips].sum(axis=0)
        predictors = moments[:-1, :-1]
        ridge = np.full(len(predictors), _RIDGE * np.trace(predictors) / len(predictors))
        ridge[0] = 0.0
        solution, *_ = np.linalg.lstsq(predictors + np.diag(ridge), moments[:-1, -1], rcond=None)
        return solution

    def squared_error(self, coefficients: np.ndarray, trips: np.ndarray) -> float:
        """Sum of squared errors of a prediction over the cases of these trips."""
        residual = np.append(-coefficients, 1.0)
        return max(float(residual @ self.moments[trips].sum(axis=0) @ residual), 0.0)


def next_step_task(power_w: Float[np.ndarray, "trip time"], *, scale_w: float = 1.0) -> Task:
    """Predict power from the ten samples before it, until the end of each trip.

    Parameters
    ----------
    power_w : (trip, time)
        Finite traces.
    scale_w
        Unit of the terms.

    Returns
    -------
    task
        With fewer lags where traces have no more than 10 samples.
    """
    values = power_w / scale_w
    n_samples = values.shape[1]
    n_lags = min(N_LAGS, n_samples - 1)
    running = np.arange(n_lags, n_samples) < trace_durations(power_w)[:, None]
    # Newest last: the lagged values, then the one to predict.
    terms = [running.astype(np.float64)]
    terms += [np.where(running, values[:, at : at + running.shape[1]], 0.0) for at in range(n_lags)]
    terms.append(np.where(running, values[:, n_lags:], 0.0))
    moments = np.empty((len(values), len(terms), len(terms)))
    for row, first in enumerate(terms):
        for column, second in enumerate(terms[: row + 1]):
            moments[:, row, column] = np.einsum("ij,ij->i", first, second)
            moments[:, column, row] = moments[:, row, column]
    return Task(moments=moments, n_cases=running.sum(axis=1))


def energy_task(power_w: Float[np.ndarray, "trip time"], *, scale_w: float = 1.0) -> Task:
    """Predict the energy still to come from the first 60 samples, for trips that go on.

    Parameters
    ----------
    power_w : (trip, time)
        Finite traces.
    scale_w
        Unit of the terms.

    Returns
    -------
    task
        One case for each trip that is longer than the first samples: their mean, standard
        deviation, largest value, mean absolute step, share of zeros and the mean of their last
        sixth predict the mean of all later samples. The first samples are at most half a trace.
    """
    n_first = min(FIRST_SAMPLES, power_w.shape[1] // 2)
    going = trace_durations(power_w) > n_first
    values = power_w / scale_w
    seen, later = values[:, :n_first], values[:, n_first:]
    terms = np.column_stack(
        [
            np.ones(len(values)),
            seen.mean(axis=1),
            seen.std(axis=1),
            seen.max(axis=1),
            np.abs(np.diff(values[:, : max(n_first, 2)], axis=1)).mean(axis=1),
            (seen == 0).mean(axis=1),
            seen[:, -max(n_first // 6, 1) :].mean(axis=1),
            later.mean(axis=1),
        ]
    )
    terms[~going] = 0.0
    return Task(moments=np.einsum("ij,ik->ijk", terms, terms), n_cases=going.astype(np.int64))


TASKS: Mapping[str, Callable[..., Task]] = MappingProxyType(
    {"next_step": next_step_task, "energy": energy_task}
)
"""Name of a task -> its function of traces."""


def transfer_ratio(
    real: Task,
    synthetic: Task,
    *,
    n_halvings: int = N_HALVINGS,
    seed: int = 0,
) -> float:
    r"""Error on real traces after fitting to synthetic ones, over that after fitting to real ones.

    Parameters
    ----------
    real, synthetic
        The same task on either population, in one unit.
    n_halvings
        Random halvings of the real traces.
    seed
        Of the halvings, and of the synthetic traces taken for each.

    Returns
    -------
    ratio
        1: synthetic traces teach as much as real ones; 2: twice the root mean square error. NaN
        where a population has no case to learn from, or both errors are 0.

    Raises
    ------
    ValueError
        If there are fewer than two real traces or no halving.

    Notes
    -----
    With the halves A and B of the real traces and as many synthetic ones S (all where there are
    fewer), and :math:`e(F, G)` the summed squared error on G of the ridge regression by F,

    .. math::
       \sqrt{\frac{\sum e(S, A) + e(S, B)}{\sum e(A, B) + e(B, A)}},

    summed over the halvings. It does not depend on the order of the trips. Training on
    synthetic and testing on real data goes back to [1]_.

    References
    ----------
    .. [1] Esteban, Hyland and Rätsch, Real-valued (medical) time series generation with
       recurrent conditional GANs, 2017. https://doi.org/10.48550/arXiv.1706.02633
    """
    _validate.at_least(1, n_halvings=n_halvings)
    _validate.at_least(2, n_real=len(real))
    generator = np.random.default_rng(seed)
    real, synthetic = real.sorted(), synthetic.sorted()
    n_half = len(real) // 2
    by_real = by_synthetic = 0.0
    for _ in range(n_halvings):
        order = generator.permutation(len(real))
        halves = order[:n_half], order[n_half:]
        taught = generator.permutation(len(synthetic))[:n_half]
        sides = [(real, halves[0]), (real, halves[1]), (synthetic, taught)]
        if not all(task.n_cases[trips].any() for task, trips in sides):
            return float("nan")
        fitted = synthetic.fit(taught)
        for here, there in (halves, halves[::-1]):
            by_real += real.squared_error(real.fit(here), there)
            by_synthetic += real.squared_error(fitted, there)
    # What is left of the quantity itself after rounding: an error of 0.
    rounding = 1e-12 * n_halvings * float(real.moments[:, -1, -1].sum())
    by_real, by_synthetic = (0.0 if e <= rounding else e for e in (by_real, by_synthetic))
    if by_real == 0.0:
        return float("nan") if by_synthetic == 0.0 else float("inf")
    return float(np.sqrt(by_synthetic / by_real))
