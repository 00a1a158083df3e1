"""What the Gumbel-softmax hides: a relaxed vehicle against summing the vehicle out."""

# %% [markdown]
# # What the Gumbel-softmax hides
#
# Which of 64 vehicles was it? The published encoder makes the question differentiable: noise is
# added to the log odds, a softmax at some temperature turns them into weights, and the simulator
# drives the *mixture* of vehicles with these weights. Gradients then reach the choice. At the end
# the heaviest vehicle is taken.
#
# With the vehicle summed out exactly, which costs one run of the driver for all vehicles, one can
# look at what the relaxation does: to the optimum, to the choice, to aggressiveness and detour, and
# to the doubt about the vehicle. Run it as `python examples/gallery/gumbel.py [-o FOLDER]`; results
# are discussed in docs/gallery/gumbel.md.

# %%
import argparse
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from prisma_sbi.diagnostics import (
    brier_score,
    effective_number,
    log_scores,
    probability_test,
    reliability_table,
)
from prisma_sbi.encoding.fitting import parameter_box
from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    SYNTHETIC_COLORS,
    figure_style,
    new_figure,
    save_figures,
)
from prisma_sbi.inference import GridSettings, SearchSettings, integrate, map_trips, search
from prisma_sbi.inference.svi import SviSettings, svi_map
from prisma_sbi.models import GumbelVehicle, TripData, TripModel, TripPosterior
from prisma_sbi.models.vehicle_choice import relaxed_one_hot
from prisma_sbi.region import Region, demo_region
from prisma_sbi.region.representatives import representative_vehicles
from prisma_sbi.study import Simulations, draw_routes, simulate

TEMPERATURES = (1.0, 0.5, 0.2, 0.1)
_TINY = 1e-6
"""Probability that is lent to a vehicle which was excluded, so that scores stay finite."""

# %% [markdown]
# ## Trips whose posterior is known
#
# Truths are drawn from the prior, data from the law that belongs to the published loss: summaries
# with the errors it assumes. Under that law the exact posterior is calibrated, so whatever a
# reliability curve shows belongs to the relaxation and not to a wrong noise.


# %%
def simulated(region: Region, n_trips: int, seed: int) -> Simulations:
    """Summaries of trips on as many random routes."""
    model = TripModel.of(region, likelihood="summary")
    return simulate(model, draw_routes(region, n_trips, seed=seed), n_trips, seed=seed)


def trip_data(model: TripModel, trips: Simulations, rows: np.ndarray) -> TripData:
    """Roads and observations of some trips."""
    road, data = trips.trips(rows)
    return TripData(road, model.likelihood.observe(data, model.constants))


# %% [markdown]
# ## The exact answer
#
# A global search gives the best vehicle and its loss; an adaptive grid gives the posterior with
# all vehicles summed out.


# %%
class Posterior(NamedTuple):
    """Best loss, means, standard deviations and vehicle probabilities of trips."""

    loss: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    probability: np.ndarray


@eqx.filter_jit
def solve_exactly(model: TripModel, data: TripData, few: jax.Array) -> dict[str, jax.Array]:
    """Search and quadrature over vehicles or mixtures; pools of one size share one program."""
    box = parameter_box(model.constants)
    n_choices = model.pool.idle_power_w.shape[0]

    def one(trip):
        posterior = TripPosterior(model, trip)
        best = search(posterior, box.lower, box.upper, few, n_choices, SearchSettings()).point
        grid = integrate(posterior, box, best, GridSettings())
        mean, covariance = grid.moments()
        heights = model.likelihood.log_likelihoods(best, model.pool, trip, model.constants)
        return {
            "loss": -jnp.max(heights),
            "mean": mean,
            "sd": jnp.sqrt(jnp.diag(covariance)),
            "probability": grid.choice_probability,
        }

    return jax.lax.map(one, data)


def exact_posterior(region: Region, model: TripModel, trips: Simulations) -> Posterior:
    """Of all trips, over the members of the model's pool."""
    few = jnp.asarray(representative_vehicles(region.vehicles, 32))
    found = map_trips(
        lambda rows: solve_exactly(model, trip_data(model, trips, rows), few),
        len(trips),
        chunk_size=8,
    )
    return Posterior(**found)


# %% [markdown]
# ## The relaxed optimum
#
# The published descent: Adam on aggressiveness, detour and the noise of all vehicles at once, while
# the temperature falls from 1 to the one that names the case. The weights at its end are kept.


# %%
class Optimum(NamedTuple):
    """Where the descent ends, and losses there: of the mixture, of its heaviest vehicle alone."""

    point: np.ndarray
    weight: np.ndarray
    loss: np.ndarray
    resolved_loss: np.ndarray


