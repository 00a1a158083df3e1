"""From the fit of all trips to the release behind one row."""

import numpy as np
import xarray as xr

from prisma_sbi.descriptors import make_layout, table_from_draws
from prisma_sbi.encoding import FitStatus, descriptor_table
from prisma_sbi.encoding.checkpoint import trip_seeds
from prisma_sbi.models.trip_model import uniform_prior
from prisma_sbi.pipeline.inputs import Progress
from prisma_sbi.pipeline.reproduce.rows import Passage, Recipe, Source
from prisma_sbi.privacy import Mechanism, Release, SynthesisSettings, synthesize
from prisma_sbi.privacy.noise import ZeroNoise
from prisma_sbi.region import Region

NOISELESS_EPSILON = 1000.0
"""Plan of a mechanism with exact counts: its rounds, the size of its model; nothing is spent."""


def private_table(
    region: Region, fit: xr.DataTree, trips: np.ndarray, source: Source, *, seed: int
) -> xr.Dataset:
    """The descriptor table of some trips, in their order; each row depends on its trip alone.

    Parameters
    ----------
    region
        The region of the fit.
    fit
        Of all trips; with draws for posterior rows.
    trips
        Names of the trips that enter; those without descriptors are left out.
    source
        Where descriptors come from.
    seed
        Of unfitted descriptors.

    Returns
    -------
    table
    """
    if source == Source.POSTERIOR:
        return _posterior_rows(region, fit, trips)
    best = descriptor_table(region, fit)
    table = best.sel(trip=trips[np.isin(trips, best["trip"].values)])
    return unfitted(region, table, seed=seed) if source == Source.UNFITTED else table


def unfitted(region: Region, table: xr.Dataset, *, seed: int) -> xr.Dataset:
    """The same trips with driver, detour and vehicle drawn from the public prior.

    The draws of a trip are keyed by the seed and by its name, so they depend on no other trip.
    """
    prior = uniform_prior(region.constants)
    names = trip_seeds(table["trip"].values)
    share = np.array([np.random.default_rng([seed, int(name)]).random(3) for name in names])
    n_vehicles = len(region.vehicles)
    return table.assign(
        aggressiveness=("trip", np.asarray(prior.aggressiveness.icdf(share[:, 0]), np.float64)),
        detour=("trip", np.asarray(prior.detour.icdf(share[:, 1]), np.float64)),
        vehicle=("trip", (n_vehicles * share[:, 2]).astype(np.int32)),
    )


def _posterior_rows(region: Region, fit: xr.DataTree, trips: np.ndarray) -> xr.Dataset:
    """Draws of each trip as weighted rows that together weigh one trip."""
    region.require_same(fit.attrs.get("region_fingerprint"), what="a fit")
    stats = fit["sample_stats"].dataset
    usable = stats["trip"].values[stats["status"].values <= FitStatus.POOR_FIT]
    chosen = trips[np.isin(trips, usable)]
    return table_from_draws(
        fit["posterior"].dataset.sel(trip=chosen),
        fit["constant_data"].dataset.sel(trip=chosen),
        weight=stats["weight"].sel(trip=chosen) if "weight" in stats else None,
        region_fingerprint=region.fingerprint,
    )


def make_release(
    recipe: Recipe,
    table: xr.Dataset,
    region: Region,
    settings: SynthesisSettings,
    *,
    seed: int,
    progress: Progress,
) -> Release:
    """Pass a table on as a recipe has it.

    Parameters
    ----------
    recipe
        With a finite epsilon under a mechanism this **spends**; write it down before.
    table
        Private descriptors.
    region
        Public inputs.
    settings
        Of the mechanism; not used without one.
    seed
        Of drawing rows, never of noise.
    progress
        Told the share of the budget that is spent, in percent.

    Returns
    -------
    release
        With a guarantee if, and only if, the recipe is private.
    """
    if recipe.passage == Passage.NONE:
        return synthesize(table, region, SynthesisSettings(mechanism=Mechanism.NONE), seed=seed)
    if recipe.passage == Passage.BINNED:
        layout = make_layout(recipe.table, region)
        return Release(
            layout=layout,
            settings=SynthesisSettings(mechanism=Mechanism.NONE, table=recipe.table),
            codes=layout.discretize(table),
            no_guarantee="No mechanism ran: these are the bins of real trips.",
        )
    return synthesize(
        table,
        region,
        settings,
        noise=None if recipe.is_private else ZeroNoise(),
        seed=seed,
        progress=lambda share, _: progress(round(100 * share), 100),
    )
