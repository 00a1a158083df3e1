"""What a private mechanism needs to know about a table: its columns and bins."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr


@runtime_checkable
class TableLayout(Protocol):
    """How descriptors become a table of small integers, and back.

    Everything in a layout is public. A mechanism sees ``names``, ``shape`` and the codes
    and nothing else, so another table is another layout and no other mechanism.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Name of every column, in order."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of bins of every column."""
        ...

    @property
    def region_fingerprint(self) -> str:
        """Fingerprint of the region that the bins were derived from."""
        ...

    def discretize(self, table: xr.Dataset) -> np.ndarray:
        """Codes ``(row, column)`` of a descriptor table."""
        ...

    def sample_within_bins(self, codes: np.ndarray, rng: np.random.Generator) -> xr.Dataset:
        """Draw a descriptor table that falls into the given bins."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        ...
