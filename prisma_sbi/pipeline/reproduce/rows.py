"""The rows of the tables: what each is made from, and what was published beside it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from prisma_sbi._errors import InputDataError
from prisma_sbi.pipeline.reproduce.published import (
    BASELINES,
    PRISMA_AIM,
    PRISMA_NO_MECHANISM,
    PRISMA_UNFITTED,
    PUBLISHED_EPSILON,
    Published,
)

WITHOUT = "without privacy"
TABLES = ("published", "route")


class Source(StrEnum):
    """Where the descriptors of a trip come from; its two ends are always as recorded."""

    MAP = "map"
    """The best point of its fit."""
    POSTERIOR = "posterior"
    """Draws of its posterior: weighted rows under a mechanism, one draw without."""
    UNFITTED = "unfitted"
    """Aggressiveness, detour and vehicle drawn from the public prior."""


class Passage(StrEnum):
    """What happens to the descriptors before they are decoded."""

    MECHANISM = "mechanism"
    """Synthesized; without noise if epsilon is infinite."""
    BINNED = "binned"
    """Put into bins and drawn anew within them, row by row."""
    NONE = "none"
    """Nothing."""


class Roads(StrEnum):
    """Public inputs under which trips are encoded and decoded."""

    ALL = "all"
    FLAT = "flat"
    """Without elevation."""
    FREE = "free"
    """Without traffic signals and stop signs."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How the synthetic traces of a row are made.

    Attributes
    ----------
    source, passage, roads
        See the names.
    table
        Columns and bins, where the passage has any.
    epsilon
        Budget of the mechanism; infinite for exact counts.
    """

    source: Source = Source.MAP
    passage: Passage = Passage.NONE
    roads: Roads = Roads.ALL
    table: str = ""
    epsilon: float = math.inf

    @property
    def is_private(self) -> bool:
        """Whether a release of this kind has a guarantee, and spends for it."""
        return self.passage == Passage.MECHANISM and math.isfinite(self.epsilon)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a table.

    Attributes
    ----------
    name
        In files and on the command line.
    model
        For people; rows with and without privacy may share it.
    recipe
        How it is made; None for a model that this package does not have.
    epsilon
        Budget that it stands for, infinite without privacy.
    published
        What the paper reports for this row, if it has it.
    """

    name: str
    model: str
    recipe: Recipe | None = None
    epsilon: float = math.inf
    published: Published | None = None

    @property
    def privacy(self) -> str:
        """The budget in words."""
        return f"epsilon = {self.epsilon:g}" if math.isfinite(self.epsilon) else WITHOUT

    @property
    def label(self) -> str:
        """Model and budget."""
        return f"{self.model}, {self.privacy}" if math.isfinite(self.epsilon) else self.model


def table_rows(epsilons: Sequence[float], mechanism: str = "aim") -> tuple[Row, ...]:
    """Rows of Table 2, those that cost little first; models that are not here at the end.

    Parameters
    ----------
    epsilons
        Budgets; every private row is there once for each.
    mechanism
        Name of the mechanism, for the names of rows.
    """
    rows = [
        Row(
            name="none-map",
            model="PRISMA, no mechanism",
            recipe=Recipe(),
            published=PRISMA_NO_MECHANISM,
        ),
        Row(
            name="none-unfitted",
            model="PRISMA, unfitted, no mechanism",
            recipe=Recipe(source=Source.UNFITTED),
            published=PRISMA_UNFITTED[1],
        ),
        *_private(Source.MAP, epsilons, mechanism, PRISMA_AIM[0]),
        *_private(Source.UNFITTED, epsilons, mechanism, PRISMA_UNFITTED[0]),
        *_noiseless(mechanism),
        Row(
            name="none-posterior",
            model="PRISMA, no mechanism, posterior rows",
            recipe=Recipe(source=Source.POSTERIOR),
        ),
        *_private(Source.POSTERIOR, epsilons, mechanism, None),
    ]
    return (*rows, *_baselines())


def ablation_rows(epsilons: Sequence[float], mechanism: str = "aim") -> tuple[Row, ...]:
    """Rows in which one thing is left out or put in another way; see :func:`table_rows`."""
    by_name = {row.name: row for row in table_rows(epsilons, mechanism)}
    rows = [row for name, row in by_name.items() if row.recipe and not name.endswith("exact")]
    binned = [
        Row(
            name=f"binned-{table}-map",
            model=f"PRISMA, binned by the {table} table, no mechanism",
            recipe=Recipe(passage=Passage.BINNED, table=table),
        )
        for table in TABLES
    ]
    without = [
        Row(
            name=f"none-map-{roads}",
            model=f"PRISMA, no mechanism, without {missing}",
            recipe=Recipe(roads=roads),
        )
        for roads, missing in ((Roads.FLAT, "elevation"), (Roads.FREE, "signals"))
    ]
    (plain,) = [row for row in rows if row.name == "none-map"]
    return (plain, *without, *binned, *(row for row in rows if row is not plain))


def choose_rows(rows: Sequence[Row], patterns: Sequence[str] | None) -> tuple[Row, ...]:
    """Rows whose name matches one of some patterns, as ``aim-*``; all without any pattern.

    Raises
    ------
    InputDataError
        If a pattern matches no row that can be made.
    """
    possible = [row for row in rows if row.recipe is not None]
    if not patterns:
        return tuple(possible)
    for pattern in patterns:
        if not any(fnmatchcase(row.name, pattern) for row in possible):
            known = ", ".join(row.name for row in possible)
            raise InputDataError(f"Expected rows among {known}; got {pattern!r}.")
    return tuple(row for row in possible if any(fnmatchcase(row.name, each) for each in patterns))


def _private(
    source: Source, epsilons: Sequence[float], mechanism: str, published: Published | None
) -> list[Row]:
    """Rows with a guarantee: each budget for each table."""
    return [
        Row(
            name=f"{mechanism}-{table}-{source}-eps{epsilon:g}",
            model=_model(mechanism, table, source),
            recipe=Recipe(source=source, passage=Passage.MECHANISM, table=table, epsilon=epsilon),
            epsilon=epsilon,
            published=published if table == "published" and epsilon == PUBLISHED_EPSILON else None,
        )
        for epsilon in epsilons
        for table in TABLES
    ]


def _noiseless(mechanism: str) -> list[Row]:
    """The mechanism with exact counts: what binning and the model cost without any noise."""
    return [
        Row(
            name=f"{mechanism}-{table}-map-exact",
            model=_model(mechanism, table, Source.MAP),
            recipe=Recipe(passage=Passage.MECHANISM, table=table),
            published=PRISMA_AIM[1] if table == "published" else None,
        )
        for table in TABLES
    ]


def _model(mechanism: str, table: str, source: Source) -> str:
    """Name of a model with a mechanism, for people."""
    rows = {Source.MAP: "", Source.POSTERIOR: ", posterior rows", Source.UNFITTED: ", unfitted"}
    return f"PRISMA + {mechanism.upper()}, {table} table{rows[source]}"


def _baselines() -> list[Row]:
    """Models of the paper that this package does not have."""
    return [
        Row(
            name=f"{model.lower().replace(' ', '-')}-{'exact' if math.isinf(epsilon) else 'eps'}",
            model=model,
            epsilon=epsilon,
            published=published,
        )
        for model, both in BASELINES.items()
        for epsilon, published in zip((PUBLISHED_EPSILON, math.inf), both, strict=True)
    ]
