"""Rows of the reproduced tables: names, variants of the roads, summaries, and their page."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.pipeline import SplitConfig
from prisma_sbi.pipeline.reproduce import (
    Recipe,
    Row,
    ablation_rows,
    demo_study_config,
    table_rows,
    with_changes,
)
from prisma_sbi.pipeline.reproduce.published import BASELINES
from prisma_sbi.pipeline.reproduce.recipes import NOISELESS_EPSILON
from prisma_sbi.pipeline.reproduce.results import markdown, summary
from prisma_sbi.pipeline.reproduce.rows import Roads, choose_rows
from prisma_sbi.pipeline.reproduce.shared import N_DRAWS, region_without
from prisma_sbi.region import demo_region, route_profiles

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reproduce.md"


def test_variants_take_away_heights_and_signals_alone():
    region = demo_region()
    rng = np.random.default_rng(0)
    roads = region.roads
    ends = [rng.choice(roads.n_nodes, 30) for _ in range(2)]
    places = [values[end] for end in ends for values in (roads.node_lat_deg, roads.node_lon_deg)]
    plain, flat, free = (
        route_profiles(region_without(region, each), *places)
        for each in (Roads.ALL, Roads.FLAT, Roads.FREE)
    )
    assert np.ptp(plain.grade) > 0.0
    assert not np.any(flat.grade)
    np.testing.assert_array_equal(flat.speed_mps, plain.speed_mps)
    np.testing.assert_array_equal(free.grade, plain.grade)
    assert np.all(free.speed_mps >= plain.speed_mps)
    assert np.any(free.speed_mps > plain.speed_mps)
    assert free.speed_mps.min() >= roads.edge_speed_mps.min() - 1e-5
    prints = {region_without(region, each).fingerprint for each in Roads}
    assert len(prints) == 3
    assert region_without(region, Roads.ALL) is region


def test_summary_in_closed_form():
    row = Row(name="a", model="A", recipe=Recipe())
    metrics = ("fid_x_floor", "precision_standardized", "recall_standardized")
    rest = dict.fromkeys((*metrics, "precision_raw", "recall_raw"), math.nan)
    scores = {("a", seed): {"acf_x_floor": value, **rest} for seed, value in enumerate((1, 2, 6))}
    line = summary(scores, [row])[1]
    assert line["acf_x_floor"] == "3.00 ± 2.65"  # sqrt((4 + 1 + 9) / 2)
    assert line["fid_x_floor"] == "not defined"
    one = summary({("a", 0): scores["a", 1]}, [row])[1]
    assert (one["acf_x_floor"], one["seeds"]) == ("2.00", "1")
    text = markdown([line])
    assert "eVED" not in text
    assert text.splitlines()[2].startswith("| A | without privacy | 3 | 3.00 ± 2.65 |")


def test_names_of_rows_are_unique_and_patterns_find_them():
    for rows in (table_rows((0.5, 1.0)), ablation_rows((0.5, 1.0))):
        names = [row.name for row in rows]
        assert len(set(names)) == len(names)
        labels = [(row.model, row.privacy) for row in rows]
        assert len(set(labels)) == len(labels)
    rows = table_rows((0.5,))
    assert {row.name for row in choose_rows(rows, ["none-*"])} == {
        *("none-map", "none-unfitted", "none-posterior")
    }
    assert all(row.recipe is not None for row in choose_rows(rows, None))
    with pytest.raises(InputDataError, match="none-map.*'gru"):
        choose_rows(rows, ["gru*"])
    paper = {row.name: row.published for row in rows if row.published}
    assert paper["aim-published-map-eps0.5"] == (15.88, 1.92, 0.999, 0.999)
    assert not any(row.published for row in table_rows((1.0,)) if row.recipe and row.epsilon == 1.0)


def test_page_names_every_row():
    text = PAGE.read_text()
    names = {row.name for row in (*table_rows((0.5,)), *ablation_rows((0.5,))) if row.recipe}
    assert names == set(re.findall(r"`((?:none|aim|binned)-[a-z0-9.-]+)`", text))
    assert all(model in text for model in BASELINES)
    assert f"{NOISELESS_EPSILON:g}" in text
    assert f"{N_DRAWS} posterior draws" in text
    n_private = sum(row.recipe.is_private for row in table_rows((0.5,)) if row.recipe)
    assert f"{5 * n_private} releases" in text


def test_changes_of_a_configuration():
    config = demo_study_config()
    assert with_changes(config) == config
    changed = with_changes(config, epsilons=(1.0, 2.0), n_train=7)
    assert changed.synthesize.epsilons == (1.0, 2.0)
    assert changed.split == SplitConfig(n_train=7, n_holdout=200)
