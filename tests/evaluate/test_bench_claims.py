"""Claims: one holder at a time, also where a file is deleted between another's opening and locking it."""

from __future__ import annotations

import errno
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from molgraph.evaluate.benchmark import locks
from molgraph.evaluate.benchmark.locks import Claims


def before_locking(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """Let something happen once, after a file is opened and before it is locked."""
    lock, left = locks._lock, [happens]

    def late(file: IO[bytes]) -> None:
        if left:
            left.pop()()
        lock(file)

    monkeypatch.setattr(locks, "_lock", late)


def test_a_claim_that_is_given_up_while_another_opens_it_is_taken_whole(tmp_path, monkeypatch):
    a, b, c = (Claims(tmp_path) for _ in range(3))
    assert b.take("k")
    before_locking(monkeypatch, lambda: b.release("k"))
    assert a.take("k"), "nobody holds it any more"
    assert not c.take("k"), "the lock of a deleted file binds nobody"
    a.release("k")
    assert c.take("k")


def test_a_claim_that_a_third_takes_meanwhile_is_not_taken_twice(tmp_path, monkeypatch):
    a, b, c = (Claims(tmp_path) for _ in range(3))
    assert b.take("k")
    taken = []
    before_locking(monkeypatch, lambda: (b.release("k"), taken.append(c.take("k"))))
    assert not a.take("k") and taken == [True] and "k" not in a.held
    c.release("k")
    assert a.take("k")


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


def test_where_nobody_can_be_told_of_a_claim_it_is_taken(tmp_path, monkeypatch):
    def unknown(file: IO[bytes]) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(locks, "_lock", unknown)
    mine = Claims(tmp_path)
    assert mine.take("k"), "or a run would wait for ever"
    mine.close()
