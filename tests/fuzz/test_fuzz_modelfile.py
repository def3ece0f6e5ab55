"""Model files with odd values and right checksums: refused, or harmless; never a traceback, a hang or much memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from molgraph.base.errors import DamagedModelError, ModelFileError
from molgraph.train.modelfile import load_model
from pipelines.attack.mutate import Opened, mutated, pack, unpack
from pipelines.attack.run import Worker

GOLDEN = Path(__file__).parents[1] / "golden"
SECONDS, MEGABYTES = 3.0, 300


def golden(name: str) -> bytes:
    return (GOLDEN / f"0.1.0-{name}.mgm").read_bytes()


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """A process that opens files, and can be ended where it does not answer."""
    made = Worker()
    for name in ("knn", "dmpnn", "forest", "mpnn"):  # what is imported once is no file's fault
        made.ask(GOLDEN / f"0.1.0-{name}.mgm")
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["knn", "dmpnn", "forest"])
def test_mutated_files_are_refused_or_harmless(worker, tmp_path, name):
    whole, path, ended = golden(name), tmp_path / "odd.mgm", []
    for seed in range(30):
        data, change = mutated(whole, seed)
        path.write_bytes(data)
        told = worker.ask(path)
        ended.append(told["ended"])
        assert told["ended"] in ("refused", "answered"), (seed, change, told)
        assert told["seconds"] < 5 and told["peak_mb"] - told["before_mb"] < 500, (seed, change, told)
    assert {"refused", "answered"} == set(ended)


def _params(**changes: Any) -> Callable[[Opened], None]:
    def change(opened: Opened) -> None:
        opened.parts["method.json"]["meta"]["params"] |= changes

    return change


def _inner(**changes: Any) -> Callable[[Opened], None]:
    def change(opened: Opened) -> None:
        opened.parts["method.json"]["meta"]["params"]["params"] |= changes

    return change


def _conv(**changes: Any) -> Callable[[Opened], None]:
    def change(opened: Opened) -> None:
        params = {"conv": "GCNConv", "d_hidden": 8} | changes
        opened.parts["method.json"]["meta"]["params"] |= {"encoder": "pyg_conv", "params": params}

    return change


def _features(**changes: Any) -> Callable[[Opened], None]:
    def change(opened: Opened) -> None:
        opened.parts["method.json"]["meta"]["features"] |= changes

    return change


def _arrays(opened: Opened, arrays: dict[str, np.ndarray]) -> None:
    """Put arrays in the place of others, as a file that nobody of ours wrote would have them."""
    kinds = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32", "uint8": "U8"}
    values = {}
    for name, entry in opened.header.items():
        begin, end = entry["data_offsets"]
        values[name] = (entry["dtype"], entry["shape"], opened.data[begin:end])
    for name, array in arrays.items():
        values[name] = (kinds[array.dtype.name], list(array.shape), array.tobytes())
    opened.header, data = {}, b""
    for name, (dtype, shape, piece) in values.items():
        opened.header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    opened.data = data


def _rows(n: int, **more: np.ndarray) -> Callable[[Opened], None]:
    """A process of n rows, the same one again and again where the reference has fewer."""

    def change(opened: Opened) -> None:
        ones = np.ones((n, 1))
        rows = np.arange(n) if "reference" in more else np.zeros(n, dtype=np.int64)
        _arrays(opened, {"target_0.rows": rows, "target_0.alpha": ones, "target_0.noise": ones, **more})
        if "reference" in more:
            opened.parts["method.json"]["meta"]["features"]["n_bits"] = 8

    return change


def _trees(left: np.ndarray) -> Callable[[Opened], None]:
    def change(opened: Opened) -> None:
        n = len(left)
        flat = {"left": left.astype(np.int32), "feature": np.zeros(n, np.int32), "threshold": np.zeros(n)}
        flat |= {"offsets": np.array([0, n]), "value": np.zeros((n, 1))}
        _arrays(opened, {f"target_0.{name}": array for name, array in flat.items()})

    return change


def _chain(levels: int) -> np.ndarray:
    left = np.zeros(2 * levels + 1, dtype=np.int64)
    left[0], left[2:-1:2] = 1, np.arange(3, 2 * levels + 1, 2)
    return left


def _json_bomb(opened: Opened) -> None:
    opened.parts = dict.fromkeys(opened.parts, " " * (8 << 20))


def _members(n: int) -> Callable[[Opened], None]:
    def change(opened: Opened) -> None:
        meta = opened.parts["method.json"]["meta"]
        meta["members"] = meta["members"][:1] * n

    return change


REFERENCE = np.ones((30_000, 1), dtype=np.uint8)
BOMBS: dict[str, tuple[str, Callable[[Opened], None]]] = {
    "six parts of JSON": ("mean", _json_bomb),
    "gp of doubled rows": ("gp", _rows(30_000)),
    "gp of 30,000 rows": ("gp", _rows(30_000, reference=REFERENCE)),
    "linear of a million columns": ("linear", _features(n_bits=1 << 20)),
    "a tree of 100,000 levels": ("forest", _trees(_chain(100_000))),
    "a tree that is none": ("forest", _trees(np.array([1, 2, 2, 0, 0]))),
    "dmpnn width": ("dmpnn", _inner(d_hidden=4096)),
    "mpnn width": ("mpnn", _inner(d_hidden=4096, d_edge=4096)),
    "head layers": ("dmpnn", _params(head_layers=1 << 20)),
    "head width": ("dmpnn", _params(head_width=1 << 20)),
    "TAGConv K": ("dmpnn", _conv(conv="TAGConv", options={"K": 1 << 20})),
    "TAGConv smaller K": ("dmpnn", _conv(conv="TAGConv", options={"K": 4096})),
    "GCNConv depth": ("dmpnn", _conv(depth=4096)),
    "GATConv heads": ("dmpnn", _conv(conv="GATConv", d_hidden=4096, heads=4096)),
    "ensemble of too many": ("ensemble", _members(1001)),
    "ensemble of one member's settings": ("ensemble", _members(1000)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_at_once(worker, tmp_path, name):
    kind, change = BOMBS[name]
    opened = unpack(golden(kind))
    change(opened)
    (tmp_path / "bomb.mgm").write_bytes(pack(opened))
    told = worker.ask(tmp_path / "bomb.mgm")
    assert told["ended"] == "refused", told
    assert told["seconds"] < SECONDS and told["peak_mb"] - told["before_mb"] < MEGABYTES, told


HEADERS = [
    [],
    "x",
    None,
    3,
    {"a": None},
    {"a": []},
    {"a": {"dtype": "F32"}},
    {"__metadata__": 3},
    {"__metadata__": {"a": 1}},
]
SHAPES = [[2.0], [-2], [1 << 62, 4], ["2"], [True, 2], "2", None, 2, [1] * 50 + [2], [[2]]]
OFFSETS = [[0, 8.0], [-8, 0], [8, 0], [0], None, "08", [0, 1 << 70], [[0], 8]]
ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
HEADERS += [{"a": ENTRY | {"shape": v}} for v in SHAPES] + [{"a": ENTRY | {"data_offsets": v}} for v in OFFSETS]
HEADERS += [{"a": ENTRY | {"dtype": v}} for v in ("F16", "X", 3, None, ["F32"])] + [{"a": ENTRY | {"more": 1}}]


def test_headers_of_arrays_that_cannot_be_are_refused_in_one_sentence(tmp_path):
    opened = unpack(golden("mean"))
    for header in HEADERS:
        (tmp_path / "odd.mgm").write_bytes(pack(Opened(opened.parts, header, bytes(8))))
        with pytest.raises(DamagedModelError) as error:
            load_model(tmp_path / "odd.mgm")
        assert "\n" not in error.value.message, header


ODD_PARTS: list[tuple[str, str, Callable[[Any], None]]] = [
    ("dmpnn", "depth is 3.5", lambda p: p["method.json"]["meta"]["params"]["params"].update(depth=3.5)),
    ("dmpnn", "precision is 7", lambda p: p["method.json"]["meta"]["params"].update(precision=7)),
    ("dmpnn", "precision", lambda p: p["method.json"]["meta"]["params"].update(precision="float7")),
    ("dmpnn", "head_dropout", lambda p: p["method.json"]["meta"]["params"].update(head_dropout="much")),
    ("dmpnn", "features", lambda p: p["method.json"]["meta"].update(featuriser="v9.9")),
    ("dmpnn", "features", lambda p: p["method.json"]["meta"].update(d_atom=71)),
    ("dmpnn", "targets.json", lambda p: p["targets.json"]["targets"][0].update(name="\ud800")),
    ("dmpnn", "targets", lambda p: p["targets.json"].update(targets=p["targets.json"]["targets"][:1])),
    ("dmpnn", "lack|column", lambda p: p["targets.json"].update(feature_names=["z"])),
    ("forest", "n_estimators is \\[\\]", lambda p: p["method.json"]["meta"]["params"].update(n_estimators=[])),
    ("forest", "too large", lambda p: p["method.json"]["meta"]["params"].update(seed=10**30)),
    (
        "ensemble",
        "depth is 3.5",
        lambda p: p["method.json"]["meta"]["members"][0]["params"]["params"].update(depth=3.5),
    ),
    ("mean", "scores", lambda p: p["card.json"].update(scores=[1])),
    ("mean", "scores", lambda p: p["card.json"].update(scores=[{"target": "y", "value": "high"}])),
    ("mean", "notes", lambda p: p["card.json"].update(notes=[[]])),
    ("mean", "n_train", lambda p: p["card.json"].update(n_train="many")),
]


@pytest.mark.parametrize(("name", "word", "change"), ODD_PARTS)
def test_values_of_another_type_are_refused_by_their_names(tmp_path, name, word, change):
    opened = unpack(golden(name))
    change(opened.parts)
    (tmp_path / "odd.mgm").write_bytes(pack(opened))
    with pytest.raises(ModelFileError if word == "features" else DamagedModelError, match=word):
        load_model(tmp_path / "odd.mgm")


@pytest.mark.parametrize("word", ["1e999", "NaN", "-Infinity", "1" * 5000])
def test_numbers_that_no_machine_has_are_refused(tmp_path, word):
    opened = unpack(golden("mean"))
    text = json.dumps(opened.parts["card.json"]).replace('"n_train": 48', f'"n_train": {word}')
    assert word in text
    opened.parts["card.json"] = text.encode()
    (tmp_path / "odd.mgm").write_bytes(pack(opened))
    with pytest.raises(DamagedModelError, match=r"card\.json"):
        load_model(tmp_path / "odd.mgm")
