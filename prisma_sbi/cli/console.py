"""What the command shows: progress and messages on stderr, results on stdout."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from prisma_sbi.pipeline import StageRecord

messages = Console(stderr=True, highlight=False)
results = Console(highlight=False)


class RateColumn(ProgressColumn):
    """Items per second."""

    def render(self, task: Task) -> Text:
        """Rate of the task, or nothing at its start."""
        speed = task.finished_speed or task.speed
        return Text("" if not speed else f"{speed:,.0f}/s", style="dim")


def progress_bar() -> Progress:
    """A bar with rate and remaining time on stderr; it vanishes when done."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
        console=messages,
        transient=True,
    )


class RichReporter:
    """A bar per stage; a finished stage becomes a line."""

    def __init__(self, progress: Progress) -> None:
        self.bars = progress
        self.task = progress.add_task("", total=None)
        self.title = ""

    def stage(self, name: str, total_stages: int, index: int) -> None:
        """Begin a bar."""
        self.title = f"[{index + 1}/{total_stages}] {name}"
        self.bars.reset(self.task, description=self.title, total=None)

    def progress(self, done: int, total: int) -> None:
        """Move the bar."""
        self.bars.update(self.task, completed=done, total=total)

    def note(self, text: str) -> None:
        """Print a warning above the bar."""
        messages.print(f"[yellow]note[/] {text}")

    def finished(self, record: StageRecord) -> None:
        """Print the line of a stage."""
        cost = "reused" if record.reused else f"{record.seconds:.1f} s"
        line = Text.assemble(
            (f"{self.title:<28} ", "bold"), (f"{cost:>7}  ", "cyan"), (record.detail, "dim")
        )
        messages.print(line)


def print_json(content: dict[str, Any]) -> None:
    """One JSON object on stdout, and nothing else."""
    print(json.dumps(content, indent=1))


def print_table(title: str, columns: dict[str, str], rows: Sequence[dict[str, str]]) -> None:
    """A table of texts on stdout; the first column is left-aligned, the others right."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for index, heading in enumerate(columns.values()):
        table.add_column(heading, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*(row.get(key, "") for key in columns))
    results.print(table)


_SCORES = {
    "acf_x_floor": "ACF",
    "fid_x_floor": "FID",
    "precision_standardized": "prec",
    "recall_standardized": "rec",
    "precision_raw": "prec raw",
    "recall_raw": "rec raw",
}


def print_scores(metrics: dict[str, Any]) -> None:
    """The table of ``metrics.json``: one row per mode, narrow enough for a small terminal."""
    rows = []
    for mode, scores in metrics["modes"].items():
        row = {"mode": mode, "traces": f"{metrics['counts']['synthetic'][mode]:,}"}
        for key in _SCORES:
            value = scores[key]
            row[key] = "-" if value is None else f"{value:.2f}"
        rows.append(row)
    print_table("Synthetic against real traces", {"mode": "", **_SCORES, "traces": "traces"}, rows)
    results.print(
        "ACF, FID: in multiples of real against real (0.7 and 0.5 are as good as real).\n"
        "Precision, recall: on scaled features; raw: as published.",
        style="dim",
    )


def tracker(bars: Progress, title: str) -> Callable[[int, int], None]:
    """A callback ``(done, total)`` that moves a new bar."""
    task = bars.add_task(title, total=None)

    def move(done: int, total: int) -> None:
        bars.update(task, completed=done, total=total)

    return move
