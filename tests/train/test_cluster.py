"""A cluster of two nodes: the bytes of one machine, a killed process's shard done again, a killed run resumed."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base import cluster as seam
from molgraph.base.cluster import Cluster
from molgraph.base.errors import CellError, DataError, MissingOptionError, MolgraphError, UnknownNameError
from molgraph.data.read import read_table
from molgraph.generate.oracles.calls import OracleCalls
from molgraph.generate.oracles.on_cluster import OracleCluster
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.train.make_method import make_method
from molgraph.train.model import Model
from molgraph.train.stream import predict_stream
from tests.train.cluster_jobs import Mortal, always_dies, double

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra: ray"),
]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Two nodes of one core each on this machine, which this process has joined."""
    import ray
    from ray.cluster_utils import Cluster as Nodes

    patch = pytest.MonkeyPatch()
    patch.setenv("RAY_worker_niceness", "0")
    patch.setenv("PYTHONPATH", str(ROOT))
    node = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80 << 20, "include_dashboard": False}
    nodes = Nodes(initialize_head=True, head_node_args=node)
    node.pop("include_dashboard")
    nodes.add_node(**node)
    ray.init(address=nodes.address, log_to_driver=False, logging_level=logging.ERROR)
    yield nodes.address
    ray.shutdown()
    nodes.shutdown()
    patch.undo()


@pytest.fixture
def joined(address: str) -> Iterator[Cluster]:
    with Cluster() as cluster:
        assert not cluster.own
        yield cluster


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = read_table("builtin:chembl2321810").take(np.arange(40))
    method = make_method("dmpnn", d_hidden=8, head_width=8, epochs=1, seed=0, predict_batch=16, threads=1)
    return Model(method.fit(table), targets=table.row_targets).save(tmp_path_factory.mktemp("model") / "m.mgm")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = list(read_table("builtin:nci").smiles[:300])
    texts[5], texts[130] = "C(C", "[Na+].CC(=O)[O-]"
    path = tmp_path_factory.mktemp("library") / "in.parquet"
    pd.DataFrame({"name": [f"Z{i:04d}" for i in range(300)], "smiles": texts}).to_parquet(path, row_group_size=70)
    return path


@pytest.fixture
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(predict_stream.__kwdefaults__, "chunk_rows", 64)


def test_in_order_with_errors_at_their_item(joined: Cluster) -> None:
    assert joined.places() == 2 and joined.places(cpus=2) == 1
    assert list(joined.map(double, 1, [("a", 1), ("b", 2), ("c", 3)])) == [("a", 3), ("b", 5), ("c", 7)]
    answers = joined.map(double, 0, enumerate([1, 7, 2]))
    assert next(answers) == (0, 2)
    with pytest.raises(DataError, match="seven") as raised:
        next(answers)
    assert raised.value.hint == "take eight"


def test_a_shard_whose_process_always_dies_is_an_error(joined: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam, "RETRIES", 0)
    with pytest.raises(MolgraphError, match="lost with its process"):
        list(joined.map(always_dies, 0, [("a", 1)]))


@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
def test_predict_has_the_bytes_of_one_machine(
    address: str, model: Path, library: Path, tmp_path: Path, short_chunks: None, out: str
) -> None:
    how = {"running": {"threads": 1}, "keep_columns": True}
    molgraph.predict_file(model, library, tmp_path / f"local-{out}", **how)
    done = molgraph.predict_file(model, library, tmp_path / f"ray-{out}", engine="ray", **how)
    assert done.rows == 300 and done.failed == 8
    assert (tmp_path / f"ray-{out}").read_bytes() == (tmp_path / f"local-{out}").read_bytes()
    short = {"on_error": "stop", "engine": "ray"}
    with pytest.raises(CellError, match="row 6"):
        molgraph.predict_file(model, library, tmp_path / "stops.csv", **short)


