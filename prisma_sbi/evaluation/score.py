"""Score a synthetic population against the real hold-out."""

import math
from dataclasses import dataclass

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation.distances import DISTANCES
from prisma_sbi.evaluation.floor import (
    MINIMUM_TRIPS,
    N_SPLITS,
    Floors,
    population_floors,
    real_population,
)
from prisma_sbi.evaluation.population import (
    Population,
    Traces,
    power_array,
    require_comparable,
)
from prisma_sbi.evaluation.precision_recall import precision_recall, standardize_features

SCORE_KEYS = (
    "acf_x_floor",
    "fid_x_floor",
    "precision_raw",
    "recall_raw",
    "precision_standardized",
    "recall_standardized",
)
"""The published numbers, in the order in which tables show them."""


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Every number about one synthetic population.

    Attributes
    ----------
    acf, fid
        Plain distances to the real population.
    acf_x_floor, fid_x_floor
        The same as multiples of the floor; lower is better. Infinite where the floor is 0
        and the distance is not, NaN where both are.
    precision_raw, recall_raw
        Shares in plain feature units, as published; nearly saturated for every model.
    precision_standardized, recall_standardized
        Shares with features in units of the real population's spread.
    floors
        The floors used.
    n_real, n_synthetic
        Numbers of traces.
    """

    acf: float
    fid: float
    acf_x_floor: float
    fid_x_floor: float
    precision_raw: float
    recall_raw: float
    precision_standardized: float
    recall_standardized: float
    floors: Floors
    n_real: int
    n_synthetic: int

    def to_dict(self) -> dict[str, float | int | None]:
        """Return the numbers of this population for JSON; NaN and infinity become ``None``."""
        keys = ("acf", "fid", *SCORE_KEYS, "n_real", "n_synthetic")
        values = {key: getattr(self, key) for key in keys}
        return {key: value if math.isfinite(value) else None for key, value in values.items()}


def evaluate(
    real: Traces,
    synthetic: Traces,
    *,
    seed: int = 0,
    n_splits: int = N_SPLITS,
    floors: Floors | None = None,
) -> Scores:
    """Distances, precision and recall of synthetic traces against real ones.

    Parameters
    ----------
    real
        Real hold-out, never used for fitting: dataset with ``power_w (trip, time)`` or
        array, at least 4 traces.
    synthetic
        The same for the synthetic population; equal number of samples per trace.
    seed, n_splits
        Of the floors; ignored where ``floors`` are given.
    floors
        From :func:`~prisma_sbi.evaluation.compute_floors` on the same real hold-out, to
        score several populations without repeating that work.

    Returns
    -------
    scores
        A record; ``to_dict()`` gives plain numbers.

    Raises
    ------
    InputDataError
        If a trace is not finite (the trip is named), lengths or time steps differ, or a
        population has fewer than 4 traces.
    RegionMismatchError
        If both datasets carry a region fingerprint and the two differ.
    ValueError
        If the floors were computed from another real population.

    Notes
    -----
    ======================== ============================================
    Case                     Result
    ======================== ============================================
    constant traces          autocorrelation 0, variance 0, skewness 0
    real traces all equal    floor 0: multiples are infinite, or NaN when
                             the synthetic traces are the same too
    ======================== ============================================

    Examples
    --------
    >>> import numpy as np
    >>> traces = np.random.default_rng(0).normal(size=(40, 50))
    >>> evaluate(traces, traces).fid_x_floor
    0.0
    """
    require_comparable(real, synthetic)
    real_side = real_population(power_array(real, name="real"))
    synthetic_w = power_array(synthetic, name="synthetic")
    if len(synthetic_w) < MINIMUM_TRIPS:
        raise InputDataError(
            f"Expected at least {MINIMUM_TRIPS} synthetic traces; got {len(synthetic_w)}. "
            "Precision and recall need neighbors. Decode more rows."
        )
    synthetic_side = Population(power_w=synthetic_w, scale_w=real_side.scale_w)
    if floors is None:
        floors = population_floors(real_side, seed=seed, n_splits=n_splits)
    require_floors_of(real_side, floors)
    distance = {name: measure(real_side, synthetic_side) for name, measure in DISTANCES.items()}
    multiple = {name: floors.by_distance[name].multiple(distance[name]) for name in DISTANCES}
    features = real_side.features, synthetic_side.features
    raw = precision_recall(*features)
    standardized = precision_recall(*standardize_features(*features))
    return Scores(
        acf=distance["acf"],
        fid=distance["fid"],
        acf_x_floor=multiple["acf"],
        fid_x_floor=multiple["fid"],
        precision_raw=raw.precision,
        recall_raw=raw.recall,
        precision_standardized=standardized.precision,
        recall_standardized=standardized.recall,
        floors=floors,
        n_real=len(real_side),
        n_synthetic=len(synthetic_side),
    )


def require_floors_of(real: Population, floors: Floors) -> None:
    """Raise unless the floors belong to a population of this size, length and scale."""
    shape = len(real), real.power_w.shape[1]
    same_scale = math.isclose(floors.scale_w, real.scale_w, rel_tol=1e-9)
    if (floors.n_real, floors.n_samples) != shape or not same_scale:
        raise ValueError(
            f"Expected floors of this real population ({shape[0]} traces of {shape[1]} samples, "
            f"scale {real.scale_w:.6g} W); got floors of {floors.n_real} traces of "
            f"{floors.n_samples} samples, scale {floors.scale_w:.6g} W. Recompute them."
        )
