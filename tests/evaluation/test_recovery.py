"""Recovery: hand-computed errors, matching by trip, bad input."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from prisma_sbi._errors import InputDataError
from prisma_sbi.evaluation import recovery

MASS_KG = np.array([1000.0, 1500.0, 2000.0])


def descriptors(aggressiveness, detour, vehicle, trips=None) -> xr.Dataset:
    trips = trips or [f"t{number}" for number in range(len(vehicle))]
    return xr.Dataset(
        {
            "aggressiveness": ("trip", np.asarray(aggressiveness, dtype=float)),
            "detour": ("trip", np.asarray(detour, dtype=float)),
            "vehicle": ("trip", np.asarray(vehicle, dtype=np.int32)),
        },
        coords={"trip": trips},
    )


TRUTH = descriptors([0.2, 0.4, 0.6, 0.8], [1.0, 1.5, 2.0, 2.5], [0, 1, 2, 0])


def test_recovery_of_the_truth_itself():
    found = recovery(TRUTH, TRUTH, vehicle_mass_kg=MASS_KG)
    for part in (found.aggressiveness, found.detour):
        assert (part.bias, part.rmse, part.median_abs_error) == (0.0, 0.0, 0.0)
        assert part.correlation == pytest.approx(1.0)
    assert found.vehicle.top1_agreement == 1.0
    assert found.vehicle.mass_median_abs_error == 0.0
    assert (found.n_trips, found.n_missing) == (4, 0)


def test_recovery_hand_example():
    fitted = descriptors([0.3, 0.4, 0.6, 0.4], [1.1, 1.6, 2.1, 2.6], [0, 2, 2, 1])
    found = recovery(TRUTH, fitted, vehicle_mass_kg=MASS_KG)
    assert found.aggressiveness.bias == pytest.approx(-0.075)
    assert found.aggressiveness.rmse == pytest.approx(np.sqrt((0.01 + 0.16) / 4))
    assert found.aggressiveness.median_abs_error == pytest.approx(0.05)
    assert found.aggressiveness.correlation == pytest.approx(
        np.corrcoef([0.2, 0.4, 0.6, 0.8], [0.3, 0.4, 0.6, 0.4])[0, 1]
    )
    assert found.detour.bias == pytest.approx(0.1)
    assert found.vehicle.top1_agreement == 0.5
    # Relative mass errors 0, 1/3, 0, 1/2.
    assert found.vehicle.mass_bias == pytest.approx((1 / 3 + 1 / 2) / 4)
    assert found.vehicle.mass_median_abs_error == pytest.approx(1 / 6)


def test_recovery_matches_by_trip_not_by_position():
    turned = TRUTH.isel(trip=[2, 0, 3, 1])
    assert recovery(TRUTH, turned, vehicle_mass_kg=MASS_KG).aggressiveness.rmse == 0.0


def test_recovery_counts_trips_without_a_finite_fit():
    fitted = descriptors([0.2, np.nan, 0.6], [1.0, 1.5, 2.0], [0, 1, 2])
    found = recovery(TRUTH, fitted, vehicle_mass_kg=MASS_KG)
    assert (found.n_trips, found.n_missing) == (2, 2)
    assert found.aggressiveness.rmse == 0.0


@pytest.mark.parametrize("indexed", [True, False])
def test_recovery_accepts_data_frames(indexed):
    frame = TRUTH.to_dataframe() if indexed else TRUTH.to_dataframe().reset_index()
    assert isinstance(frame, pd.DataFrame)
    found = recovery(frame, TRUTH, vehicle_mass_kg=MASS_KG)
    assert found == recovery(TRUTH, TRUTH, vehicle_mass_kg=MASS_KG)


def test_recovery_without_spread_has_no_correlation():
    one = TRUTH.isel(trip=[0])
    found = recovery(one, one, vehicle_mass_kg=MASS_KG)
    assert np.isnan(found.detour.correlation)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["detour"]["correlation"] is None
    assert plain["detour"]["bias"] == 0.0
    values = {(row["descriptor"], row["measure"]): row["value"] for row in found.rows()}
    assert values["detour", "correlation"] == "–"
    assert values["vehicle", "top-1 agreement"] == "1.000"


def test_recovery_rejects_bad_tables():
    with pytest.raises(InputDataError, match="got no detour"):
        recovery(TRUTH, TRUTH.drop_vars("detour"), vehicle_mass_kg=MASS_KG)
    with pytest.raises(InputDataError, match="trip t1 more than once"):
        recovery(TRUTH, TRUTH.isel(trip=[0, 1, 1]), vehicle_mass_kg=MASS_KG)
    with pytest.raises(InputDataError, match="occur in both"):
        recovery(TRUTH, TRUTH.assign_coords(trip=["a", "b", "c", "d"]), vehicle_mass_kg=MASS_KG)
    with pytest.raises(InputDataError, match=r"got 2 in vehicle_true of trip t2"):
        recovery(TRUTH, TRUTH, vehicle_mass_kg=MASS_KG[:2])
