"""Vehicles that traces can tell apart: closed forms, error rates that come true, classes."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from prisma_sbi.models import TraceLikelihood, TripModel
from prisma_sbi.simulator import roads_from_profiles, simulate_power
from prisma_sbi.study import (
    expected_confusion,
    reduced_pool,
    vehicle_classes,
    vehicle_distances,
)
from tests.study.examples import city, model, routes

POINT = np.asarray([[0.35, 1.2], [0.6, 1.6], [0.8, 1.1]])
WHITE = TraceLikelihood(floor_w=20_000.0, share=0.0, memory=0.0, degrees_of_freedom=1e9)


def powers(row):
    """Power of all vehicles on one trip."""
    road = jax.tree.map(lambda leaf: leaf[row], roads_from_profiles(routes()))
    pool = model().pool
    at = jnp.asarray(POINT[row], jnp.float32)

    def one(vehicle):
        return simulate_power(at[0], at[1], vehicle, road, city().constants)

    return np.asarray(jax.jit(jax.vmap(one))(pool), float)


@pytest.fixture(scope="module")
def wide():
    return vehicle_distances(city(), routes(), POINT, model=model())


def test_distance_under_white_noise_is_that_of_the_traces():
    found = vehicle_distances(city(), routes(), POINT, model=model(WHITE))
    for row in range(3):
        power = powers(row)
        expected = np.linalg.norm(power[:, None] - power, axis=-1) / 20_000.0
        np.testing.assert_allclose(
            found["distance_known"].values[row], expected, rtol=2e-3, atol=1e-3
        )


def test_an_unknown_driver_is_taken_out_by_least_squares():
    """White noise: what remains of a difference after the best small move of the driver."""
    found = vehicle_distances(city(), routes(), POINT, model=model(WHITE))
    road = jax.tree.map(lambda leaf: leaf[1], roads_from_profiles(routes()))
    pool, at = model().pool, jnp.asarray(POINT[1], jnp.float32)

    @jax.jit
    def slope(vehicle):
        return jax.jacfwd(lambda p: simulate_power(p[0], p[1], vehicle, road, city().constants))(at)

    power = powers(1)
    for i, j in ((0, 1), (10, 60), (33, 34)):
        squares = []
        for mine in (i, j):
            jacobian = np.asarray(slope(pool[mine]), float)
            step = power[j] - power[i]
            move = np.linalg.lstsq(jacobian, step)[0]
            squares.append(np.sum((step - jacobian @ move) ** 2))
        expected = np.sqrt(np.mean(squares)) / 20_000.0
        assert found["distance"].values[1, i, j] == pytest.approx(expected, rel=5e-3)


def test_distances_are_symmetric_and_an_unknown_driver_hides_differences(wide):
    for name in ("distance", "distance_known"):
        value = wide[name].values
        np.testing.assert_allclose(value, np.swapaxes(value, 1, 2), atol=1e-5)
        assert np.all(np.diagonal(value, axis1=1, axis2=2) < 1e-3)
    assert np.all(wide["distance"] <= wide["distance_known"] * (1.0 + 1e-5) + 1e-4)
    assert np.all(wide["distance"].values[:, 0, 1:] < wide["distance_known"].values[:, 0, 1:])


@pytest.mark.parametrize(
    "law",
    [WHITE, pytest.param(TraceLikelihood(floor_w=30_000.0, share=0.3), marks=pytest.mark.slow)],
)
def test_a_choice_between_two_goes_wrong_as_often_as_the_distance_says(law):
    """Pools of two: one minus the mean probability of the truth, against its closed form."""
    rows = np.asarray([0])
    distance = vehicle_distances(city(), routes().take(rows), POINT[:1], model=model(law))
    matrix = distance["distance_known"].values[0]
    partner = int(np.argmin(np.abs(matrix[5] - 1.5)))
    chosen = jnp.asarray([5, partner])
    pair = model(law)
    pair = TripModel(pair.pool[chosen], pair.prior, pair.choice, pair.likelihood, pair.constants)
    found = expected_confusion(
        city(), routes().take(rows), POINT[:1], model=pair, n_draws=1_000, chunk_size=1
    )
    assert found.dims == ("trip", "vehicle", "other")
    # Mean probability of the wrong one: a logistic function of a normal log ratio.
    d = matrix[5, partner]
    z = np.random.default_rng(0).normal(size=400_000)
    expected = np.mean(1.0 / (1.0 + np.exp(0.5 * d**2 + d * z)))
    np.testing.assert_allclose(found.values[0, [0, 1], [1, 0]], expected, atol=0.03)
    assert expected > 0.5 * norm.cdf(-0.5 * d)


@pytest.mark.slow
def test_rows_of_the_confusion_sum_to_one_and_less_noise_confuses_less():
    rows = np.asarray([0])
    loud, quiet = (
        expected_confusion(
            city(),
            routes().take(rows),
            POINT[:1],
            model=model(TraceLikelihood(floor_w=floor_w, share=0.1)),
            n_draws=8,
            chunk_size=1,
        ).values[0]
        for floor_w in (30_000.0, 1_000.0)
    )
    np.testing.assert_allclose(loud.sum(axis=1), 1.0, rtol=1e-4)
    assert np.trace(loud) < 0.5 * np.trace(quiet)


def test_classes_grow_with_the_threshold_and_shrink_the_pool(wide):
    fine, coarse = (vehicle_classes(wide, threshold=t) for t in (0.5, 20.0))
    assert fine.sizes["class_"] > coarse.sizes["class_"]
    assert int(coarse["size"].sum()) == len(city().vehicles)
    assert np.all(coarse["diameter"] <= 20.0)
    pool = reduced_pool(city(), coarse)
    assert len(pool) == coarse.sizes["class_"]
    rows = np.sort(coarse["representative"].values)
    np.testing.assert_array_equal(pool.mass_kg, city().vehicles.mass_kg[rows])
    smaller = replace(city(), vehicles=pool)
    assert smaller.fingerprint != city().fingerprint
    # With the driver known more is told apart.
    known = vehicle_classes(wide, threshold=20.0, known_driver=True)
    assert known.sizes["class_"] >= coarse.sizes["class_"]


def test_one_trip_that_tells_apart_is_enough(wide):
    alone = vehicle_classes(wide.isel(trip=[0]), threshold=5.0)
    together = vehicle_classes(wide, threshold=5.0)
    assert together.sizes["class_"] >= alone.sizes["class_"]


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="likelihood='trace'"):
        vehicle_distances(city(), routes(), POINT, model=model("summary"))
    with pytest.raises(ValueError, match="one a road"):
        expected_confusion(city(), routes(), POINT[:2])
