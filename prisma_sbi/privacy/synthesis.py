"""From a private descriptor table to a release."""

import importlib.metadata

import numpy as np
import xarray as xr

from prisma_sbi._errors import InputDataError, RegionMismatchError
from prisma_sbi.descriptors.layout import TableLayout
from prisma_sbi.descriptors.registry import Table, make_layout
from prisma_sbi.descriptors.table import require_descriptor_table
from prisma_sbi.descriptors.weighted import pick_one_row
from prisma_sbi.privacy.accounting import rho_from_epsilon_delta
from prisma_sbi.privacy.aim import Fit, Progress, fit_aim, fit_independent
from prisma_sbi.privacy.asking import count_trips
from prisma_sbi.privacy.candidates import expected_noise
from prisma_sbi.privacy.ledger import Ledger
from prisma_sbi.privacy.mst import fit_mst
from prisma_sbi.privacy.noise import NoiseSource, SystemNoise
from prisma_sbi.privacy.records import bounded_table
from prisma_sbi.privacy.release import Guarantee, MeasuredMarginal, Release
from prisma_sbi.privacy.settings import Mechanism, PrivacyUnit, SynthesisSettings
from prisma_sbi.region.record import Region

_MECHANISMS = {
    Mechanism.AIM: fit_aim,
    Mechanism.MST: fit_mst,
    Mechanism.INDEPENDENT: fit_independent,
}
_LIBRARIES = ("prisma-sbi", "mbi", "opendp", "jax", "numpy")


