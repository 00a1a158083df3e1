"""The examples, and the code of a page, run and show what they say."""

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prisma_sbi.encoding import save_fit

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"


def load(name):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fleet_model():
    return load("fleet_model")


@pytest.fixture(scope="module")
def fleet_results(fleet_model):
    return fleet_model.run(n_drivers=8, n_trips=3, n_points=20, n_warmup=200, n_draws=200, seed=1)


@pytest.mark.slow
def test_pooling_is_not_worse_than_independent_fits(fleet_results):
    _, results = fleet_results
    assert results.driver_error < results.trip_error
    assert results.pooled_error <= results.driver_error
    assert results.pooled_error < 0.08


@pytest.mark.slow
def test_population_is_recovered(fleet_model, fleet_results):
    _, results = fleet_results
    mean = results.draws["mean"]
    assert abs(mean.mean() - fleet_model.TRUE_MEAN) < 3.0 * mean.std()
    low, high = np.quantile(results.draws["concentration"], [0.01, 0.99])
    assert low < fleet_model.TRUE_CONCENTRATION < high


@pytest.mark.slow
def test_intervals_of_drivers_hold_the_truth(fleet_results):
    fleet, results = fleet_results
    z = (results.pooled_mean - fleet.aggressiveness) / results.pooled_sd
    assert np.max(np.abs(z)) < 4.0
    # An equal guess among 64 vehicles would be right with probability 0.016.
    assert results.vehicle_probability.mean() > 0.1


@pytest.mark.slow
def test_estimates_shrink_to_the_population(fleet_model, fleet_results):
    _, results = fleet_results
    center = fleet_model.LOW + (fleet_model.HIGH - fleet_model.LOW) * results.draws["mean"].mean()
    assert np.std(results.pooled_mean - center) < np.std(results.driver_mean - center)


@pytest.mark.slow
def test_figure_is_drawn(fleet_model, fleet_results, tmp_path):
    pytest.importorskip("matplotlib")
    figure = fleet_model.draw(*fleet_results)
    figure.savefig(tmp_path / "fleet.png")
    assert (tmp_path / "fleet.png").stat().st_size > 5_000
    assert "fleet model" in fleet_model.report(fleet_results[1])


@pytest.mark.slow
def test_code_of_the_page_on_inference_runs(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "inference.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks[:2]:
        exec(block, names)
    means = [names[fit]["posterior"]["aggressiveness"].mean() for fit in ("fit", "own")]
    assert np.all(np.isfinite(means))
    # Energy alone says little about aggressiveness: the prior's mean is all there is.
    assert abs(float(means[1]) - 0.42) < 0.06
    monkeypatch.chdir(tmp_path)
    save_fit(names["fit"], "fit.zarr")
    exec(blocks[2], names)
    assert names["fit"].attrs["kind"] == "fit"
