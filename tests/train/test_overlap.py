"""Graphs made ahead in other processes: order, errors, kills, the same bytes, flat memory."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import DataError, MolgraphError
from molgraph.data.read import read_table
from molgraph.train import pipelined_predict
from molgraph.train.make_method import make_method
from molgraph.train.model import Model
from molgraph.train.pipelined_predict import map_ahead
from molgraph.train.stream import predict_stream
from tests.train.jobs import double

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="all in one process there")


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_in_order_and_no_more_than_a_few_ahead(workers: int) -> None:
    taken = []

    def items():
        for i in range(20):
            taken.append(i)
            yield i, i % 7

    for n, (key, answer) in enumerate(map_ahead(double, items(), workers)):
        assert (key, answer) == (n, 2 * (n % 7))
        assert len(taken) <= n + 1 + workers
    assert n == 19


def test_errors_come_at_their_item_and_a_dead_process_is_told() -> None:
    answers = map_ahead(double, enumerate([1, 7]), 2)
    assert next(answers) == (0, 2)
    with pytest.raises(DataError, match="seven") as told:
        next(answers)
    assert told.value.hint == "take eight"
    with pytest.raises(RuntimeError, match="ValueError: eight"):
        list(map_ahead(double, enumerate([8]), 1))
    with pytest.raises(MolgraphError, match="has died"):
        list(map_ahead(double, enumerate([1, 9, 2]), 1))


@pytest.mark.slow
def test_processes_end_with_a_parent_that_was_killed() -> None:
    code = """
import time
from molgraph.train import pipelined_predict
started, start = [], pipelined_predict.start_worker
pipelined_predict.start_worker = lambda: started.append(start()) or started[-1]
for _ in pipelined_predict.map_ahead(abs, enumerate([1, 2, 3]), 2):
    print(*(worker.process.pid for worker in started), flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        parent.kill()
    assert len(pids) == 2
    until = time.monotonic() + 10
    while any(map(_runs, pids)):
        assert time.monotonic() < until, "left behind"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except OSError:
        return False


def small_model() -> Model:
    table = read_table("builtin:chembl2321810").take(np.arange(40))
    method = make_method("dmpnn", d_hidden=8, head_width=8, epochs=1, seed=0, predict_batch=16)
    return Model(method.fit(table), targets=table.row_targets)


@pytest.fixture(scope="module")
def model() -> Model:
    return small_model()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "in.csv"
    texts = list(read_table("builtin:nci").smiles[:300])
    texts[5], texts[130] = "C(C", "[Na+].CC(=O)[O-]"
    path.write_text("smiles\n" + "\n".join(texts) + "\n")
    return path


@pytest.mark.slow
def test_the_same_as_in_one_process_and_on_resume(
    model: Model, many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelined_predict, "_cores", lambda method: 2)
    options = {"smiles": "smiles", "model_hash": "m", "chunk_rows": 64}
    ahead = predict_stream(model, many, tmp_path / "ahead.csv", **options)
    assert model.method.threads is None  # as it was before
    predicted, calls = type(model.method).predict_graphs, []

    def stops(self, table, graphs):
        calls.append(graphs)
        if len(calls) in (2, 4):
            raise KeyboardInterrupt
        return predicted(self, table, graphs)

    monkeypatch.setattr(type(model.method), "predict_graphs", stops)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            predict_stream(model, many, tmp_path / "resumed.csv", **options)
    done = predict_stream(model, many, tmp_path / "resumed.csv", **options)
    assert done.resumed == 128 and done.rows == 300 and done.failed == ahead.failed
    assert all(graphs is not None for graphs in calls)
    assert (tmp_path / "resumed.csv").read_bytes() == (tmp_path / "ahead.csv").read_bytes()
    monkeypatch.setattr(type(model.method), "predict_graphs", predicted)
    monkeypatch.setattr(pipelined_predict, "_cores", lambda method: 1)
    predict_stream(model, many, tmp_path / "one.csv", **options)
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "ahead.csv").read_bytes()
    whole = model.predict(read_table(many, smiles="smiles"))
    lines = (tmp_path / "ahead.csv").read_text().splitlines()[1:]
    values = np.array([float(line.split(",")[-3] or "nan") for line in lines])
    np.testing.assert_allclose(values, whole.value[:, 0], rtol=1e-5)


def test_many_tables_have_intervals_and_domains_as_one_has(many: Path, tmp_path: Path) -> None:
    how = {"model": "dmpnn", "params": {"d_hidden": 8, "head_width": 8}, "epochs": 1, "baseline": False, "threads": 1}
    model = molgraph.train("builtin:chembl2321810", **how).model
    for name, rows in (("many", 128), ("one", 512)):
        predict_stream(model, many, tmp_path / f"{name}.csv", smiles="smiles", chunk_rows=rows)
    cut, whole = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("many", "one"))
    assert {"pActivity_low", "pActivity_high", "domain", "distance", "nearest"} <= {*whole.columns}
    pd.testing.assert_frame_equal(cut, whole, rtol=1e-5)


MEMORY = """
import os, sys
from molgraph.train import pipelined_predict
from molgraph.train.method import GraphMethod
from molgraph.train.modelfile import load_model
from molgraph.train.stream import predict_stream

pipelined_predict._cores = lambda method: 2
predict = GraphMethod.predict_graphs

def noted(self, table, graphs):
    print(int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    return predict(self, table, graphs)

GraphMethod.predict_graphs = noted
predict_stream(load_model(sys.argv[1]), sys.argv[2], sys.argv[3], chunk_rows=500, smiles="smiles")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_memory_does_not_grow_with_the_file(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.mgm")
    texts = [text for text in read_table("builtin:nci").smiles if len(text) < 40][:2000]
    with open(tmp_path / "in.csv", "w") as file:
        file.write("smiles\n")
        file.writelines(f"{'C' * (i % 5)}{texts[i % len(texts)]}\n" for i in range(24_000))
    command = [sys.executable, "-c", MEMORY, *(str(tmp_path / name) for name in ("m.mgm", "in.csv", "out.csv"))]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    held = np.array(words, dtype=float) / 2**20
    assert len(held) == 1 + 48  # a model that is loaded predicts a table of no rows first
    growth = held[-1] - held[8]  # tables and predictions that were kept would be 6 MiB
    assert growth < 3, f"{growth:.1f} MiB more after 20,000 rows: {held.round(1).tolist()}"
