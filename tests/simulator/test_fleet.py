"""The simulated fleet."""

import numpy as np
import pytest

from prisma_sbi.region import demo_region
from prisma_sbi.simulator.fleet import simulate_fleet


@pytest.fixture(scope="module")
def region():
    return demo_region()


def test_fleet_is_repeatable_and_inside_its_domain(region):
    first, second = (simulate_fleet(region, 40, seed=3) for _ in range(2))
    assert first.identical(second)
    assert not first.identical(simulate_fleet(region, 40, seed=4))
    assert float(first.aggressiveness.min()) >= 0.1
    assert float(first.detour.min()) >= 1.0
    assert np.all(first.power_w.values >= 0)
    assert np.all(first.power_w.values.sum(axis=1) > 0)


def test_noise_has_mean_one(region):
    clean, noisy = (simulate_fleet(region, 60, noise_scale=s) for s in (0.0, 0.2))
    ratio = float(noisy.power_w.sum() / clean.power_w.sum())
    assert ratio == pytest.approx(1.0, abs=0.02)
    assert not np.allclose(clean.power_w, noisy.power_w)
