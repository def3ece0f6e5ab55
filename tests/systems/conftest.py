"""Run the checks of published systems: each as it is and with the mechanism taken out, where it must fail.

A check is one function marked ``@pytest.mark.system(ID, rung="exact")`` that takes ``off``: empty, or the name of the
twin (``off``; others by ``twins=``) in which the mechanism is replaced. A twin is a strict expected failure. An effect
that was looked for and is not there has ``null="why"``: the check is kept, and is expected to fail as it is.
"""

from __future__ import annotations

import csv
import hashlib
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from molgraph.api.built_system import Built
from molgraph.api.systems import Check, built, read_checks, source_of
from molgraph.base.systems import table
from tests.nn.conftest import random_batch  # noqa: F401 - a fixture of exact checks
from tests.systems.effect import Effect

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RUNGS = ("reaches", "exact", "works")
LIMIT = 120  # CPU seconds of a check of the third rung
SHARE = 10  # of the first and the third rung, one in so many runs with the slow tests


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("systems")
    group.addoption("--system", default="", help="ids, with commas between: their checks alone")
    group.addoption("--wave", default="", help="the checks of a wave alone")
    group.addoption("--results", default="", help="run the third rung of all, and write this file")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("results", "") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Results(Path(config.getoption("results"))))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("system")
    if mark is None or mark.kwargs["rung"] == "reaches":
        return
    if "off" not in metafunc.fixturenames:
        raise pytest.UsageError(f"{metafunc.definition.nodeid} takes no 'off': a check that cannot fail is none")
    null = mark.kwargs.get("null")
    kept = pytest.mark.xfail(raises=AssertionError, strict=True, reason=f"honest null: {null}")
    fails = pytest.mark.xfail(raises=AssertionError, strict=True, reason="the mechanism is taken out")
    twins = () if null else mark.kwargs.get("twins", ("off",))
    whole = pytest.param("", id="whole", marks=kept if null else ())
    metafunc.parametrize("off", [whole, *(pytest.param(twin, id=twin, marks=fails) for twin in twins)])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All checks are slow. Of the first rung those run whose code has changed since their results were kept.

    Of the others and of the third rung a tenth runs, another one of each commit; all where results are asked for.
    """
    changed = _changed()
    asked = [each for each in config.getoption("system", "").split(",") if each]
    wave, all_rungs, turn = config.getoption("wave", ""), config.getoption("results", ""), _turn()
    kept, left = [], []
    for item in items:
        if (mark := item.get_closest_marker("system")) is None:
            kept.append(item)
            continue
        name, rung = mark.args[0], mark.kwargs["rung"]
        assert rung in RUNGS, f"{item.nodeid}: no rung is named {rung!r}"
        item.add_marker(pytest.mark.slow)
        params = dict(getattr(getattr(item, "callspec", None), "params", {}))
        item.user_properties.append(("twin", params.pop("off", "")))
        words = [item.originalname.removeprefix("test_")]  # type: ignore[attr-defined]
        words += [str(value) for value in params.values()] if rung == "works" else []  # each has its own figures
        item.user_properties.append(("system", (name, rung, " ".join(words))))
        due = bool(all_rungs or asked) or rung == "exact" or _number(name) % SHARE == turn
        due |= rung == "reaches" and name in changed
        here = (not asked or name in asked) and (not wave or (name in table() and table()[name].wave == wave))
        (kept if due and here else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def _number(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _changed() -> set[str]:
    """Systems whose first rung has not passed with the code as it is."""
    parts: dict[str, list[Built]] = {}
    for part in built():
        parts.setdefault(part.card.id, []).append(part)
    kept = {(row.system, row.source) for row in read_checks() if row.rung == "reaches" and row.outcome == "passed"}
    return {name for name, here in parts.items() if (name, source_of(here)) not in kept}


def _turn() -> int:
    return _number(_commit() or str(time.time() // 86_400)) % SHARE


@pytest.fixture
def effect(request: pytest.FixtureRequest) -> Effect:
    """Assert a measured effect, and keep its figures for the results."""
    return Effect(request.node.user_properties)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Count CPU seconds; a check of the third rung has 120 of them."""
    start = time.process_time()
    try:
        return (yield)
    finally:
        seconds = time.process_time() - start
        item.user_properties.append(("cpu", round(seconds, 1)))
        mark = item.get_closest_marker("system")
        if mark and mark.kwargs["rung"] == "works" and seconds > LIMIT:
            pytest.fail(f"{seconds:.0f} CPU seconds; a check has {LIMIT}")


class Results:
    """Gather the reports of all workers, and write a line for each check."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reports: dict[tuple[str, str, str], list[tuple[str, dict[str, Any]]]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        kept = dict(report.user_properties)
        if "system" not in kept or (report.when != "call" and not report.failed):
            return
        expected = hasattr(report, "wasxfail")
        if report.skipped and not expected:
            return
        null = expected and "honest null" in report.wasxfail
        outcome = "null" if report.skipped and null else "failed" if report.failed else "passed"
        self.reports.setdefault(tuple(kept["system"]), []).append((outcome, kept))  # type: ignore[arg-type]

    def pytest_sessionfinish(self) -> None:
        if not self.reports:
            return
        commit, implemented = _commit(), built()
        ids = {name for name, _, _ in self.reports}
        sources = {name: source_of([each for each in implemented if each.card.id == name]) for name in ids}
        run = {(name, rung) for name, rung, _ in self.reports}
        rows = [row for row in read_checks(self.path) if (row.system, row.rung) not in run]
        for (name, rung, check), found in self.reports.items():
            outcomes = [outcome for outcome, _ in found]
            outcome = next((bad for bad in ("failed", "null") if bad in outcomes), "passed")
            first = {key: value for _, kept in reversed(found) for key, value in kept.items() if not kept.get("twin")}
            shown = {key: first.get(key, "") for key in ("expected", "got", "beside")}
            seconds = f"{sum(kept.get('cpu', 0.0) for _, kept in found):.0f}"
            rows.append(Check(name, rung, check.replace("_", " "), outcome, **shown, seconds=seconds, commit=commit,
                              source=sources[name]))  # fmt: skip
        with self.path.open("w", encoding="utf-8", newline="") as file:
            write = csv.writer(file, lineterminator="\n")
            write.writerows([Check._fields, *sorted(rows)])
