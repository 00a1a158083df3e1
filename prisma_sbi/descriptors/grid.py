"""The published bin grid: seven columns cut from public inputs alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.descriptors.checks import refuse, require_codes
from prisma_sbi.descriptors.columns import CategoricalColumn, ContinuousColumn
from prisma_sbi.descriptors.table import (
    DESCRIPTORS,
    make_descriptor_table,
    require_descriptor_table,
)
from prisma_sbi.region.record import Region

_LAYOUT = "published"


@dataclass(frozen=True, kw_only=True)
class DescriptorGrid:
    """Bins of the seven descriptors; a :class:`~prisma_sbi.descriptors.layout.TableLayout`.

    Attributes
    ----------
    columns
        The seven columns in the order of ``DESCRIPTORS``.
    region_fingerprint
        Fingerprint of the region that the bins were derived from.

    Raises
    ------
    ValueError
        If the columns are not the seven descriptors in order.
    """

    columns: tuple[ContinuousColumn | CategoricalColumn, ...]
    region_fingerprint: str

    def __post_init__(self) -> None:
        if self.names != DESCRIPTORS:
            raise ValueError(f"Expected the columns {DESCRIPTORS}; got {self.names}.")

    @property
    def names(self) -> tuple[str, ...]:
        """Name of every column, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of bins of every column."""
        return tuple(column.n_bins for column in self.columns)

    def discretize(self, table: xr.Dataset) -> np.ndarray:
        """Bin of every value.

        Parameters
        ----------
        table
            A descriptor table.

        Returns
        -------
        codes : (row, column) int32
            A number beyond the outer edges goes to the border bin; :meth:`count_outside`
            says how often that happens.

        Raises
        ------
        InputDataError
            If the table has another form, a value is NaN, or a vehicle is not in the pool;
            the message names the trip.
        """
        require_descriptor_table(table)
        codes = np.zeros((table.sizes["trip"], len(self.columns)), dtype=np.int32)
        for index, column in enumerate(self.columns):
            values = table[column.name].values
            refuse(~np.isfinite(values), values, table, column.name, "a finite value")
            if isinstance(column, CategoricalColumn):
                rule = f"a whole number from 0 to {column.n_bins - 1}"
                refuse(column.outside(values), values, table, column.name, rule)
            codes[:, index] = column.code(values)
        return codes

    def count_outside(self, table: xr.Dataset) -> dict[str, int]:
        """Values per column that :meth:`discretize` moves to a border bin.

        Parameters
        ----------
        table
            A descriptor table.

        Returns
        -------
        counts
            Number of rows per column name. These are exact counts of private rows: for the
            eyes of the data holder, never part of a release.
        """
        require_descriptor_table(table)
        return {
            column.name: int(np.sum(column.outside(table[column.name].values)))
            for column in self.columns
        }

    def sample_within_bins(self, codes: np.ndarray, rng: np.random.Generator) -> xr.Dataset:
        """Turn bins into values by uniform draws inside them.

        Parameters
        ----------
        codes : (row, column)
            Bins, one row per trip.
        rng
            Source of the draws; this is post-processing and may be seeded.

        Returns
        -------
        table
            A descriptor table that :meth:`discretize` maps back to ``codes``.

        Raises
        ------
        ValueError
            If the codes have another number of columns or lie outside the grid.
        """
        codes = require_codes(codes, self.shape)
        drawn = {
            column.name: column.sample(codes[:, index], rng)
            for index, column in enumerate(self.columns)
        }
        return make_descriptor_table(drawn, region_fingerprint=self.region_fingerprint)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "layout": _LAYOUT,
            "region_fingerprint": self.region_fingerprint,
            "columns": [
                {"name": column.name, "edges": list(column.edges)}
                if isinstance(column, ContinuousColumn)
                else {"name": column.name, "n_levels": column.n_bins}
                for column in self.columns
            ],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "DescriptorGrid":
        """Inverse of :meth:`to_dict`; another layout raises ``InputDataError``."""
        if values.get("layout") != _LAYOUT:
            raise InputDataError(
                f"Expected the layout {_LAYOUT!r}; got {values.get('layout')!r}. "
                "Use the version of prisma_sbi that wrote it."
            )
        columns = tuple(
            ContinuousColumn(name=item["name"], edges=tuple(item["edges"]))
            if "edges" in item
            else CategoricalColumn(name=item["name"], n_bins=item["n_levels"])
            for item in values["columns"]
        )
        return cls(columns=columns, region_fingerprint=values["region_fingerprint"])


def grid_from_region(region: Region) -> DescriptorGrid:
    """Cut the bounding box, the driver's domain and the pool into bins.

    Parameters
    ----------
    region
        Public inputs; nothing private enters the bins.

    Returns
    -------
    grid
        Uniform bins: ``n_place_bins`` per coordinate, ``n_aggressiveness_bins``,
        ``n_detour_bins``, and one level per vehicle of the pool.
    """
    box, constants = region.bounds, region.constants
    latitudes = (box.south_deg, box.north_deg, constants.n_place_bins)
    longitudes = (box.west_deg, box.east_deg, constants.n_place_bins)
    cuts = {
        "start_lat": latitudes,
        "start_lon": longitudes,
        "end_lat": latitudes,
        "end_lon": longitudes,
        "aggressiveness": (*constants.aggressiveness_bounds, constants.n_aggressiveness_bins),
        "detour": (*constants.detour_bounds, constants.n_detour_bins),
    }
    numbers = tuple(
        ContinuousColumn(name=name, edges=tuple(np.linspace(low, high, n_bins + 1).tolist()))
        for name, (low, high, n_bins) in cuts.items()
    )
    vehicle = CategoricalColumn(name="vehicle", n_bins=len(region.vehicles))
    return DescriptorGrid(columns=(*numbers, vehicle), region_fingerprint=region.fingerprint)
