"""Shared fixtures and settings of the test suite."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")

MANY_MAPS = 20_000


def pytest_configure(config: pytest.Config) -> None:
    """Check jaxtyping annotations at run time while tests run."""
    from jaxtyping import install_import_hook

    import tests.typecheck  # noqa: F401  the hook looks it up by name

    install_import_hook("prisma_sbi", "tests.typecheck.checked")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests on real data where the reference folder is absent."""
    if reference_folder() is not None:
        return
    reason = "the reference data folder ../shared/data is not beside this checkout"
    for item in items:
        if "realdata" in item.keywords:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="module", autouse=True)
def few_memory_maps() -> Iterator[None]:
    """Forget compiled programs before they use up the memory maps of a process.

    Each compiled program holds some, Linux allows 65,530 of them to a process by default, and XLA
    dies without a word when it asks for one more.
    """
    yield
    maps = Path("/proc/self/maps")
    if maps.is_file() and len(maps.read_bytes().splitlines()) > MANY_MAPS:
        import jax

        jax.clear_caches()


def reference_folder() -> Path | None:
    """Folder with VED trips, roads, elevation and vehicles, if there is one."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PRISMA_REFERENCE_DATA", default))
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """The reference data folder; only tests marked ``realdata`` may ask for it."""
    folder = reference_folder()
    assert folder is not None
    return folder


@pytest.fixture(scope="session")
def browser() -> str:
    """Path of a Chromium; tests that open a page are skipped where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"no browser to open the page in: none of {', '.join(names)} is installed")
    return found
