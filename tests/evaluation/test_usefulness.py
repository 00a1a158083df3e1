"""Train on synthetic, test on real: explicit regressions, closed forms, laws."""

import math

import numpy as np
import pytest
from scipy import signal

from prisma_sbi.evaluation import TASKS, Task, energy_task, next_step_task, transfer_ratio
from tests.evaluation.conftest import make_traces

NAMES = sorted(TASKS)


def autoregression(n_trips: int, n_samples: int, phi: float, seed: int) -> np.ndarray:
    """Stationary traces with variance 1 around 5, none of which ends."""
    noise = np.random.default_rng(seed).normal(size=(n_trips, n_samples + 200))
    moving = np.asarray(signal.lfilter([np.sqrt(1 - phi**2)], [1.0, -phi], noise, axis=1))
    return 5.0 + moving[:, 200:]


def next_step_cases(power_w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Predictors and targets, sample by sample."""
    predictors, targets = [], []
    for trace in power_w:
        end = max((t + 1 for t, value in enumerate(trace) if value != 0.0), default=0)
        for t in range(10, end):
            predictors.append([1.0, *trace[t - 10 : t]])
            targets.append(trace[t])
    return np.array(predictors), np.array(targets)


def energy_cases(power_w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    predictors, targets = [], []
    n_first = min(60, power_w.shape[1] // 2)
    for trace in power_w:
        end = max((t + 1 for t, value in enumerate(trace) if value != 0.0), default=0)
        if end > n_first:
            seen = trace[:n_first]
            steps = np.mean(np.abs(np.diff(seen)))
            recent = np.mean(seen[-(n_first // 6) :])
            idle = np.mean(seen == 0)
            predictors.append([1.0, seen.mean(), seen.std(), seen.max(), steps, idle, recent])
            targets.append(trace[n_first:].mean())
    return np.array(predictors), np.array(targets)


CASES = {"next_step": next_step_cases, "energy": energy_cases}


@pytest.mark.parametrize("name", NAMES)
def test_fit_and_error_agree_with_an_explicit_regression(name):
    power_w = make_traces(90, seed=0, n_samples=140) / 1e4
    power_w[4] = 0.0
    power_w[5, 30:] = 0.0
    task = TASKS[name](power_w)
    here, there = np.arange(45), np.arange(45, 90)
    predictors, targets = CASES[name](power_w[here])
    assert task.n_cases[here].sum() == len(targets)
    expected, *_ = np.linalg.lstsq(predictors, targets, rcond=None)
    found = task.fit(here)
    predictors, targets = CASES[name](power_w[there])
    error = np.sum((targets - predictors @ expected) ** 2)
    assert task.squared_error(expected, there) == pytest.approx(error, rel=1e-9)
    # The ridge is too small to be seen in predictions.
    np.testing.assert_allclose(predictors @ found, predictors @ expected, rtol=1e-3)


def test_next_step_ratio_of_two_autoregressions_has_its_closed_form():
    phi, other = 0.8, 0.3
    real = next_step_task(autoregression(400, 300, phi, seed=0))
    synthetic = next_step_task(autoregression(400, 300, other, seed=1))
    expected = math.sqrt(1.0 + (phi - other) ** 2 / (1.0 - phi**2))
    assert transfer_ratio(real, synthetic) == pytest.approx(expected, rel=0.01)


def test_energy_ratio_of_a_wrong_level_has_its_closed_form():
    # Levels that say nothing about what follows: the best prediction is the mean, so training
    # on power raised by 3 in the later part adds 3^2 to a variance of 1.
    def traces(seed: int, shift: float) -> np.ndarray:
        generator = np.random.default_rng(seed)
        later = 10.0 + shift + generator.normal(size=(3000, 1)) + np.zeros((1, 20))
        return np.hstack([generator.gamma(2.0, size=(3000, 20)), later])

    real = energy_task(traces(0, 0.0))
    assert transfer_ratio(real, energy_task(traces(1, 3.0))) == pytest.approx(10**0.5, rel=0.02)
    assert transfer_ratio(real, energy_task(traces(2, 0.0))) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_ratio_is_about_one_for_another_draw_and_for_copies(name):
    real, other = (TASKS[name](make_traces(400, seed=seed, n_samples=100)) for seed in (0, 1))
    assert transfer_ratio(real, other) == pytest.approx(1.0, abs=0.05)
    assert transfer_ratio(real, real) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_ratio_does_not_depend_on_order_or_unit(name):
    a, b = make_traces(80, seed=0), make_traces(70, seed=1, phi=0.4)
    plain = transfer_ratio(TASKS[name](a), TASKS[name](b))
    order = np.random.default_rng(2)
    shuffled = [TASKS[name](order.permutation(each)) for each in (a, b)]
    assert transfer_ratio(*shuffled) == pytest.approx(plain, rel=1e-9)
    scaled = [TASKS[name](each, scale_w=20_000.0) for each in (a, b)]
    assert transfer_ratio(*scaled) == pytest.approx(plain, rel=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_ratio_grows_with_what_was_learned_wrongly(name):
    real, good, bad = make_traces(300, seed=0), make_traces(300, seed=1), make_traces(300, seed=2)
    bad = bad[:, ::-1] * np.random.default_rng(3).normal(1.0, 2.0, size=bad.shape)
    ratios = [
        transfer_ratio(TASKS[name](real), TASKS[name](np.where(share[:, None], bad, good)))
        for share in (np.arange(300) < n for n in (0, 100, 300))
    ]
    assert ratios == sorted(ratios)
    assert ratios[2] > 1.1


@pytest.mark.parametrize("name", NAMES)
def test_ratio_without_cases_or_without_error(name):
    real = TASKS[name](make_traces(40, seed=0))
    silent = TASKS[name](np.zeros((40, 60)))
    assert math.isnan(transfer_ratio(real, silent))
    assert math.isnan(transfer_ratio(silent, real))
    constant = TASKS[name](np.full((40, 60), 3.0))
    assert math.isnan(transfer_ratio(constant, constant))
    assert transfer_ratio(constant, real) == math.inf
    assert transfer_ratio(real, constant) > 1.0


def test_short_traces_have_fewer_lags():
    task = next_step_task(np.arange(1.0, 13.0).reshape(4, 3))
    assert isinstance(task, Task)
    assert task.moments.shape == (4, 4, 4)
    assert energy_task(np.arange(1.0, 13.0).reshape(4, 3)).n_cases.sum() == 4


def test_ratio_refuses_a_single_trace():
    task = next_step_task(make_traces(1, seed=0))
    with pytest.raises(ValueError, match="n_real >= 2"):
        transfer_ratio(task, task)
    with pytest.raises(ValueError, match="n_halvings >= 1"):
        transfer_ratio(task, task, n_halvings=0)
