"""OpenStreetMap tags: road classes, speed limits and what controls a junction."""

import ast
from collections.abc import Mapping
from typing import Any

CLASS_SPEEDS_KMH: dict[str, float] = {
    "motorway": 105.0,
    "trunk": 88.0,
    "primary": 64.0,
    "secondary": 56.0,
    "tertiary": 48.0,
    "unclassified": 40.0,
    "residential": 40.0,
    "motorway_link": 64.0,
    "trunk_link": 56.0,
    "primary_link": 48.0,
    "secondary_link": 48.0,
    "tertiary_link": 40.0,
    "road": 40.0,
    "service": 24.0,
    "living_street": 16.0,
}
"""Drivable speed of a road class without a tagged limit, most important class first.

The values follow limits usual in the United States (65, 55, 40, 35, 30 and 25 mph). They are
fixed, so that a speed never depends on which other edges of a graph happen to be tagged.
"""

OTHER_CLASS_SPEED_KMH = 40.0
"""Drivable speed of any class not listed."""

CONTROL_NONE, CONTROL_SIGNAL, CONTROL_STOP, CONTROL_CROSSING = range(4)
"""Values of ``RoadNetwork.node_control``."""

CONTROL_TAGS: dict[int, str] = {
    CONTROL_SIGNAL: "traffic_signals",
    CONTROL_STOP: "stop",
    CONTROL_CROSSING: "crossing",
}
"""The ``highway`` value that stands for each control of a junction."""

_IMPORTANCE = {name: rank for rank, name in enumerate(CLASS_SPEEDS_KMH)}
_NO_SIGNAL = {"no", "ramp_meter", "emergency"}


def tag_values(value: Any) -> list[str]:
    """Values of a tag, sorted: a list, a list written out as text, or text with semicolons."""
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):
        try:
            value = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            value = [value]
    if isinstance(value, str):
        parts = value.split(";")
    elif isinstance(value, list | tuple | set):
        parts = [str(part) for part in value]
    elif value is None or value != value:  # a missing value may be NaN
        parts = []
    else:
        parts = [str(value)]
    return sorted(part.strip() for part in parts if part.strip())


def road_class(value: Any) -> str:
    """One class out of a ``highway`` tag: of several, the most important."""
    values = tag_values(value) or ["road"]
    return min(values, key=lambda name: (_IMPORTANCE.get(name, len(_IMPORTANCE)), name))


def node_control(tags: Mapping[str, Any]) -> int:
    """Tell what a junction asks of a driver, from its ``highway`` and ``crossing`` tags."""
    kinds = set(tag_values(tags.get("highway")))
    crossing = set(tag_values(tags.get("crossing")))
    signals = set(tag_values(tags.get("traffic_signals"))) - _NO_SIGNAL
    if "traffic_signals" in kinds | crossing or (signals and not kinds - {"crossing"}):
        return CONTROL_SIGNAL
    if "stop" in kinds:
        return CONTROL_STOP
    if kinds & {"crossing", "give_way"}:
        return CONTROL_CROSSING
    return CONTROL_NONE
