"""The NumPyro model of a trip: densities by hand, its parts, and programs made of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.handlers import scope, seed, trace
from numpyro.infer import Predictive
from numpyro.infer.util import log_density
from scipy import stats
from scipy.special import logsumexp

from prisma_sbi.inference import Objective, Target
from prisma_sbi.models import (
    FixedVehicle,
    GumbelVehicle,
    MarginalVehicle,
    SummaryObjective,
    TraceLikelihood,
    TripData,
    TripModel,
    TripPosterior,
    TripPrior,
    VehicleChoice,
    beta_prior,
    uniform_prior,
)
from prisma_sbi.region import demo_region
from prisma_sbi.simulator import Vehicle
from tests.models.examples import CONSTANTS, N_VEHICLES, make_model, make_trip, simulated
from tests.simulator.examples import make_road

AT = {"aggressiveness": 0.5, "detour": 1.3}
PROBABILITIES = np.asarray([0.1, 0.2, 0.3, 0.4])


def the_point():
    """The same in the precision that is on."""
    return jnp.asarray([0.5, 1.3])


def own_prior(*, vehicle=True):
    """A user's own: a truncated normal, a scaled Beta, and known frequencies of vehicles."""
    return TripPrior(
        aggressiveness=dist.TruncatedNormal(0.45, 0.2, low=0.02, high=1.0),
        detour=dist.TransformedDistribution(
            dist.Beta(2.0, 3.0), dist.transforms.AffineTransform(1.0, 1.5)
        ),
        vehicle=jnp.asarray(PROBABILITIES) if vehicle else None,
    )


def own_log_prior(aggressiveness, detour):
    """The same by SciPy."""
    low, high = (0.02 - 0.45) / 0.2, (1.0 - 0.45) / 0.2
    return stats.truncnorm.logpdf(aggressiveness, low, high, 0.45, 0.2) + stats.beta.logpdf(
        detour, 2.0, 3.0, 1.0, 1.5
    )


@eqx.filter_jit
def density(model, trip, values, temperature=None):
    """Log joint density, and the sites of the program."""
    total, sites = log_density(model, (trip, temperature), {}, values)
    return total, {
        name: site["value"] for name, site in sites.items() if site["type"] == "deterministic"
    }


@eqx.filter_jit
def values_of(model, trip, pool=None):
    """Log likelihoods at the point for a pool, by the likelihood alone."""
    pool = model.pool if pool is None else pool
    return model.likelihood.log_likelihoods(the_point(), pool, trip, model.constants)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("likelihood", ["summary", "texture", "trace"])
def test_marginal_density_by_hand(likelihood):
    model = make_model(likelihood=likelihood, prior=own_prior())
    trip = make_trip(model)
    total, sites = density(model, trip, AT)
    weight = np.log(PROBABILITIES) + np.asarray(values_of(model, trip))
    expected = own_log_prior(0.5, 1.3) + logsumexp(weight)
    assert float(total) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(sites["vehicle_log_weight"], weight, rtol=1e-6)


@pytest.mark.usefixtures("x64")
def test_flat_prior_of_density_and_vehicle_by_hand():
    model = make_model()
    trip = make_trip(model)
    total, _ = density(model, trip, AT)
    flat = -np.log(1.0 - 0.02) - np.log(2.5 - 1.0) - np.log(N_VEHICLES)
    assert float(total) == pytest.approx(flat + logsumexp(values_of(model, trip)), rel=1e-6)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("vehicle", [0, 2])
def test_fixed_density_by_hand_and_the_marginal_of_all_is_their_sum(vehicle):
    prior = own_prior()
    model = make_model(choice=FixedVehicle(vehicle), prior=prior)
    trip = make_trip(model)
    total, sites = density(model, trip, AT)
    value = float(values_of(model, trip)[vehicle])
    joint = own_log_prior(0.5, 1.3) + np.log(PROBABILITIES[vehicle]) + value
    assert float(total) == pytest.approx(joint, rel=1e-6)
    assert int(sites["vehicle"]) == vehicle


