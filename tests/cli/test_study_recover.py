"""`prisma study recover`: tables, a page, refusals, Ctrl-C."""

import functools

import pandas as pd
import pytest

from prisma_sbi.cli.study import recover
from prisma_sbi.encoding import Method
from prisma_sbi.study import load_recovery, recovery, recovery_study
from tests.cli.conftest import prisma, prisma_json, refusal
from tests.study.test_recovery import FLEETS, Oracle, stop_at

FEW = ("study", "recover", "--trips", 24)


@pytest.fixture
def oracle(monkeypatch) -> Oracle:
    """Stands in for the encoder, which takes its time."""
    monkeypatch.setattr(recovery, "known_fleet", FLEETS)
    stand_in = Oracle(lost=(5,))
    monkeypatch.setattr(
        recover, "recovery_study", functools.partial(recovery_study, encoder=stand_in)
    )
    return stand_in


def test_help_teaches():
    done = prisma("study", "recover", "--help")
    assert done.exit_code == 0
    text = " ".join(done.stdout.split())
    assert "Example: prisma study recover " in text
    assert "--json" in text
    assert all(name in text for name in Method)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_tables_folder_and_page(tmp_path, oracle):
    out = tmp_path / "recovery"
    done = prisma(*FEW, "--method", "map,laplace", "--likelihood", "trace,summary", "-o", out)
    assert done.exit_code == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "Detour: 24 known trips, noise law" in done.stdout
    assert "The true vehicle, flags, and time" in done.stdout
    messages = " ".join(done.stderr.split())
    assert "may be shown to anybody" in messages
    assert "trace-map: 1 trip set aside: simulated/5" in messages
    lines = done.stdout.splitlines()
    points = next(line for line in lines if "trace-map" in line)
    assert points.split()[-4:] == ["-", "-", "-", "-"]
    table = pd.read_csv(out / "recovery.csv")
    assert len(table) == 12
    kept = load_recovery(out)
    rmse = kept["summary"].dataset["rmse"].values.ravel()
    assert rmse[:2] == pytest.approx(table["rmse"][:2])
    page = (out / "report.html").read_text()
    assert "--likelihood summary,trace --noise law --seed 0" in page
    assert str(tmp_path) not in page


def test_json_has_null_for_what_points_do_not_say(oracle):
    found = prisma_json(*FEW)
    rows = {(row["method"], row["descriptor"]): row for row in found["rows"]}
    assert rows["map", "detour"]["coverage_90"] is None
    assert 0.5 < rows["quadrature", "detour"]["coverage_90"] <= 1.0
    assert found["set_aside"][0]["trip"] == "simulated/5"


def test_interrupt_goes_on_and_other_settings_are_refused(tmp_path, monkeypatch, oracle):
    out = tmp_path / "recovery"

    def interrupted(*arguments, **options):
        return recovery_study(
            *arguments, **options | {"progress": stop_at("trace-quadrature"), "encoder": oracle}
        )

    with monkeypatch.context() as patch:
        patch.setattr(recover, "recovery_study", interrupted)
        done = prisma(*FEW, "-o", out)
    assert done.exit_code == 130
    assert "Run the same command again to go on." in done.stderr
    assert not (out / "report.html").exists()
    oracle.encoded.clear()
    assert prisma(*FEW, "-o", out).exit_code == 0
    assert oracle.encoded == ["TraceLikelihood quadrature"]
    line = refusal("study", "recover", "--trips", 25, "-o", out)
    assert "n_trips=24; got n_trips=25" in line
    oracle.encoded.clear()
    assert prisma("study", "recover", "--trips", 25, "-o", out, "--force").exit_code == 0
    assert len(oracle.encoded) == 2


def test_unknown_names_are_refused():
    assert "methods to be one of 'map'" in refusal(*FEW, "--method", "map,magic")
    assert "likelihoods to be one of 'summary'" in refusal(*FEW, "--likelihood", "guess")
