"""The page on evaluation: its code runs, it names every metric, its formulas are those tested."""

import json
import re
from pathlib import Path
from typing import Any

from prisma_sbi.evaluation import ALL_DISTANCES, METRICS, expected_coverage

PAGE = Path(__file__).resolve().parents[2] / "docs" / "evaluation.md"


def test_page_names_every_metric():
    text = PAGE.read_text()
    for key in METRICS:
        kind = re.sub(r"_(raw|standardized)$", "_...", key)
        assert f"`{kind}`" in text or key.removesuffix("_x_floor") in ALL_DISTANCES, key
    for name in ALL_DISTANCES:
        assert f"`{name}`" in text
        unit = METRICS[name].unit
        assert f"| `{name}` | {unit} |".replace("|  |", "| |") in text


def test_page_states_the_values_of_a_perfect_synthesizer():
    text = PAGE.read_text()
    assert METRICS["fid_x_floor"].ideal == 0.5
    assert "**0.5 floors, not 1**" in text
    assert METRICS["acf_x_floor"].ideal == 0.71
    assert "**0.71 floors**" in text
    assert f"{expected_coverage(2000, 2000):.3f} at equal sizes" in text


def test_code_of_the_page_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    exec(code, names)
    assert len(capsys.readouterr().out.splitlines()) == len(METRICS)
    found = names["found"]
    assert list(found) == ["other", "third"]
    # Fleets of one law: unless the seed repeats a fleet, they lie about as near as its halves.
    assert 0.0 < found["other"].values["fid_x_floor"] < 2.0
    assert found["other"].values["mmd_p_value"] > 0.01
    json.dumps(found["other"].to_dict(), allow_nan=False)
