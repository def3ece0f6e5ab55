"""Streaming prediction: killed, refused, out of disk, resumed; always the same bytes in the end."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from molgraph.base import errors
from molgraph.base.contracts import Prediction, Target
from molgraph.train.chunk_folder import ChunkFolder
from molgraph.train.stream import predict_stream

N = 1000

# a stand-in for a model: slow, deterministic by row, and one molecule in seven has no prediction
PREDICTOR = """
import time
import numpy as np
from molgraph.base.contracts import Prediction, Target

class Slow:
    seconds = 0.0
    calls = 0

    def predict(self, table):
        time.sleep(self.seconds)
        self.calls += 1
        n = len(table)
        number = np.array([int(i) for i in table.ids])
        bad = number % 7 == 3
        value = np.where(bad, np.nan, np.sin(number) * 10.0 ** (number % 9 - 4))[:, None]
        status = np.where(bad, "unreadable", "ok").astype(object)
        reason = np.where(bad, 'no, "really"', "").astype(object)
        return Prediction(table.ids, (Target("y"),), value, status, reason, inputs=table.smiles)
"""
namespace: dict = {}
exec(PREDICTOR, namespace)
Slow = namespace["Slow"]


class Dies(Slow):
    def __init__(self, last: int) -> None:
        self.last = last

    def predict(self, table):
        if self.calls == self.last:
            raise KeyboardInterrupt
        return super().predict(table)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    lines = [f"{i:05d},{'C' * (i % 20 + 1)}" for i in range(N)]
    path.write_text("name,smiles\n" + "\n".join(lines) + "\n")
    return path


def stream(source: Path, out: Path | str, **options):
    options = {"chunk_rows": 100, "id": "name", "smiles": "smiles", "model_hash": "m1"} | options
    model = options.pop("model", None) or Slow()
    return predict_stream(model, source, out, **options)


def test_rows_in_order_and_what_is_written(source: Path, tmp_path: Path) -> None:
    done = stream(source, tmp_path / "out.csv")
    frame = pd.read_csv(tmp_path / "out.csv", dtype={"id": str})
    assert list(frame.columns) == ["id", "smiles", "y", "status", "reason"]
    assert frame["id"].tolist() == [f"{i:05d}" for i in range(N)]
    number = np.arange(N)
    bad = number % 7 == 3
    expected = np.where(bad, np.nan, np.sin(number) * 10.0 ** (number % 9 - 4)).astype(np.float32)
    assert np.array_equal(frame["y"].to_numpy(np.float32), expected, equal_nan=True)  # float32 text reads back exactly
    assert set(frame["reason"][bad]) == {'no, "really"'} and frame["reason"][~bad].isna().all()
    assert (done.rows, done.failed, done.resumed) == (N, bad.sum(), 0)
    assert done.reasons == {'no, "really"': bad.sum()}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv", "out.csv"]


@pytest.mark.parametrize("name", ["out.tsv", "out.csv.gz", "out.parquet"])
def test_formats_agree(source: Path, tmp_path: Path, name: str) -> None:
    stream(source, tmp_path / "out.csv")
    stream(source, tmp_path / name)
    expected = pd.read_csv(tmp_path / "out.csv", dtype={"id": str, "y": np.float32})
    path = tmp_path / name
    if name.endswith(".parquet"):
        frame = pd.read_parquet(path).replace({"reason": {"": np.nan}})
    else:
        separator = "\t" if ".tsv" in name else ","
        frame = pd.read_csv(path, sep=separator, dtype={"id": str, "y": np.float32})
    for column in expected:
        same = (frame[column] == expected[column]) | (frame[column].isna() & expected[column].isna())
        assert same.all(), column
    assert list(frame.columns) == list(expected.columns)


def test_drop_and_stop(source: Path, tmp_path: Path) -> None:
    done = stream(source, tmp_path / "out.csv", on_error="drop")
    frame = pd.read_csv(tmp_path / "out.csv")
    assert len(frame) == N - done.failed and set(frame["status"]) == {"ok"}
    with pytest.raises(errors.CellError, match="id 00003"):
        stream(source, tmp_path / "other.csv", on_error="stop")
    assert not (tmp_path / "other.csv").exists()

    with pytest.raises(KeyboardInterrupt):
        stream(source, tmp_path / "other.csv", model=Dies(2))
    with pytest.raises(errors.CellError, match="id 00003"):  # rows that another run kept are no reason to go on
        stream(source, tmp_path / "other.csv", model=Slow(), on_error="stop")


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet"])
def test_resumes_after_any_number_of_chunks(source: Path, tmp_path: Path, name: str) -> None:
    stream(source, tmp_path / f"whole-{name}")

    for last in (0, 1, 4):
        with pytest.raises(KeyboardInterrupt) as stopped:
            stream(source, tmp_path / name, model=Dies(last))
        assert not last or "00 rows are kept in out" in stopped.value.__notes__[0]
    (tmp_path / f"{name}.parts" / ".000005.chunk.0123abcd.tmp").write_bytes(
        b"half a row"
    )  # a kill while it was written
    model = Slow()
    done = stream(source, tmp_path / name, model=model)
    assert done.resumed == 500 and model.calls == 5
    assert (tmp_path / name).read_bytes() == (tmp_path / f"whole-{name}").read_bytes()
    assert done.failed == sum(i % 7 == 3 for i in range(N))


def test_part_of_another_run_is_started_again(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    stream(source, tmp_path / "whole.csv")

    def interrupted() -> None:
        with pytest.raises(KeyboardInterrupt):
            stream(source, out, model=Dies(3))

    interrupted()
    done = stream(source, out, model_hash="another")
    assert done.resumed == 0 and "another model" in done.note
    interrupted()
    chunk = tmp_path / "out.csv.parts" / "000001.chunk"
    chunk.write_bytes(b"X" + chunk.read_bytes()[1:])
    done = stream(source, out)
    assert done.resumed == 200 and "damaged" in done.note
    interrupted()
    chunk.write_bytes(chunk.read_bytes()[:50])
    assert stream(source, out).resumed == 200
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()


SCRIPT = f"""{PREDICTOR}
import sys
from molgraph.train.stream import predict_stream

