"""Small populations with realistic shape: noisy traces that end, zeros afterwards."""

import numpy as np
import pytest
import xarray as xr


def make_traces(n_trips: int, *, seed: int, n_samples: int = 60, phi: float = 0.8) -> np.ndarray:
    """Positive AR(1) power in W that ends at a random time."""
    generator = np.random.default_rng(seed)
    noise = generator.normal(size=(n_trips, n_samples))
    level = np.empty_like(noise)
    level[:, 0] = noise[:, 0]
    for t in range(1, n_samples):
        level[:, t] = phi * level[:, t - 1] + np.sqrt(1 - phi**2) * noise[:, t]
    end = generator.integers(n_samples // 2, n_samples + 1, size=(n_trips, 1))
    return np.where(np.arange(n_samples) < end, 15_000.0 * np.exp(0.5 * level), 0.0)


def make_dataset(power_w: np.ndarray, *, seed: int = 0, fingerprint: str = "") -> xr.Dataset:
    """A traces dataset with places in a box of 0.05 x 0.1 degrees."""
    generator = np.random.default_rng(seed)
    n_trips, n_samples = power_w.shape
    places = {
        name: ("trip", origin + size * generator.random(n_trips))
        for name, origin, size in (
            ("start_lat", 42.25, 0.05),
            ("start_lon", -83.8, 0.1),
            ("end_lat", 42.25, 0.05),
            ("end_lon", -83.8, 0.1),
        )
    }
    return xr.Dataset(
        {"power_w": (("trip", "time"), power_w.astype(np.float32)), **places},
        coords={
            "trip": [f"171101/{number}/7" for number in range(n_trips)],
            "time": np.arange(n_samples, dtype=np.float64),
        },
        attrs={"kind": "traces", "format_version": 1, "region_fingerprint": fingerprint},
    )


@pytest.fixture(scope="session")
def real_w() -> np.ndarray:
    return make_traces(200, seed=1)


@pytest.fixture(scope="session")
def other_w() -> np.ndarray:
    """Another draw from the same process."""
    return make_traces(200, seed=2)
