"""How the fit of a trip ended."""

import enum

import numpy as np
import xarray as xr


class FitStatus(enum.IntEnum):
    """How the fit of one trip ended."""

    OK = 0
    AT_BOUND = 1
    POOR_FIT = 2
    NOT_ROUTED = 3
    BAD_TRACE = 4

    @property
    def text(self) -> str:
        """A sentence for people."""
        return _TEXT[self]

    @property
    def usable(self) -> bool:
        """Whether the trip has descriptors."""
        return self <= FitStatus.POOR_FIT


_TEXT = {
    FitStatus.OK: "fitted",
    FitStatus.AT_BOUND: "aggressiveness or detour lies on a bound of its domain",
    FitStatus.POOR_FIT: "no trip of the simulator comes close: energy or duration is off by 20 %",
    FitStatus.NOT_ROUTED: "the road network does not lead from start to end",
    FitStatus.BAD_TRACE: "the trace has samples that are not finite, or draws no energy",
}


def status_counts(fit: xr.DataTree) -> dict[str, int]:
    """How many trips ended in each status, by name."""
    status = fit["sample_stats"]["status"].values
    return {item.name.lower(): int(np.sum(status == item)) for item in FitStatus}