class Tells(Slow):
    def predict(self, table):
        print("chunk", flush=True)
        return super().predict(table)

predict_stream(Tells(), sys.argv[1], sys.argv[2], model_hash="m1", chunk_rows=20, id="name", smiles="smiles")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_killed_at_random_moments_gives_the_same_bytes(source: Path, tmp_path: Path) -> None:
    stream(source, tmp_path / "whole.csv", chunk_rows=20)
    out, generator, noted = tmp_path / "out.csv", np.random.default_rng(0), [0]
    while not out.exists():
        command = [sys.executable, "-c", SCRIPT, str(source), str(out)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(generator.integers(3, 18)):
                process.stdout.readline()
            time.sleep(generator.uniform(0.0, 0.005))  # a moment in the middle of computing, writing, syncing, noting
            process.send_signal(signal.SIGKILL)
        if not out.exists():
            noted.append(len(list((tmp_path / "out.csv.parts").glob("*.chunk"))))
            assert noted[-1] > noted[-2]
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert len(noted) > 3


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX locks")
def test_two_runs_into_one_file_are_refused(source: Path, tmp_path: Path) -> None:
    with (
        ChunkFolder(tmp_path / "out.csv"),
        pytest.raises(errors.BusyError, match=r"out\.csv"),
    ):
        stream(source, tmp_path / "out.csv")
    stream(source, tmp_path / "out.csv")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_full_disk_device(source: Path) -> None:
    with pytest.raises(errors.CannotWriteError, match="/dev/full"):
        stream(source, "/dev/full")


@pytest.mark.skipif(sys.platform == "win32", reason="no resource limits there")
def test_full_disk_keeps_what_was_done(source: Path, tmp_path: Path) -> None:
    import resource

    stream(source, tmp_path / "whole.csv")
    size = (tmp_path / "whole.csv").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, hard))
    try:
        with pytest.raises(errors.CannotWriteError, match=r"out\.csv\.parts"):
            stream(source, tmp_path / "out.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not (tmp_path / "out.csv").exists()
    done = stream(source, tmp_path / "out.csv")
    assert done.resumed > 0
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_what_wrote_nothing_leaves_nothing(source: Path, tmp_path: Path) -> None:
    class Stopped(Slow):
        def predict(self, table):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_stream(Stopped(), source, tmp_path / "out.csv", model_hash="m1")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_refusals(source: Path, tmp_path: Path) -> None:
    for out, error in ((source, errors.ConflictError), (tmp_path / "out.ods", errors.UnknownNameError)):
        with pytest.raises(error, match=out.name):
            stream(source, out)
    with pytest.raises(errors.CannotWriteError, match=r"out\.csv"):
        stream(source, tmp_path / "no" / "out.csv")
    (tmp_path / "folder").mkdir()
    with pytest.raises(errors.CannotWriteError, match="a folder"):
        stream(source, tmp_path / "folder")


@pytest.mark.parametrize(
    ("content", "error"), [(b"a,b\n1,2\n", errors.FormatError), (b"PAR1", errors.FormatError), (b"", errors.EmptyError)]
)
def test_a_foreign_parquet_file_is_explained(tmp_path: Path, content: bytes, error: type[Exception]) -> None:
    path = tmp_path / "not.parquet"
    path.write_bytes(content)
    with pytest.raises(error, match=path.name):
        stream(path, tmp_path / "out.csv")


def test_gzip_pieces_are_one_file_with_fixed_bytes(source: Path, tmp_path: Path) -> None:
    stream(source, tmp_path / "a.csv.gz")
    first = (tmp_path / "a.csv.gz").read_bytes()
    stream(source, tmp_path / "a.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes() == first
    assert gzip.decompress(first).count(b"\n") == N + 1


def test_name_clashes_and_several_columns(tmp_path: Path) -> None:
    class Several:
        def predict(self, table):
            n = len(table)
            targets = (Target("status"), Target("c", "multiclass", classes=("a", "b")))
            value = np.tile([1.0, 0.25, 0.75], (n, 1))
            ok, empty = np.full(n, "ok", dtype=object), np.full(n, "", dtype=object)
            return Prediction(table.ids, targets, value, ok, empty, spread=value / 2, inputs=table.smiles)

    path = tmp_path / "in.csv"
    path.write_text('smiles\n"C,C"\nCC\n')
    predict_stream(Several(), path, tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "id,smiles,status_predicted,status_predicted_spread,c:a,c:a_spread,c:b,c:b_spread,status,reason"
    assert lines[1].split(",", 1)[1] == '"C,C",1,0.5,0.25,0.125,0.75,0.375,ok,'


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_every_column_of_the_file_has_a_name_of_its_own(tmp_path: Path, name: str) -> None:
    class Spreads:
        def predict(self, table):
            n = len(table)
            value = np.tile([1.0, 2.0, 3.0], (n, 1))
            ok, empty = np.full(n, "ok", dtype=object), np.full(n, "", dtype=object)
            targets = (Target("a"), Target("a_spread"), Target("input"))
            return Prediction(table.ids, targets, value, ok, empty, spread=value / 2, inputs=table.smiles)

    path = tmp_path / "in.csv"
    path.write_text("reason,x\nC,1\nCC,2\n")
    predict_stream(Spreads(), path, tmp_path / name, smiles="reason")
    frame = pd.read_parquet(tmp_path / name) if name.endswith("parquet") else pd.read_csv(tmp_path / name)
    groups = [f"{stem}{end}" for stem in ("a_predicted", "a_spread", "input_predicted") for end in ("", "_spread")]
    assert list(frame) == ["id", "input", *groups, "status", "reason"]
    assert frame[groups].iloc[0].tolist() == [1, 0.5, 2, 1, 3, 1.5]
