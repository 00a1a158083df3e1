"""The descriptor table: one row per trip, seven variables."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError

DESCRIPTORS = (
    "start_lat",
    "start_lon",
    "end_lat",
    "end_lon",
    "aggressiveness",
    "detour",
    "vehicle",
)
"""The seven variables, in the order of the published table."""

_ATTRIBUTES = {
    "start_lat": {"units": "degrees_north", "long_name": "latitude of the start"},
    "start_lon": {"units": "degrees_east", "long_name": "longitude of the start"},
    "end_lat": {"units": "degrees_north", "long_name": "latitude of the end"},
    "end_lon": {"units": "degrees_east", "long_name": "longitude of the end"},
    "aggressiveness": {"units": "1", "long_name": "share of the acceleration ceiling in use"},
    "detour": {"units": "1", "long_name": "driven length over shortest length"},
    "vehicle": {"units": "1", "long_name": "index in the vehicle pool"},
}
_KIND = "descriptors"
_FORMAT_VERSION = 1


def make_descriptor_table(
    columns: Mapping[str, np.ndarray],
    *,
    trip: Sequence[str] | np.ndarray | None = None,
    region_fingerprint: str,
) -> xr.Dataset:
    """Build a descriptor table from seven arrays.

    Parameters
    ----------
    columns
        ``start_lat``, ``start_lon``, ``end_lat``, ``end_lon`` in degrees,
        ``aggressiveness``, ``detour``, and ``vehicle`` as an index in the pool; each (trip,).
    trip
        Names of the trips; by default ``"0"``, ``"1"``, ...
    region_fingerprint
        Fingerprint of the region that the descriptors belong to.

    Returns
    -------
    table
        Dimension ``trip``; attributes ``kind``, ``format_version``, ``region_fingerprint``.

    Raises
    ------
    InputDataError
        If a column is missing, not numeric, or of another length.

    Examples
    --------
    >>> import numpy as np
    >>> half = np.full(2, 0.5)
    >>> table = make_descriptor_table(
    ...     {name: half for name in DESCRIPTORS} | {"vehicle": np.array([0, 3])},
    ...     region_fingerprint="",
    ... )
    >>> table.sizes["trip"]
    2
    """
    missing = [name for name in DESCRIPTORS if name not in columns]
    if missing:
        raise InputDataError(
            f"Expected the descriptors {', '.join(DESCRIPTORS)}; got none of {missing}. Add them."
        )
    n_trips = len(columns["vehicle"])
    names = [str(row) for row in range(n_trips)] if trip is None else [str(name) for name in trip]
    if len(names) != n_trips:
        raise InputDataError(f"Expected {n_trips} trip names; got {len(names)}.")
    variables = {}
    for name in DESCRIPTORS:
        dtype = np.int32 if name == "vehicle" else np.float64
        values = _numbers(name, np.asarray(columns[name]), n_trips)
        if name == "vehicle":
            _require_whole(values, names)
        variables[name] = ("trip", values.astype(dtype), _ATTRIBUTES[name])
    return xr.Dataset(
        variables,
        coords={"trip": np.array(names, dtype="U") if names else np.array([], dtype="U1")},
        attrs={
            "kind": _KIND,
            "format_version": _FORMAT_VERSION,
            "region_fingerprint": region_fingerprint,
        },
    )


def require_descriptor_table(table: xr.Dataset) -> None:
    """Raise unless the dataset has the form of a descriptor table.

    Values are not looked at here: bins decide what they accept.

    Parameters
    ----------
    table
        The dataset to check.

    Raises
    ------
    InputDataError
        If the kind or version is another, a variable is missing, not numeric, or does not
        run over ``trip`` alone.
    """
    kind, version = table.attrs.get("kind"), table.attrs.get("format_version")
    if kind != _KIND or version != _FORMAT_VERSION:
        raise InputDataError(
            f"Expected a dataset of kind {_KIND!r}, version {_FORMAT_VERSION}; got {kind!r}, "
            f"version {version!r}. Build it with make_descriptor_table."
        )
    for name in DESCRIPTORS:
        if name not in table.data_vars:
            raise InputDataError(
                f"Expected the variable {name!r} in the descriptor table; "
                f"got {sorted(str(key) for key in table.data_vars)}. Add it."
            )
        variable = table[name]
        if variable.dims != ("trip",) or variable.dtype.kind not in "iuf":
            raise InputDataError(
                f"Expected numbers over 'trip' in the variable {name!r}; "
                f"got {variable.dtype} over {variable.dims}."
            )


def _numbers(name: str, values: np.ndarray, n_trips: int) -> np.ndarray:
    """Return the values, provided that there is one number per trip."""
    if values.shape != (n_trips,) or (values.dtype.kind not in "iuf" and n_trips):
        raise InputDataError(
            f"Expected {n_trips} numbers in the column {name!r}; "
            f"got {values.dtype} of shape {values.shape}."
        )
    return values


def _require_whole(values: np.ndarray, names: Sequence[str]) -> None:
    """Raise unless every vehicle is a whole number."""
    bad = np.flatnonzero(~(np.isfinite(values) & (values == np.rint(values))))
    if len(bad):
        row = int(bad[0])
        raise InputDataError(
            f"Expected a whole number as vehicle of trip {names[row]!r} (row {row}); "
            f"got {values[row]!r}. Use an index in the vehicle pool."
        )
