"""The releases of a run in the book of its folder."""

from collections.abc import Mapping
from pathlib import Path

from prisma_sbi.pipeline.budget_book import BOOK_NAME, BudgetBook, BudgetTotal
from prisma_sbi.pipeline.config import PipelineConfig
from prisma_sbi.pipeline.stage import find_stage, stage_file
from prisma_sbi.privacy import SynthesisSettings


class Spending:
    """Enters every private release of a run into the book, before its mechanism runs."""

    def __init__(self, config: PipelineConfig, folder: Path) -> None:
        self.config, self.folder = config, folder
        self.book = BudgetBook(folder / BOOK_NAME)
        self.sources: tuple[str, ...] = ()

    def check(self, keys: Mapping[str, str], sources: tuple[str, ...], *, force: bool) -> None:
        """Look at all releases of the run together, before the first of them.

        Parameters
        ----------
        keys
            Mode and key of each release.
        sources
            Digests of the trips.
        force
            Whether releases that are there will be made again.

        Raises
        ------
        BudgetError
            If those to come would exceed ``total_epsilon``.
        """
        self.sources = sources
        to_come = []
        for mode, key in keys.items():
            if mode == "none":
                continue
            found = find_stage(stage_file(f"synthesize {mode}"), self.folder, key)
            if found is not None and not self.book.has(key):
                self._write(mode, key, limit=None)  # made before there was a book
            if found is None or force:
                to_come.append(self._settings(mode))
        limit = self.config.synthesize.total_epsilon
        if limit is not None and to_come:
            self.book.require(to_come, sources=sources, total_epsilon=limit)

    def spend(self, mode: str, key: str) -> None:
        """Enter one release; the mode without a mechanism spends nothing it could enter."""
        if mode != "none":
            self._write(mode, key, limit=self.config.synthesize.total_epsilon)

    def total(self) -> BudgetTotal | None:
        """What the releases from these trips have cost; None if there is none."""
        return self.book.total(self.sources)

    def _settings(self, mode: str) -> SynthesisSettings:
        """Settings of one release, as the run makes it."""
        return self.config.synthesize.settings(mode, n_rows=self.config.split.n_train)

    def _write(self, mode: str, key: str, *, limit: float | None) -> None:
        """One entry."""
        self.book.spend(
            self._settings(mode),
            release=key,
            mode=mode,
            sources=self.sources,
            total_epsilon=limit,
        )
