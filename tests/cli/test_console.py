"""Tables, progress, and where each of them is printed."""

import io
import itertools
import json
import re

import pytest
from rich.console import Console
from rich.progress import Progress

from prisma_sbi.cli import console
from prisma_sbi.cli.console import (
    RateColumn,
    RichReporter,
    print_json,
    print_recovery,
    print_scores,
    print_table,
    progress_bar,
    tracker,
)
from prisma_sbi.pipeline import Reporter, StageRecord

SCORES = {
    "acf_x_floor": 3.4,
    "fid_x_floor": 1.25,
    "precision_standardized": 0.5,
    "recall_standardized": None,
    "precision_raw": 1.0,
    "recall_raw": 0.0,
}


def test_reporter_is_one():
    assert isinstance(RichReporter(progress_bar()), Reporter)


def test_reporter_starts_every_stage_anew():
    bars = progress_bar()
    reporter = RichReporter(bars)
    reporter.stage("encode", 2, 0)
    reporter.progress(5, 10)
    (task,) = bars.tasks
    assert (task.description, task.completed, task.total) == ("[1/2] encode", 5, 10)
    reporter.stage("decode", 2, 1)
    (task,) = bars.tasks
    assert (task.description, task.completed, task.total) == ("[2/2] decode", 0, None)


def test_finished_stage_is_a_line_on_stderr(capsys):
    reporter = RichReporter(progress_bar())
    reporter.stage("encode", 8, 2)
    for reused in (False, True):
        reporter.finished(
            StageRecord(
                name="encode",
                seconds=61.04,
                peak_memory_mib=1.0,
                reused=reused,
                detail="10,000 trips",
            )
        )
    shown = capsys.readouterr()
    first, second = shown.err.splitlines()
    assert first.split() == ["[3/8]", "encode", "61.0", "s", "10,000", "trips"]
    assert second.split() == ["[3/8]", "encode", "reused", "10,000", "trips"]
    assert shown.out == ""


def test_live_bar_shows_count_rate_and_time_to_go(monkeypatch):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=100, color_system=None)
    monkeypatch.setattr(console, "messages", terminal)
    times = itertools.count()
    bars = progress_bar()
    bars.get_time = lambda: float(next(times))
    move = tracker(bars, "trips")
    for done in (100, 200, 300):
        move(done, 1000)
    terminal.print(bars.get_renderable())
    line = screen.getvalue()
    assert "trips" in line
    assert "300/1000" in line
    assert "/s" in line
    assert re.search(r"0:\d\d:\d\d left", line)


@pytest.mark.parametrize(("done", "text"), [(0, ""), (1, "0.2/s"), (4938, "1,234/s")])
def test_rate_is_the_mean_since_the_start(done, text):
    times = iter([0.0, *[4.0] * 20])
    bars = Progress(get_time=lambda: next(times))
    task = bars.add_task("x", total=10_000)
    bars.update(task, completed=done)
    assert RateColumn().render(bars.tasks[0]).plain == text


def test_numbers_are_right_aligned_and_words_left(capsys):
    rows = [{"a": "x", "b": "1"}, {"a": "long", "b": "1,000"}]
    print_table("T", {"a": "", "b": ""}, rows)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(" x ") and line.rstrip().endswith("     1") for line in lines)


def test_json_is_one_object(capsys):
    print_json({"a": [1.5, None], "b": "[x]"})
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"a": [1.5, None], "b": "[x]"}
    assert shown.err == ""


def test_scores_fit_80_columns_and_name_every_mode(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    modes = ["none", "epsilon=0.5", "epsilon=0.5,published"]
    print_scores(
        {
            "modes": dict.fromkeys(modes, SCORES),
            "counts": {"synthetic": dict.fromkeys(modes, 2_000)},
        }
    )
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert max(map(len, lines)) <= 80
    for mode in modes:
        (row,) = [line for line in lines if line.split()[:1] == [mode]]
        assert row.split() == [*(mode, "3.40", "1.25", "0.50", "-", "1.00", "0.00", "2,000")]
    assert shown.err == ""


def test_recovery_names_each_descriptor_once(capsys):
    measures = ("bias", "RMSE")
    print_recovery(
        [
            {"descriptor": name, "measure": measure, "value": "0.1"}
            for name in ("detour", "vehicle")
            for measure in measures
        ]
    )
    shown = capsys.readouterr().out
    assert shown.count("detour") == shown.count("vehicle") == 1
    assert shown.count("RMSE") == 2
