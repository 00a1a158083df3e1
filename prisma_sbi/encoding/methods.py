"""Ways to infer the descriptors of a trip, and how much work each does."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from prisma_sbi import _validate
from prisma_sbi.inference.alignment import AlignSettings
from prisma_sbi.inference.hmc import HmcSettings
from prisma_sbi.inference.laplace import LaplaceSettings
from prisma_sbi.inference.nuts import NutsSettings, WhitenedNutsSettings
from prisma_sbi.inference.quadrature import GridSettings
from prisma_sbi.inference.search import SearchSettings
from prisma_sbi.inference.svi import SviSettings


class Method(StrEnum):
    """How descriptors are inferred."""

    MAP = "map"
    """Global search: one point a trip, hundreds of trips a second."""
    SVI = "svi"
    """The published descent: relaxed vehicle, annealed, then resolved. For comparison."""
    LAPLACE = "laplace"
    """A Gaussian around the maximum. Fast, and wrong where the posterior is not Gaussian."""
    QUADRATURE = "quadrature"
    """The exact posterior on an adaptive grid: the default for uncertainty."""
    HMC = "hmc"
    """Hamiltonian Monte Carlo, all trips in lockstep."""
    NUTS = "nuts"
    """NumPyro's own sampler, one trip after the other. For a few trips, or your own model."""

    @property
    def has_draws(self) -> bool:
        """Whether the result is a sample, not a point."""
        return self not in (Method.MAP, Method.SVI)

    @property
    def chunk_size(self) -> int:
        """Trips per compiled call: few where one takes long, so that cores end together."""
        return {Method.HMC: 4, Method.QUADRATURE: 8, Method.NUTS: 1}.get(self, 16)

    @property
    def is_separate(self) -> bool:
        """Whether a trip gets the same result, bit for bit, whatever trips are fitted with it.

        A guarantee for single trips takes this for granted. It holds in runs of more trips than
        a chunk, which is compiled for its number of trips. Chains in lockstep add in another
        order beside other trips, and the published descent shares its noise among them.
        """
        return self not in (Method.HMC, Method.SVI)


@dataclass(frozen=True, kw_only=True)
class LaplaceFit:
    """Settings of :attr:`Method.LAPLACE`.

    Attributes
    ----------
    laplace
        The climb.
    n_chains, n_draws
        Independent draws, laid out as chains.
    """

    laplace: LaplaceSettings = LaplaceSettings()
    n_chains: int = 4
    n_draws: int = 100

    def __post_init__(self) -> None:
        _validate.at_least(1, n_chains=self.n_chains, n_draws=self.n_draws)


@dataclass(frozen=True, kw_only=True)
class QuadratureFit:
    """Settings of :attr:`Method.QUADRATURE`.

    Attributes
    ----------
    grid
        The adaptive grid.
    align
        Lay the grid along the axes of each posterior, for ridges that are narrow and oblique.
        If neither is given, whole traces get this.
    n_chains, n_draws
        Independent draws, laid out as chains.
    """

    grid: GridSettings = GridSettings()
    align: AlignSettings | None = None
    n_chains: int = 4
    n_draws: int = 250

    def __post_init__(self) -> None:
        _validate.at_least(1, n_chains=self.n_chains, n_draws=self.n_draws)


@dataclass(frozen=True, kw_only=True)
class HmcFit:
    """Settings of :attr:`Method.HMC`.

    Attributes
    ----------
    grid
        The adaptive grid that whitens the posterior.
    align
        As for :class:`QuadratureFit`.
    hmc
        The chains.
    second_pass
        Sample trips whose chains disagree or are too short again, all at once, from a finer
        grid and with longer chains, of which as many draws are kept.
    rerun
        Sample trips that are still flagged after that by BlackJAX NUTS, from the finer grid; such
        a trip takes some seconds.
    nuts
        Settings of that.
    all_nuts
        Sample every trip by BlackJAX NUTS and none in lockstep: slower, a second opinion.
    """

    grid: GridSettings = GridSettings()
    align: AlignSettings | None = None
    hmc: HmcSettings = HmcSettings()
    second_pass: bool = True
    rerun: bool = False
    nuts: WhitenedNutsSettings = WhitenedNutsSettings()
    all_nuts: bool = False


@dataclass(frozen=True, kw_only=True)
class EncodeSettings:
    """A method and its settings.

    Attributes
    ----------
    method
        A :class:`Method`.
    work
        Settings of the method; by default those of its kind.
    search
        The global search that every method but ``svi`` and ``nuts`` starts from. None leaves it
        out, for ``quadrature`` and ``hmc`` alone: their grid finds most posteriors by itself.
    seed
        Of all draws; a trip's draws depend on it and on the trip's name.
    """

    method: str = Method.MAP
    work: Any = None
    search: SearchSettings | None = field(default_factory=SearchSettings)
    seed: int = 0

    def __post_init__(self) -> None:
        _validate.one_of([item.value for item in Method], method=self.method)
        object.__setattr__(self, "method", Method(self.method))
        if self.search is None and self.method not in (Method.QUADRATURE, Method.HMC):
            raise ValueError(
                f"Expected a search for method {str(self.method)!r}; got none. Only quadrature and "
                "hmc can do without."
            )
        kind = _WORK[Method(self.method)]
        if self.work is None:
            object.__setattr__(self, "work", self.search if kind is SearchSettings else kind())
        elif not isinstance(self.work, kind):
            raise ValueError(
                f"Expected {kind.__name__} as the work of method {str(self.method)!r}; got "
                f"{type(self.work).__name__}."
            )


_WORK: dict[Method, type] = {
    Method.MAP: SearchSettings,
    Method.SVI: SviSettings,
    Method.LAPLACE: LaplaceFit,
    Method.QUADRATURE: QuadratureFit,
    Method.HMC: HmcFit,
    Method.NUTS: NutsSettings,
}
NARROW_SEARCH = SearchSettings(
    grid_shape=(24, 24), n_seeds=12, n_climbers=8, n_finalists=3, n_generations=(4, 4)
)
"""For likelihoods of whole traces, whose maxima are narrow."""
ALIGNED_GRID = GridSettings(grid_shape=(24, 24), n_levels=10, n_split=32)
"""For their posteriors, along axes that are found first."""