@eqx.filter_jit
def descend(
    model: TripModel, data: TripData, temperature: jax.Array, n_steps: int
) -> dict[str, jax.Array]:
    """The descent on some trips, and losses where it ends."""
    relaxed = eqx.tree_at(lambda m: m.choice, model, GumbelVehicle())
    # The schedule of the package, from 1 to 0.1, in other units: powers of it end elsewhere.
    power = -jnp.log10(temperature)

    def annealed(trip, scheduled):
        return relaxed(trip, scheduled**power)

    values, _ = svi_map(jax.random.key(0), annealed, data, SviSettings(n_steps=n_steps))
    point = jnp.stack([values["aggressiveness"], values["detour"]], axis=-1)

    def one(trip, point, gumbel):
        weight = relaxed_one_hot(model.log_vehicle_prior + gumbel, temperature)
        law = model.likelihood.log_likelihoods
        mixed = law(point, model.pool.mix(weight[None]), trip, model.constants)[0]
        single = law(point, model.pool[jnp.argmax(weight)[None]], trip, model.constants)[0]
        return {"point": point, "weight": weight, "loss": -mixed, "resolved_loss": -single}

    return jax.vmap(one)(data, point, values["vehicle_gumbel"])


def relaxed_optimum(
    model: TripModel, trips: Simulations, temperature: float, n_steps: int
) -> Optimum:
    """The descent on all trips."""
    last = jnp.asarray(temperature)
    found = map_trips(
        lambda rows: descend(model, trip_data(model, trips, rows), last, n_steps),
        len(trips),
        chunk_size=16,
    )
    return Optimum(**found)


# %% [markdown]
# ## The relaxed posterior
#
# What a perfect sampler would find under the relaxed model: its noise is integrated out by summing
# over many mixtures drawn as the relaxation draws them. A mixture counts for its heaviest vehicle.
# At temperature 0 the mixtures are single vehicles: that row shows the error of the draws.


# %%
def relaxed_posterior(
    region: Region, model: TripModel, trips: Simulations, temperature: float, n_mixtures: int
) -> Posterior:
    """Quadrature over mixtures."""
    logits = model.log_vehicle_prior
    noisy = logits + jax.random.gumbel(jax.random.key(1), (n_mixtures, logits.shape[0]))
    owner = jnp.argmax(noisy, axis=-1)
    single = jax.nn.one_hot(owner, logits.shape[0])
    weights = (
        jax.vmap(lambda each: relaxed_one_hot(each, temperature))(noisy) if temperature else single
    )
    mixed = eqx.tree_at(lambda m: m.pool, model, model.pool.mix(weights))
    found = exact_posterior(region, mixed, trips)
    return found._replace(probability=found.probability @ np.asarray(single))


# %%
class Results(NamedTuple):
    """Truths, the exact posterior, and both relaxations by temperature."""

    mass_kg: np.ndarray
    vehicle: np.ndarray
    exact: Posterior
    optimum: dict[float, Optimum]
    relaxed: dict[float, Posterior]


def run(
    *,
    n_trips: int = 160,
    n_steps: int = 300,
    n_relaxed: int = 24,
    n_mixtures: int = 512,
    temperatures: tuple[float, ...] = TEMPERATURES,
    seed: int = 0,
) -> Results:
    """Everything the page shows; the relaxed posterior for the first trips only."""
    region = demo_region()
    trips = simulated(region, n_trips, seed)
    model = trips.model
    few = eqx.tree_at(
        lambda s: (s.road, s.point, s.vehicle, s.data),
        trips,
        tuple(each[:n_relaxed] for each in (trips.road, trips.point, trips.vehicle, trips.data)),
    )
    return Results(
        mass_kg=region.vehicles.mass_kg,
        vehicle=trips.vehicle,
        exact=exact_posterior(region, model, trips),
        optimum={t: relaxed_optimum(model, trips, t, n_steps) for t in temperatures},
        relaxed={
            t: relaxed_posterior(region, model, few, t, n_mixtures) for t in (*temperatures, 0.0)
        },
    )


