"""What stands under the names that a streamed output uses: only molgraph's own files are ever written over."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from molgraph.base.errors import CannotWriteError, FileKeptError
from molgraph.train.chunk_folder import ChunkFolder


def put(folder: ChunkFolder, number: int, data: bytes) -> None:
    folder.add(number, f"key {number}", data, {"rows": 1})


def join(folder: ChunkFolder) -> None:
    folder.join(lambda chunks, file: file.writelines(chunk.read() for chunk in chunks))


def half(out: Path) -> None:
    """What a run that was killed after its first chunk leaves."""
    with ChunkFolder(out) as folder:
        put(folder, 0, b"a\n")


def finish(out: Path) -> bool:
    """Go on; whether the first chunk was there."""
    with ChunkFolder(out) as folder:
        done = folder.find(0, "key 0") is not None
        for number, data in enumerate((b"a\n", b"b\n")):
            if number or not done:
                put(folder, number, data)
        join(folder)
    assert out.read_bytes() == b"a\nb\n"
    return done


def below(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("name", ["out.csv.parts", "out.csv.parts/thesis.txt", "out.csv.parts/1.chunk"])
def test_a_file_of_the_users_own_is_refused_and_left(tmp_path: Path, name: str) -> None:
    own = tmp_path / name
    own.parent.mkdir(exist_ok=True)
    own.write_bytes(b"five years of work")
    before = below(tmp_path)
    with pytest.raises(FileKeptError) as caught, ChunkFolder(tmp_path / "out.csv"):
        pass
    assert "out.csv.parts" in str(caught.value) and "move or remove it" in caught.value.hint
    assert below(tmp_path) == before


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of POSIX")
@pytest.mark.parametrize("name", ["out.csv.parts", "out.csv.parts/000000.chunk", "out.csv.parts/lock"])
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe"])
def test_neither_a_link_nor_a_pipe_is_followed(tmp_path: Path, name: str, kind: str) -> None:
    target = tmp_path / "own" / "thesis.txt"
    target.parent.mkdir()
    target.write_bytes(b"five years of work")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        to = target if "/" in name else target.parent
        (tmp_path / name).symlink_to(to if kind == "link" else tmp_path / "not-there")
    with pytest.raises(FileKeptError), ChunkFolder(tmp_path / "out.csv") as folder:
        put(folder, 0, b"a\n")
    assert target.read_bytes() == b"five years of work" and list(target.parent.iterdir()) == [target]
    assert os.path.lexists(tmp_path / name) and not (tmp_path / "not-there").exists()


def test_a_chunk_is_taken_only_where_its_key_and_content_are_the_same(tmp_path: Path) -> None:
    out, chunk = tmp_path / "out.csv", tmp_path / "out.csv.parts" / "000000.chunk"
    half(out)
    whole = chunk.read_bytes()
    for i in range(len(whole)):
        chunk.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        with ChunkFolder(out) as folder:
            assert folder.find(0, "key 0") is None and folder.odd
            folder.rows = 1  # stays for the next
    for data, key in ((b"", "key 0"), (whole[:-1], "key 0"), (whole + b"x", "key 0"), (whole, "key 1")):
        chunk.write_bytes(data)
        with ChunkFolder(out) as folder:
            assert folder.find(0, key) is None and folder.odd
            folder.rows = 1
    chunk.write_bytes(whole)
    with ChunkFolder(out, resumable=False) as folder:
        assert folder.find(0, "key 0") is None
        folder.rows = 1
    assert finish(out) and sorted(below(tmp_path)) == ["out.csv"]


def test_a_join_that_fails_leaves_the_old_file_and_the_chunks(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_bytes(b"old")
    half(out)
    with ChunkFolder(out) as folder:
        assert folder.find(0, "key 0") == {"rows": 1}
        with pytest.raises(ZeroDivisionError):
            folder.join(lambda chunks, file: 1 / 0)
    assert out.read_bytes() == b"old" and not list(tmp_path.glob(".*"))
    assert finish(out)


def test_temporaries_of_killed_runs_are_swept_and_no_others(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    half(out)
    stale = ["out.csv.parts/.000001.chunk.0123abcd.tmp", ".out.csv.89abcdef.tmp", "out.csv.parts/000007.chunk"]
    others = [".out.csv.mine.tmp", ".other.csv.0123abcd.tmp", "x.tmp"]
    for name in (*stale, *others):
        (tmp_path / name).write_bytes(b"{")
    assert finish(out)
    assert sorted(below(tmp_path)) == sorted(["out.csv", *others]) and not (tmp_path / "out.csv.parts").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no resource limits there")
def test_a_full_disk_promises_only_rows_that_are_there(tmp_path: Path) -> None:
    import resource

    out = tmp_path / "out.csv"

    def two(resumable: bool, size: int) -> None:
        with ChunkFolder(out, resumable) as folder:
            put(folder, 0, b"x" * 3000)
            put(folder, 1, b"x" * size)
            join(folder)

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
    try:
        with pytest.raises(CannotWriteError) as caught, ChunkFolder(out) as folder:
            put(folder, 0, b"x" * 6000)
        assert "kept" not in str(caught.value) and below(tmp_path) == {}
        for resumable in (False, True):
            with pytest.raises(CannotWriteError) as caught:
                two(resumable, 6000)
            assert ("1 rows are kept in out.csv.parts; the same command" in str(caught.value)) == resumable
        with pytest.raises(CannotWriteError) as caught:
            two(True, 3000)
        assert "2 rows are kept in out.csv.parts; the same command" in str(caught.value)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    shutil.rmtree(tmp_path / "out.csv.parts")
    assert not finish(out)


def test_links_in_a_circle_are_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to("b.csv")
    (tmp_path / "b.csv").symlink_to("a.csv")
    with pytest.raises(CannotWriteError, match="circle"), ChunkFolder(tmp_path / "a.csv"):
        pass
    from molgraph.cli.options import check_writable

    with pytest.raises(CannotWriteError, match="circle"):
        check_writable(tmp_path / "a.csv")
