"""One column of a binned table: edges of a number, or levels of a choice."""

from dataclasses import dataclass

import numpy as np

from prisma_sbi import _validate


@dataclass(frozen=True, kw_only=True)
class ContinuousColumn:
    """A number, cut into half-open bins ``[edge_i, edge_{i+1})``; the last one is closed.

    Attributes
    ----------
    name
        Variable of the descriptor table.
    edges
        Rising bin edges, one more than there are bins. They are public: chosen without a
        look at the private table.

    Raises
    ------
    ValueError
        If there are fewer than two edges, or they are not finite and rising.
    """

    name: str
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges, dtype=np.float64)
        if len(edges) < 2 or not np.all(np.isfinite(edges)) or not np.all(np.diff(edges) > 0):
            raise ValueError(
                f"Expected at least two finite, rising edges of {self.name}; got {self.edges!r}."
            )
        object.__setattr__(self, "edges", tuple(edges.tolist()))

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    def outside(self, values: np.ndarray) -> np.ndarray:
        """Whether each value lies beyond the outer edges."""
        return (values < self.edges[0]) | (values > self.edges[-1])

    def code(self, values: np.ndarray) -> np.ndarray:
        """Bin of each value; values beyond the outer edges go to the border bin."""
        found = np.searchsorted(np.asarray(self.edges), values, side="right") - 1
        return np.clip(found, 0, self.n_bins - 1)

    def sample(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Uniform draws inside the bins."""
        edges = np.asarray(self.edges)
        low, high = edges[codes], edges[codes + 1]
        drawn = low + rng.random(len(codes)) * (high - low)
        # Rounding may land on the upper edge, which belongs to the next bin.
        return np.minimum(drawn, np.nextafter(high, low))


@dataclass(frozen=True, kw_only=True)
class CategoricalColumn:
    """A choice among ``n_bins`` levels, coded by its index.

    Raises
    ------
    ValueError
        If there is no level.
    """

    name: str
    n_bins: int

    def __post_init__(self) -> None:
        _validate.at_least(1, n_bins=self.n_bins)

    def outside(self, values: np.ndarray) -> np.ndarray:
        """Whether each value is no known level."""
        return (values < 0) | (values >= self.n_bins) | (values != np.rint(values))

    def code(self, values: np.ndarray) -> np.ndarray:
        """Return the levels themselves."""
        return np.asarray(values).astype(np.int64)

    def sample(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG002
        """Return the levels themselves; nothing is random."""
        return codes.astype(np.int32)