@pytest.mark.usefixtures("x64")
def test_densities_of_fixed_vehicles_sum_to_the_marginal():
    prior = own_prior()
    marginal = make_model(prior=prior)
    trip = make_trip(marginal)
    fixed = [
        float(density(make_model(choice=FixedVehicle(jnp.asarray(v)), prior=prior), trip, AT)[0])
        for v in range(N_VEHICLES)
    ]
    assert logsumexp(fixed) == pytest.approx(float(density(marginal, trip, AT)[0]), rel=1e-6)


@pytest.mark.usefixtures("x64")
def test_exact_of_a_fixed_vehicle_is_a_pool_of_one():
    model = make_model(choice=FixedVehicle(2))
    trip = make_trip(model)
    alone, candidates = model.exact()
    np.testing.assert_array_equal(candidates, [2])
    assert isinstance(alone.choice, MarginalVehicle)
    assert alone.pool.idle_power_w.shape == (1,)
    # Without a rival the vehicle has prior probability one.
    found, expected = float(density(alone, trip, AT)[0]), float(density(model, trip, AT)[0])
    assert found == pytest.approx(expected + np.log(N_VEHICLES), rel=1e-6)
    assert TripPosterior(alone, trip).log_weights(the_point()).shape == (1,)


def test_exact_of_marginal_is_itself_and_of_a_mixture_refused():
    model = make_model()
    same, candidates = model.exact()
    assert same is model
    np.testing.assert_array_equal(candidates, np.arange(N_VEHICLES))
    with pytest.raises(ValueError, match="a method that enumerates vehicles; got GumbelVehicle"):
        make_model(choice="gumbel").exact()
    for vehicle in (-1, N_VEHICLES):
        with pytest.raises(ValueError, match=f"Expected a vehicle in 0..3; got {vehicle}"):
            make_model(choice=FixedVehicle(vehicle)).exact()


GUMBEL = np.asarray([0.3, -0.4, 1.2, 0.1])


def mixed(model, temperature):
    """Weights and the one vehicle that is their mixture, by NumPy."""
    logits = (np.log(PROBABILITIES) + GUMBEL) / temperature
    weights = np.exp(logits - logsumexp(logits))
    pool = model.pool
    return Vehicle(
        jnp.asarray(weights @ np.asarray(pool.coefficients))[None],
        jnp.asarray(weights @ np.asarray(pool.idle_power_w))[None],
    )


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("argument", [None, 2.0])
def test_gumbel_density_by_hand_and_temperature_argument(argument):
    model = make_model(choice=GumbelVehicle(0.7), prior=own_prior())
    trip = make_trip(model)
    values = {**AT, "vehicle_gumbel": jnp.asarray(GUMBEL)}
    total, sites = density(model, trip, values, argument)
    mixture = mixed(model, 0.7 if argument is None else argument)
    expected = (
        own_log_prior(0.5, 1.3)
        + stats.gumbel_r.logpdf(GUMBEL).sum()
        + float(values_of(model, trip, mixture)[0])
    )
    assert float(total) == pytest.approx(expected, rel=1e-6)
    assert int(sites["vehicle"]) == np.argmax(np.log(PROBABILITIES) + GUMBEL)


def test_temperature_argument_is_nothing_to_an_exact_choice():
    model = make_model()
    trip = make_trip(model)
    assert float(density(model, trip, AT, 0.1)[0]) == float(density(model, trip, AT)[0])


