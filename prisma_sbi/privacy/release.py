"""The release: the only thing that leaves the private side, with its guarantee."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from prisma_sbi._errors import GuaranteeError
from prisma_sbi.descriptors.layout import TableLayout
from prisma_sbi.privacy.accounting import epsilon_from_rho_delta
from prisma_sbi.privacy.ledger import Ledger
from prisma_sbi.privacy.settings import Mechanism, Neighbors, PrivacyUnit, SynthesisSettings


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What is promised, to whom, and under which assumptions.

    Attributes
    ----------
    epsilon, delta
        The promise.
    rho
        Budget in zCDP from which it follows; what was spent is at most this.
    unit
        What counts as one record.
    neighbors
        Which two tables cannot be told apart.
    n_rows
        Number of rows of the release; public by assumption unless ``n_rows_stddev`` is given.
    weight_total
        Units of weight in one trip; one unless a trip entered as several weighted rows.
    max_trips
        Trips in one record; one unless the unit is a vehicle.
    n_rows_stddev
        Noise with which the number of trips was measured, or None if it is public.
    """

    epsilon: float
    delta: float
    rho: float
    n_rows: int
    unit: PrivacyUnit = PrivacyUnit.TRIP
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    weight_total: int = 1
    max_trips: int = 1
    n_rows_stddev: float | None = None

    @property
    def text(self) -> str:
        """The promise in words."""
        return " ".join(
            [
                f"Differentially private with epsilon = {self.epsilon:g} and delta = "
                f"{self.delta:g} ({self.rho:.6g}-zCDP, converted by the bound of Canonne, Kamath "
                "and Steinke).",
                f"Neighboring tables: {self.neighbors.text}; one record is one {self._record}.",
                f"Someone with several {self.unit}s is protected for each of them, not for all at "
                "once.",
                *self._weights_text(),
                *self._replacement_text(),
                self._rows_text(),
                "Region, bins and settings are public, chosen without a look at the private table. "
                "The guarantee covers this release; another one from the same trips adds its own "
                "cost.",
            ]
        )

    @property
    def _record(self) -> str:
        """What a record is, in words."""
        if self.unit == PrivacyUnit.TRIP:
            return "trip"
        return (
            f"vehicle with all of its trips, of which at most {self.max_trips} entered, picked by "
            "a digest of their names"
        )

    def _rows_text(self) -> str:
        """Where the number of rows comes from."""
        if self.n_rows_stddev is None:
            return (
                f"The number of rows, {self.n_rows}, is public: it was fixed in advance or is "
                "declared so, and is not protected."
            )
        return (
            f"The number of trips is protected like everything else: the {self.n_rows} rows are a "
            f"measurement of it, with noise of standard deviation {self.n_rows_stddev:.3g}, paid "
            "from the same budget."
        )

    def _weights_text(self) -> list[str]:
        """How a trip enters, if not as one row."""
        if self.weight_total == 1:
            return []
        return [
            "A trip enters as weighted rows that together weigh at most one trip, in units of "
            f"1/{self.weight_total}."
        ]

    def _replacement_text(self) -> list[str]:
        """What holds beyond the neighbors, and what does not."""
        if self.neighbors == Neighbors.REPLACE:
            found = (
                "Whether a record is in the table at all is hidden only among tables with equally "
                f"many {self.unit}s."
            )
        else:
            replaced = epsilon_from_rho_delta(4.0 * self.rho, self.delta)
            example = ", as when one recorded trip puts another out of a table of fixed size,"
            found = (
                "Against replacing one record by another"
                f"{example if self.unit == PrivacyUnit.TRIP else ''} "
                f"epsilon is at most {replaced:.3g}."
            )
        if self.unit == PrivacyUnit.TRIP:
            return [found]
        return [
            found,
            "If the table was cut to a fixed number of trips beforehand, one vehicle may have put "
            "trips of several others out, which is not covered.",
        ]