def optimum_table(results: Results) -> pd.DataFrame:
    """Medians over trips, a row a temperature."""
    exact, rows = results.exact, {}
    every = np.arange(len(exact.loss))
    for temperature, found in results.optimum.items():
        shift = np.abs(found.point - exact.mean) / exact.sd
        heaviest = found.weight.argmax(axis=1)
        rows[f"{temperature:g}"] = {
            "vehicles mixed": np.median(effective_number(found.weight)),
            "loss of best": np.median(exact.loss),
            "mixture above it": np.median(found.loss - exact.loss),
            "heaviest above it": np.median(found.resolved_loss - exact.loss),
            "shift a (sd)": np.median(shift[:, 0]),
            "shift k (sd)": np.median(shift[:, 1]),
            "exact p of heaviest": np.median(exact.probability[every, heaviest]),
            "exact p of likeliest": np.median(exact.probability.max(axis=1)),
            "true": np.mean(heaviest == results.vehicle),
            "likeliest true": np.mean(exact.probability.argmax(axis=1) == results.vehicle),
        }
    return pd.DataFrame(rows).T


def weights_as_probability(weight: np.ndarray) -> np.ndarray:
    """Weights with a little lent to every vehicle, summing to one."""
    lent = weight.astype(np.float64) + _TINY
    return lent / lent.sum(axis=1, keepdims=True)


def score_table(results: Results) -> pd.DataFrame:
    """How good vehicle probabilities are: exact ones, and weights of the optimum taken for such."""
    said = {"exact": results.exact.probability.astype(np.float64)}
    said |= {
        f"weights at {t:g}": weights_as_probability(o.weight) for t, o in results.optimum.items()
    }
    rows = {}
    for name, probability in said.items():
        test = probability_test(probability, results.vehicle)
        rows[name] = {
            "Brier": brier_score(probability, results.vehicle).score,
            "log score": np.mean(log_scores(weights_as_probability(probability), results.vehicle)),
            "claimed": np.mean(probability.max(axis=1)),
            "observed": np.mean(probability.argmax(axis=1) == results.vehicle),
            "z of boldness": test.brier_z,
        }
    return pd.DataFrame(rows).T


def posterior_table(results: Results) -> pd.DataFrame:
    """Bias of the relaxed posterior itself, medians over its trips."""
    rows = {}
    for temperature, found in results.relaxed.items():
        n = len(found.loss)
        mean, sd, probability = (
            each[:n] for each in (results.exact.mean, results.exact.sd, results.exact.probability)
        )
        shift = np.median(np.abs(found.mean - mean) / sd, axis=0)
        ratio = np.median(found.sd / sd, axis=0)
        rows[f"{temperature:g}" if temperature else "0: error of the draws"] = {
            "shift a (sd)": shift[0],
            "shift k (sd)": shift[1],
            "sd ratio a": ratio[0],
            "sd ratio k": ratio[1],
            "distance of vehicle laws": np.median(
                0.5 * np.abs(found.probability - probability).sum(axis=1)
            ),
        }
    return pd.DataFrame(rows).T


def report(results: Results) -> str:
    """All tables."""
    return "\n\n".join(
        f"{title}:\n{table.round(3).to_string()}"
        for title, table in (
            (f"The relaxed optimum, {len(results.vehicle)} trips", optimum_table(results)),
            ("Vehicle probabilities", score_table(results)),
            (
                f"The relaxed posterior, {len(results.relaxed[0.0].loss)} trips",
                posterior_table(results),
            ),
        )
    )


# %%
def draw(results: Results) -> dict[str, Any]:
    """Losses, reliability and shifts by temperature; single trips."""
    with figure_style():
        figure = new_figure(width_in=11.6, height_in=4.0)
        losses, reliability, shifts = figure.subplots(1, 3)
        _draw_losses(losses, results)
        _draw_reliability(reliability, results)
        _draw_shifts(shifts, results)
        figure.suptitle("What the Gumbel-softmax hides")
    return {"gumbel": figure, "gumbel_trips": _draw_trips(results)}


def _draw_losses(panel: Any, results: Results) -> None:
    """Losses of the mixture and of its heaviest vehicle, above that of the best vehicle."""
    found = results.optimum
    cases = {
        "mixture": [one.loss for one in found.values()],
        "its heaviest vehicle": [one.resolved_loss for one in found.values()],
    }
    place = np.arange(len(found))
    for number, (name, values) in enumerate(cases.items()):
        above = [np.quantile(each - results.exact.loss, (0.25, 0.5, 0.75)) for each in values]
        low, middle, high = np.asarray(above).T
        x, color = place + 0.2 * (number - 0.5), SYNTHETIC_COLORS[number]
        panel.vlines(x, low, high, color=color, lw=2.0, alpha=0.5)
        panel.plot(x, middle, "os"[number], color=color, ms=6, label=name)
    panel.axhline(0.0, color=REAL_COLOR, lw=0.9, ls=":", label="best vehicle of the pool")
    panel.set_ylim(top=1.4 * panel.get_ylim()[1])
    panel.set_xticks(place, [f"{t:g}" for t in found])
    panel.set_xlabel("last temperature")
    panel.set_ylabel("loss above the best vehicle's (quartiles)")
    panel.set_title("The optimum lies between vehicles", loc="left")
    panel.legend(loc="upper right")


