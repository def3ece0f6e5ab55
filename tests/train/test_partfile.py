"""What stands under the names that a streamed output uses: only molgraph's own files are ever written over."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from molgraph.base.errors import StorageError
from molgraph.train.resumable_file import PartFile

IDENTITY = {"model": "m1"}


def half(out: Path, identity: dict | None = IDENTITY) -> None:
    """What a run that was killed after its first piece leaves."""
    with PartFile(out, identity) as part:
        part.append(b"a\n", rows=1, state={"failed": 0})


def finish(out: Path) -> int:
    with PartFile(out, IDENTITY) as part:
        done = part.rows
        part.append(b"b\n", rows=2)
        part.finish()
    return done


def beside(out: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(out.parent.iterdir()) if p.is_file()}


@pytest.mark.parametrize("name", ["out.csv.part", "out.csv.part.journal"])
@pytest.mark.parametrize("content", [b"my own notes\n", b"{", b"[1]", b'{"rows": 1}', b"[" * 50_000, b"9" * 5000])
def test_a_file_of_the_users_own_is_refused_and_left(tmp_path: Path, name: str, content: bytes) -> None:
    out = tmp_path / "out.csv"
    (tmp_path / name).write_bytes(content)
    before = beside(out)
    with pytest.raises(StorageError, match="was not left by molgraph") as caught, PartFile(out, IDENTITY):
        pass
    assert name in str(caught.value) and "move or remove it" in caught.value.hint
    assert beside(out) == before


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of POSIX")
@pytest.mark.parametrize("name", ["out.csv.part", "out.csv.part.journal"])
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
def test_neither_a_link_nor_a_pipe_is_followed(tmp_path: Path, name: str, kind: str) -> None:
    out, target = tmp_path / "out.csv", tmp_path / "thesis.txt"
    target.write_bytes(b"five years of work")
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    elif kind == "folder":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).symlink_to(target if kind == "link" else tmp_path / "not-there")
    with pytest.raises(StorageError), PartFile(out, IDENTITY) as part:
        part.append(b"a\n", rows=1)
    assert target.read_bytes() == b"five years of work"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "thesis.txt"])


def test_the_whole_file_is_made_under_a_fresh_name(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    own = tmp_path / "out.parquet.part.whole"
    own.write_bytes(b"mine")
    with PartFile(out, IDENTITY) as part:
        part.append(b"a", rows=1)
        part.finish(lambda part, file: file.write(part.read_bytes() * 2) and None)
    assert beside(out) == {"out.parquet": b"aa", "out.parquet.part.whole": b"mine"}
    with PartFile(out, IDENTITY) as part:
        part.append(b"a", rows=1)
        with pytest.raises(ZeroDivisionError):
            part.finish(lambda part, file: 1 / 0)
    assert not list(tmp_path.glob(".*")) and out.read_bytes() == b"aa"


@pytest.mark.parametrize("key", ["version", "identity", "rows", "bytes", "crc", "state"])
@pytest.mark.parametrize("value", [None, "x", -1, [1], {"a": [1]}, 1.5, 10**18, True])
def test_a_journal_of_wrong_types_starts_again(tmp_path: Path, key: str, value: object) -> None:
    out = tmp_path / "out.csv"
    half(out)
    journal = tmp_path / "out.csv.part.journal"
    journal.write_text(json.dumps(json.loads(journal.read_text()) | {key: value}))
    with PartFile(out, IDENTITY) as part:
        assert (part.rows, part.state) == (0, {}) and part.restarted
    half(out)
    assert finish(out) == 1


def test_temporaries_of_killed_runs_are_swept_and_no_others(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    half(out)
    stale = [".out.csv.part.journal.0123abcd.tmp", ".out.csv.part.89abcdef.tmp"]
    others = [".out.csv.part.journal.mine.tmp", ".out.csv.0123abcd.tmp", ".other.csv.part.0123abcd.tmp", "x.tmp"]
    for name in (*stale, *others):
        (tmp_path / name).write_bytes(b"{")
    assert finish(out) == 1
    assert sorted(beside(out)) == sorted(["out.csv", *others])


@pytest.mark.skipif(sys.platform == "win32", reason="no resource limits there")
def test_a_full_disk_promises_only_rows_that_are_there(tmp_path: Path) -> None:
    import resource

    out = tmp_path / "out.csv"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    try:
        with pytest.raises(StorageError) as caught, PartFile(out, IDENTITY) as part:
            part.append(b"x" * 6000, rows=1)
        assert "kept" not in str(caught.value) and beside(out) == {}
        for identity, promised in ((IDENTITY, True), (None, False)):
            with PartFile(out if promised else tmp_path / "from-stdin.csv", identity) as part:
                part.append(b"x" * 3000, rows=1)
                with pytest.raises(StorageError) as caught:
                    part.append(b"x" * 3000, rows=2)
            assert ("1 rows are kept in out.csv.part; the same command" in str(caught.value)) == promised
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert finish(out) == 1


def test_links_in_a_circle_are_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to("b.csv")
    (tmp_path / "b.csv").symlink_to("a.csv")
    with pytest.raises(StorageError, match="lead in a circle"), PartFile(tmp_path / "a.csv", IDENTITY):
        pass
    from molgraph.cli.options import check_writable

    with pytest.raises(StorageError, match="lead in a circle"):
        check_writable(tmp_path / "a.csv")