@pytest.mark.usefixtures("x64")
def test_straight_through_has_the_value_of_the_hard_vehicle_and_the_slope_of_the_mixture():
    hard = int(np.argmax(np.log(PROBABILITIES) + GUMBEL))
    model = make_model(choice=GumbelVehicle(0.7, straight_through=True), prior=own_prior())
    trip = make_trip(model)

    @jax.jit
    def both(gumbel):
        def total(gumbel):
            return log_density(model, (trip,), {}, {**AT, "vehicle_gumbel": gumbel})[0]

        return total(gumbel), jax.jacfwd(total)(gumbel)

    value, slope = both(jnp.asarray(GUMBEL))
    base = own_log_prior(0.5, 1.3) + stats.gumbel_r.logpdf(GUMBEL).sum()
    assert float(value) == pytest.approx(base + float(values_of(model, trip)[hard]), rel=1e-6)

    # The slope: that of the likelihood at the hard vehicle, through the soft weights.
    def through(gumbel):
        weights = jax.nn.softmax((jnp.log(jnp.asarray(PROBABILITIES)) + gumbel) / 0.7)
        moved = jax.nn.one_hot(hard, N_VEHICLES, dtype=weights.dtype) + weights - frozen
        return values_of(model, trip, model.pool.mix(moved[None]))[0] + jnp.sum(
            -gumbel - jnp.exp(-gumbel)
        )

    frozen = jax.nn.softmax((jnp.log(jnp.asarray(PROBABILITIES)) + GUMBEL) / 0.7)
    np.testing.assert_allclose(slope, jax.jacfwd(through)(jnp.asarray(GUMBEL)), rtol=1e-6)
    assert np.linalg.norm(slope + 1.0 - np.exp(-GUMBEL)) > 1e-3


@pytest.mark.parametrize(
    ("prior", "shapes"),
    [
        (beta_prior(CONSTANTS), ((2.0, 2.0), (1.2, 5.0))),
        (
            beta_prior(CONSTANTS, aggressiveness=(3.0, 1.5), detour=(2.0, 2.0)),
            ((3.0, 1.5), (2.0, 2.0)),
        ),
    ],
    ids=["default", "own shapes"],
)
def test_beta_prior_is_a_beta_law_over_the_domain(prior, shapes):
    bounds = ((0.02, 1.0), (1.0, 2.5))
    laws = (prior.aggressiveness, prior.detour)
    for law, shape, (low, high) in zip(laws, shapes, bounds, strict=True):
        draws = np.asarray(law.sample(jax.random.key(0), (2_000,)))
        assert low <= draws.min()
        assert draws.max() <= high
        assert stats.kstest(draws, stats.beta(*shape, low, high - low).cdf).pvalue > 1e-3
        middle = np.linspace(low, high, 4_001)[1:-1]
        found = np.exp(law.log_prob(jnp.asarray(middle)))
        np.testing.assert_allclose(
            found, stats.beta.pdf(middle, *shape, low, high - low), rtol=2e-3
        )
        assert np.trapezoid(found, middle) == pytest.approx(1.0, abs=5e-3)


@pytest.mark.slow
def test_prior_predictive_draws_traces_of_the_law():
    model = make_model(likelihood="trace", prior=own_prior())
    trip = TripData(make_road(0))
    draw = Predictive(model, num_samples=600)(jax.random.key(0), trip)
    assert set(draw) == {"aggressiveness", "detour", "vehicle", "power_w"}
    assert draw["power_w"].shape == (600, CONSTANTS.n_times)
    frequency = np.bincount(draw["vehicle"], minlength=N_VEHICLES) / 600
    np.testing.assert_allclose(frequency, PROBABILITIES, atol=0.08)
    law = stats.beta(2.0, 3.0, 1.0, 1.5)
    assert stats.kstest(np.asarray(draw["detour"]), law.cdf).pvalue > 1e-3
    # Standardized by the simulator's own trace of each draw, what is left is Student noise.
    kind, z = TraceLikelihood(), []
    for i in range(12):
        point = (draw["aggressiveness"][i], draw["detour"][i])
        clean = simulated(point, model.pool, trip.road)[int(draw["vehicle"][i])]
        z.append((np.asarray(draw["power_w"][i]) - clean) / (1_000.0 + 0.3 * np.abs(clean)))
    z = np.asarray(z)
    innovation = (z[:, 1:] - 0.6 * z[:, :-1]) / np.sqrt(1.0 - 0.6**2)
    assert kind.memory == 0.6
    assert stats.kstest(innovation.ravel(), stats.t(5).cdf).pvalue > 1e-3


@pytest.mark.parametrize("likelihood", ["summary", "texture"])
def test_a_law_of_summaries_draws_no_traces(likelihood):
    program = seed(make_model(likelihood=likelihood), jax.random.key(0))
    with pytest.raises(ValueError, match="Expected likelihood='trace' to draw a trace without"):
        program(TripData(make_road(0)))