def test_a_killed_process_costs_its_shard_alone(joined: Cluster, model: Path, library: Path, tmp_path: Path) -> None:
    loaded, flag = molgraph.load(model, threads=1), tmp_path / "flag"
    options = {"smiles": "smiles", "chunk_rows": 64}
    predict_stream(Mortal(loaded, flag), library, tmp_path / "ray.csv", cluster=joined, **options)
    assert flag.exists()
    predict_stream(loaded, library, tmp_path / "local.csv", **options)
    assert (tmp_path / "ray.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()


def test_a_killed_run_goes_on_with_either_engine(
    address: str, model: Path, library: Path, tmp_path: Path, short_chunks: None
) -> None:
    code = f"""
import sys
from pathlib import Path
from molgraph.api.prediction import predict_file
from molgraph.train.chunk_folder import ChunkFolder
from molgraph.train.stream import predict_stream
predict_stream.__kwdefaults__["chunk_rows"] = 64
add = ChunkFolder.add
def slow(self, number, *rest):
    if number == 2:
        print("two", flush=True)
        sys.stdin.read()
    add(self, number, *rest)
ChunkFolder.add = slow
predict_file({str(model)!r}, {str(library)!r}, {str(tmp_path / "out.csv")!r}, engine="ray")
"""
    env = os.environ | {"RAY_ADDRESS": address}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": env, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as run:
        assert run.stdout is not None and run.stdout.readline() == "two\n"
        run.send_signal(signal.SIGKILL)
    kept = sorted(path.name for path in (tmp_path / "out.csv.parts").glob("*.chunk"))
    assert kept == ["000000.chunk", "000001.chunk"]
    done = molgraph.predict_file(model, library, tmp_path / "out.csv", running={"threads": 1})
    assert done.resumed == 128 and done.rows == 300 and not done.note
    molgraph.predict_file(model, library, tmp_path / "whole.csv", running={"threads": 1})
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.parametrize("out", ["out.parquet", "out.npy"])
def test_embed_has_the_bytes_of_one_machine(
    address: str, model: Path, library: Path, tmp_path: Path, short_chunks: None, out: str
) -> None:
    molgraph.embed(model, library, tmp_path / f"local-{out}", running={"threads": 1})
    molgraph.embed(model, library, tmp_path / f"ray-{out}", engine="ray")
    assert (tmp_path / f"ray-{out}").read_bytes() == (tmp_path / f"local-{out}").read_bytes()


AWK = "awk '{ print length($0) }'"
MINE = """
import os, signal
from pathlib import Path

def score(smiles):
    flag = Path({flag!r})
    if os.getpid() != {here} and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if smiles == "CCN":
        raise ValueError("no score")
    return len(smiles)
"""


def test_an_oracle_by_its_path_keeps_the_journal_of_one_machine(joined: Cluster, tmp_path: Path) -> None:
    flag, file = tmp_path / "flag", tmp_path / "mine.py"
    file.write_text(MINE.format(flag=str(flag), here=os.getpid()))
    texts = ["CCO", "CCN", "OCC", "CCCC", "c1ccccc1", "CC", "C"]
    oracle = read_oracle(f"{file}:score,sa<4")
    file.unlink()  # the nodes need not have it
    for name in ("local", "ray"):
        for budget in (4, 6):  # the second goes on from the journal of the first
            calls = OracleCalls(oracle, budget, journal=tmp_path / name)
            if name == "ray":
                calls.elsewhere = OracleCluster(joined)
            found = calls.score(texts)
            calls.close()
    assert [one.call for one in found] == [1, 2, 1, 3, 4, 5, 6] and found[1].reason.endswith("no score")
    assert flag.exists() and (tmp_path / "ray").read_bytes() == (tmp_path / "local").read_bytes()


def test_a_search_by_a_command_finds_the_same(address: str) -> None:
    how = {"search": "graph-ga", "start": "CCO", "budget": 12, "compare": False}
    words = f"command({AWK!r}, seconds=60)"
    local, ray = (molgraph.optimise(oracle=words, engine=name, **how).to_frame() for name in ("local", "ray"))
    assert len(ray) == 12
    pd.testing.assert_frame_equal(ray, local)


def test_what_cannot_be_asked(model: Path, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'ray'"):
        molgraph.predict_file(model, library, tmp_path / "out.csv", engine="rey")
    with pytest.raises(MissingOptionError, match="go to a file"):
        molgraph.embed(model, ["CCO"], engine="ray")
