"""One frozen record per stage, read from a TOML file."""

import tomllib
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_type_hints

from prisma_sbi import _validate
from prisma_sbi._errors import BudgetError, InputDataError
from prisma_sbi.models.trip_model import LIKELIHOODS
from prisma_sbi.privacy.accounting import rho_from_epsilon_delta
from prisma_sbi.privacy.settings import Mechanism, SynthesisSettings
from prisma_sbi.region.constants import Constants


@dataclass(frozen=True, kw_only=True)
class RegionConfig:
    """Where the public inputs come from.

    Attributes
    ----------
    name
        For people.
    folder
        A region saved before; the files below are then not used.
    roads, elevation, vehicles
        Files to build a region from; without any of them the embedded demo city.
    pool_size, first_year, last_year
        Vehicles kept from the files.
    constants
        Constants that differ from the defaults; ``preset = "realistic"`` among them takes those
        of that name first.
    """

    name: str = "region"
    folder: str = ""
    roads: str = ""
    elevation: str = ""
    vehicles: tuple[str, ...] = ()
    pool_size: int = 128
    first_year: int = 2000
    last_year: int = 2016
    constants: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _validate.at_least(1, pool_size=self.pool_size)
        Constants.from_dict(self.constants)


@dataclass(frozen=True, kw_only=True)
class TelemetryConfig:
    """Where the trips come from.

    Attributes
    ----------
    trips
        Files, folders or patterns; without any, a simulated fleet with known descriptors.
    vehicle_tables
        Tables with type and displacement of the vehicles.
    vehicle_types
        Types to keep; empty for all.
    simulated_trips, simulated_seed
        Size and seed of the simulated fleet.
    """

    trips: tuple[str, ...] = ()
    vehicle_tables: tuple[str, ...] = ()
    vehicle_types: tuple[str, ...] = ("ICE", "HEV")
    simulated_trips: int = 2_500
    simulated_seed: int = 0


@dataclass(frozen=True, kw_only=True)
class SplitConfig:
    """Trips to encode and trips held out for judging."""

    n_train: int = 10_000
    n_holdout: int = 2_000
    seed: int = 0

    def __post_init__(self) -> None:
        _validate.at_least(1, n_train=self.n_train)
        _validate.at_least(4, n_holdout=self.n_holdout)


@dataclass(frozen=True, kw_only=True)
class EncodeConfig:
    """How trips are fitted.

    Attributes
    ----------
    likelihood
        What the fit sees of a trace: ``summary`` (energy, duration and their course, as
        published), ``texture`` (variance and autocorrelation too) or ``trace``.
    """

    likelihood: str = "summary"

    def __post_init__(self) -> None:
        _validate.one_of(list(LIKELIHOODS), likelihood=self.likelihood)


@dataclass(frozen=True, kw_only=True)
class SynthesizeConfig:
    """Releases to make from the same descriptors.

    Attributes
    ----------
    epsilons
        Budgets, one private release each. They add up: see ``privacy`` in the log.
    tables
        Tables to synthesize, each at every epsilon. The first one gives the modes
        ``epsilon=...``, others are named with their table, as in ``epsilon=0.5,published``.
    mechanism, delta, workload, neighbors, unit, max_trips_per_vehicle
        See :class:`~prisma_sbi.privacy.SynthesisSettings`. The trips of a run are as many as
        ``n_train`` says, so one recorded trip more puts another one out: ``neighbors =
        "replace"`` promises epsilon against that.
    without_mechanism
        Also decode the descriptors as they are, to see what the mechanism costs. That output
        has no guarantee.
    total_epsilon
        Limit for all releases from the same trips, those of earlier runs in the same folder
        included; a run that would exceed it stops before it spends. None for no limit.
    seed
        Of drawing rows from the fitted model; noise has no seed.
    """

    epsilons: tuple[float, ...] = (0.5,)
    tables: tuple[str, ...] = ("route",)
    mechanism: str = "aim"
    delta: float = 1e-5
    workload: str = "pairs"
    neighbors: str = "add-remove"
    unit: str = "trip"
    max_trips_per_vehicle: int | None = None
    without_mechanism: bool = True
    total_epsilon: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.epsilons and not self.without_mechanism:
            raise ValueError(
                "Expected at least one release; got no epsilon and without_mechanism = false."
            )
        if not self.tables:
            raise ValueError("Expected at least one table; got none. Leave the key out for route.")
        for epsilon in self.epsilons:
            rho_from_epsilon_delta(epsilon, self.delta)
        for mode in self.modes():
            self.settings(mode, n_rows=1)
        if self.total_epsilon is not None:
            rho = rho_from_epsilon_delta(self.total_epsilon, self.delta)
            planned = [rho_from_epsilon_delta(each, self.delta) for each in self.epsilons]
            if len(self.tables) * sum(map(Fraction, planned)) > Fraction(rho):
                raise BudgetError(
                    f"Expected releases within total_epsilon = {self.total_epsilon:g}; got "
                    f"epsilons {self.epsilons} for {len(self.tables)} tables. Drop some of them."
                )

    def modes(self) -> tuple[str, ...]:
        """Names of the releases, ``none`` first."""
        private = tuple(
            f"epsilon={epsilon:g}" + (f",{table}" if index else "")
            for epsilon in self.epsilons
            for index, table in enumerate(self.tables)
        )
        return (("none",) if self.without_mechanism else ()) + private

    def settings(self, mode: str, *, n_rows: int) -> SynthesisSettings:
        """Settings of one release; the number of rows is public."""
        if mode == "none":
            return SynthesisSettings(mechanism=Mechanism.NONE)
        epsilon, _, table = mode.removeprefix("epsilon=").partition(",")
        return SynthesisSettings(
            mechanism=self.mechanism,
            epsilon=float(epsilon),
            table=table or self.tables[0],
            delta=self.delta,
            workload=self.workload,
            neighbors=self.neighbors,
            unit=self.unit,
            max_trips_per_vehicle=self.max_trips_per_vehicle,
            n_rows=n_rows,
        )


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
    """How many synthetic traces are judged, and how.

    Attributes
    ----------
    n_synthetic
        Traces to decode; 0 for as many as are held out.
    n_splits, seed
        Random halves behind each floor.
    figures
        Whether to draw.
    """

    n_synthetic: int = 0
    n_splits: int = 15
    seed: int = 0
    figures: bool = True

    def __post_init__(self) -> None:
        _validate.at_least(0, n_synthetic=self.n_synthetic)
        _validate.at_least(2, n_splits=self.n_splits)


