"""Numbers that tell whether a canary was in: from synthetic rows, and from traces."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from prisma_sbi.descriptors import DESCRIPTORS, TableLayout, make_descriptor_table
from prisma_sbi.evaluation import trace_features


def row_statistics(
    codes: np.ndarray, canary: np.ndarray, names: tuple[str, ...]
) -> dict[str, float]:
    """How often the bins of the canary occur among synthetic rows.

    Parameters
    ----------
    codes : (row, column)
        Bins of the released rows.
    canary : (column,)
        Bins of the canary.
    names
        Names of the columns.

    Returns
    -------
    statistics
        Rows in all, which tell something where their number is private; rows in the canary's bin
        of each column; the same summed over columns, over pairs of
        columns, and over all columns at once; and the most bins that one row shares with it.
    """
    same = codes == canary
    per_row = same.sum(axis=1).astype(np.float64)
    return {
        "rows": float(len(codes)),
        **{f"rows with its {name}": float(same[:, at].sum()) for at, name in enumerate(names)},
        "bins shared": float(per_row.sum()),
        "pairs of bins shared": float(np.sum(per_row * (per_row - 1.0)) / 2.0),
        "rows in its cell": float(np.sum(per_row == len(names))),
        "most bins shared by a row": float(per_row.max(initial=0.0)),
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceView:
    """How an attacker looks at released traces.

    Attributes
    ----------
    layout
        Public; the descriptors that come with the traces are put back into its bins.
    canary : (column,)
        Bins of the canary.
    feature : (feature,)
        Features of the canary's own trace.
    center, spread : (feature,)
        Scales of the features.
    """

    layout: TableLayout
    canary: np.ndarray
    feature: np.ndarray
    center: np.ndarray
    spread: np.ndarray

    @classmethod
    def make(
        cls,
        layout: TableLayout,
        canary: np.ndarray,
        canary_power_w: np.ndarray,
        example_power_w: np.ndarray,
    ) -> "TraceView":
        """A view scaled by some released traces ``(trip, time)`` of an earlier run."""
        examples = trace_features(example_power_w.astype(np.float64))
        spread = examples.std(axis=0)
        return cls(
            layout=layout,
            canary=canary,
            feature=trace_features(canary_power_w[None].astype(np.float64))[0],
            center=examples.mean(axis=0),
            spread=np.where(spread > 0, spread, 1.0),
        )

    def statistics(self, traces: xr.Dataset) -> dict[str, float]:
        """Statistics of one release of traces.

        Parameters
        ----------
        traces
            From the decoder.

        Returns
        -------
        statistics
            Those of :func:`row_statistics`, from the descriptors of the traces; how near the
            nearest trace comes to the canary's own, in standardized features; and how
            crowded its neighborhood is.
        """
        table = make_descriptor_table(
            {name: traces[name].values for name in DESCRIPTORS},
            region_fingerprint=self.layout.region_fingerprint,
        )
        found = row_statistics(self.layout.discretize(table), self.canary, self.layout.names)
        features = trace_features(traces["power_w"].values.astype(np.float64))
        miss = (features - self.feature) / self.spread
        distance = np.sqrt(np.mean(miss**2, axis=1))
        return found | {
            "nearest trace": -float(distance.min()),
            "traces nearby": float(np.sum(np.exp(-0.5 * (distance / 0.3) ** 2))),
        }
