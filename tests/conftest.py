"""What every test stands on: one thread, a cache of its own, seeds, and the data that may or may not be there."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: workers share the cores
os.environ["MOLGRAPH_QUIET"] = "1"

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from molgraph.base import paths, seeds
from tests import shapes

ROOT = Path(__file__).resolve().parent.parent
NO_DATA = "MOLGRAPH_DATA names no folder of datasets"

# The shapes in annotations of these packages are checked in every test, and nowhere else: what is imported from here on
# is wrapped while it is loaded.
shapes.install(["molgraph.nn", "molgraph.models"])

# Derandomised: the same trials everywhere, so that a red run is red for everybody.
settings.register_profile(
    "molgraph", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("molgraph")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOLGRAPH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that depend on the test's name alone."""
    return seeds.generator(0, request.node.name)


@pytest.fixture
def data_dir() -> Path:
    """The folder of datasets; for tests marked ``data``."""
    folder = paths.data_dir()
    assert folder is not None, "mark this test with @pytest.mark.data"
    return folder


@pytest.fixture
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(autouse=True)
def _shapes_are_checked_anew() -> None:
    shapes.calls.clear()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes by their number: packed ones hold the time of day, and two workers would collect two names for one test."""
    return f"{len(val)}-bytes" if isinstance(val, bytes) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run an example that two names share once; skip what needs datasets where there are none."""
    seen, twice = set[tuple[str, ...]](), []
    for item in items:
        if isinstance(item, pytest.DoctestItem):  # molgraph.train, called, has the text of molgraph.api.train
            shown = tuple(example.source for example in item.dtest.examples)
            twice += [item] * (shown in seen)
            seen.add(shown)
    if twice:
        config.hook.pytest_deselected(items=twice)
        items[:] = [item for item in items if item not in twice]
    if paths.data_dir() is None:
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(pytest.mark.skip(reason=NO_DATA))


def pytest_report_header() -> str:
    """Say whether the datasets are there."""
    folder = paths.data_dir()
    return f"MOLGRAPH_DATA: {folder}" if folder else "MOLGRAPH_DATA: not set: tests marked data are skipped"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped for want of datasets, and how to run them."""
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum(isinstance(report.longrepr, tuple) and NO_DATA in report.longrepr[2] for report in skipped)
    if count:
        terminalreporter.write_line(f"{count} tests marked data were skipped: {NO_DATA}")
