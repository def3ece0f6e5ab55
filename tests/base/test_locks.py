"""Claims: one holder at a time, whoever contends; where a file system knows no locks, a run goes on without."""

from __future__ import annotations

import errno
import multiprocessing
from pathlib import Path

import filelock
import pytest

from molgraph.base.locks import Claims


def contend(folder: Path, rounds: int, clashes: multiprocessing.Queue) -> None:
    """Take and give up one claim; count how often another was inside too."""
    mine, found = Claims(folder / "claims"), 0
    inside = folder / "inside"
    while rounds:
        if mine.take("k"):
            try:
                inside.touch(exist_ok=False)
                inside.unlink()
            except FileExistsError:
                found += 1
            mine.release("k")
            rounds -= 1
    clashes.put(found)


def test_processes_that_contend_are_never_inside_together(tmp_path):
    context = multiprocessing.get_context("fork")
    clashes = context.Queue()
    processes = [context.Process(target=contend, args=(tmp_path, 400, clashes)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert [clashes.get(timeout=5) for _ in processes] == [0, 0, 0]


def test_a_claim_that_is_given_up_leaves_no_file_and_is_taken_by_another(tmp_path):
    a, b, c = (Claims(tmp_path) for _ in range(3))
    assert a.take("k") and not b.take("k") and "k" not in b.held
    a.release("k")
    assert not list(tmp_path.iterdir()) and b.take("k") and not c.take("k")
    b.close()
    assert c.take("k")


@pytest.mark.parametrize(("code", "taken"), [(errno.ENOLCK, True), (errno.EIO, False)])
def test_where_nobody_can_be_told_of_a_claim_it_is_taken(code, taken, tmp_path, monkeypatch):
    def unknown(lock: filelock.FileLock) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(filelock.FileLock, "_acquire", unknown)
    mine = Claims(tmp_path)
    if taken:
        assert mine.take("k"), "or a run would wait for ever"
        mine.close()
    else:
        with pytest.raises(OSError, match="no"):
            mine.take("k")
