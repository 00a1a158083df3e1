"""The descriptors of all fitted trips, as the table that synthesis takes."""

import numpy as np
import xarray as xr

from prisma_sbi.descriptors.table import make_descriptor_table
from prisma_sbi.encoding.status import FitStatus
from prisma_sbi.region.record import Region


def descriptor_table(region: Region, fit: xr.DataTree) -> xr.Dataset:
    """The descriptors of all trips that were fitted, as the table that synthesis takes.

    Parameters
    ----------
    region
        The region of the fit.
    fit
        From :func:`encode`.

    Returns
    -------
    xarray.Dataset
        Seven variables along ``trip``, at the best point of each; trips without descriptors
        are left out. For posterior draws see :func:`~prisma_sbi.descriptors.table_from_draws`.

    Raises
    ------
    RegionMismatchError
        If the fit belongs to another region.
    """
    region.require_same(fit.attrs.get("region_fingerprint"), what="a fit")
    status = fit["sample_stats"].dataset["status"].values
    usable = np.flatnonzero(status <= FitStatus.POOR_FIT)
    best = fit["sample_stats"].dataset.isel(trip=usable)
    ends = fit["constant_data"].dataset.isel(trip=usable)
    columns = {name: ends[name].values for name in ("start_lat", "start_lon", "end_lat", "end_lon")}
    names = ("aggressiveness", "detour", "vehicle")
    columns |= {name: best[f"best_{name}"].values for name in names}
    return make_descriptor_table(
        columns, trip=best["trip"].values, region_fingerprint=region.fingerprint
    )
