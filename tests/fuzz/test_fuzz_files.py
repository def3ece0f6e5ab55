"""Mutated files: a sentence, or rows that are sound; bounded in time and memory.

python tests/fuzz/test_fuzz_files.py 600    # seconds; with seeds of its own
"""

from __future__ import annotations

import gzip
import io
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import MolgraphError
from molgraph.train.stream import predict_stream
from tests.data.chunked import iter_tables

ROWS, SECONDS, MEGABYTES = 60, 5.0, 300
WORDS = (b"$$$$\n", b"M  END\n", b"> <y>\n", b"\n", b"\r", b'"', b",", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"9" * 40)
WORDS += (b"\x1f\x8b\x08\x00", b"PAR1", b"C" * 6000, b"  0" * 30, b"V3000", b"{", b"[[[", b"null", b"-1", b"1e999")


def _csv() -> bytes:
    return b"id,smiles,y\n" + b"".join(b"%d,%sO,%d.5\n" % (i, b"C" * (i % 9 + 1), i) for i in range(ROWS))


def _sdf() -> bytes:
    atom, record = (
        "    0.0000    0.0000    0.0000 {}   0  0\n",
        "{}\n  x\n\n  2  1  0  0  0  0  0  0  0  0999 V2000\n{}",
    )
    tail = "  1  2  1  0\nM  END\n> <y>\n{}\n\n$$$$\n"
    return "".join(record.format(i, atom.format("C") + atom.format("O")) + tail.format(i) for i in range(ROWS)).encode()


def _parquet() -> bytes:
    table = pa.table({"smiles": [f"{'C' * (i % 9 + 1)}O" for i in range(ROWS)], "y": np.arange(ROWS) / 2})
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=25)
    return out.getvalue()


KINDS: dict[str, Callable[[], bytes]] = {
    "t.csv": _csv,
    "t.csv.gz": lambda: gzip.compress(_csv(), 6, mtime=0),
    "t.smi.gz": lambda: gzip.compress(_csv().replace(b",", b" "), 6, mtime=0) * 2,
    "t.sdf": _sdf,
    "t.sdf.gz": lambda: gzip.compress(_sdf(), 6, mtime=0),
    "t.parquet": _parquet,
}


@cache
def valid(name: str) -> bytes:
    """A small sound file."""
    return KINDS[name]()


def mutate(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with a few changed, taken out, doubled, cut off, or words of the formats put between them."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at, n = int(rng.integers(len(out) + 1)), int(rng.integers(1, 40))
        kind = rng.integers(7)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            out[at : at + n] = rng.bytes(n)
        elif kind == 2:
            del out[at : at + n]
        elif kind == 3:
            out[at:at] = out[at : at + 4 * n]
        elif kind == 4:
            out[at:at] = WORDS[rng.integers(len(WORDS))]
        elif kind == 5:
            start = int(rng.integers(len(out) + 1))
            out[at : at + n] = out[start : start + n]
        elif rng.random() < 0.3:
            del out[at:]
    return bytes(out)


def read_one(path: Path) -> int:
    """The target: every row of a file that is read is sound or has a reason; the number of rows, -1 for a refusal."""
    rows, started, refused = 0, time.perf_counter(), None
    try:
        for table in iter_tables(path, chunk_rows=16):
            rows += len(table)
            assert all((s == "ok") == (r == "") for s, r in zip(table.status, table.reason, strict=True))
            assert all(isinstance(text, str) for values in (table.ids, table.smiles) for text in values)
    except MolgraphError as error:
        refused = error
    assert time.perf_counter() - started < SECONDS
    assert refused is None or (refused.exit_code in (3, 5) and refused.message and len(str(refused)) < 2000)
    return -1 if refused else rows


class Lengths:
    """Predicts the length of a SMILES; dies before a chunk."""

    def __init__(self, last: int = -1) -> None:
        self.last = last

    def predict(self, table):
        if self.last == 0:
            raise KeyboardInterrupt
        self.last -= 1
        value = np.where(table.ok, [float(len(text)) for text in table.smiles], np.nan).reshape(-1, 1)
        return Prediction(table.ids, (Target("y"),), value, table.status, table.reason, inputs=table.smiles)


def resume_one(folder: Path, rng: np.random.Generator) -> int:
    """The target: a run goes on behind a mutated chunk to the right bytes; the number of rows that it took over."""
    source, out = folder / "t.csv", folder / "o.csv"
    if not source.exists():
        source.write_bytes(valid("t.csv"))
        predict_stream(Lengths(), source, folder / "whole.csv", model_hash="m", chunk_rows=10)
    out.unlink(missing_ok=True)
    with pytest.raises(KeyboardInterrupt):
        predict_stream(Lengths(3), source, out, model_hash="m", chunk_rows=10)
    hit = rng.choice(sorted((folder / "o.csv.parts").glob("*.chunk")))
    hit.write_bytes(mutate(hit.read_bytes(), rng))
    done = predict_stream(Lengths(), source, out, model_hash="m", chunk_rows=10)
    assert out.read_bytes() == (folder / "whole.csv").read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["o.csv", "t.csv", "whole.csv"]
    return done.resumed


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_mutated_files(tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    rng, path, found = np.random.default_rng(0), tmp_path / name, []
    path.write_bytes(valid(name))
    assert read_one(path) in (ROWS, 2 * (ROWS + 1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(120):
        path.write_bytes(mutate(valid(name), rng))
        found.append(read_one(path))
    assert sum(rows >= 0 for rows in found) > 3  # and others are refused
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024 < MEGABYTES
    assert capfd.readouterr().err == ""


def test_mutated_chunks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    assert {resume_one(tmp_path, rng) for _ in range(40)} <= {20, 30}  # of three chunks of ten rows


if __name__ == "__main__":
    end, seed = time.monotonic() + float(sys.argv[1]), time.time_ns()
    with tempfile.TemporaryDirectory() as place:
        Path(place, "resumed").mkdir()
        while time.monotonic() < end:
            seed += 1
            generator = np.random.default_rng(seed)
            chosen = Path(place, list(KINDS)[generator.integers(len(KINDS))])
            chosen.write_bytes(mutate(valid(chosen.name), generator))
            try:
                read_one(chosen)
                resume_one(chosen.parent / "resumed", generator)
            except BaseException as failure:
                failure.add_note(f"seed {seed}, {chosen.name}")
                raise
