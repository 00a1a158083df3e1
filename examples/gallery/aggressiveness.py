"""Is aggressiveness identifiable? Three likelihoods, three types of route, one ridge."""

# %% [markdown]
# # Is aggressiveness identifiable?
#
# A power trace is fitted by an aggressiveness, a detour and a vehicle. A longer way, driven more
# briskly, takes as long; a lighter car that is driven harder draws as much. Whether aggressiveness
# can be read from a trace depends on what of the trace is looked at, and on the route.
#
# Traces are simulated with known truth under the law of the whole trace. Three likelihoods then
# look at the same traces. Run it as `python examples/gallery/aggressiveness.py [-o FOLDER]`;
# results are discussed in docs/gallery/aggressiveness.md.

# %%
import argparse
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import binom

from prisma_sbi.diagnostics import marginal_gain
from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    SYNTHETIC_COLORS,
    figure_style,
    new_figure,
    save_figures,
)
from prisma_sbi.models import TripModel
from prisma_sbi.region import Region, RoadProfiles, demo_region
from prisma_sbi.study import (
    GridSampler,
    ProfileSettings,
    Simulations,
    draw_routes,
    profile_likelihood,
    simulate,
)

LIKELIHOODS = ("summary", "texture", "trace")
LEVELS = (0.5, 0.8, 0.95)

# %% [markdown]
# ## Three types of route
#
# From 200 random routes of the embedded demo city: the ones nearest to 1 km, the ones with the
# most places to slow down among those of 3 to 5 km, and the fastest ones.


# %%
def typical_routes(region: Region, n_each: int, seed: int) -> tuple[RoadProfiles, dict[str, int]]:
    """So many routes of each type, one type after the other."""
    drawn = draw_routes(region, 200, seed=seed)
    length_km, mean_speed = drawn.length_m / 1e3, drawn.speed_mps.mean(axis=1)
    slow_share = np.mean(drawn.speed_mps < 0.5 * mean_speed[:, None], axis=1)
    middling = np.abs(length_km - 4.0) < 1.0
    scores = {
        "short": -np.abs(length_km - 1.0),
        "stop and go": np.where(middling, slow_share, -np.inf),
        "fast": mean_speed,
    }
    rows = [np.argsort(-score, kind="stable")[:n_each] for score in scores.values()]
    return drawn.take(np.concatenate(rows)), dict.fromkeys(scores, n_each)


# %% [markdown]
# ## The same traces under three likelihoods
#
# `simulate` draws driver, vehicle and trace. The three models have the same flat prior and differ
# in their likelihood only. `GridSampler` integrates each posterior with all vehicles summed out.


# %%
def posteriors(
    region: Region, trips: Simulations, likelihood: str, n_draws: int, seed: int
) -> np.ndarray:
    """Draws ``(trip, draw, 2)`` of aggressiveness and detour."""
    seen = eqx.tree_at(lambda s: s.model, trips, TripModel.of(region, likelihood=likelihood))
    return GridSampler(n_draws=n_draws, seed=seed, chunk_size=4)(region, seen, None).point


def measures(draws: np.ndarray, truth: np.ndarray, kinds: np.ndarray) -> pd.DataFrame:
    """What one likelihood knows about the aggressiveness of every trip."""
    low, high = 0.02, 1.0
    unit = np.clip((draws[..., 0] - low) / (high - low), 0.0, 1.0)
    sd = draws.std(axis=1)
    offset = draws - draws.mean(axis=1, keepdims=True)
    cross = np.mean(offset[..., 0] * offset[..., 1], axis=1)
    rank = np.mean(draws[..., 0] < truth[:, None, 0], axis=1)
    return pd.DataFrame(
        {
            "route": kinds,
            "sd": sd[:, 0],
            "sd_detour": sd[:, 1],
            "contraction": 1.0 - sd[:, 0] ** 2 / ((high - low) ** 2 / 12.0),
            "nats": marginal_gain(unit)[0],
            "correlation": cross / np.maximum(sd[:, 0] * sd[:, 1], 1e-12),
            "error": np.abs(draws[..., 0].mean(axis=1) - truth[:, 0]),
            "rank": rank,
        }
    )


def coverage(rank: np.ndarray, level: float) -> float:
    """Share of the truths in the central interval of a level."""
    return float(np.mean(np.abs(2.0 * rank - 1.0) <= level))


# %%
class Results(NamedTuple):
    """Truth, draws and measures by likelihood, and profile curves of some trips."""

    truth: np.ndarray
    draws: dict[str, np.ndarray]
    table: dict[str, pd.DataFrame]
    shown: np.ndarray
    profiles: dict[str, xr.Dataset]


def run(
    *,
    n_each: int = 24,
    n_draws: int = 300,
    n_values: int = 41,
    likelihoods: tuple[str, ...] = LIKELIHOODS,
    seed: int = 0,
) -> Results:
    """Everything the page shows; the first trip of each type is profiled."""
    region = demo_region()
    roads, counts = typical_routes(region, n_each, seed)
    kinds = np.repeat(list(counts), list(counts.values()))
    model = TripModel.of(region, likelihood="trace")
    trips = simulate(model, roads, len(kinds), seed=seed)
    shown = np.asarray([int(np.argmax(kinds == kind)) for kind in counts], np.int64)
    draws, table, profiles = {}, {}, {}
    for name in likelihoods:
        draws[name] = posteriors(region, trips, name, n_draws, seed)
        table[name] = measures(draws[name], trips.point, kinds)
        profiles[name] = profile_likelihood(
            region,
            roads.take(shown),
            trips.data[shown],
            model=TripModel.of(region, likelihood=name),
            settings=ProfileSettings(n_values=n_values, n_rounds=4, n_inner=10, seed=seed),
            chunk_size=1,
        )
    return Results(trips.point, draws, table, shown, profiles)


