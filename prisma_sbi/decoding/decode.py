"""From a release and a region to synthetic traces; private data cannot enter here."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi.descriptors.table import DESCRIPTORS
from prisma_sbi.privacy.release import Release
from prisma_sbi.region.profiles import RoadProfiles, RouteStatus
from prisma_sbi.region.record import Region
from prisma_sbi.region.routing import route_profiles
from prisma_sbi.simulator.draws import draw_traces

_MAX_REDRAWS = 30
_ENDS = ("start_lat", "start_lon", "end_lat", "end_lon")


def decode(
    release: Release,
    region: Region,
    *,
    n_traces: int | None = None,
    seed: int | None = None,
    allow_unprotected: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Simulate a trace for every row of a release.

    *Guarantee.* Post-processing: the inputs are a release and public data, so the traces
    carry the guarantee of the release and cost nothing more.

    ======================================= ==========================================
    Case                                    Result
    ======================================= ==========================================
    ``n_traces`` below the number of rows   that many rows, drawn without replacement
    ``n_traces`` above it                   every row, then rows drawn again
    row whose bins cannot be routed         redrawn within its bins, counted
    row that can never be routed            replaced by another row, counted
    release without a guarantee             ``GuaranteeError`` unless allowed
    ======================================= ==========================================

    Parameters
    ----------
    release
        Synthetic rows, or the exact ones in a study without a mechanism.
    region
        Public inputs.
    n_traces
        Number of traces, by default one a row.
    seed
        Of the draws inside bins; post-processing, so it may be fixed.
    allow_unprotected
        Take a release that has no guarantee; the traces then say so too.
    progress
        Called with traces done and traces in all.

    Returns
    -------
    xarray.Dataset
        ``power_w (trip, time)``, the seven descriptors, ``route_length_m`` and ``n_redraws``
        per trip. Descriptors are those of the release, also where the constants have traces drawn
        for drivers nearer to the typical one. Attributes carry the guarantee and how many rows
        were redrawn or replaced.

    Raises
    ------
    RegionMismatchError
        If the release belongs to another region.
    GuaranteeError
        If the release is not private and that was not allowed.
    ValueError
        If ``n_traces`` is less than one, or no row of the release can be routed.
    """
    region.require_same(release.region_fingerprint, what="a release")
    if not allow_unprotected:
        release.require_private()
    n_traces = release.n_rows if n_traces is None else n_traces
    _validate.at_least(1, n_traces=n_traces)
    rng = np.random.default_rng(seed)
    rows = _pick_rows(release.n_rows, n_traces, rng)
    table, profiles, n_redraws, n_replaced = _route_rows(release, region, rows, rng)
    power_w = draw_traces(
        region,
        profiles,
        table["aggressiveness"],
        table["detour"],
        table["vehicle"],
        rng,
        progress=progress,
    )
    return _dataset(release, region, table, profiles, power_w, n_redraws, n_replaced)


def _pick_rows(n_rows: int, n_traces: int, rng: np.random.Generator) -> np.ndarray:
    """Rows to decode: whole permutations first, so that no row is favored by more than one."""
    _validate.at_least(1, n_rows=n_rows)
    if n_traces == n_rows:
        return np.arange(n_rows)
    n_rounds = -(-n_traces // n_rows)
    return np.concatenate([rng.permutation(n_rows) for _ in range(n_rounds)])[:n_traces]


def _route_rows(
    release: Release, region: Region, rows: np.ndarray, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], RoadProfiles, np.ndarray, int]:
    """Draw and route every row, again where that fails, from other rows in the end."""
    rows = rows.copy()
    table = _draw(release, rows, rng)
    profiles = _route(region, table)
    n_redraws = np.zeros(len(rows), np.int32)
    n_replaced = 0
    for attempt in range(2 * _MAX_REDRAWS):
        failed = np.flatnonzero(profiles.status != RouteStatus.OK)
        if not failed.size:
            break
        if attempt >= _MAX_REDRAWS or not release.can_redraw:
            # Nothing in the bins of these rows is drivable; rows that are stand in for them.
            drivable = np.flatnonzero(profiles.status == RouteStatus.OK)
            if not drivable.size:
                break
            rows[failed] = rows[rng.choice(drivable, size=failed.size)]
            n_replaced += failed.size if attempt in (0, _MAX_REDRAWS) else 0
        again = _draw(release, rows[failed], rng)
        routed = _route(region, again)
        n_redraws[failed] += 1
        for name in table:
            table[name][failed] = again[name]
        _put(profiles, failed, routed)
    if np.any(profiles.status != RouteStatus.OK):
        raise ValueError(
            "Expected a release with rows that can be driven on this road network; got none that "
            "can. Check that the bounding box of the region holds its roads."
        )
    return table, profiles, n_redraws, n_replaced


def _draw(release: Release, rows: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Descriptors of some rows as plain arrays."""
    drawn = release.draw_descriptors(rng, rows=rows)
    return {name: np.array(drawn[name].values) for name in DESCRIPTORS}


def _route(region: Region, table: dict[str, np.ndarray]) -> RoadProfiles:
    """Routes of drawn descriptors."""
    return route_profiles(region, *(table[name] for name in _ENDS))


def _put(profiles: RoadProfiles, index: np.ndarray, new: RoadProfiles) -> None:
    """Overwrite some rows of freshly made profiles."""
    for name in ("length_m", "speed_mps", "grade", "start_node", "end_node", "status"):
        getattr(profiles, name)[index] = getattr(new, name)


def _dataset(
    release: Release,
    region: Region,
    table: dict[str, np.ndarray],
    profiles: RoadProfiles,
    power_w: np.ndarray,
    n_redraws: np.ndarray,
    n_replaced: int,
) -> xr.Dataset:
    """Assemble the traces."""
    constants = region.constants
    n_traces = len(power_w)
    columns = {name: ("trip", values) for name, values in table.items()}
    return xr.Dataset(
        {
            "power_w": (
                ("trip", "time"),
                power_w,
                {"units": "W", "long_name": "power drawn from the store"},
            ),
            **columns,
            "route_length_m": ("trip", profiles.length_m, {"units": "m"}),
            "n_redraws": ("trip", n_redraws),
        },
        coords={
            "trip": [f"synthetic/{row}" for row in range(n_traces)],
            "time": (
                "time",
                np.arange(constants.n_times) * constants.time_step_s,
                {"units": "s"},
            ),
        },
        attrs={
            "kind": "traces",
            "format_version": 1,
            "horizon_s": float(constants.horizon_s),
            "time_step_s": float(constants.time_step_s),
            "region_fingerprint": region.fingerprint,
            "guarantee": release.guarantee_text(),
            "n_redrawn": int(np.sum(n_redraws > 0)),
            "n_replaced": int(n_replaced),
        },
    )
