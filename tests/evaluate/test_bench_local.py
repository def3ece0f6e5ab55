"""Processes of cells: forked from a server without threads, or fresh; what they cost; what remains of the time."""

from __future__ import annotations

import os
import sys
import time

import pandas as pd
import pytest

from molgraph.base.process_tree import memory_mb
from molgraph.evaluate.benchmark.cells import Cell
from molgraph.evaluate.benchmark.job import Job
from molgraph.evaluate.benchmark.local import LocalEngine
from molgraph.evaluate.benchmark.loop import seconds_left
from molgraph.evaluate.benchmark.recipe import BenchMethod
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.scoring import score_records
from tests.evaluate.bench_tables import engine, go, plain, recipe
from tests.evaluate.odd_methods import FACTORY

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
def test_the_server_that_has_molgraphs_imports_has_one_thread():
    """All that ``molgraph bench run`` imports ahead: a fork of a process with threads may hang."""
    from molgraph.api.benchmarking import IMPORTS

    made = LocalEngine(IMPORTS)
    try:
        assert made.server.line.recv() == (-1, 1)
    finally:
        made.close()


@pytest.mark.slow
def test_spawned_cells_give_what_forked_cells_give(tmp_path):
    odd = [{"name": "odd", "label": how, "params": {"how": how}} for how in ("exit", "raise", "sleep", "segfault")]
    asked = recipe({"name": "ridge", "params": {"noise": 0.1}}, *odd, budget={"seconds": 3})
    spawning = LocalEngine((), 2, forks=False)
    only = {"fold": ["0"]}
    go(tmp_path / "spawned", asked, engine=spawning, only=only)
    go(tmp_path / "forked", asked, engine=engine(), only=only)
    frames = [plain(score_records(read_records(tmp_path / name))) for name in ("spawned", "forked")]
    pd.testing.assert_frame_equal(*frames)
    assert not spawning.running
    spawning.close()


@pytest.mark.slow
@pytest.mark.parametrize("forks", [True, False])
def test_what_a_cell_prints_is_utf8_whatever_the_shell_asks_for(forks, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    own = LocalEngine((FACTORY.split(":")[0],), 1, forks=forks)
    try:
        ran = go(tmp_path, recipe({"name": "odd", "params": {"how": "prints"}}), engine=own, only={"fold": ["0"]})
    finally:
        own.close()
    assert ran.made == {"ok": 1}, ran.failures


@pytest.mark.parametrize(
    ("params", "on_cpu"),
    [
        ({}, True),
        ({"device": "cpu"}, True),
        ({"device": None}, True),
        ({"device": "cuda"}, False),
        ({"device": "auto"}, False),
        ({"params": {"device": "cuda:1"}}, False),
        ({"params": {"depth": 3}}, True),
    ],
)
def test_cells_for_other_devices_are_spawned(params, on_cpu):
    assert Job("a", "b", "c", "json:dumps", BenchMethod(name="e", params=params)).on_cpu is on_cpu


def test_memory_is_counted_over_the_whole_tree():
    child = os.fork()
    if child == 0:
        held = bytearray(50_000_000)
        held[::4096] = b"x" * len(held[::4096])
        time.sleep(30)
        os._exit(0)
    try:
        alone, end = memory_mb(child), time.monotonic() + 10
        while alone < 50 and time.monotonic() < end:
            alone = memory_mb(child)
        assert memory_mb(os.getpid()) >= alone > 50
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert memory_mb(child) == 0


def cell(dataset: str, method: str) -> Cell:
    """A cell of no further interest."""
    return Cell(dataset, "random", 0, 0, method, 0, "")


def test_the_time_left_goes_by_the_same_method_on_the_nearest_set_then_by_the_dearest():
    rows = {"a": 10, "b": 100, "c": 400}
    assert seconds_left([cell("a", "x")], {}, rows) == 0
    known = {"x": {"a": [1.0, 3.0]}}
    assert seconds_left([cell("a", "x")] * 2, known, rows) == 4
    assert seconds_left([cell("b", "x")], known, rows) == pytest.approx(2 * 10**0.5)
    known["y"] = {"a": [50.0]}
    assert seconds_left([cell("b", "z")], known, rows) == pytest.approx(50 * 10**0.5)
    known["x"]["b"] = [9.0]  # nearer than the other
    assert seconds_left([cell("c", "x")], known, rows) == 18
