"""How much does a hill tell? One road, flat and with hills of rising grade."""

# %% [markdown]
# # How much does a hill tell?
#
# On a flat road the mass of a car shows only while it accelerates, always multiplied by an
# acceleration that the driver chose. A slope adds a force that is known from the map: m g sin. So
# a hill should part the car from the driver. How much, in what, and for which likelihood?
#
# The same road is driven with hills of rising steepness, everything else equal. Run it as
# `python examples/gallery/hill.py [-o FOLDER]`; results are discussed in docs/gallery/hill.md.

# %%
import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    SYNTHETIC_COLORS,
    figure_style,
    new_figure,
    save_figures,
)
from prisma_sbi.models import TraceLikelihood, TripModel
from prisma_sbi.region import Region, RoadProfiles, demo_region
from prisma_sbi.study import GridSampler, draw_routes, local_information, simulate

# %% [markdown]
# ## A road and its hills
#
# A route of the embedded demo city of about four kilometers, with its speed limits and stops. Its
# own heights are replaced by one hill: up over the first half, down over the second, the grade
# following a sine, so that the steepest stretch has the grade that names the case.

# %%
LENGTH_M = 4_000.0
GRADES = (0.0, 0.01, 0.02, 0.04, 0.06, 0.08)
LIKELIHOODS = ("trace", "summary")
MASS_TICKS = [0.03, 0.05, 0.1, 0.2, 0.3]


def hilly_roads(region: Region, grades: tuple[float, ...]) -> RoadProfiles:
    """The road, once for every steepest grade."""
    drawn = draw_routes(region, 40, seed=0, shortest_m=2_000.0)
    road = drawn.take(np.full(len(grades), int(np.argmin(np.abs(drawn.length_m - LENGTH_M)))))
    along = np.linspace(0.0, 1.0, road.grade.shape[1])
    shape = np.sin(2.0 * np.pi * along)
    return replace(road, grade=(np.asarray(grades)[:, None] * shape).astype(np.float32))


# %% [markdown]
# ## What derivatives say
#
# Fisher information about aggressiveness, detour and five properties of the car (mass, three
# coefficients of drag, idle power), all unknown, with the prior added. It is averaged over drivers
# and cars, since at one driver the simulator has kinks.


# %%
def expected_spread(
    region: Region, roads: RoadProfiles, likelihood: str, n_drivers: int, seed: int
) -> pd.DataFrame:
    """Expected posterior spread at every grade, and how much mass leans on aggressiveness."""
    rng = np.random.default_rng(seed)
    driver = np.column_stack([rng.uniform(0.2, 0.9, n_drivers), rng.uniform(1.0, 1.6, n_drivers)])
    vehicle = rng.integers(0, len(region.vehicles), n_drivers)
    n = len(roads)
    found = local_information(
        region,
        roads.take(np.repeat(np.arange(n), n_drivers)),
        np.tile(driver, (n, 1)),
        np.tile(vehicle, n),
        model=TripModel.of(region, likelihood=likelihood),
        with_vehicle=True,
    )
    scale = found["scale"].values
    scaled = found["information"].values * scale * scale[:, None] + np.eye(len(scale))
    covariance = np.linalg.inv(scaled).reshape(n, n_drivers, len(scale), len(scale))
    sd = scale * np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    names = found["parameter"].values.tolist()
    mass = names.index("mass")
    lean = covariance[..., 0, mass] / np.sqrt(covariance[..., 0, 0] * covariance[..., mass, mass])
    of_vehicle = -0.5 * np.linalg.slogdet(covariance[..., 2:, 2:])[1]
    return pd.DataFrame(
        {f"sd_{name}": np.exp(np.log(sd[..., i]).mean(axis=1)) for i, name in enumerate(names)}
        | {
            "correlation": np.abs(lean).mean(axis=1),
            "vehicle_nats": of_vehicle.mean(axis=1),
        }
    )


# %% [markdown]
# ## What posteriors say
#
# Traces with noise, of the same drivers and cars on every hill, and posteriors with all cars of the
# pool as candidates. Nothing is linear here: the pool is a list of real cars, and the likelihood
# has its kinks.


# %%
def posterior_facts(
    region: Region, roads: RoadProfiles, n_trips: int, seed: int
) -> tuple[pd.DataFrame, list[tuple[np.ndarray, np.ndarray]]]:
    """Medians over trips at every grade, and draws of aggressiveness and mass of one trip."""
    mass_kg = region.vehicles.mass_kg
    model = TripModel.of(region, likelihood=TraceLikelihood())
    rows, clouds = [], []
    for number in range(len(roads)):
        # The same seed: the same drivers, cars and noise on every hill.
        trips = simulate(model, roads.take(np.asarray([number])), n_trips, seed=seed)
        draws = GridSampler(n_draws=300, seed=seed, chunk_size=4)(region, trips, None)
        mass = mass_kg[draws.vehicle]
        true_mass = mass_kg[trips.vehicle]
        rows.append(
            {
                "sd_aggressiveness": np.median(draws.point[..., 0].std(axis=1)),
                "sd_detour": np.median(draws.point[..., 1].std(axis=1)),
                "sd_mass": np.median(mass.std(axis=1) / true_mass),
                "mass_error": np.median(np.abs(mass.mean(axis=1) / true_mass - 1.0)),
                "true_vehicle": draws.vehicle_probability[np.arange(n_trips), trips.vehicle].mean(),
            }
        )
        clouds.append((draws.point[..., 0] - trips.point[:, None, 0], mass / true_mass[:, None]))
    return pd.DataFrame(rows), clouds