def learned_noise():
    return TraceLikelihood(share=dist.HalfNormal(0.5), memory=dist.Uniform(0.0, 0.9))  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_noise_with_priors_is_sampled():
    model = make_model(likelihood=learned_noise(), prior=own_prior())
    trip = make_trip(model)
    sites = trace(seed(model, jax.random.key(0))).get_trace(trip)
    latent = {name for name, s in sites.items() if s["type"] == "sample" and not s["is_observed"]}
    assert latent == {"aggressiveness", "detour", "noise_share", "noise_memory"}
    values = {**AT, "noise_share": 0.2, "noise_memory": 0.4}
    total, _ = density(model, trip, values)
    known = make_model(likelihood=TraceLikelihood(share=0.2, memory=0.4), prior=own_prior())
    expected = (
        float(density(known, trip, AT)[0])
        + stats.halfnorm.logpdf(0.2, scale=0.5)
        + stats.uniform.logpdf(0.4, 0.0, 0.9)
    )
    assert float(total) == pytest.approx(expected, rel=1e-6)
    drawn = Predictive(model, num_samples=3)(jax.random.key(1), TripData(make_road(0)))
    assert drawn["noise_share"].shape == (3,)


def test_a_prior_left_in_the_noise_is_refused_where_nothing_samples_it():
    model = make_model(likelihood=learned_noise())
    with pytest.raises(ValueError, match="Expected a number for share where nothing samples it"):
        TripPosterior(model, make_trip(model)).log_weights(the_point())


def test_two_trips_in_one_program_need_a_scope():
    model = make_model()
    trips = [make_trip(model, row) for row in range(2)]

    def clash():
        for trip in trips:
            model(trip)

    def fleet():
        for row, trip in enumerate(trips):
            with scope(prefix=f"trip{row}"):
                model(trip)

    with pytest.raises(AssertionError, match="[Uu]nique names"):
        trace(seed(clash, jax.random.key(0))).get_trace()
    sites = trace(seed(fleet, jax.random.key(0))).get_trace()
    assert {"trip0/aggressiveness", "trip1/aggressiveness", "trip1/log_likelihood"} <= set(sites)
    values = {f"trip{row}/{name}": value for row in range(2) for name, value in AT.items()}
    total, _ = log_density(fleet, (), {}, values)
    expected = sum(float(density(model, trip, AT)[0]) for trip in trips)
    assert float(total) == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_hierarchy_of_public_pieces_has_the_density_of_its_parts():
    model = make_model()
    trips = [make_trip(model, row) for row in range(3)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *trips)

    def fleet(trips):
        mean = numpyro.sample("mean", dist.Uniform(0.1, 0.9))
        with numpyro.plate("trip", 3):
            law = dist.TruncatedNormal(mean, 0.1, low=0.02, high=1.0)
            aggressiveness = jnp.asarray(numpyro.sample("aggressiveness", law))
            detour = jnp.asarray(numpyro.sample("detour", dist.Uniform(1.0, 2.5)))
        points = jnp.stack([aggressiveness, detour], axis=-1)
        weights = jax.vmap(model.log_weights)(points, trips)
        numpyro.factor("log_likelihood", jnp.sum(jax.nn.logsumexp(weights, axis=-1)))

    at = {"aggressiveness": jnp.asarray([0.3, 0.5, 0.6]), "detour": jnp.asarray([1.1, 1.3, 1.6])}
    total = jax.jit(lambda: log_density(fleet, (stacked,), {}, {"mean": 0.4, **at})[0])()
    expected = -np.log(0.8)
    for row, trip in enumerate(trips):
        a, d = float(at["aggressiveness"][row]), float(at["detour"][row])
        low, high = (0.02 - 0.4) / 0.1, (1.0 - 0.4) / 0.1
        expected += stats.truncnorm.logpdf(a, low, high, 0.4, 0.1) - np.log(1.5)
        expected += logsumexp(model.log_weights(jnp.asarray([a, d]), trip))
    assert float(total) == pytest.approx(expected, rel=1e-8)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("likelihood", ["summary", "trace"])
