"""R-hat, effective sample size and flags per trip."""

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from prisma_sbi._optional import optional_import
from prisma_sbi.diagnostics.modes import has_two_modes


class FitFlag(enum.IntFlag):
    """What is remarkable about the fit of one trip; a trip may carry several."""

    AT_BOUND = 1
    POOR_FIT = 2
    R_HAT = 4
    LOW_ESS = 8
    DIVERGING = 16
    TWO_MODES = 32
    COARSE_GRID = 64
    NOT_GAUSSIAN = 128

    @property
    def text(self) -> str:
        """A sentence for people."""
        return _TEXT[self]


_TEXT = {
    FitFlag.AT_BOUND: "aggressiveness or detour lies on a bound of its domain",
    FitFlag.POOR_FIT: "no trip of the simulator comes close: energy or duration is off by 20 %",
    FitFlag.R_HAT: "chains disagree: R-hat is above its limit",
    FitFlag.LOW_ESS: "too few effective draws",
    FitFlag.DIVERGING: "trajectories left the posterior (more than one in fifty)",
    FitFlag.TWO_MODES: "the posterior of aggressiveness or detour has two heaps",
    FitFlag.COARSE_GRID: "the grid has too few cells where the posterior lies",
    FitFlag.NOT_GAUSSIAN: "the posterior is unlike the Gaussian that stands for it",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Convergence:
    """Convergence of the chains of many trips.

    Attributes
    ----------
    r_hat, ess_bulk, ess_tail : (trip,)
        The worst over the parameters.
    two_modes : (trip,) bool
        Whether a parameter has two heaps.
    """

    r_hat: np.ndarray
    ess_bulk: np.ndarray
    ess_tail: np.ndarray
    two_modes: np.ndarray

    def flags(self, *, max_r_hat: float = 1.01, least_ess: float = 400.0) -> np.ndarray:
        """Flags per trip ``(trip,)`` of :class:`FitFlag` values."""
        flags = np.zeros(len(self.r_hat), np.int32)
        # A chain that never moved has no R-hat; not a number is not a pass.
        flags[~(self.r_hat <= max_r_hat)] |= FitFlag.R_HAT
        flags[~(np.minimum(self.ess_bulk, self.ess_tail) >= least_ess)] |= FitFlag.LOW_ESS
        flags[self.two_modes] |= FitFlag.TWO_MODES
        return flags


def convergence(posterior: xr.Dataset, names: tuple[str, ...]) -> Convergence:
    """Rank-normalized split R-hat and effective sample sizes of every trip.

    Parameters
    ----------
    posterior
        With dimensions ``chain, draw, trip``.
    names
        Continuous variables to look at.

    Returns
    -------
    Convergence

    Raises
    ------
    ImportError
        If ArviZ is missing.

    Notes
    -----
    By ArviZ, after Vehtari et al. [1]_.

    References
    ----------
    .. [1] Vehtari, Gelman, Simpson, Carpenter and Buerkner, Rank-normalization, folding and
       localization: an improved R-hat, 2021. https://doi.org/10.1214/20-BA1221
    """
    arviz: Any = optional_import("arviz", extra="bayes")
    chosen = posterior[list(names)]
    with np.errstate(invalid="ignore", divide="ignore"):
        r_hat = arviz.rhat(chosen)
        bulk = arviz.ess(chosen, method="bulk")
        tail = arviz.ess(chosen, method="tail")
    flat = [
        chosen[name].transpose("trip", "chain", "draw").values.reshape(posterior.sizes["trip"], -1)
        for name in names
    ]
    return Convergence(
        r_hat=np.max([r_hat[name].values for name in names], axis=0),
        ess_bulk=np.min([bulk[name].values for name in names], axis=0),
        ess_tail=np.min([tail[name].values for name in names], axis=0),
        two_modes=np.any([has_two_modes(draws) for draws in flat], axis=0),
    )


def flag_counts(flags: np.ndarray) -> dict[str, int]:
    """How many trips carry each flag, by name."""
    return {flag.name.lower(): int(np.sum((flags & flag) > 0)) for flag in FitFlag if flag.name}
