"""Filling voids in a raster of heights."""

import numpy as np
from scipy.ndimage import distance_transform_edt, map_coordinates
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.linalg import cg

from prisma_sbi._errors import InputDataError

_LOWEST_M, _HIGHEST_M = -500.0, 9000.0  # dry land of the earth, with some room
_RELATIVE_RESIDUAL = 1e-4
_RESIDUAL_M = 1e-4  # mean step that a cell may still lie from the mean of its neighbors
_MOST_STEPS = 2_000
_FEW_VOIDS = 2_000


def mark_voids(height_m: np.ndarray) -> np.ndarray:
    """Heights as float32 with NaN where there is none, or none that this planet has.

    Heights beyond -500 m to 9000 m are marks for missing values that nobody declared.
    """
    height = np.array(height_m, dtype=np.float32)
    with np.errstate(invalid="ignore"):
        height[~((height >= _LOWEST_M) & (height <= _HIGHEST_M))] = np.nan
    return height


def fill_voids(height_m: np.ndarray, *, source: str) -> np.ndarray:
    r"""Fill voids with the smoothest surface that joins the known heights around them.

    Parameters
    ----------
    height_m : (row, column)
        NaN where unknown.
    source
        Name for the error message.

    Returns
    -------
    height_m : (row, column) float32
        Known heights unchanged; no NaN.

    Raises
    ------
    InputDataError
        If no height is known at all.

    Notes
    -----
    In a void :math:`\nabla^2 h = 0` (each cell is the mean of its neighbours), with the known
    heights as boundary values. Such a surface has no extremum inside the void, and a plane
    is restored exactly where the void does not touch the edge of the raster.
    """
    height = np.array(height_m, dtype=np.float32)
    void = ~np.isfinite(height)
    if void.all():
        raise InputDataError(
            f"Expected heights in {source}; got voids only. Use a file that covers the region."
        )
    if not void.any():
        return height
    return _fill(height, void)


def _fill(height: np.ndarray, void: np.ndarray) -> np.ndarray:
    """Solve for the void cells, from a guess that a coarser raster gives."""
    guess = _coarse_guess(height, void)[void]
    matrix, known_sum = _laplace_system(height, void)
    # Solved for the correction to the guess, so that accuracy does not depend on sea level.
    residual = known_sum - matrix @ guess
    correction, _ = cg(
        matrix,
        residual,
        rtol=_RELATIVE_RESIDUAL,
        atol=_RESIDUAL_M * np.sqrt(len(guess)),
        maxiter=_MOST_STEPS,
    )
    filled = height.copy()
    filled[void] = guess + correction
    return filled


def _coarse_guess(height: np.ndarray, void: np.ndarray) -> np.ndarray:
    """Heights everywhere: the raster at half the resolution, filled and spread out again.

    A wide void needs as many steps of the solver as it has cells across. From the coarser
    level the long waves are right already, and only ripples remain.
    """
    if void.sum() < _FEW_VOIDS or min(void.shape) < 8:
        nearest = distance_transform_edt(void, return_distances=False, return_indices=True)
        assert isinstance(nearest, np.ndarray)
        return height[tuple(nearest)].astype(np.float64)
    even = [(0, size % 2) for size in void.shape]
    blocks = np.pad(height, even, mode="edge")
    blocks = blocks.reshape(blocks.shape[0] // 2, 2, blocks.shape[1] // 2, 2)
    known = np.isfinite(blocks).sum(axis=(1, 3))
    total = np.nansum(blocks, axis=(1, 3), dtype=np.float64)
    coarse = np.full(known.shape, np.nan, dtype=np.float32)
    np.divide(total, known, out=coarse, where=known > 0, casting="same_kind")
    coarse = _fill(coarse, known == 0)
    rows, columns = ((np.arange(size) - 0.5) / 2 for size in void.shape)
    at = np.stack(np.meshgrid(rows, columns, indexing="ij"))
    return map_coordinates(coarse.astype(np.float64), at, order=1, mode="nearest")


def _laplace_system(height: np.ndarray, void: np.ndarray) -> tuple[csr_array, np.ndarray]:
    """Equations of the void cells: neighbours inside the raster times height, minus theirs."""
    number = np.full(void.shape, -1, dtype=np.int64)
    number[void] = np.arange(int(void.sum()))
    n_cells = int(void.sum())
    degree, known_sum = np.zeros(n_cells), np.zeros(n_cells)
    rows, columns = [], []
    here, there = np.s_[:-1], np.s_[1:]
    for near, far in ((here, there), (there, here)):
        for axis in (0, 1):
            cell = number[near] if axis == 0 else number[:, near]
            other = number[far] if axis == 0 else number[:, far]
            value = height[far] if axis == 0 else height[:, far]
            inside = cell >= 0
            degree[cell[inside]] += 1
            known = inside & (other < 0)
            known_sum[cell[known]] += value[known]
            both = inside & (other >= 0)
            rows.append(cell[both])
            columns.append(other[both])
    row, column = np.concatenate(rows), np.concatenate(columns)
    links = coo_array((np.ones(len(row)), (row, column)), shape=(n_cells, n_cells))
    return csr_array(diags_array(degree) - links), known_sum