def test_posterior_of_a_trip_is_the_density_split_by_vehicle(likelihood):
    model = make_model(likelihood=likelihood, prior=own_prior())
    trip = make_trip(model)
    posterior = TripPosterior(model, trip)
    assert isinstance(posterior, Target)
    assert isinstance(posterior, Objective)
    weights = posterior.log_weights(the_point())
    assert logsumexp(weights) == pytest.approx(float(density(model, trip, AT)[0]), rel=1e-6)
    some = jnp.asarray([3, 0, 0])
    np.testing.assert_allclose(posterior.losses(the_point(), some), -weights[some], rtol=1e-9)
    assert float(posterior.promise(the_point(), some[:1])) <= float(-weights[3]) + 1e-9
    if likelihood == "trace":
        assert float(posterior.promise(the_point(), some)) == pytest.approx(
            -float(max(weights[some]))
        )


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_mode_under_flat_priors_is_the_published_minimum():
    model = make_model()
    trip = make_trip(model)
    objective = SummaryObjective(trip.road, trip.observed, model.pool, CONSTANTS)
    posterior, everyone = TripPosterior(model, trip), jnp.arange(N_VEHICLES)
    grid = jnp.stack(
        [m.ravel() for m in jnp.meshgrid(jnp.linspace(0.1, 0.9, 6), jnp.linspace(1.0, 2.4, 6))], -1
    )
    losses = jax.jit(jax.vmap(lambda at: objective.losses(at, everyone)))(grid)
    weights = jax.jit(jax.vmap(posterior.log_weights))(grid)
    constant = np.asarray(losses + weights)
    np.testing.assert_allclose(constant, constant[0, 0], rtol=1e-6)
    assert np.argmax(weights) == np.argmin(losses)


@pytest.mark.slow
def test_posteriors_of_many_trips_are_mapped_along_the_trip_axis():
    model = make_model(likelihood="trace")
    trips = [make_trip(model, row) for row in range(3)]
    many = TripPosterior(model, jax.tree.map(lambda *leaves: jnp.stack(leaves), *trips))
    mapped = jax.vmap(lambda one: one.log_weights(the_point()), in_axes=(many.trip_axes(),))(many)
    for row, trip in enumerate(trips):
        alone = TripPosterior(model, trip).log_weights(the_point())
        np.testing.assert_allclose(mapped[row], alone, rtol=1e-4)


@pytest.mark.parametrize("kind", [MarginalVehicle(), GumbelVehicle(), FixedVehicle()])
def test_choices_keep_the_protocol(kind):
    assert isinstance(kind, VehicleChoice)


def test_model_of_a_region_by_names_and_its_refusals():
    region = demo_region()
    model = TripModel.of(region, choice="gumbel", likelihood="trace")
    assert isinstance(model.choice, GumbelVehicle)
    assert isinstance(model.likelihood, TraceLikelihood)
    n = len(region.vehicles)
    np.testing.assert_allclose(np.exp(model.log_vehicle_prior), np.full(n, 1.0 / n), rtol=1e-4)
    with pytest.raises(ValueError, match="choice to be one of marginal, gumbel, fixed; got 'ma'"):
        TripModel.of(region, choice="ma")
    with pytest.raises(ValueError, match="likelihood to be one of summary, texture, trace; got"):
        TripModel.of(region, likelihood="gauss")
    flat = uniform_prior(region.constants)
    few = TripPrior(flat.aggressiveness, flat.detour, jnp.ones(3))
    with pytest.raises(ValueError, match=f"Expected {n} prior probabilities"):
        TripModel.of(region, prior=few)
    weighted = TripPrior(flat.aggressiveness, flat.detour, jnp.arange(1.0, n + 1.0))
    found = np.exp(TripModel.of(region, prior=weighted).log_vehicle_prior)
    np.testing.assert_allclose(found, np.arange(1, n + 1) / (n * (n + 1) / 2), rtol=1e-4)
