"""Sections and tables of the page of a recovery study."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from prisma_sbi.report.markup import Child, facts, tag
from prisma_sbi.report.page import Section, library_versions
from prisma_sbi.report.tables import number, table
from prisma_sbi.study.recovery_fleet import Noise
from prisma_sbi.study.recovery_table import (
    COSTS,
    MEASURES,
    PARAMETERS,
    flag_table,
    trips_set_aside,
)

DASH = "-"
_NOISE = {
    Noise.LAW: "the law of the trace likelihood",
    Noise.MILD: "power times a slow random factor of 5 %; what is zero stays zero",
    Noise.NONE: "none",
}
_MOST_NAMED = 12
_BEYOND_CHANCE = 2.6
"""Errors that chance exceeds once in 100."""


def shown(value: float, text: str) -> str:
    """A formatted number, or a dash where a method says nothing."""
    return DASH if np.isnan(value) else text.format(value)


def coverage_text(row: Mapping[str, Any], level: int) -> str:
    """Coverage with its error by chance, both in percent; a mark beyond 2.6 of these errors."""
    share, error = row[f"coverage_{level}"], row[f"coverage_{level}_error"]
    if np.isnan(share):
        return DASH
    mark = " !" if abs(share - 0.01 * level) > _BEYOND_CHANCE * error else ""
    return f"{100 * share:.0f} ± {100 * error:.0f}{mark}"


def trips_text(count: int) -> str:
    """How many trips, in words."""
    return f"{count:,} trip" if count == 1 else f"{count:,} trips"


def study_section(tree: xr.DataTree) -> Section:
    """What was simulated."""
    at = tree.attrs
    fleet = tree["fleet"].dataset
    km = fleet["route_length_m"].values / 1e3
    pairs: dict[str, Child] = {
        "region": at["region_name"],
        "fingerprint": tag("code", at["region_fingerprint"]),
        "trips": f"{at['n_trips']:,}, each on a random route of its own",
        "routes": f"{km.min():.1f} to {km.max():.1f} km, {np.median(km):.1f} in the middle",
        "truth": f"flat prior; {fleet.sizes['pool_vehicle']:,} vehicles, all as likely",
        "noise": _NOISE[Noise(at["noise"])],
        "seed": str(at["seed"]),
        "encoder": at["encoder"],
    }
    calibrated = (
        "Under the likelihood trace, the fleet comes from the very model that the posterior "
        "assumes: its intervals must hold the truth as often as they say. "
        if at["noise"] == Noise.LAW
        else ""
    )
    sentence = (
        f"{calibrated}{'Other likelihoods' if calibrated else 'The likelihoods'} are no laws of "
        "these traces; nothing makes their intervals hold what they say, and the coverage tells "
        "how far they can be trusted on such traces. Recorded trips differ from simulated ones by "
        "more than this noise."
    )
    return Section(name="study", title="The study", children=(facts(pairs), tag("p", sentence)))


def parameter_tables(rows: pd.DataFrame) -> tuple[Child, ...]:
    """A table for aggressiveness and one for detour."""
    heads = ["", "bias", "RMSE", "r", "50 % interval", "90 % interval", "contraction",
             "z: mean, sd", "CRPS", "gain (nats)"]  # fmt: skip
    tables = []
    for name in PARAMETERS:
        body: list[tuple[Child, ...]] = [
            (
                f"{row['likelihood']}-{row['method']}",
                DASH if np.isnan(row["bias"]) else f"{row['bias']:.4f} ± {row['bias_error']:.4f}",
                _number(row["rmse"]),
                shown(row["correlation"], "{:.3f}"),
                coverage_text(row, 50),
                coverage_text(row, 90),
                shown(row["contraction"], "{:.3f}"),
                DASH if np.isnan(row["z_sd"]) else f"{row['z_mean']:.2f}, {row['z_sd']:.2f}",
                _number(row["crps"]),
                shown(row["gain"], "{:.2f}"),
            )
            for row in _records(rows, name)
        ]
        tables.append(table(name.capitalize(), heads, body))
    explained = (
        "Errors are estimate minus truth. Intervals: percent of trips whose central interval held "
        "the truth ± what chance moves it; a ! marks what chance allows less than once in 100. "
        "A dash: the method gives points and says nothing about its own error."
    )
    return (tag("p", explained), *tables)


def other_tables(tree: xr.DataTree, rows: pd.DataFrame) -> tuple[Child, ...]:
    """Vehicle, cost, flags."""
    n_vehicles = tree["fleet"].sizes["pool_vehicle"]
    guess = f"Guessing: {100 / n_vehicles:.1f} % at first, log score {-np.log(n_vehicles):.2f}, "
    guess += f"Brier {1 - 1 / n_vehicles:.2f}. Many vehicles make nearly the same traces."
    vehicle: list[tuple[Child, ...]] = [
        (
            f"{row['likelihood']}-{row['method']}",
            shown(row["top_1"], "{:.1%}"),
            shown(row["top_5"], "{:.1%}"),
            shown(row["log_score"], "{:.2f}"),
            shown(row["brier"], "{:.2f}"),
            shown(row["gain"], "{:.2f}"),
        )
        for row in _records(rows, "vehicle")
    ]
    cost: list[tuple[Child, ...]] = [
        (
            f"{row['likelihood']}-{row['method']}",
            f"{row['n_trips']:,}",
            f"{row['n_set_aside']:,}",
            shown(row["flagged"], "{:.1%}"),
            _number(row["seconds_per_trip"]),
            f"{row['compile_s']:.1f}",
        )
        for row in _records(rows, "vehicle")
    ]
    flags: list[tuple[Child, ...]] = [
        (row["cell"], row["flag"], f"{row['n_trips']:,}", row["meaning"])
        for row in flag_table(tree).to_dict("records")
    ]
    return (
        table(
            "Vehicle",
            ["", "true one first", "among five", "log score (nats)", "Brier", "gain (nats)"],
            vehicle,
        ),
        tag("p", guess),
        table(
            "Cost",
            ["", "trips", "set aside", "flagged", "seconds a trip", "compilation (s), once"],
            cost,
        ),
        table("Flags", ["", "flag", "trips", "meaning"], flags) if flags else None,
    )


def study_warnings(tree: xr.DataTree, rows: pd.DataFrame) -> list[str]:
    """Trips that were set aside, by name, and coverage that chance does not explain."""
    sentences = []
    aside = trips_set_aside(tree)
    for cell, reason in dict.fromkeys(zip(aside["cell"], aside["detail"], strict=True)):
        chosen = (aside["cell"] == cell) & (aside["detail"] == reason)
        names = aside.loc[chosen, "trip"].tolist()
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        sentences.append(
            f"{cell}: {trips_text(len(names))} set aside ({reason}): "
            f"{', '.join(names[:_MOST_NAMED])}{more}."
        )
    for row in rows.to_dict("records"):
        for level in (50, 90):
            text = coverage_text(row, level)
            if text.endswith("!"):
                sentences.append(
                    f"{row['likelihood']}-{row['method']}: central {level} % intervals of "
                    f"{row['descriptor']} held the truth in {text[:-2]} % of trips."
                )
    return sentences


def study_repeat(command: str) -> Section:
    """The command, the versions, and what the columns of the table are."""
    meanings = {**MEASURES, **COSTS}
    return Section(
        name="repeat",
        title="How to repeat",
        children=(
            tag("pre", tag("code", command), tabindex=0) if command else None,
            tag("h3", "Columns of recovery.csv"),
            facts(dict(meanings)),
            tag("h3", "Versions"),
            facts(library_versions()),
        ),
    )


def _number(value: float) -> str:
    """Three digits, or a dash."""
    return DASH if np.isnan(value) else number(value)


def _records(rows: pd.DataFrame, descriptor: str) -> list[dict[Any, Any]]:
    """Rows of one descriptor."""
    return rows.loc[rows["descriptor"] == descriptor].to_dict("records")
