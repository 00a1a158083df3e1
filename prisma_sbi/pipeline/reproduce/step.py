"""A stage that may be run, or looked up without running anything."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prisma_sbi.pipeline.stage import StageRecord, find_stage, run_stage, stage_file


@dataclass(frozen=True, kw_only=True)
class Step:
    """One stage, to be run or looked up.

    Attributes
    ----------
    title
        For people.
    name
        Of the stage within its folder.
    folder
        Where its result goes.
    key
        Gives the digest of what it depends on; empty while something of that is not there.
    make
        Fills a folder and says what it did.
    """

    title: str
    name: str
    folder: Path
    key: Callable[[], str]
    make: Callable[[Path], str]

    def find(self) -> StageRecord | None:
        """What it cost, if its result is there and still holds."""
        key = self.key()
        return find_stage(stage_file(self.name), self.folder, key) if key else None

    def run(self) -> StageRecord:
        """Make the result, or find it."""
        record = run_stage(stage_file(self.name), self.folder, self.key(), self.make)
        return replace(record, name=self.title)


def read_json(path: Path) -> dict[str, Any]:
    """An object from a file."""
    return json.loads(path.read_text())


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """An object into a file."""
    path.write_text(json.dumps(content, indent=1))
