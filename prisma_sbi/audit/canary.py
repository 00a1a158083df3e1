"""A record to add: chosen from public inputs, as far from all others as can be."""

import numpy as np
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.descriptors import TableLayout, is_weighted
from prisma_sbi.descriptors.weighted import OWNER, SOURCE, WEIGHT
from prisma_sbi.privacy import Neighbors, PrivacyUnit, SynthesisSettings

_NAME = "canary"
_EXCESS = 4
"""A canary vehicle has this many times the trips that may enter."""


def choose_canary(
    layout: TableLayout, table: xr.Dataset, *, seed: int = 0, n_candidates: int = 512
) -> xr.Dataset:
    """A record that shares as few bins as possible with the rows of a table.

    Parameters
    ----------
    layout
        Columns and bins; the candidates are drawn from it, uniformly in its bins.
    table
        The rows to keep away from; an attacker knows all records but one.
    seed
        Of the candidates.
    n_candidates
        How many are drawn.

    Returns
    -------
    canary
        A descriptor table of one row. No row of the table is in its cell.

    Raises
    ------
    InputDataError
        If every candidate's cell holds a row.
    """
    _validate.at_least(1, n_candidates=n_candidates)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, np.array(layout.shape), size=(n_candidates, len(layout.shape)))
    candidates = layout.sample_within_bins(drawn, rng)
    codes = layout.discretize(candidates)  # a layout may draw a neighbor of the bin asked for
    rows = layout.discretize(table)
    shared = np.zeros(n_candidates)
    full = np.zeros(n_candidates, dtype=bool)
    for index, code in enumerate(codes):
        matches = rows == code
        shared[index] = matches.sum()
        full[index] = bool(matches.all(axis=1).any())
    if full.all():
        raise InputDataError(
            f"Expected an empty cell among {n_candidates} drawn ones; got rows in all of them. "
            "Audit with fewer rows or a finer table."
        )
    best = int(np.argmin(np.where(full, np.inf, shared)))
    return candidates.isel(trip=[best]).assign_coords(trip=[_NAME])


def neighbor_with(table: xr.Dataset, canary: xr.Dataset, settings: SynthesisSettings) -> xr.Dataset:
    """A neighboring table, by the unit and the relation of the settings, with the canary.

    Parameters
    ----------
    table
        At least one row, plain or weighted.
    canary
        From :func:`choose_canary`.
    settings
        Whether the canary is added or takes the place of the last record, and whether a record
        is a trip or a vehicle. A canary vehicle comes with four times as many equal trips as
        may enter, so that a forgotten bound shows.

    Returns
    -------
    neighbor
        The trips of the canary are its last rows; in a weighted table each has full weight.
    """
    is_vehicle = settings.unit == PrivacyUnit.VEHICLE
    n_trips = _EXCESS * (settings.max_trips_per_vehicle or 1) if is_vehicle else 1
    names = np.array([f"{_NAME}/{row}" for row in range(n_trips)])
    rows = canary.isel(trip=np.zeros(n_trips, dtype=int)).assign_coords(trip=names)
    if OWNER in table:
        rows[OWNER] = ("trip", np.full(n_trips, _NAME))
    if is_weighted(table):
        weight = np.full(n_trips, table.attrs["weight_total"], dtype=table[WEIGHT].dtype)
        rows = rows.assign({WEIGHT: ("trip", weight), SOURCE: ("trip", names)})
    kept = table
    if settings.neighbors == Neighbors.REPLACE:
        record = OWNER if is_vehicle else SOURCE if is_weighted(table) else "trip"
        of_row = table[record].values
        kept = table.isel(trip=of_row != of_row[-1])
    joined = xr.concat([kept, rows], dim="trip", data_vars="minimal", coords="minimal")
    return joined.assign_attrs(table.attrs)
