"""A full disk ends a run with one sentence; what is done is kept, and no cell is called crashed for it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from molgraph.base.errors import CannotWriteError, FormatError
from molgraph.base.paths import storage_error
from molgraph.data.splits import Split
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.cells import MANIFEST
from molgraph.evaluate.benchmark.engine_ray import Seat
from molgraph.evaluate.benchmark.job import Job
from molgraph.evaluate.benchmark.local import LocalEngine
from molgraph.evaluate.benchmark.recipe import BenchMethod
from molgraph.evaluate.benchmark.run import Ran, run_benchmark
from molgraph.evaluate.benchmark.verify import verify_records
from tests.evaluate.bench_tables import go, recipe, small
from tests.evaluate.odd_methods import Ridge

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def refuse(*_: Any, **__: Any) -> Any:
    """What a full disk answers."""
    raise OSError(FULL.errno, FULL.strerror)


def store() -> None:
    """What a store of features makes of that answer."""
    try:
        refuse()
    except OSError as error:
        raise storage_error("cannot write f.npz", error) from error


def words() -> None:
    """What libraries make of it that have errors of their own."""
    raise RuntimeError("[enforce fail at inline_container.cc] . file write failed: No space left on device")


def predictions() -> None:
    """Room for everything but the predictions."""
    pq.write_table = refuse


WAYS = {"plain": refuse, "store": store, "words": words, "predictions": predictions}


class Fills(Ridge):
    """Finds the disk full, in the way that ``how`` says, while the file ``when`` is there."""

    name = "fills"

    def __init__(self, how: str = "", when: str = "") -> None:
        super().__init__()
        self.how, self.when = how, when

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Fills:
        if Path(self.when).exists():
            WAYS[self.how]()
        super().fit(table)
        return self


def make(name: str, **params: Any) -> Ridge:
    """The factory that cells call."""
    return Fills(**params) if name == "fills" else Ridge(**params)


@pytest.fixture(scope="module")
def forking() -> Iterator[LocalEngine]:
    """Cells one at a time, apart from the server that other tests share."""
    engine = LocalEngine((__name__,))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def spawning() -> Iterator[LocalEngine]:
    """Cells as fresh processes."""
    engine = LocalEngine((), forks=False)
    yield engine
    engine.close()


def run(out: Path, asked: Any, engine: LocalEngine) -> Ran:
    """A run of ``small`` with the methods of this page."""
    return run_benchmark(asked, out, factory=f"{__name__}:make", tables={"small": small()}, engine=engine)


def manifests(out: Path) -> set[str]:
    """Methods of the cells that stand in a folder, by their manifests."""
    return {path.parts[-3] for path in out.glob("cells/*/*/*/*/manifest.json")}


@pytest.mark.slow
@pytest.mark.parametrize(("how", "kind"), [*((how, "forking") for how in WAYS), ("store", "spawning")])
def test_a_cell_that_finds_the_disk_full_stops_the_run_and_is_computed_by_the_next(how, kind, tmp_path, request):
    own, when, out = request.getfixturevalue(kind), tmp_path / "full", tmp_path / "out"
    when.touch()
    fills = {"name": "fills", "params": {"how": how, "when": str(when)}}
    asked = recipe("ridge", fills, split=[{"splitter": "random"}])
    with pytest.raises(CannotWriteError, match="fills r0-f0-s0") as error:
        run(out, asked, own)
    assert error.value.exit_code == 5 and "the disk is full: free some space" in error.value.hint
    assert "1 cells were kept; the same command goes on from here" in error.value.hint
    if how == "store":
        assert "was not computed: cannot write f.npz: no space left on device" in error.value.message
    assert manifests(out) == {"ridge"} and not list((out / ".work" / "cells").iterdir())
    when.unlink()
    ran = run(out, asked, own)
    assert (ran.there, ran.made) == (1, {"ok": 1}) and verify_records(out).ok


@pytest.mark.parametrize("name", [MANIFEST, "claim"])
def test_a_disk_that_fills_between_cells_stops_the_run_and_keeps_what_is_done(name, forking, tmp_path, monkeypatch):
    first = recipe("ridge", split=[{"splitter": "random"}])
    both = recipe("ridge", {"name": "ridge", "label": "more", "params": {"alpha": 2.0}}, split=[{"splitter": "random"}])
    run(tmp_path, first, forking)
    real = Path.write_text
    if name == "claim":
        monkeypatch.setattr("molgraph.base.locks.Claims.take", refuse_cells)
    monkeypatch.setattr(Path, "write_text", lambda p, *a, **k: (refuse if p.name == name else real)(p, *a, **k))
    with pytest.raises(CannotWriteError, match=tmp_path.name) as e:
        run(tmp_path, both, forking)
    assert "the disk is full" in e.value.hint and "0 cells were kept" in e.value.hint
    assert manifests(tmp_path) == {"ridge"}
    monkeypatch.undo()
    ran = run(tmp_path, both, forking)
    assert (ran.there, ran.made) == (1, {"ok": 1}) and verify_records(tmp_path).ok


def refuse_cells(claims: Any, key: str, **_: Any) -> bool:
    """A claim of a cell finds no room; that of a dataset did."""
    return key.startswith("prepare-") or refuse()


@pytest.mark.parametrize("place", ["tables", "splits", "plan"])
def test_a_dataset_is_not_refused_because_the_disk_is_full(place, tmp_path, monkeypatch):
    real = os.replace

    def replace(source: Any, target: Any) -> None:
        (refuse if place in Path(target).parts else real)(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(CannotWriteError, match=place) as error:
        go(tmp_path / "out", recipe("ridge"))
    assert "space" in error.value.hint
    monkeypatch.undo()
    assert go(tmp_path / "out", recipe("ridge")).made == {"ok": 5}


def test_a_node_of_a_cluster_that_is_full_is_no_lost_worker(tmp_path, monkeypatch):
    seat = Seat(())
    try:
        monkeypatch.setattr(Path, "write_bytes", refuse)
        outcome, files = seat.run(
            Job(str(tmp_path), "t.parquet", "s.json", "json:dumps", BenchMethod(name="m")), b"", b""
        )
        assert outcome.status == "disk" and "No space left" in outcome.reason and files == {}
    finally:
        seat.leave()


def test_a_folder_that_may_not_be_written_is_said_too(tmp_path, monkeypatch):
    def forbid(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("molgraph.base.locks.Claims.take", forbid)
    with pytest.raises(CannotWriteError, match="permission denied"):
        go(tmp_path, recipe("ridge"))


def test_a_split_file_that_is_damaged_says_the_way_out_and_that_mends_it(tmp_path):
    go(tmp_path, recipe("ridge"))
    folder = tmp_path / "splits" / "small" / "random-1x5"
    kept = Split.load(folder / "r0-f0.json").hash
    for damage in ("{", (folder / "r0-f0.json").read_text().replace('"test": [', '"test": [99,'), None):
        (folder / "r0-f0.json").unlink() if damage is None else (folder / "r0-f0.json").write_text(damage)
        ran = go(tmp_path, recipe("ridge"))
        assert "r0-f0.json" in ran.refusals[0] and ran.refusals[0].endswith("delete its folder and run again")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    ran = go(tmp_path, recipe("ridge"))
    assert (ran.there, ran.made, ran.refusals) == (5, {}, ()) and Split.load(folder / "r0-f0.json").hash == kept


def test_a_recipe_a_plan_and_a_mark_that_are_damaged_are_written_anew(tmp_path):
    go(tmp_path, recipe("ridge"))
    split = (tmp_path / "splits" / "small" / "random-1x5" / "r0-f0.json").read_bytes()
    for name in ("recipe.toml", "plan/small.json", "splits/small/random-1x5/asked.json"):
        sound = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(b"\xff")
        ran = go(tmp_path, recipe("ridge"))
        assert (ran.there, ran.made, ran.refusals) == (5, {}, ()) and (tmp_path / name).read_bytes() == sound
    assert (tmp_path / "splits" / "small" / "random-1x5" / "r0-f0.json").read_bytes() == split
    assert verify_records(tmp_path).ok


@pytest.mark.parametrize("damage", ["[]", '{"metrics": []}', "[" * 100_000, "\xff"])
def test_a_damaged_plan_says_what_to_do(damage, tmp_path):
    go(tmp_path, recipe("ridge"))
    (tmp_path / "plan" / "small.json").write_text(damage, encoding="latin-1")
    with pytest.raises(FormatError, match=r"small\.json"):
        verify_records(tmp_path)
