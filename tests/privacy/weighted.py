"""Random weighted tables of a tiny region, and how far one record moves what is asked of them."""

import numpy as np
import xarray as xr

from prisma_sbi.descriptors import grid_from_region, make_weighted_table
from prisma_sbi.privacy.candidates import score_candidates
from prisma_sbi.privacy.coded import CodedTable
from prisma_sbi.privacy.graphical import GraphicalModel
from prisma_sbi.privacy.settings import Workload
from prisma_sbi.privacy.workload import downward_closure, overlap_weights, workload_marginals
from tests.descriptors.tiny import random_table, tiny_region

REGION = tiny_region(n_place_bins=2)
GRID = grid_from_region(REGION)
PAIRS = workload_marginals(Workload.PAIRS, len(GRID.shape))
CANDIDATES = downward_closure(PAIRS)
WEIGHTS = overlap_weights(CANDIDATES, PAIRS)


def weighted_table(
    n_trips: int, *, weight_total: int, seed: int, n_owners: int | None = None
) -> xr.Dataset:
    """Trips ``t0``, ``t1``, ... of one to five rows each, shuffled, weights of any scale."""
    rng = np.random.default_rng(seed)
    trip = np.repeat(np.arange(n_trips), rng.integers(1, 6, size=n_trips))
    rng.shuffle(trip)
    rows = random_table(REGION, len(trip), seed=seed)
    owner = None if n_owners is None else rng.integers(n_owners, size=n_trips)[trip]
    return make_weighted_table(
        {str(name): rows[name].values for name in rows.data_vars},
        source=np.char.add("t", trip.astype("U")) if n_trips else np.array([], dtype="U1"),
        weight=rng.exponential(10.0 ** rng.uniform(-3, 3), size=len(trip)),
        weight_total=weight_total,
        owner=None if owner is None else np.char.add("car ", owner.astype("U")),
        region_fingerprint=REGION.fingerprint,
    )


def random_model(n_rows: int, seed: int) -> GraphicalModel:
    rng = np.random.default_rng(seed)
    factors = [(pair, rng.normal(size=[GRID.shape[c] for c in pair])) for pair in PAIRS[:8]]
    return GraphicalModel(shape=GRID.shape, n_rows=n_rows, fitted=None, factors=factors)


def breaches(one: CodedTable, other: CodedTable, model: GraphicalModel) -> list[str]:
    """What moves further between two tables than ``one`` declares; empty for neighbors."""
    bound, found = one.contribution, []
    for columns in CANDIDATES:
        change = one.count(columns) - other.count(columns)
        if int(np.sum(change**2)) > bound.l2_squared:
            found.append(f"L2 of {columns}")
        if int(np.sum(np.abs(change))) > bound.l1:
            found.append(f"L1 of {columns}")
    scores = [score_candidates(table, model, WEIGHTS, stddev=3.0) for table in (one, other)]
    if int(np.abs(scores[0].values - scores[1].values).max()) > scores[0].sensitivity:
        found.append("scores")
    return found
