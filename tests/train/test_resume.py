"""A fit that is killed again and again, at any moment, ends with the bits of one that never was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# One process imports everything and forks: a child trains, the parent kills it at a random moment and forks the next.
SCRIPT = """
import json, os, random, signal, sys, time
from pathlib import Path
import numpy as np, torch
import lightning.fabric
from tests.tiny import series, small, weights_of

torch.set_num_threads(1)
folder, kills = Path(sys.argv[1]), int(sys.argv[2])
train, valid = series(96), series(32, 200)


def fit(workdir, out, seconds):
    params = {"d_hidden": 16, "dropout": 0.2}
    method = small(params=params, epochs=12, patience=None, checkpoint_seconds=seconds, objective=sys.argv[3])
    method.fit(train, valid, workdir=workdir)
    curves = method.curves.drop(columns="seconds").to_numpy()
    np.savez(out, curves=curves, value=method.predict(valid).value, **weights_of(method))


def child(*arguments):
    pid = os.fork()
    if pid == 0:
        try:
            fit(*arguments)
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    return pid


began = time.monotonic()
assert os.waitpid(child(None, folder / "plain.npz", 0), 0)[1] == 0
whole = time.monotonic() - began
chance, killed, resumed_at = random.Random(0), 0, []
work, out = folder / "work", folder / "killed.npz"
while True:
    before = (work / "training.ckpt").stat().st_mtime_ns if (work / "training.ckpt").exists() else None
    pid = child(work, out, 0)
    began = time.monotonic()
    while killed < kills and time.monotonic() - began < 30:  # wait for it to get further than the one before
        path = work / "training.ckpt"
        if path.exists() and path.stat().st_mtime_ns != before:
            break
        if os.waitpid(pid, os.WNOHANG)[0]:
            pid = 0
            break
        time.sleep(0.002)
    if pid and killed < kills:
        time.sleep(chance.uniform(0, 0.1) * whole)
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1] if pid else 0
    if status == 0:
        break
    assert os.WIFSIGNALED(status), status
    killed += 1
    state = torch.load(work / "training.ckpt", weights_only=True)["progress"]
    resumed_at.append((state["epoch"], state["position"]))
print(json.dumps({"killed": killed, "resumed_at": resumed_at}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["supervised", "masked-atoms", "maml"])
def test_killed_and_resumed_is_bit_identical(objective: str, tmp_path: Path, root: Path) -> None:
    words = [sys.executable, "-c", SCRIPT, str(tmp_path), "6", objective]
    run = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout.splitlines()[-1])
    assert report["killed"] >= 3, report
    assert report["resumed_at"] == sorted(report["resumed_at"])
    with np.load(tmp_path / "plain.npz") as plain, np.load(tmp_path / "killed.npz") as killed:
        assert set(plain) == set(killed)
        for name in plain:
            assert plain[name].tobytes() == killed[name].tobytes(), (name, report)


DDP = """
import json, sys
import numpy as np, torch
from molgraph.train.engine import fit_network
from tests.train.adversary import Adversary
from tests.train.test_objectives import Line, Points, plan
from tests.tiny import series, small, weights_of


def supervised(n):
    wide = {"d_hidden": 128}  # its weights fill a pipe, 64 KB
    fitted = small(epochs=3, devices=n, batch_size=15, params=wide).fit(series(46), series(17, 100))
    return weights_of(fitted), fitted.curves


def adversary(n):
    network, params = Line(), {**plan().how.model_dump(), "seed": 0, "device": "cpu", "precision": "float32"}
    params |= {"checkpoint_seconds": 0.0, "devices": n}
    curves, *_ = fit_network(network, Adversary(), Points(), Points(32), params, {}, workdir=None, label="training")
    return {name: value.numpy() for name, value in network.state_dict().items()}, curves


def masked(n):
    params = {"d_hidden": 8, "readout": "set2set"}
    how = {"epochs": 3, "devices": n, "batch_size": 15, "objective": "masked-atoms"}
    fitted = small(**how, params=params).fit(series(46), series(17, 100))
    return weights_of(fitted), fitted.curves


if __name__ == "__main__":
    torch.set_num_threads(1)
    for learn in (supervised, adversary, masked):
        (a, one), (b, two) = (learn(n) for n in (1, 2))
        gap = max(float(np.abs(a[k] - b[k]).max()) for k in a)
        columns = [name for name in one.columns if name != "seconds"]
        curves = float(np.abs(one[columns] - two[columns]).to_numpy().max())
        assert np.isfinite(two).all().all() and len(two.columns) == (10 if learn is adversary else 5)
        print(json.dumps([learn.__name__, gap, curves]))
"""


@pytest.mark.slow
def test_two_processes_learn_what_one_learns(tmp_path: Path, root: Path) -> None:
    """DDP through Fabric: the same batches, shared between processes, give the same weights but for rounding.

    Also where the objective has parameters of its own, and where a step leaves some without a gradient. What is masked
    depends on the process, so that those who learn from masks only come near.
    """
    script = tmp_path / "two.py"
    script.write_text(DDP)
    run = subprocess.run(
        [sys.executable, str(script)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    reports = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("[")]
    assert [name for name, _, _ in reports] == ["supervised", "adversary", "masked"]
    for name, gap, curves in reports:
        assert max(gap, curves) < (0.2 if name == "masked" else 1e-4), (name, gap, curves)
