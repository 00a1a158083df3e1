"""The floor of a distance: how far random halves of the real population lie apart."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation.distances import DISTANCES
from prisma_sbi.evaluation.population import (
    Population,
    Traces,
    amplitude_scale_w,
    power_array,
)

N_SPLITS = 15
MINIMUM_TRIPS = 4
"""Two halves of two traces each: the least for which every distance is defined."""


type Measure = Callable[[Population, Population], Mapping[str, float]]
"""Numbers by name for two populations."""


def published_distances(first: Population, second: Population) -> dict[str, float]:
    """Every distance of :data:`DISTANCES` by its name."""
    return {name: distance(first, second) for name, distance in DISTANCES.items()}


@dataclass(frozen=True, kw_only=True)
class Floor:
    """Mean and standard deviation of one distance over the random splits."""

    mean: float
    sd: float

    def multiple(self, distance: float) -> float:
        """``distance`` over the mean; infinite over 0, NaN for 0 over 0 or where one is NaN."""
        if self.mean > 0.0:
            return distance / self.mean
        undefined = distance == 0.0 or np.isnan(distance) or np.isnan(self.mean)
        return float("nan") if undefined else float("inf")


@dataclass(frozen=True, kw_only=True)
class Floors:
    """Floors of all distances for one real population.

    Attributes
    ----------
    by_distance
        Name of the distance -> its floor.
    scale_w
        Amplitude scale of the whole real population; the halves use it too.
    n_real, n_half, n_samples, n_splits, seed
        Traces, traces per half, samples per trace, splits, and the seed of the splits.
    """

    by_distance: Mapping[str, Floor]
    scale_w: float
    n_real: int
    n_half: int
    n_samples: int
    n_splits: int
    seed: int

    def to_dict(self) -> dict[str, float | int]:
        """Plain numbers: each floor as ``name`` and ``name_sd``, then how it was made."""
        values: dict[str, float | int] = {}
        for name, floor in self.by_distance.items():
            values[name] = floor.mean
            values[f"{name}_sd"] = floor.sd
        return values | {
            "scale_w": self.scale_w,
            "n_half": self.n_half,
            "n_splits": self.n_splits,
            "seed": self.seed,
        }


def compute_floors(real: Traces, *, seed: int = 0, n_splits: int = N_SPLITS) -> Floors:
    """Floors of every distance; one call serves any number of synthetic populations.

    Parameters
    ----------
    real
        Real hold-out: dataset with ``power_w (trip, time)`` or array.
    seed
        Of the random splits.
    n_splits
        Number of random splits into halves.

    Returns
    -------
    floors
        Mean and standard deviation over the splits.

    Raises
    ------
    InputDataError
        If there are fewer than 4 real traces or one is not finite.
    ValueError
        If ``n_splits`` is less than 1.

    Notes
    -----
    With an odd number of traces one, drawn anew for each split, stays out. Halves of n / 2
    traces lie farther apart than two populations of n: a distance dominated by sampling
    noise falls as 1 / n (Fréchet) or 1 / sqrt(n) (autocorrelation), so a perfect synthesizer
    reaches about 0.5 and 0.7 of the floor, not 1.
    """
    return population_floors(
        real_population(power_array(real, name="real")), seed=seed, n_splits=n_splits
    )


def real_population(power_w: np.ndarray) -> Population:
    """Make the real side of a comparison, with its own amplitude scale."""
    if len(power_w) < MINIMUM_TRIPS:
        raise InputDataError(
            f"Expected at least {MINIMUM_TRIPS} real traces; got {len(power_w)}. "
            "Distances between halves of the real set are not defined below that."
        )
    return Population(power_w=power_w, scale_w=amplitude_scale_w(power_w))


def population_floors(
    real: Population,
    *,
    seed: int,
    n_splits: int,
    measure: Measure = published_distances,
    progress: Callable[[int], None] | None = None,
) -> Floors:
    """Floors of a population that was checked already.

    Parameters
    ----------
    real
        Population; whatever was computed of its trips serves all splits.
    seed, n_splits
        Of the random halves.
    measure
        Numbers by name for a pair of halves.
    progress
        Told how many splits are done.

    Returns
    -------
    floors
    """
    _validate.at_least(1, n_splits=n_splits)
    generator = np.random.default_rng(seed)
    n_half = len(real) // 2
    _ = real.autocorrelation  # once for all splits
    found: list[Mapping[str, float]] = []
    for split in range(n_splits):
        order = generator.permutation(len(real))
        halves = real.take(order[:n_half]), real.take(order[n_half : 2 * n_half])
        found.append(measure(*halves))
        if progress is not None:
            progress(split + 1)
    table = {name: np.array([each[name] for each in found]) for name in found[0]}
    return Floors(
        by_distance={
            name: Floor(mean=float(np.mean(values)), sd=float(np.std(values)))
            for name, values in table.items()
        },
        scale_w=real.scale_w,
        n_real=len(real),
        n_half=n_half,
        n_samples=real.power_w.shape[1],
        n_splits=n_splits,
        seed=seed,
    )
