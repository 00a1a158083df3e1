"""A hierarchical model of a fleet, built from the parts of the trip model."""

# %% [markdown]
# # Drivers, not trips
#
# `encode` looks at one trip at a time. A fleet has more structure: a driver keeps a vehicle and a
# temper over many trips, and drivers are drawn from a population. This program says so in NumPyro,
# with the public parts of the trip model: a likelihood, a pool of vehicles and a prior.
#
# - The **aggressiveness** of a driver comes from a Beta law whose mean and concentration are
#   learned.
# - The **vehicle** is shared by the trips of a driver and summed out exactly.
# - The **detour** belongs to a trip and is integrated out.
#
# The fleet is simulated, so the truth is known. Run it as
# `python examples/fleet_model.py [--out FOLDER]`.

# %%
import argparse
import importlib.util
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import xarray as xr
from numpyro.infer import MCMC, NUTS

from prisma_sbi.evaluation.plot_style import SYNTHETIC_COLORS, figure_style, new_figure
from prisma_sbi.models import TripData, TripModel, beta_prior
from prisma_sbi.region import Region, demo_region, route_profiles
from prisma_sbi.simulator import simulate_fleet, simulate_trips
from prisma_sbi.simulator.driver import roads_from_profiles

# %% [markdown]
# ## A fleet with known truth
#
# Endpoints come from `simulate_fleet`. Drivers, their vehicles and their trips' detours are drawn
# here, and the simulator's power gets multiplicative noise of 10 %.


# %%
class Fleet(NamedTuple):
    """Trips of drivers, in the order of the drivers, and the truth behind them."""

    region: Region
    traces: xr.Dataset
    aggressiveness: np.ndarray
    vehicle: np.ndarray
    n_trips: int


LOW, HIGH = 0.02, 1.0
TRUE_MEAN, TRUE_CONCENTRATION = 0.45, 12.0
ENDS = ("start_lat", "start_lon", "end_lat", "end_lon")


def make_fleet(n_drivers: int, n_trips: int, seed: int) -> Fleet:
    """Simulate so many trips of each driver."""
    region = demo_region()
    rng = np.random.default_rng(seed)
    shares = (TRUE_MEAN * TRUE_CONCENTRATION, (1.0 - TRUE_MEAN) * TRUE_CONCENTRATION)
    aggressiveness = LOW + (HIGH - LOW) * rng.beta(*shares, n_drivers)
    vehicle = rng.integers(0, len(region.vehicles), n_drivers)
    traces = simulate_fleet(region, n_drivers * n_trips, seed=seed)
    power_w = simulate_trips(
        region,
        route_profiles(region, *(traces[name].values for name in ENDS)),
        aggressiveness.repeat(n_trips),
        1.0 + 0.5 * rng.beta(1.3, 4.0, n_drivers * n_trips),
        vehicle.repeat(n_trips),
    )
    noise = np.maximum(rng.normal(1.0, 0.1, power_w.shape), 0.0)
    traces["power_w"] = (("trip", "time"), (power_w * noise).astype(np.float32))
    return Fleet(region, traces, aggressiveness, vehicle, n_trips)


# %% [markdown]
# ## From trips to drivers
#
# `TripModel.of` puts the parts together; we take its likelihood, pool and priors, and leave its
# own treatment of the vehicle aside. `log_likelihoods` gives the log likelihood of a trip for
# **every** vehicle from one run of the driver. What belongs to a trip alone, its detour, is
# integrated out on a grid; the vehicle, which all trips of a driver share, is summed out after the
# trips were multiplied:
#
# $$ L_d(a) = \sum_v \pi_v \prod_t \int L_t(a, k, v)\, p(k)\, dk. $$
#
# Summing over vehicles within each trip would let every trip have a vehicle of its own. What is
# left is one curve over aggressiveness per driver, and the simulator is not needed any more.


# %%
def fleet_data(fleet: Fleet, parts: TripModel) -> TripData:
    """Roads and observations of all trips."""
    profiles = route_profiles(fleet.region, *(fleet.traces[name].values for name in ENDS))
    power_w = jnp.asarray(fleet.traces["power_w"].values)
    observed = parts.likelihood.observe(power_w, parts.constants)
    return TripData(roads_from_profiles(profiles), observed)


