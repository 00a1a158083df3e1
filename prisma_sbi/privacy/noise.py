"""Noise and private selection: from OpenDP, on integers, with no way to seed them."""

import math
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np

from prisma_sbi._errors import BudgetError
from prisma_sbi._optional import optional_import

_FLOAT_SLACK = Fraction(1, 10**12)
"""OpenDP's map rounds upward in floats; a relative excess of this size is rounding."""


@runtime_checkable
class NoiseSource(Protocol):
    """Where a mechanism gets its noise and its selections from.

    A release made with anything but :class:`SystemNoise` has no guarantee.
    """

    def gaussian(
        self, counts: np.ndarray, *, stddev: float, rho: Fraction, l2_squared: int = 1
    ) -> np.ndarray:
        """Return integer counts with noise at the price ``rho``, for a squared L2 sensitivity."""
        ...

    def select(self, scores: np.ndarray, *, sensitivity: int, epsilon: float, rho: Fraction) -> int:
        """Return the index of a high integer score, at the price ``rho``."""
        ...


class SystemNoise:
    r"""Noise from OpenDP, which draws from the operating system; the only private source.

    *Guarantee.* Neighboring inputs are integer vectors within the stated L2 distance
    (:meth:`gaussian`) or integer scores within the stated L-infinity distance
    (:meth:`select`). One call releases one output under :math:`\rho`-zCDP, where
    :math:`\rho` is what the caller paid. OpenDP's own privacy map is asked every time, and
    a call that it does not grant for that price raises.

    ============================= =========================================
    Case                          Result
    ============================= =========================================
    price below OpenDP's map      ``BudgetError``, nothing released
    counts or scores not integers ``TypeError``, nothing released
    empty scores                  ``ValueError``
    ============================= =========================================

    Notes
    -----
    Counts get the discrete Gaussian [1]_, sampled exactly on integers: noise in floating
    point would leak the count through its low bits. Selection is report noisy max with
    Gumbel noise, that is the exponential mechanism, at scale :math:`2\Delta/\epsilon`.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy, 2020.
       https://doi.org/10.29012/jpc.784
    """

    def gaussian(
        self, counts: np.ndarray, *, stddev: float, rho: Fraction, l2_squared: int = 1
    ) -> np.ndarray:
        """Add discrete Gaussian noise to integer counts.

        Parameters
        ----------
        counts : (cell,) int64
        stddev
            Scale of the noise, in the unit of the counts.
        rho
            What was paid for this call.
        l2_squared
            Square of the most by which one record moves the counts in L2: a whole number, so
            that the square root of 2 of a replacement is exact.

        Returns
        -------
        noisy : (cell,) int64

        Raises
        ------
        BudgetError
            If OpenDP's privacy map asks for more than ``rho``.
        TypeError
            If the counts are not integers.
        """
        _require_integers(counts)
        dp = _opendp()
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
        measurement = dp.m.make_gaussian(*space, scale=stddev)
        _require_paid(measurement.map(_upper_root(l2_squared)), rho)
        return np.array(measurement(counts.tolist()), dtype=np.int64)

    def select(self, scores: np.ndarray, *, sensitivity: int, epsilon: float, rho: Fraction) -> int:
        """Select among integer scores by the exponential mechanism.

        Parameters
        ----------
        scores : (candidate,) int64
        sensitivity
            Most by which one record moves any score.
        epsilon
            Parameter of the exponential mechanism.
        rho
            What was paid for this call, ``epsilon**2 / 8``.

        Returns
        -------
        index
            Position of the selected candidate.

        Raises
        ------
        BudgetError
            If OpenDP's privacy map asks for more than ``rho``.
        TypeError
            If the scores are not integers.
        ValueError
            If there is no candidate.
        """
        _require_integers(scores)
        _require_candidates(scores)
        dp = _opendp()
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
        # Scores may move in opposite directions, hence the factor 2.
        scale = math.nextafter(2.0 * sensitivity / epsilon, math.inf)
        measurement = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)
        _require_paid(measurement.map(sensitivity), rho)
        return int(measurement(scores.tolist()))


class ZeroNoise:
    """No noise and the best score, whatever was paid: for tests and studies, **not private**."""

    def gaussian(
        self,
        counts: np.ndarray,
        *,
        stddev: float,  # noqa: ARG002
        rho: Fraction,  # noqa: ARG002
        l2_squared: int = 1,  # noqa: ARG002
    ) -> np.ndarray:
        """Return the exact counts."""
        _require_integers(counts)
        return counts.astype(np.int64)

    def select(
        self,
        scores: np.ndarray,
        *,
        sensitivity: int,  # noqa: ARG002
        epsilon: float,  # noqa: ARG002
        rho: Fraction,  # noqa: ARG002
    ) -> int:
        """Return the index of the highest score, the first among equals."""
        _require_integers(scores)
        _require_candidates(scores)
        return int(np.argmax(scores))


class SeededNoise:
    """Noise of the right law from a seed: repeatable, predictable, hence **not private**."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def gaussian(
        self,
        counts: np.ndarray,
        *,
        stddev: float,
        rho: Fraction,  # noqa: ARG002
        l2_squared: int = 1,  # noqa: ARG002
    ) -> np.ndarray:
        """Add rounded Gaussian noise."""
        _require_integers(counts)
        noise = np.rint(self._rng.normal(scale=stddev, size=counts.shape))
        return counts + noise.astype(np.int64)

    def select(
        self,
        scores: np.ndarray,
        *,
        sensitivity: int,
        epsilon: float,
        rho: Fraction,  # noqa: ARG002
    ) -> int:
        """Report the maximum under Gumbel noise."""
        _require_integers(scores)
        _require_candidates(scores)
        noise = self._rng.gumbel(scale=2.0 * sensitivity / epsilon, size=scores.shape)
        return int(np.argmax(scores + noise))


def _opendp() -> Any:
    """OpenDP with the features on that hold the two mechanisms."""
    dp = optional_import("opendp.prelude", extra="privacy")
    dp.enable_features("contrib")
    return dp


def _upper_root(l2_squared: int) -> float:
    """Smallest float whose square is not below a whole number."""
    root = math.sqrt(l2_squared)
    return root if Fraction(root) ** 2 >= l2_squared else math.nextafter(root, math.inf)


def _require_integers(values: np.ndarray) -> None:
    """Raise unless the values are integers in one dimension."""
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise TypeError(
            f"Expected integers in one dimension; got {values.dtype} of shape {values.shape}. "
            "Noise on floating-point numbers leaks them."
        )


def _require_candidates(scores: np.ndarray) -> None:
    """Raise unless there is something to select."""
    if scores.size == 0:
        raise ValueError("Expected at least one candidate; got none. Raise the model size limit.")


def _require_paid(asked: float, rho: Fraction) -> None:
    """Raise if OpenDP grants the call only at a higher price than was paid."""
    if not math.isfinite(asked) or Fraction(asked) > rho * (1 + _FLOAT_SLACK):
        raise BudgetError(
            f"Expected a price of at least {asked!r} rho, as OpenDP has it; "
            f"got {float(rho)!r}. Nothing was released."
        )
