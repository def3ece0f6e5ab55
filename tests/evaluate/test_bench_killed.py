"""A benchmark that is killed again and again at random moments ends as one that was left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.verify import verify_records

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def begin(root: Path, out: Path) -> subprocess.Popen:
    """The script's process."""
    words = [sys.executable, "-m", "tests.evaluate.bench_script", str(out), f"{out}.log", f"{out}.csv"]
    env = dict(os.environ) | {"PYTHONPATH": str(root)}
    return subprocess.Popen(words, cwd=root, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def gone(pids: list[int], seconds: float = 5.0) -> bool:
    """Whether all these processes end within that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def tree(pid: int) -> list[int]:
    """Everything that a process started."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def alive(pid: int) -> bool:
    """Whether a process is there and is no corpse."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def kept(out: Path) -> dict[str, float]:
    """Cells that stand in a folder, with the moment when their manifest was written."""
    return {str(path.parent): path.stat().st_mtime for path in out.glob("cells/*/*/*/*/manifest.json")}


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_scores(root, tmp_path, rng: np.random.Generator):
    whole = begin(root, tmp_path / "whole")
    assert whole.wait(120) == 0, whole.stderr.read()
    expected = (tmp_path / "whole.csv").read_bytes()
    assert expected.count(b"\n") > 50
    out, before, deaths = tmp_path / "out", {}, 0
    while deaths < 5:
        run = begin(root, out)
        n = len(kept(out))
        aim = n + int(rng.integers(1, 4))
        while run.poll() is None and len(kept(out)) < aim:
            time.sleep(0.01)
        time.sleep(float(rng.uniform(0, 0.2)))
        if run.poll() is not None:
            break
        children = tree(run.pid)
        assert children, "a server, at least"
        victim = children[-1] if deaths == 1 and len(children) > 1 else run.pid  # once, a cell's process alone
        os.kill(victim, signal.SIGKILL)
        if victim == run.pid:
            run.wait(10)
            assert gone(children), "orphans go on computing"
        else:
            run.kill()
            run.wait(10)
        deaths += 1
        now = kept(out)
        assert before.items() <= now.items(), "a cell was computed twice"
        before = now
    assert deaths >= 3, "a fast machine ends a run before it is killed five times"
    for path in out.glob(
        "cells/*/*/*/*/manifest.json"
    ):  # the cell whose process was killed alone is a row that says so
        if "SIGKILL" in json.loads(path.read_text())["reason"]:
            path.unlink()
            (path.parent / "stderr.txt").unlink()
            path.parent.rmdir()
            before.pop(str(path.parent), None)
    last = begin(root, out)
    assert last.wait(120) == 0, last.stderr.read()
    assert before.items() <= kept(out).items(), "a cell was computed twice"
    assert (tmp_path / "out.csv").read_bytes() == expected
    assert verify_records(out).ok
    assert not list((out / ".work" / "cells").iterdir()), "nothing half made is left"


@pytest.mark.slow
def test_a_dead_server_is_replaced_and_its_cells_begin_again(root, tmp_path):
    out = tmp_path / "out"
    run = begin(root, out)
    while not kept(out) and run.poll() is None:
        time.sleep(0.01)
    os.kill(tree(run.pid)[0], signal.SIGKILL)
    assert run.wait(120) == 0, run.stderr.read()
    assert {r.manifest["reason"] for r in read_records(out) if r.cell.method != "fails"} == {""}