def _draw_reliability(panel: Any, results: Results) -> None:
    """How often vehicles were the true one, by the probability they were given."""
    said = {"exact posterior": results.exact.probability.astype(np.float64)}
    said |= {
        f"weights at {t:g}": weights_as_probability(o.weight) for t, o in results.optimum.items()
    }
    edges = np.asarray([0.0, 0.01, 0.03, 0.1, 0.2, 1.0])
    for number, (name, probability) in enumerate(said.items()):
        table = reliability_table(probability, results.vehicle, edges=edges)
        table = table[table["n"] >= 10]
        color = REAL_COLOR if number == 0 else SYNTHETIC_COLORS[number - 1]
        panel.plot(
            table["claimed"], table["observed"], "DosvX^"[number] + "-", color=color, ms=5,
            lw=2.2 if number == 0 else 1.2, label=name,
        )  # fmt: skip
    panel.axline((0.0, 0.0), slope=1.0, color=REAL_COLOR, lw=0.8, ls=":")
    panel.set(xlim=(-0.02, 0.72), ylim=(-0.02, 0.72))
    panel.set_xlabel("probability given to a vehicle")
    panel.set_ylabel("share that was the true one")
    panel.set_title("Weights are no probabilities", loc="left")
    panel.legend(loc="upper left")


def _draw_shifts(panel: Any, results: Results) -> None:
    """How far aggressiveness and detour end from their posterior means."""
    exact = results.exact
    for place, found in enumerate(results.optimum.values()):
        shift = np.abs(found.point - exact.mean) / exact.sd
        for axis in (0, 1):
            x, color = place + 0.2 * (axis - 0.5), SYNTHETIC_COLORS[axis]
            low, middle, high = np.quantile(shift[:, axis], (0.25, 0.5, 0.75))
            panel.vlines(x, low, high, color=color, lw=2.0, alpha=0.5)
            name = ("aggressiveness", "detour")[axis]
            panel.plot(x, middle, "os"[axis], color=color, ms=6, label=name if place == 0 else None)
    panel.axhline(0.67, color=REAL_COLOR, lw=0.9, ls=":", label="a draw from the posterior")
    panel.set_xticks(range(len(results.optimum)), [f"{t:g}" for t in results.optimum])
    panel.set_ylim(0.0, 1.4 * panel.get_ylim()[1])
    panel.set_xlabel("last temperature")
    panel.set_ylabel("distance from the mean, in posterior sd")
    panel.set_title("Where the driver ends", loc="left")
    panel.legend(loc="upper right")


def _draw_trips(results: Results, n_trips: int = 3) -> Any:
    """Vehicles of some trips by mass: exact probabilities and the weights of the mixture."""
    temperature = min(results.optimum, key=lambda t: abs(t - 0.5))
    found, mass = results.optimum[temperature], results.mass_kg
    with figure_style():
        figure = new_figure(width_in=11.0, height_in=3.5)
        panels = figure.subplots(1, n_trips, sharex=True)
        for trip, panel in enumerate(panels):
            blue, orange = SYNTHETIC_COLORS[:2]
            exact = results.exact.probability[trip]
            panel.vlines(mass, 0.0, exact, color=blue, lw=2.0, label="exact probability")
            panel.vlines(mass, 0.0, -found.weight[trip], color=orange, lw=2.0, label="weight")
            panel.axhline(0.0, color=REAL_COLOR, lw=0.8)
            panel.plot(
                mass[results.vehicle[trip]], 0.0, "v", color="black", ms=8, label="true vehicle"
            )
            mixed = found.weight[trip] @ mass
            panel.axvline(mixed, color=orange, ls=":", label="mass of the mixture")
            panel.set_title(f"trip {trip + 1}", loc="left")
            panel.set_xlabel("test mass of the vehicle (kg)")
            panel.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
            if trip == 0:
                panel.set_ylabel("weight (down), probability (up)")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        figure.suptitle(f"Vehicles of three trips, relaxed to temperature {temperature:g}")
    return figure


def main() -> None:
    """Run with the settings of the command line."""
    parser = argparse.ArgumentParser(description="What the Gumbel-softmax hides.")
    parser.add_argument("-o", "--output", type=Path, default=Path("gumbel"), help="figures' folder")
    parser.add_argument("--trips", type=int, default=160, help="trips that are simulated")
    options = parser.parse_args()
    results = run(n_trips=options.trips)
    print(report(results))
    for path in save_figures(draw(results), options.output):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
