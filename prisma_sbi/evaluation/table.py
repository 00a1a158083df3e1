"""Scores of several modes as plain rows for a table, and as the published JSON shape."""

import math
from collections.abc import Mapping
from typing import Any

from prisma_sbi.evaluation.score import SCORE_KEYS, Scores

COLUMNS: Mapping[str, str] = {
    "mode": "Mode",
    "acf_x_floor": "ACF × floor",
    "fid_x_floor": "FID × floor",
    "precision_standardized": "Precision",
    "recall_standardized": "Recall",
    "precision_raw": "Precision (raw)",
    "recall_raw": "Recall (raw)",
    "n_synthetic": "Traces",
}
"""Column key -> heading, in the order of a table."""


def score_rows(scores: Mapping[str, Scores]) -> list[dict[str, str]]:
    """One row of formatted cells per mode.

    Parameters
    ----------
    scores
        Name of the mode (``"none"``, ``"epsilon=0.5"``, ...) -> its scores.

    Returns
    -------
    rows
        Dictionaries with the keys of :data:`COLUMNS`, in the order given. Cells are text:
        multiples with three significant digits, shares with three decimals, a dash for a
        number that is not defined.
    """
    return [{"mode": mode} | _cells(score) for mode, score in scores.items()]


def metrics_json(scores: Mapping[str, Scores]) -> dict[str, Any]:
    """Scores of all modes in the shape of ``metrics.json``.

    Parameters
    ----------
    scores
        Name of the mode -> its scores, all against one real hold-out.

    Returns
    -------
    metrics
        ``{"modes": {mode: {...}}, "floors": {...}, "counts": {"real": n, "samples": T,
        "synthetic": {mode: n}}}``; only types that JSON knows, ``None`` for a number that
        is not defined.

    Raises
    ------
    ValueError
        If there is no mode, or the modes were scored against different floors.
    """
    if not scores:
        raise ValueError("Expected the scores of at least one mode; got none. Evaluate first.")
    first_mode, first = next(iter(scores.items()))
    for mode, score in scores.items():
        if score.floors != first.floors:
            raise ValueError(
                f"Expected all modes scored against the same floors; got other floors for "
                f"{mode!r} than for {first_mode!r}. Compute the floors once and pass them on."
            )
    keys = ("acf", "fid", *SCORE_KEYS)
    return {
        "modes": {
            mode: {key: value for key, value in score.to_dict().items() if key in keys}
            for mode, score in scores.items()
        },
        "floors": first.floors.to_dict(),
        "counts": {
            "real": first.n_real,
            "samples": first.floors.n_samples,
            "synthetic": {mode: score.n_synthetic for mode, score in scores.items()},
        },
    }


def _cells(score: Scores) -> dict[str, str]:
    """Format the cells of one mode."""
    cells = {}
    for key in COLUMNS:
        if key == "mode":
            continue
        value = getattr(score, key)
        if key.endswith("_x_floor"):
            cells[key] = _multiple(value)
        else:
            cells[key] = str(value) if isinstance(value, int) else f"{value:.3f}"
    return cells


def _multiple(value: float) -> str:
    """Three significant digits without an exponent; a dash where undefined."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f}"
