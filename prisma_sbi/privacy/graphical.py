"""The graphical model behind a synthetic table: Private-PGM, through ``mbi``."""

import dataclasses
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from prisma_sbi._optional import optional_import
from prisma_sbi.privacy.elimination import LogFactor, marginal_probabilities
from prisma_sbi.privacy.measurement import Measurement
from prisma_sbi.privacy.workload import Columns

_TOLERANCE = 1e-3
"""Estimation stops when fifty steps lower the loss by less than this share."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphicalModel:
    """A distribution over the coded table, fitted to noisy marginals alone.

    Attributes
    ----------
    shape
        Number of bins per column.
    n_rows
        Public number of rows that the model stands for.
    fitted
        The model of ``mbi``.
    factors
        Its potentials as NumPy log tables.
    """

    shape: tuple[int, ...]
    n_rows: int
    fitted: Any
    factors: list[LogFactor]

    def count(self, columns: Columns) -> np.ndarray:
        """Return expected counts of one marginal, flat, the last column running fastest."""
        return self.n_rows * marginal_probabilities(self.factors, self.shape, columns).ravel()

    def sample(self, seed: int | None) -> np.ndarray:
        """Draw ``n_rows`` rows of codes; randomized rounding keeps them close to the model.

        Post-processing: a seed here takes nothing from the guarantee. ``mbi`` draws from
        NumPy's global generator, whose state is put back afterwards.
        """
        words = np.random.SeedSequence(seed).generate_state(8)
        state = np.random.get_state()  # noqa: NPY002
        try:
            np.random.seed(words)  # noqa: NPY002
            with _double_precision():
                drawn = self.fitted.synthetic_data(rows=self.n_rows).to_dict()
        finally:
            np.random.set_state(state)  # noqa: NPY002
        columns = [np.asarray(drawn[index]) for index in range(len(self.shape))]
        return np.stack(columns, axis=1).astype(np.int32)


def fit_model(
    measurements: list[Measurement],
    *,
    shape: tuple[int, ...],
    n_rows: int,
    n_iterations: int,
    start: GraphicalModel | None = None,
) -> GraphicalModel:
    """Fit by mirror descent, from noisy marginals and public numbers alone.

    Parameters
    ----------
    measurements
        Noisy marginals.
    shape
        Number of bins per column.
    n_rows
        Public total of the table.
    n_iterations
        Mirror-descent steps.
    start
        An earlier model to start from.

    Returns
    -------
    model

    Raises
    ------
    FloatingPointError
        If the estimate is not finite.
    """
    mbi = _mbi()
    domain = _domain(mbi, shape)
    linear = [
        mbi.LinearMeasurement(item.values, item.columns, stddev=item.stddev)
        for item in measurements
    ]
    with _double_precision():
        loss = mbi.marginal_loss.from_linear_measurements(linear, domain)
        fitted = mbi.estimation.MirrorDescent().estimate(
            domain,
            dataclasses.replace(loss, lipschitz=_smoothness(measurements, n_rows)),
            known_total=float(n_rows),
            iters=n_iterations,
            warm_start=None if start is None else start.fitted,
            tol=_TOLERANCE,
            patience=1,
        )
        factors = [_log_factor(factor) for factor in fitted.potentials.tables.values()]
    if not all(np.all(np.isfinite(table)) for _, table in factors):
        raise FloatingPointError(
            "Expected finite potentials; got others. Raise epsilon or coarsen the bins."
        )
    return GraphicalModel(shape=shape, n_rows=n_rows, fitted=fitted, factors=factors)


def model_size_mib(cliques: list[Columns], shape: tuple[int, ...]) -> float:
    """Size of the junction tree that holds these marginals, in MiB."""
    mbi = _mbi()
    return float(mbi.junction_tree.hypothetical_model_size(_domain(mbi, shape), cliques))


def _smoothness(measurements: list[Measurement], n_rows: int) -> float:
    r"""Curvature that sets the first step of mirror descent.

    Relative to the entropy, :math:`\|\mu - y\|^2 / (2\sigma^2)` is smooth with constant
    :math:`\max \mu / \sigma^2`. ``mbi`` takes the Euclidean constant, whose first steps are
    a thousand times too short here; its line search grows them by one percent a step, and a
    round would end long before the fit does. The line search corrects a step too long.
    """
    steepest = max(max(float(item.values.max()), 1.0) / item.stddev**2 for item in measurements)
    return 2.0 * steepest / n_rows


def _log_factor(factor: Any) -> LogFactor:
    """One potential as NumPy, its axes in rising order of columns."""
    columns = np.array(factor.domain.attributes, dtype=np.int64)
    order = np.argsort(columns)
    table = np.asarray(factor.values, dtype=np.float64).transpose(order)
    return tuple(columns[order].tolist()), table


def _domain(mbi: Any, shape: tuple[int, ...]) -> Any:
    """Name columns by their position.

    Integers, not strings: ``mbi`` walks over sets of names, and the order of strings in a
    set, hence what a seed draws, changes from process to process.
    """
    return mbi.Domain(range(len(shape)), shape)


def _mbi() -> Any:
    """``mbi``, imported without its advice about global settings.

    It wants 64-bit JAX and no compilation cache for the whole process. The first is set
    around each call; neither is forced on the process of a user.
    """
    with _double_precision(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="JAX persistent compilation cache")
        return optional_import("mbi", extra="privacy")


@contextmanager
def _double_precision() -> Iterator[None]:
    """Switch JAX to 64 bits in this thread for a while."""
    with jax.enable_x64(True):  # noqa: FBT003
        yield
