"""Recovery study: a fleet with known truth, encoded in several ways; resumable."""

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import xarray as xr

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi._files import remove, replacing, write_zarr
from prisma_sbi.encoding.encode import encode
from prisma_sbi.encoding.methods import EncodeSettings, Method
from prisma_sbi.models.trip_model import LIKELIHOODS
from prisma_sbi.region.record import Region
from prisma_sbi.study.recovery_cells import Cell, Encoder, encode_cell
from prisma_sbi.study.recovery_fleet import Noise, known_fleet
from prisma_sbi.study.recovery_table import cells_of, recovery_summary

KIND, FORMAT_VERSION = "recovery", 1
DATA, CHUNKS = "recovery.zarr", "chunks"
CellProgress = Callable[[str, int, int], None]
"""Called with the name of a cell, trips done and trips in all."""


@dataclass(frozen=True, kw_only=True)
class RecoverySettings:
    """What a recovery study simulates and compares.

    Attributes
    ----------
    n_trips
        Trips of the fleet.
    noise
        A :class:`~prisma_sbi.study.Noise`.
    methods
        Names of :class:`~prisma_sbi.encoding.Method`.
    likelihoods
        ``summary``, ``texture``, ``trace``.
    n_draws
        Draws kept a trip.
    seed
        Of the fleet and of all draws.
    """

    n_trips: int = 64
    noise: str = Noise.LAW
    methods: tuple[str, ...] = (Method.MAP, Method.QUADRATURE)
    likelihoods: tuple[str, ...] = ("trace",)
    n_draws: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        _validate.at_least(2, n_trips=self.n_trips)
        _validate.at_least(8, n_draws=self.n_draws)
        _validate.one_of([item.value for item in Noise], noise=self.noise)
        for name, given, known in (
            ("methods", self.methods, list(Method)),
            ("likelihoods", self.likelihoods, list(LIKELIHOODS)),
        ):
            if not given:
                raise ValueError(f"Expected one or more {name}; got none.")
            for each in given:
                _validate.one_of([str(item) for item in known], **{name: str(each)})

    @property
    def cells(self) -> list[Cell]:
        """Every method under every likelihood, each once, in a fixed order."""
        return [
            Cell(likelihood=likelihood, method=str(method))
            for likelihood in LIKELIHOODS
            if likelihood in self.likelihoods
            for method in Method
            if method in self.methods
        ]


def recovery_study(
    region: Region,
    settings: RecoverySettings | None = None,
    *,
    folder: str | PathLike[str] | None = None,
    encoder: Encoder = encode,
    progress: CellProgress | None = None,
) -> xr.DataTree:
    """Simulate a fleet, encode it in several ways, and score each against the truth.

    Parameters
    ----------
    region
        Public inputs; nothing else is read.
    settings
        Fleet, methods and likelihoods.
    folder
        Where ``recovery.zarr`` is kept. An interrupted study goes on from there: finished cells
        are not encoded again, and of the one in work no finished chunk. More methods and
        likelihoods may be asked for later; all else has to stay the same.
    encoder
        By default :func:`~prisma_sbi.encoding.encode`; or your own in its place.
    progress
        Called with the name of a cell, trips done and trips in all.

    Returns
    -------
    xarray.DataTree
        ``fleet`` (traces and truth), ``cells/<likelihood>-<method>`` (estimates, draws and
        scores of every trip, see :func:`~prisma_sbi.study.compared`) and ``summary`` (see
        :func:`~prisma_sbi.study.recovery_summary`). Settings and seeds are attributes.

    Raises
    ------
    InputDataError
        If the folder holds a study with other settings, or something that cannot be read.

    Notes
    -----
    With noise ``law`` the fleet comes from the very model that the likelihood ``trace`` assumes, so
    its intervals must hold the truth as often as they say. For likelihoods of summaries, and for
    other noise, nothing says so; the study then tells how far they can be trusted.

    Numbers but for times are the same bit for bit whether a study was interrupted or not.
    """
    settings = settings or RecoverySettings()
    place = None if folder is None else Path(folder)
    asked = _described(region, settings, encoder)
    tree = None if place is None else _opened(place, asked)
    if tree is None:
        fleet = known_fleet(region, settings.n_trips, noise=settings.noise, seed=settings.seed)
        tree = xr.DataTree.from_dict({"fleet": fleet})
        tree.attrs = {
            "kind": KIND,
            "format_version": FORMAT_VERSION,
            "region_name": region.name,
            **asked,
        }
        _keep(tree, place)
    fleet = tree["fleet"].to_dataset()
    for cell in settings.cells:
        work = EncodeSettings(method=cell.method, seed=settings.seed)
        kept = cells_of(tree).get(cell.name)
        if kept is not None:
            _check_work(cell, kept, work)
            _of_cell(cell, progress)(settings.n_trips, settings.n_trips)
            continue
        chunks = None if place is None else place / CHUNKS / cell.name
        found = encode_cell(
            region,
            fleet,
            cell,
            encoder=encoder,
            settings=work,
            n_draws=settings.n_draws,
            checkpoint=chunks,
            progress=_of_cell(cell, progress),
        )
        tree[cell.path] = xr.DataTree(found)
        tree = _in_order(tree)
        _keep(tree, place)
        if chunks is not None:
            remove(chunks)
    if place is not None:
        remove(place / CHUNKS)
    return tree