@dataclass(frozen=True, kw_only=True)
class MeasuredMarginal:
    """One marginal that the mechanism measured.

    Attributes
    ----------
    columns
        Names of its columns.
    stddev
        Noise per cell, after merging.
    n_merged
        Rounds that measured it.
    """

    columns: tuple[str, ...]
    stddev: float
    n_merged: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """Synthetic descriptors and the statement of what they reveal.

    Made by :func:`~prisma_sbi.privacy.synthesis.synthesize`. It holds either ``codes``
    (a mechanism ran) or ``exact`` (none did).

    Attributes
    ----------
    layout
        Columns and bins; public.
    settings
        How it was made.
    codes : (row, column) int32
        Synthetic bins, or None.
    exact
        The descriptors themselves if there was no mechanism, or None.
    guarantee
        The promise, or None if there is none.
    no_guarantee
        Why there is none; empty if there is one.
    ledger
        Every spend, or None without a mechanism.
    measured
        Marginals that were measured.
    warnings
        Sentences that a user must read.
    seed
        Seed of the post-processing, or None if it came from the operating system. Noise
        has no seed.
    versions
        Versions of the libraries that made it.

    Raises
    ------
    GuaranteeError
        If the parts contradict each other.
    """

    layout: TableLayout
    settings: SynthesisSettings
    codes: np.ndarray | None = None
    exact: xr.Dataset | None = None
    guarantee: Guarantee | None = None
    no_guarantee: str = ""
    ledger: Ledger | None = None
    measured: tuple[MeasuredMarginal, ...] = ()
    warnings: tuple[str, ...] = ()
    seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.codes is None) == (self.exact is None):
            raise GuaranteeError(
                "Expected either synthetic codes or exact descriptors; got both "
                "or neither. Make releases with synthesize."
            )
        if (self.guarantee is None) == (not self.no_guarantee):
            raise GuaranteeError(
                "Expected a guarantee or the reason why there is none; got both "
                "or neither. Make releases with synthesize."
            )
        if self.guarantee is not None and (self.exact is not None or self.ledger is None):
            raise GuaranteeError(
                "Expected a guarantee to stand on a mechanism and a ledger; got "
                "none. Exact descriptors are not private."
            )

    @property
    def is_private(self) -> bool:
        """Whether a guarantee holds."""
        return self.guarantee is not None

    @property
    def mechanism(self) -> Mechanism:
        """Mechanism that made it."""
        return Mechanism(self.settings.mechanism)

    @property
    def region_fingerprint(self) -> str:
        """Fingerprint of the region it belongs to."""
        return self.layout.region_fingerprint

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        if self.codes is not None:
            return len(self.codes)
        assert self.exact is not None
        return self.exact.sizes["trip"]

    @property
    def table(self) -> xr.Dataset:
        """Rows as a dataset: ``bin (row, column)``, or the exact descriptors."""
        if self.codes is None:
            assert self.exact is not None
            return self.exact
        return xr.Dataset(
            {"bin": (("row", "column"), self.codes, {"long_name": "bin of the layout"})},
            coords={"column": list(self.layout.names)},
            attrs={"kind": "release", "region_fingerprint": self.region_fingerprint},
        )

    @property
    def can_redraw(self) -> bool:
        """Whether a second draw of the same rows gives other values."""
        return self.codes is not None

    def draw_descriptors(
        self, rng: np.random.Generator, *, rows: np.ndarray | None = None
    ) -> xr.Dataset:
        """Turn rows into descriptors by a uniform draw inside each bin.

        Parameters
        ----------
        rng
            Source of the draws; post-processing, so it may be seeded.
        rows : (drawn,) int
            Rows to draw, by default all; a row may be drawn again to get another value.

        Returns
        -------
        table
            A descriptor table; without a mechanism the exact rows, whatever ``rng`` is. The
            trips are named by row.
        """
        picked = np.arange(self.n_rows) if rows is None else np.asarray(rows, dtype=np.int64)
        if self.codes is None:
            assert self.exact is not None
            return self.exact.isel(trip=picked)
        drawn = self.layout.sample_within_bins(self.codes[picked], rng)
        return drawn.assign_coords(trip=picked.astype("U"))

    def require_private(self) -> None:
        """Raise :class:`GuaranteeError` unless a guarantee holds."""
        if not self.is_private:
            raise GuaranteeError(
                f"Expected a release with a guarantee; got one without. {self.no_guarantee} "
                "Say so explicitly if that is what you want."
            )

    def guarantee_text(self) -> str:
        """Return the guarantee, or its absence, in words, with all warnings."""
        head = self.guarantee.text if self.guarantee else f"NO GUARANTEE. {self.no_guarantee}"
        return " ".join([head, *(f"Warning: {sentence}" for sentence in self.warnings)])
