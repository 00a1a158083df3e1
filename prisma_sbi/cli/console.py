"""What the command shows: progress and messages on stderr, results on stdout."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from prisma_sbi.pipeline import StageRecord

# File names and sentences may hold brackets, so nothing is read as markup.
messages = Console(stderr=True, highlight=False, markup=False)
results = Console(highlight=False, markup=False)


class RateColumn(ProgressColumn):
    """Items per second since the start."""

    def render(self, task: Task) -> Text:
        """Rate of the task, or nothing before the first item."""
        if not task.completed or not task.elapsed:
            return Text("")
        rate = task.completed / task.elapsed
        return Text(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s", style="dim")


class LeftColumn(ProgressColumn):
    """Time to go."""

    def render(self, task: Task) -> Text:
        """Estimate at the present rate, or nothing while there is none."""
        if task.time_remaining is None:
            return Text("")
        return Text(f"{timedelta(seconds=round(task.time_remaining))} left", style="cyan")


def progress_bar() -> Progress:
    """A bar with rate, time so far and time to go on stderr; only a terminal shows it."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        RateColumn(),
        TimeElapsedColumn(),
        LeftColumn(),
        console=messages,
        transient=True,
        disable=not messages.is_terminal,
    )


def tracker(bars: Progress, title: str) -> Callable[[int, int | None], None]:
    """A callback ``(done, total)`` that moves a new bar."""
    task = bars.add_task(title, total=None)

    def move(done: int, total: int | None) -> None:
        bars.update(task, completed=done, total=total)

    return move


class RichReporter:
    """A bar per stage; a finished stage becomes a line."""

    def __init__(self, bars: Progress) -> None:
        self.bars = bars
        self.task = bars.add_task("", total=None, visible=False)
        self.title = ""

    def stage(self, name: str, total_stages: int, index: int) -> None:
        """Begin a bar; the one before is gone, its total with it."""
        self.title = f"[{index + 1}/{total_stages}] {name}"
        self.bars.remove_task(self.task)
        self.task = self.bars.add_task(self.title, total=None)

    def progress(self, done: int, total: int) -> None:
        """Move the bar."""
        self.bars.update(self.task, completed=done, total=total)

    def note(self, text: str) -> None:
        """Print a warning above the bar."""
        note(text)

    def finished(self, record: StageRecord) -> None:
        """Print the line of a stage."""
        cost = "reused" if record.reused else f"{record.seconds:.1f} s"
        messages.print(
            Text.assemble(
                (f"{self.title:<28} ", "bold"), (f"{cost:>7}  ", "cyan"), (record.detail, "dim")
            ),
            soft_wrap=not messages.is_terminal,
        )


def wrote(path: Path, detail: str = "") -> None:
    """Say on stderr where a result is."""
    text = f"{path}: {detail}" if detail else str(path)
    messages.print(Text.assemble(("wrote ", "green"), text), soft_wrap=True)


def note(text: str) -> None:
    """Say on stderr what a person should know."""
    messages.print(Text.assemble(("note ", "yellow"), text), soft_wrap=not messages.is_terminal)


def print_json(content: Mapping[str, Any]) -> None:
    """One JSON object on stdout, and nothing else."""
    print(json.dumps(content, indent=1))


def _table(title: str) -> Table:
    """An empty table without vertical lines, so that more fits beside each other."""
    return Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False
    )


def print_table(title: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, str]]) -> None:
    """A table of texts on stdout; columns of numbers are right-aligned."""
    table = _table(title)
    for key, heading in columns.items():
        numbers = _are_numbers(row.get(key, "") for row in rows)
        table.add_column(heading, justify="right" if numbers else "left")
    for row in rows:
        table.add_row(*(row.get(key, "") for key in columns))
    results.print(table)


def _are_numbers(texts: Iterable[str]) -> bool:
    """Whether every text is a number or a dash in place of one."""
    return all(text[:1] in "-0123456789" and not text[1:2].isalpha() for text in texts)


def print_facts(title: str, facts: Mapping[str, str]) -> None:
    """Names and texts on stdout, one pair a line."""
    table = _table(title)
    table.show_header = False
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, text in facts.items():
        table.add_row(name, text)
    results.print(table)


_SCORES = {
    "acf_x_floor": "ACF",
    "fid_x_floor": "FID",
    "precision_standardized": "prec",
    "recall_standardized": "rec",
    "precision_raw": "prec raw",
    "recall_raw": "rec raw",
}


def print_scores(metrics: Mapping[str, Any]) -> None:
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


def print_recovery(rows: Sequence[Mapping[str, str]]) -> None:
    """How well known descriptors came back: one row per descriptor and measure."""
    shown, last = [], ""
    for row in rows:
        name = row["descriptor"]
        shown.append({**row, "descriptor": "" if name == last else name})
        last = name
    names = {key: key for key in rows[0]}
    print_table("Recovery of the known descriptors", names, shown)