def report(results: Results) -> str:
    """Medians by likelihood and route, and coverage."""
    parts = []
    for name, table in results.table.items():
        columns = ["sd", "contraction", "nats", "correlation", "error"]
        medians = table.groupby("route", sort=False)[columns].median().round(4)
        covers = {
            f"{100 * level:g} %": f"{100 * coverage(np.asarray(table['rank']), level):.0f} %"
            for level in LEVELS
        }
        parts.append(f"likelihood {name}, medians:\n{medians.to_string()}\ncoverage {covers}\n")
        profile = results.profiles[name]
        for row, trip in enumerate(results.shown):
            one = profile.isel(trip=row).sel(parameter="aggressiveness")
            parts.append(
                f"  {table['route'][trip]}: truth {results.truth[trip, 0]:.3f}, profile interval "
                f"{one['low'].item():.3f} to {one['high'].item():.3f}, "
                f"{one['n_pieces'].item()} piece(s)"
            )
        parts.append("")
    return "\n".join(parts)


# %% [markdown]
# ## The ridge
#
# The profile of aggressiveness has the detour and the vehicle at their best for each value. Its
# path through the plane is the ridge along which one makes up for the other.


# %%
def draw_ridges(results: Results) -> Any:
    """Draws of the three types of route under every likelihood, with the profile's path."""
    names = list(results.draws)
    with figure_style():
        figure = new_figure(width_in=3.5 * len(names) + 0.6, height_in=8.6)
        axes = figure.subplots(len(results.shown), len(names), squeeze=False)
        for (row, column), panel in np.ndenumerate(axes):
            name, trip = names[column], results.shown[row]
            one = results.profiles[name].isel(trip=row).sel(parameter="aggressiveness")
            near = one["drop"].values > -4.0
            panel.plot(
                *results.draws[name][trip].T, "o", color=SYNTHETIC_COLORS[column], ms=3.5,
                alpha=0.3, mew=0, label="posterior",
            )  # fmt: skip
            panel.plot(
                one["value"].values[near], one["other"].values[near],
                color=REAL_COLOR, lw=1.0, label="best detour for each aggressiveness",
            )  # fmt: skip
            panel.plot(*results.truth[trip], "x", color="black", ms=9, mew=2.0, label="truth")
            panel.ticklabel_format(useOffset=False)
            panel.locator_params(nbins=4)
            if row == 0:
                panel.set_title(f"likelihood {name}", loc="left")
            if row == len(axes) - 1:
                panel.set_xlabel("aggressiveness")
            if column == 0:
                panel.set_ylabel(f"{results.table[name]['route'][trip]}\ndetour")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        figure.suptitle("The ridge between aggressiveness and detour (axes differ)")
    return figure


def draw_spread(results: Results) -> Any:
    """Posterior spread by type of route, and coverage, for every likelihood."""
    with figure_style():
        figure = new_figure(width_in=9.6, height_in=4.0)
        spread, cover = figure.subplots(1, 2)
        n_names = len(results.table)
        kinds = next(iter(results.table.values()))["route"].unique().tolist()
        levels = np.linspace(0.02, 0.98, 49)
        n_trips = len(results.truth)
        low, high = (binom.ppf(share, n_trips, levels) / n_trips for share in (0.005, 0.995))
        cover.fill_between(
            levels, low, high, color=REAL_COLOR, alpha=0.14, lw=0, label="chance, 99 %"
        )
        cover.axline((0.0, 0.0), slope=1.0, color=REAL_COLOR, lw=0.8, ls=":")
        rng = np.random.default_rng(0)
        for number, (name, table) in enumerate(results.table.items()):
            color = SYNTHETIC_COLORS[number]
            for place, kind in enumerate(kinds):
                sd = np.asarray(table.loc[table["route"] == kind, "sd"])
                x = place + 0.25 * (number - 0.5 * (n_names - 1))
                spread.plot(
                    x + rng.uniform(-0.07, 0.07, len(sd)), sd, "o", color=color, ms=3.5, alpha=0.4,
                    mew=0,
                )  # fmt: skip
                spread.plot(
                    [x - 0.1, x + 0.1], 2 * [np.median(sd)], color=color, lw=2.6,
                    label=f"likelihood {name}" if place == 0 else None,
                )  # fmt: skip
            rank = np.asarray(table["rank"])
            cover.plot(levels, [coverage(rank, level) for level in levels], color=color)
        spread.axhline(0.98 / np.sqrt(12.0), color=REAL_COLOR, lw=0.9, ls=":", label="prior")
        spread.set_yscale("log")
        spread.set_xticks(range(len(kinds)), kinds)
        spread.set_ylabel("posterior sd of aggressiveness")
        spread.set_title("What is left to know, by route", loc="left")
        cover.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        cover.set_xlabel("probability of the central interval")
        cover.set_ylabel("share that holds the truth")
        cover.set_title("Do intervals hold the truth?", loc="left")
        cover.legend(loc="lower right")
        figure.legend(*spread.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def draw(results: Results) -> dict[str, Any]:
    """Both figures."""
    return {
        "aggressiveness_ridge": draw_ridges(results),
        "aggressiveness": draw_spread(results),
    }


def main() -> None:
    """Run with the settings of the command line."""
    parser = argparse.ArgumentParser(description="Is aggressiveness identifiable?")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("aggressiveness"), help="folder of figures"
    )
    parser.add_argument("--trips", type=int, default=24, help="of each type of route")
    options = parser.parse_args()
    results = run(n_each=options.trips)
    print(report(results))
    for path in save_figures(draw(results), options.output):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