def synthesize(
    table: xr.Dataset,
    layout: Region | TableLayout,
    settings: SynthesisSettings | None = None,
    *,
    noise: NoiseSource | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Release:
    r"""Replace a private table by a synthetic one.

    *Guarantee.* Neighboring tables differ by one record, by default one trip added or removed;
    the settings may say otherwise. Released: the synthetic rows, the list of measured
    marginals, the ledger. The release is :math:`\rho`-zCDP and hence
    :math:`(\epsilon, \delta)`-DP, with :math:`\rho` from
    :func:`~prisma_sbi.privacy.accounting.rho_from_epsilon_delta`.
    Assumes that the layout and the settings are public, and the number of rows drawn unless
    ``settings.n_rows`` is ``"private"``.

    ================================= ==================================================
    Case                              Result
    ================================= ==================================================
    mechanism ``"none"``              the rows as they are, marked as without guarantee; of a
                                      weighted table one row per trip, drawn by weight
    a trip that weighs too much       ``InputDataError`` before anything is spent
    unit vehicle without ``owner``    ``InputDataError`` before anything is spent
    noise other than ``SystemNoise``  marked as without guarantee
    value outside the grid            goes to the border bin
    NaN or an unknown vehicle         ``InputDataError`` before anything is spent
    empty table, ``n_rows`` given     ``n_rows`` rows of noise, the same guarantee
    empty table, ``n_rows`` private   at least one row, the same guarantee
    empty table, ``n_rows`` not given ``InputDataError``
    ================================= ==================================================

    Parameters
    ----------
    table
        Descriptor table, plain or weighted; private.
    layout
        The region, for the table named in the settings, or a layout derived from it; public.
    settings
        Mechanism, budget, workload; by default AIM at epsilon = 0.5 and delta = 1e-5.
    noise
        By default :class:`~prisma_sbi.privacy.noise.SystemNoise`, the only private one.
    seed
        Seed of drawing rows from the fitted model, which is post-processing (without a
        mechanism: of drawing a row per trip). Noise and selection cannot be seeded.
    progress
        Called with the share of the budget spent and a line of text.

    Returns
    -------
    release

    Raises
    ------
    RegionMismatchError
        If the table was derived from another region than the layout.
    InputDataError
        If the table has another form or unusable values.
    BudgetError
        If epsilon or delta is outside its range.

    Notes
    -----
    See :func:`~prisma_sbi.privacy.aim.fit_aim`; for tables of weighted rows and other units
    of privacy :class:`~prisma_sbi.privacy.contribution.Contribution`.
    """
    settings = settings or SynthesisSettings()
    grid = make_layout(settings.table, layout) if isinstance(layout, Region) else layout
    require_descriptor_table(table)
    found = table.attrs.get("region_fingerprint")
    if found != grid.region_fingerprint:
        raise RegionMismatchError(
            f"Expected a descriptor table derived from region {grid.region_fingerprint}; got one "
            f"derived from {found or 'an unknown region'}. Encode the trips with this region."
        )
    private, n_trips = bounded_table(table, grid, settings)
    n_rows, n_rows_stddev = _public_rows(n_trips, settings), None
    if settings.mechanism == Mechanism.NONE:
        return _unprotected(table, grid, settings, seed)

    noise = noise or SystemNoise()
    rho = rho_from_epsilon_delta(settings.epsilon, settings.delta)
    ledger = Ledger.open(rho, hides=private.contribution.text)
    if n_rows is None:
        ledger, n_rows, n_rows_stddev = count_trips(
            n_trips, private.contribution, settings.count_share, ledger, noise
        )
    mechanism = _MECHANISMS[Mechanism(settings.mechanism)]
    fit = mechanism(
        private, n_rows=n_rows, ledger=ledger, settings=settings, noise=noise, progress=progress
    )
    # Only this class draws unpredictable noise; a subclass may do anything.
    is_private = type(noise) is SystemNoise
    guarantee = Guarantee(
        epsilon=settings.epsilon,
        delta=settings.delta,
        rho=rho,
        n_rows=n_rows,
        unit=private.contribution.unit,
        neighbors=private.contribution.neighbors,
        weight_total=private.contribution.weight_total,
        max_trips=private.contribution.trips,
        n_rows_stddev=n_rows_stddev,
    )
    return Release(
        layout=grid,
        settings=settings,
        codes=fit.model.sample(seed),
        guarantee=guarantee if is_private else None,
        no_guarantee="" if is_private else f"The noise came from {type(noise).__name__}, a test.",
        ledger=fit.ledger,
        measured=_measured(fit, grid),
        warnings=_warnings(fit, settings),
        seed=seed,
        versions=_versions(),
    )


def _public_rows(n_trips: int, settings: SynthesisSettings) -> int | None:
    """Rows to draw: given, or the number of trips, thereby declared public; None if private."""
    if isinstance(settings.n_rows, str):
        return None
    if settings.n_rows is None and n_trips == 0:
        raise InputDataError(
            "Expected at least one row in the descriptor table; got none. "
            "See the report of trips that were set aside, or give n_rows."
        )
    if settings.mechanism == Mechanism.NONE and settings.n_rows not in (None, n_trips):
        raise ValueError(
            f"Expected n_rows={n_trips}, the trips of the table, without a mechanism; "
            f"got n_rows={settings.n_rows}. Leave it out."
        )
    return n_trips if settings.n_rows is None else settings.n_rows


def _unprotected(
    table: xr.Dataset, grid: TableLayout, settings: SynthesisSettings, seed: int | None
) -> Release:
    """Pass the trips on as they are, and say so."""
    return Release(
        layout=grid,
        settings=settings,
        exact=pick_one_row(table, np.random.default_rng(seed)),
        no_guarantee="No mechanism ran: these are the descriptors of real trips.",
        versions=_versions(),
    )


def _measured(fit: Fit, grid: TableLayout) -> tuple[MeasuredMarginal, ...]:
    """Measured marginals by the names of their columns."""
    names = np.array(grid.names)
    return tuple(
        MeasuredMarginal(
            columns=tuple(names[list(item.columns)].tolist()),
            stddev=item.stddev,
            n_merged=item.n_merged,
        )
        for item in fit.measurements
    )


def _warnings(fit: Fit, settings: SynthesisSettings) -> tuple[str, ...]:
    """Sentences that a user of the release must read; they follow from released facts alone."""
    found = []
    if settings.unit == PrivacyUnit.VEHICLE:
        found.append(
            f"Of vehicles with more than {settings.max_trips_per_vehicle} trips only that many "
            "entered: busy vehicles count for less than their share of the trips."
        )
    pairs = [item for item in fit.measurements if len(item.columns) > 1]
    noisy = [
        item for item in pairs if expected_noise(item.stddev, len(item.values)) > fit.model.n_rows
    ]
    if settings.mechanism == Mechanism.MST and noisy:
        found.append(
            f"The noise on {len(noisy)} of the {len(pairs)} measured pairs is larger than the "
            f"{fit.model.n_rows} rows together, so their dependence is mostly noise. Raise "
            "epsilon, bring more rows, coarsen the bins, or use AIM, which then measures less."
        )
    if settings.mechanism != Mechanism.INDEPENDENT and not pairs:
        found.append(
            "No pair of columns was measured: the budget went into single columns, and all columns "
            "of the synthetic table are independent of each other"
            + (
                ". "
                if settings.table == Table.ROUTE
                else ", start and end included; the route table keeps the length of routes. "
            )
            + "Raise epsilon, bring more rows, or coarsen the bins."
        )
    return tuple(found)


def _versions() -> dict[str, str]:
    """Versions of the libraries that matter for a release."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
