"""Checks at the public edge; the keyword is the name that the user reads."""

import math
from collections.abc import Collection
from itertools import pairwise


def positive(**values: float) -> None:
    """Raise ``ValueError`` unless every value is greater than zero; NaN fails too."""
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"Expected {name} > 0; got {name}={value!r}.")


def finite(**values: float) -> None:
    """Raise ``ValueError`` unless every value is a finite number."""
    for name, value in values.items():
        if not math.isfinite(value):
            raise ValueError(f"Expected a finite {name}; got {name}={value!r}.")


def in_range(low: float, high: float, **values: float) -> None:
    """Raise ``ValueError`` unless every value lies in the closed interval."""
    for name, value in values.items():
        if not low <= value <= high:
            raise ValueError(f"Expected {name} in [{low}, {high}]; got {name}={value!r}.")


def at_least(minimum: int, **values: int) -> None:
    """Raise ``ValueError`` unless every count reaches the minimum."""
    for name, value in values.items():
        if not value >= minimum:
            raise ValueError(f"Expected {name} >= {minimum}; got {name}={value!r}.")


def one_of(options: Collection[str], **values: str) -> None:
    """Raise ``ValueError`` unless every value is one of the options."""
    for name, value in values.items():
        if value not in options:
            listed = ", ".join(repr(option) for option in options)
            raise ValueError(f"Expected {name} to be one of {listed}; got {name}={value!r}.")


def rising_shares(**values: tuple[float, ...]) -> None:
    """Raise ``ValueError`` unless every tuple holds shares above 0, up to 1, none falling."""
    for name, shares in values.items():
        if not (shares and all(0.0 < a <= b for a, b in pairwise((*shares, 1.0)))):
            raise ValueError(f"Expected rising {name} above 0 up to 1; got {name}={shares!r}.")