# %%
class Results(NamedTuple):
    """Tables with a row a grade, and draws of one trip at every grade."""

    grades: tuple[float, ...]
    roads: RoadProfiles
    fisher: dict[str, pd.DataFrame]
    posterior: pd.DataFrame
    clouds: list[tuple[np.ndarray, np.ndarray]]


def run(
    *, grades: tuple[float, ...] = GRADES, n_drivers: int = 24, n_trips: int = 24, seed: int = 0
) -> Results:
    """Everything the page shows."""
    region = demo_region()
    roads = hilly_roads(region, grades)
    fisher = {name: expected_spread(region, roads, name, n_drivers, seed) for name in LIKELIHOODS}
    posterior, clouds = posterior_facts(region, roads, n_trips, seed)
    return Results(grades, roads, fisher, posterior, clouds)


def report(results: Results) -> str:
    """The tables in words."""
    labels = [f"{100 * grade:g} %" for grade in results.grades]
    parts = [f"road of {results.roads.length_m[0] / 1e3:.2f} km; rows are steepest grades"]
    names = ["sd_aggressiveness", "sd_detour", "sd_mass", "correlation", "vehicle_nats"]
    for likelihood, table in results.fisher.items():
        shown = table[names].set_axis(labels).round(4)
        parts.append(f"\nFisher information, likelihood {likelihood}:\n{shown.to_string()}")
    shown = results.posterior.set_axis(labels).round(4)
    parts.append(f"\nposteriors, likelihood trace, medians over trips:\n{shown.to_string()}")
    return "\n".join(parts)


# %%
def draw(results: Results) -> dict[str, Any]:
    """Spread against grade, by derivatives and by posteriors; one trip, flat and steep."""
    blue, orange, green = SYNTHETIC_COLORS[:3]
    percent = 100.0 * np.asarray(results.grades)
    with figure_style():
        figure = new_figure(width_in=11.0, height_in=3.9)
        mass, driver, vehicles = figure.subplots(1, 3)
        for panel, name, title in (
            (mass, "sd_mass", "Mass: relative spread"),
            (driver, "sd_aggressiveness", "Aggressiveness: spread"),
        ):
            looks = (
                ("trace", blue, "o", "Fisher, trace"),
                ("summary", orange, "s", "Fisher, summary"),
            )
            for likelihood, color, marker, label in looks:
                panel.plot(
                    percent, results.fisher[likelihood][name],
                    color=color, marker=marker, ms=5, label=label,
                )  # fmt: skip
            panel.plot(
                percent, results.posterior[name],
                color=green, marker="D", ms=5, ls="--", label="posterior, trace",
            )  # fmt: skip
            panel.set_yscale("log")
            panel.set_title(title, loc="left")
            panel.set_ylabel("standard deviation, prior added")
            panel.set_yticks([0.003, 0.01, 0.03, 0.1, 0.3] if panel is driver else MASS_TICKS)
            panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            panel.minorticks_off()
        for likelihood, color, marker in (("trace", blue, "o"), ("summary", orange, "s")):
            nats = results.fisher[likelihood]["vehicle_nats"]
            vehicles.plot(percent, nats, color=color, marker=marker, ms=5)
        vehicles.set_ylim(bottom=0.0)
        vehicles.set_title("Vehicle: all five properties", loc="left")
        vehicles.set_ylabel("expected information (nats)")
        for panel in (mass, driver, vehicles):
            panel.set_xlabel("steepest grade of the hill (%)")
            panel.set_xticks(percent)
        figure.legend(*mass.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        figure.suptitle("What a hill on the same road is worth")
    return {"hill": figure, "hill_posterior": _draw_clouds(results)}


def _draw_clouds(results: Results, n_trips: int = 3) -> Any:
    """Posterior draws of the first trips, without a hill and with the steepest one."""
    with figure_style():
        n = min(n_trips, len(results.clouds[0][0]))
        figure = new_figure(width_in=3.6 * n + 0.4, height_in=3.7)
        panels = figure.subplots(1, n, squeeze=False, sharey=True)[0]
        for trip, panel in enumerate(panels):
            for number, index in enumerate((0, -1)):
                off, mass = results.clouds[index]
                label = "flat" if index == 0 else f"hill of {100 * results.grades[-1]:g} %"
                panel.plot(
                    1e3 * off[trip], mass[trip], "os"[number], color=SYNTHETIC_COLORS[number],
                    ms=4, alpha=0.35, mew=0, label=label,
                )  # fmt: skip
            panel.plot(0.0, 1.0, "x", color=REAL_COLOR, ms=8, mew=1.8, label="truth")
            panel.set_title(f"trip {trip + 1}", loc="left")
            panel.set_xlabel("aggressiveness minus truth (1e-3)")
        panels[0].set_ylabel("mass over true mass")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        figure.suptitle("Posterior draws of the same drivers and cars")
    return figure


def main() -> None:
    """Run with the settings of the command line."""
    parser = argparse.ArgumentParser(description="How much does a hill tell?")
    parser.add_argument("-o", "--output", type=Path, default=Path("hill"), help="folder of figures")
    parser.add_argument("--trips", type=int, default=24, help="posteriors at every grade")
    options = parser.parse_args()
    results = run(n_trips=options.trips)
    print(report(results))
    for path in save_figures(draw(results), options.output):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
