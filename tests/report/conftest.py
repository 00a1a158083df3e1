"""Small sets of traces with and without a guarantee, and pages about them."""

from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from prisma_sbi.evaluation.metrics import Measured, measure_each
from prisma_sbi.privacy import SynthesisSettings
from prisma_sbi.privacy.release import Guarantee
from prisma_sbi.report import SyntheticSet, write_released_report, write_report
from tests.evaluation.conftest import make_dataset, make_traces

WILD = "<script>alert('$x$')</script> & \"Co\""
N_REAL, N_SYNTHETIC = 48, 40
_VOID = {"br", "img", "link", "meta"}


def make_set(name: str, *, seed: int, private: bool = True, recorded: bool = True) -> SyntheticSet:
    """Synthetic traces with the statement of a release, and its record."""
    traces = make_dataset(make_traces(N_SYNTHETIC, seed=seed, phi=0.95), seed=seed)
    guarantee = Guarantee(epsilon=0.5, delta=1e-5, rho=0.0085, n_rows=1234)
    statement = guarantee.text if private else "NO GUARANTEE. No mechanism ran."
    traces.attrs |= {"guarantee": statement, "horizon_s": 60.0, "time_step_s": 1.0, "n_redrawn": 3}
    record = {
        "kind": "release",
        "statement": statement,
        "is_private": private,
        "guarantee": asdict(guarantee) if private else None,
        "settings": SynthesisSettings(mechanism="independent").to_dict(),
        "warnings": ["No pair of columns was measured."] if private else [],
        "measured": [{"columns": ["start_cell", "vehicle"], "stddev": 15.77, "n_merged": 3}],
        "versions": {"mbi": "2.0.0"},
    }
    return SyntheticSet(name=name, traces=traces, release=record if recorded else {})


@pytest.fixture(scope="session")
def real() -> xr.Dataset:
    return make_dataset(make_traces(N_REAL, seed=1), seed=1)


@pytest.fixture(scope="session")
def sets() -> list[SyntheticSet]:
    """A protected set, and one with a name that is markup."""
    return [make_set("epsilon=0.5", seed=2), make_set(WILD, seed=3, recorded=False)]


@pytest.fixture(scope="session")
def measured(real: xr.Dataset, sets: list[SyntheticSet]) -> dict[str, Measured]:
    return measure_each(real, {each.name: each.traces for each in sets}, n_splits=2)


@pytest.fixture(scope="session")
def private_page(
    real: xr.Dataset,
    sets: list[SyntheticSet],
    measured: dict[str, Measured],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    pytest.importorskip("matplotlib")
    path = tmp_path_factory.mktemp("pages") / "private.html"
    command = "prisma evaluate real.zarr '<b>.zarr' --report private.html"
    return write_report(path, real, sets, measured=measured, command=command, n_map_traces=30)


@pytest.fixture(scope="session")
def released_page(sets: list[SyntheticSet], tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("matplotlib")
    path = tmp_path_factory.mktemp("pages") / "released.html"
    return write_released_report(path, sets, command="prisma evaluate --released 'a b.zarr'")


class Reader(HTMLParser):
    """Elements of a page in order, and whether each is closed where it should be."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(content)
        self.close()
        self.faults += [f"{name} is never closed" for name in self.open]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.faults.append(f"{tag} has an attribute twice: {names}")
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"{tag} is closed at {self.getpos()} and was not open")

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def named(self, name: str) -> list[dict[str, str]]:
        """Attributes of all elements of this name."""
        return [attributes for tag, attributes in self.elements if tag == name]

    def text(self) -> str:
        """Everything that a person reads."""
        return " ".join(text for tag, text in self.texts if tag != "style")


def poisoned(traces: xr.Dataset) -> xr.Dataset:
    """The same traces with private things that no page may show."""
    extra = xr.DataArray(np.arange(traces.sizes["trip"]) + 987_654.0, dims="trip")
    return traces.assign(owner=extra).assign_attrs(source="secret-file-of-alice.csv")