@eqx.filter_jit
def vehicle_curves(
    parts: TripModel, data: TripData, aggressiveness: jax.Array, detour: jax.Array
) -> jax.Array:
    """Log likelihood ``(trip, aggressiveness, vehicle)`` with the detour integrated out."""
    prior = jax.nn.log_softmax(parts.prior.detour.log_prob(detour))

    def of_trip(trip):
        def at(aggressiveness, detour):
            point = jnp.stack([aggressiveness, detour])
            return parts.likelihood.log_likelihoods(point, parts.pool, trip, parts.constants)

        values = jax.vmap(lambda a: jax.vmap(lambda k: at(a, k))(detour))(aggressiveness)
        return jax.nn.logsumexp(values + prior[:, None], axis=1)

    return jax.lax.map(of_trip, data)


class Curves(NamedTuple):
    """What the fleet model needs of the traces.

    A grid of aggressiveness, and the log likelihoods on it: ``by_trip (trip, point)`` as if every
    trip had its own vehicle, ``by_vehicle (driver, point, vehicle)``, and of drivers ``(driver,
    point)`` with their vehicle summed out.
    """

    aggressiveness: jax.Array
    by_trip: jax.Array
    by_vehicle: jax.Array
    log_likelihood: jax.Array


def driver_curves(fleet: Fleet, parts: TripModel, n_points: int) -> Curves:
    """Log likelihood of every driver over a grid of aggressiveness."""
    low, high = parts.constants.detour_bounds
    grid = jnp.linspace(LOW, HIGH, n_points)
    # Centers of cells: a Beta law may be infinite at the ends.
    detour = low + (high - low) * (jnp.arange(n_points) + 0.5) / n_points
    by_trip = vehicle_curves(parts, fleet_data(fleet, parts), grid, detour)
    by_driver = jnp.sum(by_trip.reshape(-1, fleet.n_trips, *by_trip.shape[1:]), axis=1)
    by_vehicle = parts.log_vehicle_prior + by_driver
    return Curves(
        aggressiveness=grid,
        by_trip=jax.nn.logsumexp(parts.log_vehicle_prior + by_trip, axis=-1),
        by_vehicle=by_vehicle,
        log_likelihood=jax.nn.logsumexp(by_vehicle, axis=-1),
    )


# %% [markdown]
# ## The fleet in NumPyro
#
# A Beta law of the population, one draw of it per driver, and the curves as a factor. Every unknown
# is continuous and the simulator is out of the loop, so NUTS samples it in seconds.


# %%
def fleet_model(curves: Curves) -> None:
    """What NumPyro runs."""
    mean = jnp.asarray(numpyro.sample("mean", dist.Beta(2.0, 2.0)))
    concentration = jnp.asarray(numpyro.sample("concentration", dist.LogNormal(2.0, 0.7)))
    with numpyro.plate("driver", len(curves.log_likelihood)):
        law = dist.Beta(mean * concentration, (1.0 - mean) * concentration)
        share = jnp.asarray(numpyro.sample("share", law))
        value = LOW + (HIGH - LOW) * share
        numpyro.deterministic("aggressiveness", value)
        height = jax.vmap(jnp.interp, in_axes=(0, None, 0))(
            value, curves.aggressiveness, curves.log_likelihood
        )
        numpyro.factor("log_likelihood", height)


