"""What fits told about each descriptor, read from their trees."""

import numpy as np
import pytest
import xarray as xr

from prisma_sbi.encoding import FitStatus
from prisma_sbi.study import fit_information, information_gain
from tests.study.examples import city, model

N_VEHICLES = 64
NAMES = ("aggressiveness", "detour")


def tree(n_draws: int = 200) -> tuple[xr.DataTree, np.ndarray]:
    """A fit of three trips, the second of which failed, and its draws ``(trip, draw, 2)``."""
    rng = np.random.default_rng(0)
    center = np.asarray([[0.3, 1.2], [np.nan, np.nan], [0.7, 1.9]])
    sd = np.asarray([[0.02, 0.05], [1.0, 1.0], [0.01, 0.02]])
    point = center[:, None] + sd[:, None] * rng.normal(size=(3, 4 * n_draws, 2))
    chains = {
        name: (("trip", "chain", "draw"), point[..., axis].reshape(3, 4, n_draws))
        for axis, name in enumerate(NAMES)
    }
    posterior = xr.Dataset(chains, coords={"trip": ["a", "b", "c"]}).transpose(
        "chain", "draw", "trip"
    )
    probability = np.zeros((3, N_VEHICLES))
    probability[0] = 1.0 / N_VEHICLES
    probability[1:, 4] = 1.0
    status = [FitStatus.OK, FitStatus.BAD_TRACE, FitStatus.POOR_FIT]
    stats = xr.Dataset(
        {
            "status": ("trip", np.asarray(status)),
            "vehicle_probability": (("trip", "pool_vehicle"), probability),
        }
    )
    fit = xr.DataTree.from_dict({"posterior": posterior, "sample_stats": stats})
    fit.attrs = {"region_fingerprint": city().fingerprint, "method": "quadrature"}
    return fit, point


def test_a_fit_tells_what_its_draws_tell_and_failed_trips_are_left_out():
    fit, point = tree()
    found = fit_information(city(), fit, model=model(), n_draws=800)
    assert list(found["trip"].values) == ["a", "c"]
    flat = fit["sample_stats"].dataset["vehicle_probability"].values
    expected = information_gain(model(), point[[0, 2]], flat[[0, 2]])
    for name in ("mean", "sd", "contraction", "gain", "n_vehicles"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-9)
    # By hand: nothing about the vehicle of the first trip, all about that of the second.
    np.testing.assert_allclose(
        found["gain"].sel(descriptor="vehicle"), [0.0, np.log(N_VEHICLES)], atol=1e-5
    )
    entropy = 0.5 * np.log(2.0 * np.pi * np.e * np.asarray([0.02, 0.01]) ** 2)
    gain = found["gain"].sel(descriptor="aggressiveness")
    np.testing.assert_allclose(gain, np.log(0.98) - entropy, atol=0.15)


def test_fits_without_draws_or_of_another_region_are_refused():
    fit, _ = tree(n_draws=1)
    with pytest.raises(ValueError, match="Encode with method quadrature"):
        fit_information(city(), fit, model=model())
    fit.attrs["region_fingerprint"] = "other"
    with pytest.raises(ValueError, match="region"):
        fit_information(city(), fit, model=model())
