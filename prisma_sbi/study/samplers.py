"""Ways to get draws from the posteriors of simulated trips."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import numpy as np

from prisma_sbi import _validate
from prisma_sbi.encoding.fitting import Fitting
from prisma_sbi.encoding.methods import EncodeSettings, HmcFit, Method, QuadratureFit
from prisma_sbi.inference.alignment import AlignSettings
from prisma_sbi.inference.hmc import HmcSettings
from prisma_sbi.inference.quadrature import GridSettings
from prisma_sbi.region.record import Region
from prisma_sbi.study.simulations import Simulations

Progress = Callable[[int, int], None]
_N_HMC_DRAWS = 100
"""A chain, of four."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws:
    """Draws from the posteriors of many trips.

    Attributes
    ----------
    point : (trip, draw, 2)
        Aggressiveness and detour.
    vehicle : (trip, draw) int
        Positions in the pool.
    vehicle_probability : (trip, vehicle)
        Posterior probabilities.
    log_evidence : (trip,)
        Of the data; NaN if the method does not know it.
    flags : (trip,) int
        :class:`~prisma_sbi.diagnostics.FitFlag` values.
    """

    point: np.ndarray
    vehicle: np.ndarray
    vehicle_probability: np.ndarray
    log_evidence: np.ndarray
    flags: np.ndarray


@runtime_checkable
class Sampler(Protocol):
    """From simulated trips to draws from their posteriors; what calibration is about."""

    def __call__(
        self, region: Region, simulations: Simulations, progress: Progress | None
    ) -> Draws:
        """Draw; the key is the sampler's own."""
        ...


@dataclass(frozen=True, kw_only=True)
class EncodeSampler:
    """A method of :func:`~prisma_sbi.encoding.encode`, with its search and second passes.

    Attributes
    ----------
    settings
        Method and work; one with draws.
    n_draws
        Draws kept a trip, evenly spaced along each chain, so that those of chains are nearly
        independent.
    chunk_size
        Trips per compiled call.
    """

    settings: EncodeSettings
    n_draws: int = 200
    chunk_size: int = 16

    def __post_init__(self) -> None:
        if not Method(self.settings.method).has_draws:
            raise ValueError(
                "Expected a method that gives draws; got "
                f"{str(self.settings.method)!r}. Take quadrature, hmc, laplace or nuts."
            )

    def __call__(
        self, region: Region, simulations: Simulations, progress: Progress | None
    ) -> Draws:
        """Fit every trip as encode does."""
        n = len(simulations)
        road, _ = simulations.trips(np.arange(n))
        found = Fitting(
            region=region,
            model=simulations.model,
            settings=self.settings,
            roads=jax.tree.map(np.asarray, road),
            power_w=simulations.data,
            seeds=np.arange(n, dtype=np.uint32),
            chunk_size=self.chunk_size,
            checkpoint=None,
            checkpoint_key={},
            progress=progress,
        ).run()
        n_chains, n_found = found["vehicle"].shape[1:]
        wanted = max(1, min(n_found, self.n_draws // n_chains))
        kept = np.linspace(0, n_found - 1, wanted).astype(int)
        return Draws(
            point=found["point"][:, :, kept].reshape(n, -1, 2),
            vehicle=found["vehicle"][:, :, kept].reshape(n, -1),
            vehicle_probability=found["vehicle_probability"],
            log_evidence=found.get("log_evidence", np.full(n, np.nan)),
            flags=found["flags"],
        )


@dataclass(frozen=True, kw_only=True)
class GridSampler:
    """Quadrature of :func:`~prisma_sbi.encoding.encode` without the search that goes before it.

    The grid finds where a posterior lies by itself. A maximum that it has overlooked stays so;
    calibration will show it.

    Attributes
    ----------
    grid, align
        As for :class:`~prisma_sbi.encoding.QuadratureFit`.
    n_draws
        Draws a trip.
    seed
        Of the draws.
    chunk_size
        Trips per compiled call.
    """

    grid: GridSettings = GridSettings()
    align: AlignSettings | None = None
    n_draws: int = 200
    seed: int = 0
    chunk_size: int = 16

    def __post_init__(self) -> None:
        _validate.at_least(1, n_draws=self.n_draws, chunk_size=self.chunk_size)

    def __call__(
        self, region: Region, simulations: Simulations, progress: Progress | None
    ) -> Draws:
        """Integrate every posterior, and draw."""
        work = QuadratureFit(grid=self.grid, align=self.align, n_chains=1, n_draws=self.n_draws)
        settings = EncodeSettings(method=Method.QUADRATURE, work=work, search=None, seed=self.seed)
        sampler = EncodeSampler(settings=settings, n_draws=self.n_draws, chunk_size=self.chunk_size)
        return sampler(region, simulations, progress)


def named_sampler(method: str, *, seed: int = 0) -> Sampler:
    """The sampler of a name: ``grid``, or a method of encode."""
    if method == "grid":
        return GridSampler(seed=seed)
    if method == Method.HMC:
        # Draws of the map are nearly independent, so short chains do; no second passes, which
        # would answer for others than the chains in question.
        work = HmcFit(hmc=HmcSettings(n_draws=_N_HMC_DRAWS), second_pass=False)
        return EncodeSampler(
            settings=EncodeSettings(method=method, work=work, search=None, seed=seed)
        )
    return EncodeSampler(settings=EncodeSettings(method=method, seed=seed))
