"""Information of a trace that was sampled slowly: means over blocks of it, and their noise."""

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from prisma_sbi import _validate


def averaged_information(
    jacobian: np.ndarray,
    scale: np.ndarray,
    *,
    memory: float = 0.0,
    n_block: int = 1,
    ends: tuple[int, ...] | None = None,
) -> np.ndarray:
    r"""Information in the means over blocks of a noisy trace, for several lengths of it.

    Parameters
    ----------
    jacobian : (time, parameter)
        Derivatives of the trace without noise.
    scale : (time,)
        Standard deviation of the noise at each step.
    memory
        Autocorrelation of the noise, in units of its scale, from one step to the next; 0 for
        white noise.
    n_block
        Steps over which a sensor averages before it reports.
    ends : (end,)
        Numbers of steps recorded, rising; by default all. A block that an end cuts is not seen.

    Returns
    -------
    information : (end, parameter, parameter)

    Raises
    ------
    ValueError
        If the shapes disagree, a scale is not positive, or an end lies beyond the trace.

    Notes
    -----
    With :math:`A` the averages over blocks of :math:`n` steps, the noise of the means has
    covariance :math:`C = A \Sigma A^\top`,
    :math:`\Sigma_{tu} = \sigma_t \sigma_u \phi^{|t - u|}`, and the information is

    .. math:: (A J)^\top C^{-1} A J.

    For normal noise of known scale it is Fisher's. For any other noise of that covariance it is
    what the best linear estimate gets, and a lower bound on Fisher's [1]_.

    ================ ========================================================================
    Noise            Variance of a mean over n steps, as a share of that of one
    ================ ========================================================================
    white            :math:`1 / n`
    with memory      :math:`\frac{1}{n} + \frac{2}{n^2} \sum_{l<n} (n - l) \phi^l`, about
                     :math:`\frac{1 + \phi}{1 - \phi} / n` for long blocks
    ================ ========================================================================

    Means are functions of the trace, and a short trace is part of a long one. So information
    falls with ``n_block`` wherever one block length divides the other, and rises with the end.

    References
    ----------
    .. [1] Stein, Mezghani and Nossek, A lower bound for the Fisher information measure, 2014.
       https://doi.org/10.1109/LSP.2014.2316008
    """
    jacobian, scale = np.asarray(jacobian, np.float64), np.asarray(scale, np.float64)
    n_times = len(scale)
    ends = (n_times,) if ends is None else ends
    _validate.at_least(1, n_block=n_block)
    if not -1.0 < memory < 1.0:
        raise ValueError(f"Expected -1 < memory < 1; got {memory!r}.")
    if jacobian.ndim != 2 or len(jacobian) != n_times or not np.all(scale > 0.0):
        raise ValueError(
            "Expected a positive scale for every row of the jacobian; got "
            f"{scale.shape} and {jacobian.shape}."
        )
    if list(ends) != sorted(ends) or not 0 < ends[0] <= ends[-1] <= n_times:
        raise ValueError(f"Expected ends that rise within 1..{n_times}; got {ends!r}.")
    if n_block == 1:
        white = _innovations(jacobian / scale[:, None], memory)
    else:
        n_blocks = n_times // n_block
        used = n_blocks * n_block
        means = jacobian[:used].reshape(n_blocks, n_block, -1).mean(axis=1)
        spread = _block_covariance(scale[:used].reshape(n_blocks, n_block), memory)
        # The first rows of the whitened means depend on the first blocks alone.
        white = means
        if n_blocks:
            white = solve_triangular(cholesky(spread, lower=True), means, lower=True)
    seen = [white[: end // n_block] for end in ends]
    return np.stack([part.T @ part for part in seen])


def _innovations(standardized: np.ndarray, memory: float) -> np.ndarray:
    """What each step adds to those before it ``(time, parameter)``, in units of its noise."""
    later = (standardized[1:] - memory * standardized[:-1]) / np.sqrt(1.0 - memory**2)
    return np.concatenate([standardized[:1], later])


def _block_covariance(scale: np.ndarray, memory: float) -> np.ndarray:
    """Covariance of the means over blocks, from scales ``(block, step)``."""
    n_blocks, n = scale.shape
    step = np.arange(n)
    within = memory ** np.abs(step[:, None] - step)
    own = np.einsum("bi,ij,bj->b", scale, within, scale)
    # Between blocks the memory is a product: back to the end of the earlier one, across, onward.
    to_end, from_start = scale @ memory ** step[::-1], scale @ memory**step
    apart = np.arange(n_blocks)[None, :] - np.arange(n_blocks)[:, None]
    upper = to_end[:, None] * from_start * memory ** np.maximum((apart - 1) * n + 1, 0)
    upper = np.triu(upper, 1)
    return (upper + upper.T + np.diag(own)) / n**2
