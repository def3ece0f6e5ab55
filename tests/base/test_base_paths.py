"""Files arrive whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from molgraph.base import paths
from molgraph.base.errors import CannotWriteError
from molgraph.base.paths import atomic_write


def test_a_file_appears_at_the_end_and_alone(tmp_path: Path) -> None:
    target = tmp_path / "a.bin"
    with atomic_write(target) as file:
        file.write(b"whole")
        assert not target.exists()
    assert target.read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("failure", [ValueError("ours"), KeyboardInterrupt()])
def test_a_failure_keeps_the_old_file_and_leaves_nothing(tmp_path: Path, failure: BaseException) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(type(failure)), atomic_write(target, "w") as file:  # noqa: PT012 - both belong inside
        file.write("new")
        raise failure
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_text_is_utf8_with_its_newlines_kept(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a.txt", "w") as file:
        file.write("µ\r\nx\n")
    assert (tmp_path / "a.txt").read_bytes() == "µ\r\nx\n".encode()


def test_permissions_of_the_old_file_and_a_links_target_are_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "a.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    with atomic_write(link, "w") as file:
        file.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_device_is_written_not_replaced() -> None:
    with atomic_write("/dev/null", "w") as file:
        file.write("gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_pipe_is_written_through(tmp_path: Path) -> None:
    code = (
        "from molgraph.base.paths import atomic_write\nwith atomic_write('/dev/stdout', 'w') as f: f.write('through')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "through"


@pytest.mark.parametrize(
    ("where", "hint"),
    [("missing/a.txt", "does not exist"), (".", "name a file"), ("a.txt/b.txt", "not a folder")],
)
def test_a_place_that_cannot_be_written_says_why(tmp_path: Path, where: str, hint: str) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(CannotWriteError, match=hint), atomic_write(tmp_path / where) as file:
        file.write(b"x")
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(CannotWriteError, match="permissions"), atomic_write(tmp_path / "a") as file:
        file.write(b"x")


def test_a_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    """A limit on file sizes stands for the full disk: the kernel refuses the write in the same way."""
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")
    code = (
        "import resource, signal, sys\nfrom molgraph.base.paths import atomic_write\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "from molgraph.base.errors import StorageError\n"
        "try:\n    with atomic_write(sys.argv[1]) as f: f.write(b'x' * 100_000)\n"
        "except StorageError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(target)], capture_output=True, text=True, check=True)
    assert "nothing was replaced" in done.stdout
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_a_full_disk_in_words() -> None:
    error = paths.storage_error("cannot write x", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert "the disk is full" in error.hint


def test_somebody_elses_missing_file_is_not_blamed_on_ours(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "a"):
        (tmp_path / "other").read_text()
    assert os.listdir(tmp_path) == []


def test_modes_other_than_writing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'a'"), atomic_write(tmp_path / "a", "a"):
        pass


def test_folders_follow_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOLGRAPH_CACHE", str(tmp_path / "c"))
    monkeypatch.setenv("MOLGRAPH_DATA", str(tmp_path))
    assert paths.cache_dir() == tmp_path / "c"
    assert paths.data_dir() == tmp_path
    monkeypatch.setenv("MOLGRAPH_DATA", str(tmp_path / "missing"))
    assert paths.data_dir() is None
    monkeypatch.delenv("MOLGRAPH_DATA")
    monkeypatch.delenv("MOLGRAPH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert paths.data_dir() is None
    assert paths.cache_dir().name in ("molgraph", "Cache")


def test_a_missing_file_is_likened_to_names_and_not_to_endings(tmp_path: Path) -> None:
    assert "is empty" in paths.missing_file(tmp_path / "x.csv").hint
    for name in ("assay.csv", "assay.sdf", "b.csv", "notes.txt"):
        (tmp_path / name).touch()
    assert paths.missing_file(tmp_path / "asay.csv").hint == "did you mean 'assay.csv'?"
    assert paths.missing_file(tmp_path / "assay.smi").hint == "did you mean 'assay.csv'?"
    assert paths.missing_file(tmp_path / "asay.sdf").hint == "did you mean 'assay.sdf'?"
    hint = paths.missing_file(tmp_path / "q.csv").hint
    assert "did you mean" not in hint and hint.endswith("holds assay.csv, b.csv, assay.sdf, notes.txt")
    for i in range(9):
        (tmp_path / f"run{i}xyz.log").touch()
    assert paths.missing_file(tmp_path / "q.csv").hint.endswith(" and 8 more")
