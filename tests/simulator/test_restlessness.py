"""Restless power: the same on average, as wandering as it says, and a draw that repeats."""

import numpy as np
import pytest

from prisma_sbi.region.constants import Constants
from prisma_sbi.simulator import restless_power
from prisma_sbi.simulator.restlessness import multiplied_by_noise

RESTLESS = Constants(restlessness=0.5, restlessness_memory_s=4.0)


def test_published_traces_come_back_as_they_are_and_nothing_is_drawn():
    power_w = np.arange(12.0, dtype=np.float32).reshape(2, 6)
    rng = np.random.default_rng(0)
    assert restless_power(power_w, Constants(), rng) is power_w
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state


def test_mean_is_kept_and_silence_stays_silent():
    power_w = np.full((4_000, 100), 20_000.0, np.float32)
    power_w[:, 60:] = 0.0
    found = restless_power(power_w, RESTLESS, np.random.default_rng(1))
    assert found.dtype == np.float32
    assert np.all(found[:, 60:] == 0.0)
    assert np.all(found[:, :60] > 0.0)
    # Four standard errors of a mean over trips.
    error = found[:, :60].mean(axis=1).std() / np.sqrt(len(found))
    assert abs(found[:, :60].mean() - 20_000.0) < 4 * error
    assert error < 100.0


def test_amplitude_differs_between_trips_and_is_mostly_small():
    power_w = np.full((3_000, 400), 1.0, np.float32)
    log = np.log(restless_power(power_w, RESTLESS, np.random.default_rng(2)))
    scale = log.std(axis=1)
    # The law of r u^2 has quartiles r / 16 and 9 r / 16; a finite trace blurs them a little.
    low, high = np.quantile(scale, [0.25, 0.75]) / RESTLESS.restlessness
    assert low == pytest.approx(1 / 16, rel=0.15)
    assert high == pytest.approx(9 / 16, rel=0.1)


@pytest.mark.parametrize("step_s", [1.0, 0.5])
def test_memory_is_that_of_the_constants(step_s):
    constants = Constants(restlessness=0.5, restlessness_memory_s=4.0, time_step_s=step_s)
    power_w = np.full((500, 2_000), 1.0, np.float32)
    log = np.log(restless_power(power_w, constants, np.random.default_rng(3)))
    z = log - log.mean(axis=1, keepdims=True)
    lag = np.median(np.sum(z[:, 1:] * z[:, :-1], axis=1) / np.sum(z**2, axis=1))
    assert lag == pytest.approx(np.exp(-step_s / 4.0), abs=0.01)


def test_process_is_stationary_from_the_first_sample():
    power_w = np.full((20_000, 5), 1.0, np.float32)
    log = np.log(multiplied_by_noise(power_w, 0.3, 0.9, np.random.default_rng(4)))
    np.testing.assert_allclose(log.std(axis=0), 0.3, rtol=0.03)
    np.testing.assert_allclose(log.mean(axis=0), -0.045, atol=0.01)