def load_recovery(folder: str | PathLike[str]) -> xr.DataTree:
    """Read the study of a folder, finished or not.

    Raises
    ------
    InputDataError
        If there is none, or it cannot be read.
    """
    path = Path(folder) / DATA
    if not path.exists():
        raise InputDataError(
            f"Expected a recovery study at {str(path)!r}; got nothing. Run prisma study recover."
        )
    try:
        with xr.open_datatree(path, engine="zarr", consolidated=False) as opened:
            tree = opened.load()
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise InputDataError(
            f"Expected a recovery study at {str(path)!r}; got {type(error).__name__}: {error}. "
            "Begin anew with --force."
        ) from error
    version = tree.attrs.get("format_version", 0)
    if tree.attrs.get("kind") != KIND or version != FORMAT_VERSION:
        raise InputDataError(
            f"Expected a recovery study of format version {FORMAT_VERSION} at {str(path)!r}; got "
            f"kind {tree.attrs.get('kind')!r}, version {version}. Choose another folder."
        )
    return _in_order(tree)


def _described(region: Region, settings: RecoverySettings, encoder: Encoder) -> dict[str, Any]:
    """What has to stay the same from run to run; every value as an attribute can have it."""
    name = getattr(encoder, "__qualname__", type(encoder).__qualname__)
    return {
        "n_trips": settings.n_trips,
        "noise": str(settings.noise),
        "n_draws": settings.n_draws,
        "seed": settings.seed,
        "encoder": name,
        "region_fingerprint": region.fingerprint,
    }


def _opened(place: Path, asked: dict[str, Any]) -> xr.DataTree | None:
    """The study of a folder, if there is one, and of the same settings."""
    if not (place / DATA).exists():
        return None
    tree = load_recovery(place)
    differing = [name for name, value in asked.items() if tree.attrs.get(name) != value]
    if differing:
        there = ", ".join(f"{name}={tree.attrs.get(name)!r}" for name in differing)
        here = ", ".join(f"{name}={asked[name]!r}" for name in differing)
        raise InputDataError(
            f"Expected the settings of the study in {str(place)!r}, {there}; got {here}. Repeat "
            "them to go on, choose another folder, or begin anew with --force."
        )
    return tree


def _check_work(cell: Cell, kept: xr.Dataset, work: EncodeSettings) -> None:
    """Refuse a cell of other settings, as an earlier version of the package had them."""
    if kept.attrs["settings"] != repr(work):
        raise InputDataError(
            f"Expected {cell.name} encoded as this version of the package does by default; got it "
            "with other settings of the method. Choose another folder, or begin anew with --force."
        )


def _in_order(tree: xr.DataTree) -> xr.DataTree:
    """The tree with its groups in a fixed order, whatever order they were read in."""
    cells = cells_of(tree)
    order = [Cell(likelihood=one, method=str(other)) for one in LIKELIHOODS for other in Method]
    parts = {"fleet": tree["fleet"].to_dataset()}
    parts |= {cell.path: cells[cell.name] for cell in order if cell.name in cells}
    ordered = xr.DataTree.from_dict(parts)
    ordered.attrs = tree.attrs
    if cells:
        ordered["summary"] = xr.DataTree(recovery_summary(ordered))
    return ordered


def _keep(tree: xr.DataTree, place: Path | None) -> None:
    """Write the tree, whole or not at all."""
    if place is not None:
        with replacing(place / DATA) as partial:
            write_zarr(tree, partial)


def _of_cell(cell: Cell, progress: CellProgress | None) -> Callable[[int, int], None]:
    """Progress of one cell."""

    def move(done: int, total: int) -> None:
        if progress is not None:
            progress(cell.name, done, total)

    return move
