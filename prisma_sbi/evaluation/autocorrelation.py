"""Autocorrelation of traces and the distance between two populations by it."""

import numpy as np
from jaxtyping import Float

MAXIMUM_LAG = 32


def autocorrelation(
    power_w: Float[np.ndarray, "trip time"], *, n_lags: int | None = None
) -> Float[np.ndarray, "trip lag"]:
    r"""Autocorrelation of every trace at lags 1, 2, ...

    Parameters
    ----------
    power_w : (trip, time)
        Finite traces with at least 3 samples.
    n_lags
        Number of lags; ``min(32, time - 2)`` unless given.

    Returns
    -------
    curves : (trip, lag)
        In [-1, 1]; column ``k - 1`` is lag ``k``.

    Raises
    ------
    ValueError
        If ``n_lags`` is not in ``[1, time - 1]``.

    Notes
    -----
    Each trace is centered and scaled to :math:`z` with mean 0 and variance 1, then

    .. math:: r_k = \frac{1}{T} \sum_{t=1}^{T-k} z_t z_{t+k}.

    ============== =====================================
    Case           Result
    ============== =====================================
    constant trace a zero curve (no texture to correlate)
    ============== =====================================

    Examples
    --------
    >>> import numpy as np
    >>> autocorrelation(np.array([[1.0, -1.0, 1.0, -1.0]])).round(2)
    array([[-0.75,  0.5 ]])
    """
    n_samples = power_w.shape[1]
    n_lags = min(MAXIMUM_LAG, n_samples - 2) if n_lags is None else n_lags
    if not 1 <= n_lags <= n_samples - 1:
        raise ValueError(
            f"Expected n_lags in [1, {n_samples - 1}] for traces of {n_samples} samples; "
            f"got n_lags={n_lags!r}. Use longer traces or fewer lags."
        )
    z = standardize_each(power_w)
    curves = np.empty((len(z), n_lags))
    for lag in range(1, n_lags + 1):
        curves[:, lag - 1] = np.einsum("ij,ij->i", z[:, :-lag], z[:, lag:])
    return curves / n_samples


def standardize_each(
    power_w: Float[np.ndarray, "trip time"],
) -> Float[np.ndarray, "trip time"]:
    """Every trace with mean 0 and variance 1; a constant trace becomes 0."""
    power_w = np.asarray(power_w, dtype=np.float64)
    constant = is_constant(power_w)
    centered = power_w - power_w.mean(axis=1, keepdims=True)
    # Largest deviation first: squares of huge or tiny values stay representable.
    peak = np.where(constant, 1.0, np.abs(centered).max(axis=1))[:, None]
    centered = np.where(constant[:, None], 0.0, centered / peak)
    spread = np.sqrt(np.mean(centered**2, axis=1, keepdims=True))
    return centered / np.where(constant[:, None], 1.0, spread)


def is_constant(power_w: Float[np.ndarray, "trip time"]) -> np.ndarray:
    """Whether each trace ``(trip,)`` has one value throughout, exactly."""
    return power_w.max(axis=1) == power_w.min(axis=1)


def autocorrelation_distance(
    curves_a: Float[np.ndarray, "trip_a lag"], curves_b: Float[np.ndarray, "trip_b lag"]
) -> float:
    """Mean absolute difference between the average curves of two populations.

    Parameters
    ----------
    curves_a, curves_b : (trip, lag)
        Curves from :func:`autocorrelation`, over the same lags.

    Returns
    -------
    distance
        In [0, 2]; symmetric; 0 for identical populations.
    """
    return float(np.abs(curves_a.mean(axis=0) - curves_b.mean(axis=0)).mean())