@dataclass(frozen=True, kw_only=True)
class PipelineConfig:
    """Everything a run needs."""

    region: RegionConfig = field(default_factory=RegionConfig)
    telemetry: TelemetryConfig = field(default_factory=TelemetryConfig)
    split: SplitConfig = field(default_factory=SplitConfig)
    encode: EncodeConfig = field(default_factory=EncodeConfig)
    synthesize: SynthesizeConfig = field(default_factory=SynthesizeConfig)
    evaluate: EvaluateConfig = field(default_factory=EvaluateConfig)
    base_folder: str = ""
    """Relative paths count from here; the folder of the file it was read from."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def resolve(self, path: str) -> Path:
        """A path of the configuration as the process sees it."""
        return Path(self.base_folder) / Path(path).expanduser()


def load_config(path: str | Path) -> PipelineConfig:
    """Read a run from a TOML file.

    Parameters
    ----------
    path
        A file with the tables ``region``, ``telemetry``, ``split``, ``encode``, ``synthesize``
        and ``evaluate``; what is left out keeps its default.

    Returns
    -------
    PipelineConfig

    Raises
    ------
    InputDataError
        If the file cannot be read, or a key or value is not known; the message names it.
    """
    source = Path(path)
    try:
        values = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputDataError(
            f"Expected a configuration in TOML at {str(source)!r}; got {error}. "
            "See examples/ann_arbor.toml."
        ) from error
    try:
        config = _record(PipelineConfig, values, where="")
    except (ValueError, TypeError) as error:
        raise InputDataError(f"{source}: {error}") from error
    if config.base_folder:
        raise InputDataError(f"{source}: Expected no key base_folder; it is the file's own folder.")
    return replace(config, base_folder=str(source.resolve().parent))


def demo_config(*, n_trips: int = 2_000, seed: int = 0) -> PipelineConfig:
    """The run of ``prisma demo``: a simulated fleet in the embedded city.

    Parameters
    ----------
    n_trips
        Trips to encode; a quarter as many are held out.
    seed
        Of the fleet and the split.
    """
    _validate.at_least(16, n_trips=n_trips)
    n_holdout = n_trips // 4
    return PipelineConfig(
        region=RegionConfig(name="demo city"),
        telemetry=TelemetryConfig(simulated_trips=n_trips + n_holdout, simulated_seed=seed),
        split=SplitConfig(n_train=n_trips, n_holdout=n_holdout, seed=seed),
        synthesize=SynthesizeConfig(epsilons=(1.0,), seed=seed),
        evaluate=EvaluateConfig(seed=seed),
    )


def _record(kind: type, values: Any, *, where: str) -> Any:
    """A dataclass from plain values, recursively; what does not fit is named."""
    if not isinstance(values, dict):
        raise ValueError(f"Expected a table [{where}]; got {values!r}.")
    hints = get_type_hints(kind)
    unknown = sorted(set(values) - set(hints))
    if unknown:
        raise ValueError(
            f"Expected keys of [{where or 'the file'}] among {sorted(hints)}; got {unknown}."
        )
    found = {
        name: _value(hints[name], value, where=f"{where}.{name}".lstrip("."))
        for name, value in values.items()
    }
    return kind(**found)


def _value(hint: Any, value: Any, *, where: str) -> Any:
    """One value, checked against the type of its field."""
    if isinstance(hint, UnionType):  # a type or None; TOML has no None
        hint = next(kind for kind in hint.__args__ if kind is not NoneType)
    if is_dataclass(hint):
        return _record(hint, value, where=where)  # pyright: ignore[reportArgumentType]
    if getattr(hint, "__origin__", None) is tuple:
        items = value if isinstance(value, list) else [value]
        return tuple(_value(hint.__args__[0], item, where=where) for item in items)
    if getattr(hint, "__origin__", None) is dict:
        kind = dict
    else:
        kind = (int, float) if hint is float else hint
    if not isinstance(value, kind) or (isinstance(value, bool) and hint is not bool):
        name = getattr(hint, "__name__", str(hint))
        raise ValueError(f"Expected {where} to be of type {name}; got {value!r}.")
    return float(value) if hint is float else value