def infer(curves: Curves, n_warmup: int, n_draws: int) -> dict[str, np.ndarray]:
    """Draws ``(chain, draw, ...)`` of all sites."""
    sampler = MCMC(
        NUTS(fleet_model, target_accept_prob=0.9),
        num_warmup=n_warmup,
        num_samples=n_draws,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    sampler.run(jax.random.key(0), curves)
    draws = sampler.get_samples(group_by_chain=True)
    return {name: np.asarray(values) for name, values in draws.items()}


def true_vehicle_probability(fleet: Fleet, curves: Curves, draws: np.ndarray) -> np.ndarray:
    """Posterior probability of the true vehicle of each driver."""
    nearest = jnp.argmin(jnp.abs(draws[..., None] - curves.aggressiveness), axis=-1)
    nearest = nearest.reshape(-1, nearest.shape[-1])
    share = jax.nn.softmax(curves.by_vehicle, axis=-1)
    mean = jax.vmap(lambda one, at: jnp.mean(one[at], axis=0), in_axes=(0, 1))(share, nearest)
    return np.asarray(mean)[np.arange(len(fleet.vehicle)), fleet.vehicle]


# %% [markdown]
# ## What pooling is worth
#
# Two rivals know less. Trip by trip: the posterior mean of each trip under the flat prior, averaged
# over the trips of a driver. Driver by driver: the same vehicle for all trips of a driver, but no
# population. The fleet model has both.


# %%
class Results(NamedTuple):
    """Root-mean-square errors of the drivers' aggressiveness, and what stands behind them."""

    trip_error: float
    driver_error: float
    pooled_error: float
    driver_mean: np.ndarray
    pooled_mean: np.ndarray
    pooled_sd: np.ndarray
    draws: dict[str, np.ndarray]
    vehicle_probability: np.ndarray


def run(
    *,
    n_drivers: int = 12,
    n_trips: int = 3,
    n_points: int = 32,
    n_warmup: int = 500,
    n_draws: int = 500,
    seed: int = 0,
) -> tuple[Fleet, Results]:
    """Simulate a fleet, infer it three ways, compare with the truth."""
    fleet = make_fleet(n_drivers, n_trips, seed)
    parts = TripModel.of(
        fleet.region, likelihood="texture", prior=beta_prior(fleet.region.constants)
    )
    curves = driver_curves(fleet, parts, n_points)
    grid = np.asarray(curves.aggressiveness)
    trip_mean = np.asarray(jax.nn.softmax(curves.by_trip, axis=-1)) @ grid
    driver_mean = np.asarray(jax.nn.softmax(curves.log_likelihood, axis=-1)) @ grid
    draws = infer(curves, n_warmup, n_draws)
    pooled = draws["aggressiveness"]

    def error(estimate: np.ndarray) -> float:
        return float(np.sqrt(np.mean((estimate - fleet.aggressiveness) ** 2)))

    pooled_mean = pooled.mean(axis=(0, 1))
    return fleet, Results(
        trip_error=error(trip_mean.reshape(n_drivers, n_trips).mean(axis=1)),
        driver_error=error(driver_mean),
        pooled_error=error(pooled_mean),
        driver_mean=driver_mean,
        pooled_mean=pooled_mean,
        pooled_sd=pooled.std(axis=(0, 1)),
        draws=draws,
        vehicle_probability=true_vehicle_probability(fleet, curves, pooled),
    )


# %%
def report(results: Results) -> str:
    """The outcome in words."""
    mean, concentration = results.draws["mean"], results.draws["concentration"]
    return (
        f"error of aggressiveness, trip by trip:     {results.trip_error:.3f}\n"
        f"error of aggressiveness, driver by driver: {results.driver_error:.3f}\n"
        f"error of aggressiveness, fleet model:      {results.pooled_error:.3f}\n"
        f"population mean {mean.mean():.2f} +- {mean.std():.2f} (true {TRUE_MEAN:.2f}), "
        f"concentration {concentration.mean():.0f} +- {concentration.std():.0f} "
        f"(true {TRUE_CONCENTRATION:.0f})"
    )


def draw(fleet: Fleet, results: Results):
    """Drivers by truth: estimates without and with the population."""
    with figure_style():
        figure = new_figure(width_in=6.4, height_in=4.2)
        axis = figure.subplots()
        truth, (blue, orange) = fleet.aggressiveness, SYNTHETIC_COLORS[:2]
        axis.axline((0.0, 0.0), slope=1.0, color="#808080", lw=1.0, label="truth")
        axis.plot(truth, results.driver_mean, "o", color=orange, label="driver by driver")
        axis.errorbar(
            truth,
            results.pooled_mean,
            yerr=2.0 * results.pooled_sd,
            fmt="s",
            color=blue,
            capsize=3,
            label="fleet model, 2 sd",
        )
        center = LOW + (HIGH - LOW) * results.draws["mean"].mean()
        axis.axhline(center, color=blue, ls=":", label="population mean")
        limits = {"xlim": (0.0, 1.0), "ylim": (0.0, 1.0)}
        axis.set(xlabel="true aggressiveness", ylabel="estimate", **limits)
        axis.legend()
    return figure


# %%
def main() -> None:
    """Run with the settings of the command line."""
    parser = argparse.ArgumentParser(description="A hierarchical model of a fleet.")
    parser.add_argument("--out", type=Path, help="folder for the figure")
    parser.add_argument("--drivers", type=int, default=12)
    parser.add_argument("--trips", type=int, default=3, help="trips of a driver")
    options = parser.parse_args()
    fleet, results = run(n_drivers=options.drivers, n_trips=options.trips)
    print(report(results))
    if options.out is not None and importlib.util.find_spec("matplotlib"):
        options.out.mkdir(parents=True, exist_ok=True)
        draw(fleet, results).savefig(options.out / "fleet_model.png", dpi=110)


if __name__ == "__main__":
    main()
