"""From irregular samples to the regular grid of a trace, energy kept."""

import numpy as np

from prisma_sbi import _validate


def resample_mean(
    time_s: np.ndarray,
    values: np.ndarray,
    first_row: np.ndarray,
    *,
    n_times: int,
    time_step_s: float = 1.0,
) -> np.ndarray:
    r"""Mean of each trip's step function over the cells of a regular grid.

    A sample holds until the next one (zero-order hold); the last sample ends the trip and
    lasts no time. Outside of its samples a trip is 0.

    Parameters
    ----------
    time_s : (n_rows,)
        Time since the start of the trip, not decreasing within a trip.
    values : (n_rows,)
        Finite values, for instance power.
    first_row : (n_trips + 1,)
        Where each trip begins; the last entry is the number of rows.
    n_times, time_step_s
        Cells of the grid and their width; what lies beyond is left out.

    Returns
    -------
    mean : (n_trips, n_times)
        Mean over each cell.

    Raises
    ------
    ValueError
        If the grid is empty or the arrays differ in length.

    Notes
    -----
    .. math:: q_j = \frac1\Delta \int_{j\Delta}^{(j+1)\Delta} p(t)\,dt,
       \qquad p(t) = p_i \text{ for } t_i \le t < t_{i+1},

    so :math:`\Delta \sum_j q_j` is the integral of the step function up to the horizon. All
    trips are resampled in one pass: each hold is cut at the cell edges and the pieces are
    summed by cell.

    Examples
    --------
    >>> import numpy as np
    >>> resample_mean(np.array([0.0, 1.5, 3.0]), np.array([2.0, 4.0, 9.0]), np.array([0, 3]),
    ...               n_times=4)
    array([[2., 3., 4., 0.]])
    """
    _validate.positive(time_step_s=time_step_s)
    _validate.at_least(1, n_times=n_times)
    if not len(time_s) == len(values) == first_row[-1]:
        raise ValueError(
            f"Expected as many times as values and rows; got {len(time_s)}, {len(values)}, "
            f"{first_row[-1]}. Pass arrays of the same trips."
        )
    n_trips = len(first_row) - 1
    trip = np.repeat(np.arange(n_trips), np.diff(first_row))
    begin = np.asarray(time_s, dtype=np.float64) / time_step_s
    holds = np.flatnonzero(trip[1:] == trip[:-1])
    low = np.clip(begin[holds], 0.0, n_times)
    high = np.clip(begin[holds + 1], 0.0, n_times)
    first_cell = np.floor(low).astype(np.int64)
    n_cells = np.where(high > low, np.ceil(high).astype(np.int64) - first_cell, 0)
    piece = np.repeat(np.arange(len(holds)), n_cells)
    within = np.arange(len(piece)) - np.repeat(np.cumsum(n_cells) - n_cells, n_cells)
    cell = first_cell[piece] + within
    overlap = np.minimum(high[piece], cell + 1) - np.maximum(low[piece], cell)
    flat = np.bincount(
        trip[holds][piece] * n_times + cell,
        weights=overlap * values[holds][piece],
        minlength=n_trips * n_times,
    )
    return flat.reshape(n_trips, n_times)


def fill_forward(values: np.ndarray, first_row: np.ndarray) -> np.ndarray:
    """Carry the last finite value of a trip onward, and its first one back to the start."""
    trip = np.repeat(np.arange(len(first_row) - 1), np.diff(first_row))
    rows = np.arange(len(values))
    finite = np.isfinite(values)
    last = np.maximum.accumulate(np.where(finite, rows, -1)) if len(rows) else rows
    ahead = np.where(finite, rows, len(rows))
    following = np.minimum.accumulate(ahead[::-1])[::-1] if len(rows) else rows
    own = (last >= 0) & (trip[np.maximum(last, 0)] == trip)
    near = np.where(own, last, np.minimum(following, max(len(rows) - 1, 0)))
    filled = values[near]
    return np.where(trip[near] == trip, filled, np.nan)
