"""Joint coverage of posteriors of several parameters, by distances to random points."""

import numpy as np

from prisma_sbi.diagnostics.ranks import rank_pit


def tarp(
    draws: np.ndarray,
    truth: np.ndarray,
    *,
    scale: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    r"""Credibility of the ball around a random point on whose surface the truth lies.

    Parameters
    ----------
    draws : (simulation, draw, parameter)
        Posterior draws of each simulation.
    truth : (simulation, parameter)
        What the data was simulated from.
    scale : (parameter,)
        Unit of distance in each direction; by default the standard deviation of the truths.
    seed
        Of the reference points.

    Returns
    -------
    pit : (simulation,)
        Uniform if the posteriors are calibrated, to be looked at by
        :func:`~prisma_sbi.diagnostics.uniformity` and by its ECDF, which is the expected
        coverage at each credibility.

    Raises
    ------
    ValueError
        If the shapes disagree.

    Notes
    -----
    For a reference point :math:`\theta_r` that does not depend on the truth, the share of draws
    nearer to it than the truth :math:`\theta^*` is uniform for an exact posterior [1]_. The
    reference of a simulation is drawn uniformly over the range of all truths. Unlike ranks of
    single parameters this sees wrong correlations. It passes posteriors that are equal to the
    prior, as every such test does; look at the contraction too.

    References
    ----------
    .. [1] Lemos, Coogan, Hezaveh and Perreault-Levasseur, Sampling-based accuracy testing of
       posterior estimators for general inference, 2023.
       https://doi.org/10.48550/arXiv.2302.03026
    """
    draws, truth = np.asarray(draws, np.float64), np.asarray(truth, np.float64)
    if draws.ndim != 3 or truth.shape != (draws.shape[0], draws.shape[2]):
        raise ValueError(
            "Expected draws (simulation, draw, parameter) and truth (simulation, parameter); got "
            f"{draws.shape} and {truth.shape}."
        )
    if scale is None:
        scale = np.std(truth, axis=0)
    scale = np.where(np.asarray(scale) > 0.0, scale, 1.0)
    rng = np.random.default_rng(seed)
    reference = rng.uniform(truth.min(axis=0), truth.max(axis=0), truth.shape)
    true_distance = np.sum(((truth - reference) / scale) ** 2, axis=-1)
    distance = np.sum(((draws - reference[:, None]) / scale) ** 2, axis=-1)
    nearer = np.sum(distance < true_distance[:, None], axis=1)
    return rank_pit(nearer, draws.shape[1], seed=seed + 1)
