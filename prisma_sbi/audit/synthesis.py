"""Audits of the whole road: a table with a canary and one without, released many times."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import xarray as xr

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.audit.canary import choose_canary, neighbor_with
from prisma_sbi.audit.record import AuditResult, Claim, judge
from prisma_sbi.audit.statistics import TraceView, row_statistics
from prisma_sbi.decoding.decode import decode
from prisma_sbi.descriptors import TableLayout, is_weighted, make_layout
from prisma_sbi.descriptors.weighted import OWNER, SOURCE
from prisma_sbi.encoding import descriptor_table, encode
from prisma_sbi.privacy import (
    Mechanism,
    NoiseSource,
    PrivacyUnit,
    Release,
    SynthesisSettings,
    SystemNoise,
    rho_from_epsilon_delta,
    synthesize,
)
from prisma_sbi.region import Region

Progress = Callable[[int, int], None]
"""Called with runs done and runs in all."""
Statistics = Callable[[Release], dict[str, float]]
"""What an attacker computes from one release."""


def audit_synthesis(
    layout: Region | TableLayout,
    table: xr.Dataset,
    settings: SynthesisSettings,
    *,
    n_runs: int = 200,
    noise: NoiseSource | None = None,
    canary: xr.Dataset | None = None,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> AuditResult:
    """Attack released rows: tell releases with a canary from releases without it.

    Parameters
    ----------
    layout
        The region, for the table named in the settings, or a layout.
    table
        The table without the canary. What the audit says depends on it without
        protection, so a simulated or public one is the better choice.
    settings
        How to synthesize, and what a record is. Both worlds release as many rows as ``table``
        has trips, unless the settings say otherwise: the number is public.
    n_runs
        Releases with the canary, and as many without.
    noise
        By default the system's; another source to see whether the audit would notice.
    canary
        A descriptor table of one row; by default :func:`~prisma_sbi.audit.choose_canary`.
    confidence
        Of the bounds.
    progress
        Called after each pair of runs.

    Returns
    -------
    result
        Lower bounds on epsilon and rho beside the claim; ``caught`` if one is above it.

    Raises
    ------
    ValueError
        If the mechanism claims nothing, or a number is outside its range.
    InputDataError
        If the table is empty, or the canary is not one row.

    Notes
    -----
    The attacker knows every record but the canary and chooses a statistic and a threshold on
    the first fifth of the runs; the rates behind the bounds come from the others, with the
    limits of Clopper and Pearson. See :func:`~prisma_sbi.audit.epsilon_bound` and
    :func:`~prisma_sbi.audit.rho_bound`.
    """
    grid = make_layout(settings.table, layout) if isinstance(layout, Region) else layout
    canary = choose_canary(grid, table) if canary is None else canary
    code = grid.discretize(canary)[0]

    def statistics(release: Release) -> dict[str, float]:
        assert release.codes is not None
        return row_statistics(release.codes, code, grid.names)

    return _audit(
        "table",
        grid,
        table,
        canary,
        settings,
        statistics,
        n_runs=n_runs,
        noise=noise,
        confidence=confidence,
        progress=progress,
    )


def audit_traces(
    region: Region,
    traces: xr.Dataset,
    settings: SynthesisSettings,
    *,
    n_runs: int = 50,
    noise: NoiseSource | None = None,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> AuditResult:
    """Attack the whole road: encode, synthesize, decode, and look at the released traces.

    Parameters
    ----------
    region
        Public inputs.
    traces
        Trips as recorded or simulated; see ``table`` of :func:`audit_synthesis`.
    settings
        How to synthesize.
    n_runs
        Releases with the canary, and as many without.
    noise
        By default the system's.
    confidence
        Of the bounds.
    progress
        Called after each pair of runs.

    Returns
    -------
    result

    Raises
    ------
    ValueError
        If the mechanism claims nothing, or a number is outside its range.
    InputDataError
        If no trip, or not the canary, can be encoded.

    Notes
    -----
    The canary is a whole trip: a trace is simulated from descriptors far from all others,
    and encoded. Encoding fits each trip on its own and without chance, so it is done once for
    the trips and once for the canary, not once a run. Decoding draws anew each time.
    """
    grid = make_layout(settings.table, region)
    table = descriptor_table(region, encode(region, traces))
    canary_trip = _canary_trip(region, grid, table)
    canary = descriptor_table(region, encode(region, canary_trip))
    if canary.sizes["trip"] != 1:
        raise InputDataError(
            "Expected a canary that can be encoded; got none. Audit with other trips or region."
        )
    code = grid.discretize(canary)[0]
    view: TraceView | None = None

    def statistics(release: Release) -> dict[str, float]:
        nonlocal view
        decoded = decode(release, region, allow_unprotected=True)
        if view is None:
            power_w = decoded["power_w"].values
            view = TraceView.make(grid, code, canary_trip["power_w"].values[0], power_w)
        return view.statistics(decoded)

    return _audit(
        "traces",
        grid,
        table,
        canary,
        settings,
        statistics,
        n_runs=n_runs,
        noise=noise,
        confidence=confidence,
        progress=progress,
    )


def _canary_trip(region: Region, grid: TableLayout, table: xr.Dataset) -> xr.Dataset:
    """A trip far from all others, as a trace."""
    descriptors = choose_canary(grid, table)
    exact = synthesize(descriptors, grid, SynthesisSettings(mechanism=Mechanism.NONE))
    return decode(exact, region, seed=0, allow_unprotected=True)


def _audit(
    level: str,
    grid: TableLayout,
    table: xr.Dataset,
    canary: xr.Dataset,
    settings: SynthesisSettings,
    statistics: Statistics,
    *,
    n_runs: int,
    noise: NoiseSource | None,
    confidence: float,
    progress: Progress | None,
) -> AuditResult:
    """Release both tables many times and judge what an attacker sees."""
    _validate.at_least(4, n_runs=n_runs)
    n_records = len(np.unique(table[SOURCE if is_weighted(table) else "trip"].values))
    if settings.mechanism == Mechanism.NONE:
        raise ValueError(
            "Expected a mechanism that claims something; got 'none', which claims nothing."
        )
    if n_records < 1 or canary.sizes["trip"] != 1:
        raise InputDataError(
            f"Expected a table with rows and a canary of one row; got {n_records} and "
            f"{canary.sizes['trip']} rows."
        )
    settings = replace(settings, n_rows=settings.n_rows or n_records)
    source = noise or SystemNoise()
    if settings.unit == PrivacyUnit.VEHICLE and OWNER not in table:
        table = table.assign({OWNER: ("trip", table["trip"].values)})  # a vehicle for each trip
    worlds = {False: table, True: neighbor_with(table, canary, settings)}
    found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for row in range(n_runs):
        for has_canary, world in worlds.items():
            release = synthesize(world, grid, settings, noise=source)
            found[has_canary].append(statistics(release))
        if progress is not None:
            progress(row + 1, n_runs)
    scores = {
        has_canary: {name: np.array([each[name] for each in runs]) for name in runs[0]}
        for has_canary, runs in found.items()
    }
    claim = Claim(
        epsilon=settings.epsilon,
        delta=settings.delta,
        rho=rho_from_epsilon_delta(settings.epsilon, settings.delta),
    )
    return judge(
        level,
        claim,
        scores[False],
        scores[True],
        confidence=confidence,
        n_records=n_records,
        noise=source,
    )
