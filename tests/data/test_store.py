"""Stores: each distinct molecule once, kept on disk whole or not at all, found again by content."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from molgraph.base.errors import CannotReadError, CannotWriteError, FileKeptError, StorageError
from molgraph.data.feature_layout import FEATURISER, OLDER
from molgraph.data.featurize import Molecules, featurize
from molgraph.data.graph_cache import MARKS, graphs_of, load_store, marked, save_store, store_for
from molgraph.data.graph_store import GraphStore
from molgraph.data.table import make_table

SMILES = ["CCO", "C1CC", "c1ccccc1", "CN(C)(C)C", "[Na+].[Cl-]", "C", "", "F/C=C/F", "C[C@H](N)C(=O)O"]
SAMPLE = ["CCO", "C1CC", "c1ccccc1O", "[13CH4]"]


def assert_equal(a: GraphStore, b: GraphStore) -> None:
    assert a.featuriser == b.featuriser and len(a) == len(b)
    assert list(a.status) == list(b.status) and list(a.reason) == list(b.reason)
    for name, level in a.levels.items():
        np.testing.assert_array_equal(level.offsets, b.levels[name].offsets)
        for field, values in level.arrays.items():
            np.testing.assert_array_equal(values, b.levels[name].arrays[field])
            assert values.dtype == b.levels[name].arrays[field].dtype
    for name, table in a.tables.items():
        np.testing.assert_array_equal(table, b.tables[name])
    assert a.extra.keys() - {MARKS} == b.extra.keys() - {MARKS}


def left_over(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir() if p.name.endswith(".tmp")]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(SMILES), max_size=12))
def test_saved_and_loaded_is_equal(tmp_path: Path, smiles: list[str]) -> None:
    store = featurize(smiles)
    save_store(store, tmp_path / "s")  # replaces the store of the trial before
    assert_equal(store, load_store(tmp_path / "s"))
    assert left_over(tmp_path) == []


def test_long_arrays_stay_on_disk(tmp_path: Path) -> None:
    save_store(featurize(SAMPLE), tmp_path / "s")
    loaded = load_store(tmp_path / "s")
    code = loaded.levels["atom"].arrays["code"]
    assert type(code) is np.ndarray and isinstance(code.base, np.memmap) and not code.flags.writeable
    assert loaded.tables["atom"].flags.writeable  # becomes a tensor


def test_each_distinct_molecule_once() -> None:
    graphs = store_for(make_table(["CCO", None, "C1CC", "CCO", " ", "C1CC", "C"]))
    assert len(graphs.store) == 3
    assert graphs.graph_of_row.tolist() == [0, -1, 1, 0, -1, 1, 2]
    assert list(graphs.store.status) == ["ok", "unreadable", "ok"]


def test_a_table_without_a_readable_row() -> None:
    graphs = store_for(make_table([None, ""]))
    assert len(graphs.store) == 0 and graphs.graph_of_row.tolist() == [-1, -1]


def test_the_cache_builds_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(SAMPLE)
    first = store_for(table, cache=tmp_path)
    monkeypatch.setattr("molgraph.data.featurize.featurize", lambda *a, **k: pytest.fail("built twice"))
    again = store_for(table.take(np.array([3, 0, 1, 2])).take(np.array([1, 2, 3, 0])), cache=tmp_path)
    assert_equal(first.store, again.store)
    assert len(list(tmp_path.iterdir())) == 1


def test_another_content_or_version_of_features_is_another_store(tmp_path: Path) -> None:
    store_for(make_table(["C", "CC"]), cache=tmp_path)
    store_for(make_table(["CC", "CO"]), cache=tmp_path)
    store_for(make_table(["C,CC"]), cache=tmp_path)
    table = make_table(["C", "CC"])
    made = graphs_of(table, table.entity("molecule"), Molecules().as_of(OLDER), cache=tmp_path)
    assert made.store.featuriser == OLDER and store_for(table, cache=tmp_path).store.featuriser == FEATURISER
    assert len(list(tmp_path.iterdir())) == 4


def test_a_whole_tables_store_serves_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(["CCO", None, "C1CC", "CCO", "C", "c1ccccc1", "CC(=O)O", "N"])
    whole = store_for(table, cache=tmp_path)
    assert whole.store.extra[MARKS].shape == (6, 2)
    monkeypatch.setattr("molgraph.data.featurize.featurize", lambda *a, **k: pytest.fail("built twice"))
    for rows in ([4, 0, 0, 1], [2], [7, 6, 5], [1]):
        part = store_for(table.take(np.array(rows)), cache=tmp_path)
        assert part.graph_of_row.tolist() == whole.graph_of_row[rows].tolist()
        assert_equal(whole.store, part.store)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_store_in_the_folder_that_cannot_serve_is_passed_over(tmp_path: Path) -> None:
    save_store(featurize(["CCO", "C"]), tmp_path / "no marks")
    save_store(marked(featurize(["CCO", "N"]), ["CCO", "N"]), tmp_path / "other molecules")
    save_store(marked(featurize(["CCO", "C", "CC"]), ["CCO", "C", "CC"]), tmp_path / "damaged")
    (tmp_path / "damaged" / "001.npy").write_bytes(b"")
    (tmp_path / "a file").write_text("")
    table = make_table(["C", "CCO"])
    assert_equal(store_for(table).store, store_for(table, cache=tmp_path).store)


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "list", "empty list"])
def test_damage_is_seen_and_a_cache_repairs_itself(tmp_path: Path, damage: str) -> None:
    table = make_table(SAMPLE)
    want = store_for(table).store
    store_for(table, cache=tmp_path)
    (folder,) = tmp_path.iterdir()
    victim = folder / ("store.json" if "list" in damage else "001.npy")
    content = bytearray(victim.read_bytes())
    if damage == "flip":
        content[-1] ^= 1
    elif damage == "cut":
        del content[-2:]
    elif damage == "list":
        content = bytearray(content.replace(b"unreadable", b"unreadablE"))
    elif damage == "empty list":
        content = bytearray()
    if damage == "remove":
        victim.unlink()
    else:
        victim.write_bytes(content)
    with pytest.raises(CannotReadError) as caught:
        load_store(folder)
    assert caught.value.hint
    assert_equal(want, store_for(table, cache=tmp_path).store)
    assert_equal(want, load_store(folder))


def test_a_list_cannot_name_files_elsewhere_or_of_pickles(tmp_path: Path) -> None:
    save_store(featurize(["C"]), tmp_path / "s")
    np.save(tmp_path / "s" / "001.npy", np.array([{}], dtype=object), allow_pickle=True)
    listed = json.loads((tmp_path / "s" / "store.json").read_text())
    size = (tmp_path / "s" / "001.npy").stat().st_size
    listed["body"]["files"][1] |= {"bytes": size}
    from molgraph.data.graph_io import _body_checksum

    listed["checksum"] = _body_checksum(listed["body"])
    (tmp_path / "s" / "store.json").write_text(json.dumps(listed))
    with pytest.raises(CannotReadError, match=r"001\.npy"):
        load_store(tmp_path / "s", verify=False)


def test_a_newer_store_says_so(tmp_path: Path) -> None:
    save_store(featurize(["C"]), tmp_path / "s")
    path = tmp_path / "s" / "store.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 99'))
    with pytest.raises(StorageError, match="newer"):
        load_store(tmp_path / "s")


def test_what_is_no_store_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("ten years")
    with pytest.raises(FileKeptError, match="mine"):
        save_store(featurize(["C"]), tmp_path / "mine")
    save_store(featurize(["C"]), tmp_path / "store")
    (tmp_path / "store" / "thesis.txt").write_text("ten years")
    with pytest.raises(FileKeptError, match=r"thesis\.txt"):
        save_store(featurize(["CC"]), tmp_path / "store")
    assert {p.read_text() for p in tmp_path.glob("*/thesis.txt")} == {"ten years"}
    assert len(list(tmp_path.glob("*/thesis.txt"))) == 2 and len(load_store(tmp_path / "store")) == 1
    with pytest.raises(CannotReadError, match="nowhere"):
        load_store(tmp_path / "nowhere")


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWriteError, match="file"):
        save_store(featurize(["C"]), tmp_path / "file" / "s")
    with pytest.raises(CannotWriteError, match="file"):
        store_for(make_table(["C"]), cache=tmp_path / "file" / "cache")


def run(code: str, *args: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="limits of this kind exist on POSIX systems alone")
def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    """A limit on file size stands in for the full disk: both refuse a write in the middle of a file."""
    process = run(
        """
        import resource, sys
        from molgraph.base.errors import StorageError
        from molgraph.data.featurize import featurize
        from molgraph.data.graph_cache import save_store
        store = featurize(["C" * 3000])
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            save_store(store, sys.argv[1])
        except StorageError as error:
            print(error)
        """,
        tmp_path / "s",
    )
    out, err = process.communicate(timeout=100)
    assert b"cannot write" in out and b"nothing was replaced" in out, (out, err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_a_killed_run_leaves_no_half_store_and_its_remains_are_swept_a_day_later(tmp_path: Path) -> None:
    process = run(
        """
        import sys, time
        import molgraph.data.graph_io as stored
        from molgraph.data.graph_cache import store_for
        from molgraph.data.table import make_table
        from pathlib import Path
        plain, done = stored.atomic_write, []
        def slow(path, *mode):
            if len(done) == 3:
                print("half", flush=True)
                time.sleep(100)
            done.append(path)
            return plain(path, *mode)
        stored.atomic_write = slow
        store_for(make_table(["CCO", "C"]), cache=Path(sys.argv[1]))
        """,
        tmp_path,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"half\n"
    process.kill()
    process.wait()
    assert len(left_over(tmp_path)) == 1 and len(list(tmp_path.iterdir())) == 1
    os.utime(tmp_path / left_over(tmp_path)[0], (time.time() - 2 * 86400,) * 2)
    graphs = store_for(make_table(["CCO", "C"]), cache=tmp_path)
    assert_equal(graphs.store, featurize(["CCO", "C"]))
    assert left_over(tmp_path) == [] and len(list(tmp_path.iterdir())) == 1


def test_a_living_writers_folder_is_not_swept(tmp_path: Path) -> None:
    mine, old, other = tmp_path / ".x.0000000a.tmp", tmp_path / ".y.0000000b.tmp", tmp_path / ".unrelated"
    for folder in (mine, old, other):
        folder.mkdir()
    for folder in (old, other):
        os.utime(folder, (time.time() - 2 * 86400,) * 2)
    save_store(featurize(["C"]), tmp_path / "s")
    assert mine.exists() and other.exists() and not old.exists()


@pytest.mark.slow
def test_two_processes_at_once(tmp_path: Path) -> None:
    code = """
        import sys, time
        from pathlib import Path
        from molgraph.data.graph_cache import store_for
        from molgraph.data.table import make_table
        table = make_table(["C" * n for n in range(1, 60)])
        print("ready", flush=True)
        sys.stdin.readline()
        print(int(store_for(table, cache=Path(sys.argv[1])).store.levels["atom"].offsets[-1]))
        """
    both = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=100)[0] for process in both] == [b"1770\n"] * 2
    assert left_over(tmp_path) == [] and len(list(tmp_path.iterdir())) == 1
