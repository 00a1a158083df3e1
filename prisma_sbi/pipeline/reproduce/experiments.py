"""The experiments of the paper by name: what each needs, and what it leaves in a folder."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from prisma_sbi import _validate
from prisma_sbi._files import replacing
from prisma_sbi.pipeline.budget_book import BudgetTotal
from prisma_sbi.pipeline.config import (
    EvaluateConfig,
    PipelineConfig,
    RegionConfig,
    SplitConfig,
    SynthesizeConfig,
    TelemetryConfig,
)
from prisma_sbi.pipeline.reproduce.figures import (
    draw_budget,
    draw_curve,
    draw_map,
    draw_places,
    draw_scores,
    place_rows,
)
from prisma_sbi.pipeline.reproduce.results import collect_scores, long_table, markdown, summary
from prisma_sbi.pipeline.reproduce.rows import Row, ablation_rows, choose_rows, table_rows
from prisma_sbi.pipeline.reproduce.study import Step, Study
from prisma_sbi.pipeline.stage import Reporter, Silence, StageRecord


class Target(StrEnum):
    """What can be reproduced."""

    TABLE2 = "table2"
    """Scores of all models."""
    FIG1 = "fig1"
    """The same as a figure."""
    FIG4 = "fig4"
    """Real and synthetic traces in a map by t-SNE."""
    FIG5 = "fig5"
    """Where trips start and end."""
    ABLATIONS = "ablations"
    """One thing left out at a time, and what each stage costs."""

    @property
    def has_scores(self) -> bool:
        """Whether it is made from scores over all seeds, not from the traces of the first."""
        return self not in (Target.FIG4, Target.FIG5)


@dataclass(frozen=True, kw_only=True)
class PlannedStep:
    """One stage as a plan has it."""

    title: str
    is_done: bool


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """What a command left.

    Attributes
    ----------
    folder, target
        Where, and what.
    lines
        The table as texts, see :func:`~prisma_sbi.pipeline.reproduce.results.summary`; empty
        for a map.
    files
        Tables and figures written.
    missing
        Rows that could be made and were not, for any of the seeds.
    stages
        What each stage cost.
    spent
        Cost of all releases in the folder together, by its book; None without any.
    """

    folder: Path
    target: Target
    lines: list[dict[str, str]]
    files: list[Path]
    missing: list[str]
    stages: list[StageRecord] = field(default_factory=list)
    spent: BudgetTotal | None = None


def demo_study_config() -> PipelineConfig:
    """A small simulated fleet in the embedded city, for a try without any download."""
    return PipelineConfig(
        region=RegionConfig(name="demo city"),
        telemetry=TelemetryConfig(simulated_trips=700),
        split=SplitConfig(n_train=400, n_holdout=200),
        synthesize=SynthesizeConfig(epsilons=(0.5,)),
        evaluate=EvaluateConfig(n_splits=5),
    )


def plan_reproduction(
    target: str,
    folder: str | Path,
    *,
    config: PipelineConfig | None = None,
    n_seeds: int = 5,
    rows: Sequence[str] | None = None,
) -> list[PlannedStep]:
    """Which stages a target needs, and which of them are there; nothing is run.

    Parameters
    ----------
    target, folder, config, n_seeds, rows
        As for :func:`reproduce`.

    Returns
    -------
    plan
        In the order in which they would be run.
    """
    job = _Job(target, folder, config=config, n_seeds=n_seeds, rows=rows, reporter=None)
    return [PlannedStep(title=each.title, is_done=each.find() is not None) for each in job.steps()]


def reproduce(
    target: str,
    folder: str | Path,
    *,
    config: PipelineConfig | None = None,
    n_seeds: int = 5,
    rows: Sequence[str] | None = None,
    run: bool = True,
    reporter: Reporter | None = None,
) -> Reproduction:
    """Run one experiment of the paper [1]_, or go on with it.

    Parameters
    ----------
    target
        A :class:`Target`.
    folder
        Where results go; the targets share their stages there. **All of it is private.** Each
        private row and seed is a release of its own: they are for measuring, not for
        publishing, and are written into ``privacy-ledger.jsonl`` before they are made.
    config
        Region, trips, sizes of the split, budgets; the seed of the split is replaced by those of
        the study. By default :func:`demo_study_config`.
    n_seeds
        Seeds 0, 1, ...: each is another split, another release and another draw of the traces.
    rows
        Names or patterns of the rows to run; by default all. Others are shown if they are there.
    run
        Whether to run what is missing; otherwise tables and figures come from what is there.
    reporter
        Told about progress.

    Returns
    -------
    reproduction

    Raises
    ------
    ValueError
        If the target is unknown or the number of seeds below 1.
    InputDataError
        If an input cannot be used, or a pattern matches no row.
    BudgetError
        If the releases would exceed ``total_epsilon`` of the configuration.

    References
    ----------
    .. [1] Zeiseweis et al., PRISMA, 2026. https://doi.org/10.48550/arXiv.2610.35521
    """
    job = _Job(target, folder, config=config, n_seeds=n_seeds, rows=rows, reporter=reporter)
    return job.run() if run else job.finish([])


class _Job:
    """One target in one folder."""

    def __init__(
        self,
        target: str,
        folder: str | Path,
        *,
        config: PipelineConfig | None,
        n_seeds: int,
        rows: Sequence[str] | None,
        reporter: Reporter | None,
    ) -> None:
        _validate.one_of([item.value for item in Target], target=target)
        _validate.at_least(1, n_seeds=n_seeds)
        self.target = Target(target)
        config = config or demo_study_config()
        self.reporter = reporter or Silence()
        self.study = Study(config, folder, self.reporter)
        self.seeds = range(n_seeds if self.target.has_scores else 1)
        make = ablation_rows if self.target == Target.ABLATIONS else table_rows
        self.rows = make(config.synthesize.epsilons, config.synthesize.mechanism)
        if not self.target.has_scores:
            self.rows = place_rows(self.rows)
        self.chosen = choose_rows(self.rows, rows)

    def steps(self) -> list[Step]:
        """Stages of the chosen rows."""
        found = self.study.steps(self.chosen, self.seeds)
        return [each for each in found if self.target.has_scores or not _is_score(each)]

    def run(self) -> Reproduction:
        """Every stage that is missing; the table is on disk whenever a row is complete."""
        self.study.folder.mkdir(parents=True, exist_ok=True)
        records = []
        steps = self.steps()
        for number, step in enumerate(steps):
            self.reporter.stage(step.title, len(steps), number)
            records.append(step.run())
            self.reporter.finished(records[-1])
            if self.target.has_scores and not records[-1].reused and _is_score(step):
                self.write_tables()
        return self.finish(records)

    def write_tables(self) -> tuple[list[dict[str, str]], list[Path]]:
        """The table as it stands, for people and for machines."""
        scores = collect_scores(self.study, self.rows, self.seeds)
        lines = summary(scores, self.rows)
        name = "table2" if self.target == Target.FIG1 else str(self.target)
        page, table = (self.study.folder / f"{name}.{ending}" for ending in ("md", "csv"))
        with replacing(page) as partial:
            partial.write_text(markdown(lines))
        with replacing(table) as partial:
            long_table(scores).to_csv(partial, index=False, float_format="%.6g")
        return lines, [page, table]

    def finish(self, records: list[StageRecord]) -> Reproduction:
        """Tables and figures from what is there."""
        lines, files = self.write_tables() if self.target.has_scores else ([], [])
        return Reproduction(
            folder=self.study.folder,
            target=self.target,
            lines=lines,
            files=[*files, *self.draw()],
            missing=[row.name for row in self.rows if not self.is_complete(row)],
            stages=records,
            spent=self.study.spent(),
        )

    def is_complete(self, row: Row) -> bool:
        """Whether every seed of a row is there; a model without a recipe cannot be missed."""
        if row.recipe is None:
            return True
        make = self.study.scores if self.target.has_scores else self.study.synthetic
        return all(make(row, seed).find() is not None for seed in self.seeds)

    def draw(self) -> list[Path]:
        """The figures of the target."""
        folder = self.study.folder / "figures"
        path = folder / str(self.target)
        if self.target == Target.TABLE2:
            return []
        if self.target.has_scores:
            scores = collect_scores(self.study, self.rows, self.seeds)
            if self.target == Target.FIG1:
                curve = draw_curve(scores, self.rows, folder / "epsilon_curve")
                return [*draw_scores(scores, self.rows, path), *curve]
            drawn = draw_scores(scores, self.rows, path, full=True)
            return [*drawn, *draw_budget(scores, self.rows, folder)]
        there = [row for row in self.rows if self.is_complete(row)]
        if not there:
            return []
        draw = draw_map if self.target == Target.FIG4 else draw_places
        return draw(self.study, there, 0, path)


def _is_score(step: Step) -> bool:
    """Whether a stage judges traces."""
    return step.name in ("scores", "floors")


def with_changes(
    config: PipelineConfig,
    *,
    epsilons: Sequence[float] | None = None,
    n_train: int | None = None,
    n_holdout: int | None = None,
) -> PipelineConfig:
    """A configuration with other budgets or sizes, where they are given."""
    split = config.split
    return replace(
        config,
        split=replace(
            split, n_train=n_train or split.n_train, n_holdout=n_holdout or split.n_holdout
        ),
        synthesize=replace(config.synthesize, epsilons=tuple(epsilons))
        if epsilons
        else config.synthesize,
    )
