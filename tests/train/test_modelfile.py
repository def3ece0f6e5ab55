"""The model file: what goes in comes out; what is damaged, foreign or hostile gets one sentence."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from molgraph.base.contracts import State
from molgraph.base.errors import (
    CannotReadError,
    CannotWriteError,
    DamagedModelError,
    ForeignModelError,
    MissingFileError,
    ModelFileError,
    NewerVersionError,
)
from molgraph.train import archive
from molgraph.train.card import ModelCard
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from tests.tiny import mixed, series, small

QUESTIONS = ["CCO", "c1ccccc1C(=O)O", "not a molecule", "CC(=O)[O-].[Na+]"]


def model_of(table, **params) -> Model:
    method = small(epochs=1, **params).fit(table)
    card = ModelCard(name="dmpnn", n_train=len(table), units={"a": "mol/l"}, notes=("made by a test",))
    return Model(method, targets=table.row_targets, feature_names=table.feature_names, card=card)


class Saved(tuple):
    """A model's file, its bytes and its answers, not printed in full where a test fails."""

    def __repr__(self) -> str:
        return f"Saved({self[0]})"


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Saved:
    """A small model's file."""
    model = model_of(series(32))
    path = model.save(tmp_path_factory.mktemp("model") / "small")
    return Saved((path, path.read_bytes(), model.predict(QUESTIONS).value))


@pytest.mark.slow
def test_a_loaded_model_answers_as_the_saved_one(tmp_path):
    table = mixed()
    model = model_of(table)
    path = model.save(tmp_path / "mixed.mgm")
    again = load_model(path)
    a, b = model.predict_table(table), again.predict_table(table)
    assert a.value.tobytes() == b.value.tobytes() and list(a.reason) == list(b.reason)
    assert again.targets == table.row_targets and again.feature_names == ("f", "g")
    assert again.card == model.card and again.method.curves.equals(model.method.curves)
    assert again.save(tmp_path / "again.mgm").read_bytes() == path.read_bytes()


def test_a_file_keeps_the_defaults_of_its_day():
    table = series(32)
    state = model_of(table).method.state()

    def answers(**changes) -> np.ndarray:
        return GraphMethod.from_state(State(state.arrays, state.meta | changes)).predict(table).value

    def given(**params) -> dict:
        return state.meta["params"] | {"params": state.meta["params"]["params"] | params}

    then = {"dmpnn": state.meta["defaults"]["dmpnn"] | {"readout": "sum"}}
    by_sum, by_mean = answers(params=given(readout="sum")), answers(params=given(readout="mean"))
    assert not np.allclose(by_sum, answers())
    assert np.array_equal(answers(defaults=then), by_sum)
    assert np.array_equal(answers(defaults=then, params=given(readout="mean")), by_mean)


@pytest.mark.slow
def test_a_convolution_with_batch_norm_comes_back(tmp_path):
    """Its count of batches is an array without axes."""
    table = series(8)
    params = {"conv": "GENConv", "d_hidden": 8, "options": {"num_layers": 2}}
    model = Model(small(epochs=1, encoder="pyg_conv", params=params).fit(table), targets=table.row_targets)
    again = load_model(model.save(tmp_path / "a.mgm"))
    assert again.predict(QUESTIONS).value.tobytes() == model.predict(QUESTIONS).value.tobytes()


@pytest.mark.slow
def test_suffix_and_verify(saved):
    path, _, _ = saved
    assert path.name == "small.mgm"
    found = verify(path)
    assert found.n_molecules >= 20 and found.largest_gap == 0


def test_no_row_of_the_users_is_in_the_file(saved):
    _, data, _ = saved
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        text = b"".join(file.read(name) for name in file.namelist())
    assert not any(smiles.encode() in text for smiles in series(32).smiles)


def test_the_empty_part_of_former_files_is_not_written_and_may_be_there(saved, tmp_path):
    _, whole, answers = saved
    with zipfile.ZipFile(io.BytesIO(whole)) as file:
        assert "calibration.json" not in file.namelist()
    (tmp_path / "former.mgm").write_bytes(_rewritten(whole, _nothing, **{"calibration.json": b"{}"}))
    assert load_model(tmp_path / "former.mgm").predict(QUESTIONS).value.tobytes() == answers.tobytes()
    half = json.dumps(" " * (archive.LARGEST_JSON - 100)).encode()
    (tmp_path / "former.mgm").write_bytes(_rewritten(whole, _nothing, **{"calibration.json": half}))
    with pytest.raises(DamagedModelError, match="JSON"):
        load_model(tmp_path / "former.mgm")


def test_verify_notices_other_answers(saved, tmp_path):
    path, _, _ = saved
    parts, arrays = archive.read_archive(path)
    arrays["network.head.layers.1.bias"] = arrays["network.head.layers.1.bias"] + 0.01
    archive.write_archive(tmp_path / "other.mgm", parts, arrays)
    load_model(tmp_path / "other.mgm")
    with pytest.raises(ModelFileError, match=r"other\.mgm: .* answers"):
        verify(tmp_path / "other.mgm")


@pytest.mark.slow
@settings(max_examples=120)
@given(data=st.data())
def test_damage_is_noticed_or_does_no_harm(saved, tmp_path_factory, data):
    """Any flipped byte, cut or addition: a ModelFileError, or the very same answers; never another error."""
    _, whole, answers = saved
    path = tmp_path_factory.getbasetemp() / "damaged.mgm"
    kind = data.draw(st.sampled_from(["flip", "cut", "add", "double", "zero"]))
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    if kind == "flip":
        changed[at] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del changed[at:]
    elif kind == "add":
        changed[at:at] = data.draw(st.binary(min_size=1, max_size=9))
    elif kind == "double":
        changed += bytes(changed)
    else:
        changed[at : at + 16] = bytes(len(changed[at : at + 16]))
    path.write_bytes(changed)
    _same_or_refused(path, answers)


@pytest.mark.slow
def test_damage_to_the_zips_own_records(saved, tmp_path):
    """Where it is likeliest to matter: the first local header, the central directory, the end."""
    _, whole, answers = saved
    directory = struct.unpack("<L", whole[-6:-2])[0]
    path = tmp_path / "damaged.mgm"
    for at in (*range(45), *range(directory, len(whole), 2)):
        changed = bytearray(whole)
        changed[at] ^= 0xFF
        path.write_bytes(changed)
        _same_or_refused(path, answers)


def _same_or_refused(path: Path, answers: np.ndarray) -> None:
    try:
        model = load_model(path)
    except ModelFileError as error:
        refused = error
    else:
        assert model.predict(QUESTIONS).value.tobytes() == answers.tobytes()
        return
    assert "\n" not in refused.message and str(path) in refused.message


def _rewritten(whole: bytes, change: Callable[[dict], None], **files: bytes) -> bytes:
    """The file with members and manifest changed and every checksum made to fit."""
    with zipfile.ZipFile(io.BytesIO(whole)) as file:
        members = {name: file.read(name) for name in file.namelist()} | files
    manifest = json.loads(members.pop("manifest.json"))
    for name, data in members.items():
        manifest["members"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    change(manifest)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("manifest.json", json.dumps(manifest))
        for name, data in members.items():
            kind = zipfile.ZIP_STORED if name.endswith("tensors") else zipfile.ZIP_DEFLATED
            file.writestr(zipfile.ZipInfo(name), data, compress_type=kind)
    return out.getvalue()


def _nothing(manifest: dict) -> None: ...


def _weights(header: dict, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def _method(whole: bytes, **changes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(whole)) as file:
        method = json.loads(file.read("method.json"))
    method["meta"]["params"] |= changes
    return json.dumps(method).encode()


def test_hostile_and_foreign_files_get_one_sentence(saved, tmp_path):
    _, whole, _ = saved
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("hello.txt", "hello")
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as file:
        for i in range(50):
            file.writestr(f"{i}", "")
    bomb = json.dumps(" " * (archive.LARGEST_JSON + 1)).encode()
    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    files = {
        "empty": (b"", "no molgraph model"),
        "text": (b"smiles,y\nCCO,1\n", "no molgraph model"),
        "pickle": (pickle.dumps({"a": 1}), "no molgraph model"),
        "other zip": (zipped.getvalue(), "no molgraph model"),
        "many": (many.getvalue(), "more parts"),
        "newer": (_rewritten(whole, lambda m: m.update(version=2, molgraph="9.9")), r"(?s)format 2.*9\.9"),
        "no version": (_rewritten(whole, lambda m: m.update(version="x")), "version"),
        "foreign": (_rewritten(whole, lambda m: m.update(format="other")), "no molgraph model"),
        "more": (_rewritten(whole, _nothing, **{"run.py": b"print()"}), "one too many"),
        "bomb": (_rewritten(whole, _nothing, **{"card.json": bomb}), "JSON"),
        "no json": (_rewritten(whole, _nothing, **{"card.json": b"{"}), r"card\.json"),
        "nan": (_rewritten(whole, _nothing, **{"card.json": b'{"n_train": NaN}'}), "NaN"),
        "deep": (_rewritten(whole, _nothing, **{"card.json": b"[" * 100_000}), r"card\.json"),
        "card": (_rewritten(whole, _nothing, **{"card.json": b'{"notes": 3}'}), "card"),
        "long header": (_rewritten(whole, _nothing, **{"weights.safetensors": struct.pack("<Q", 1 << 60)}), "header"),
        "no weights": (_rewritten(whole, _nothing, **{"weights.safetensors": _weights({})}), "parts|weights"),
        "overlap": (
            _rewritten(whole, _nothing, **{"weights.safetensors": _weights({"a": tensor, "b": tensor}, bytes(8))}),
            "bytes",
        ),
        "shape": (
            _rewritten(whole, _nothing, **{"weights.safetensors": _weights({"a": tensor | {"shape": [9]}}, bytes(8))}),
            "bytes",
        ),
        "huge": (
            _rewritten(whole, _nothing, **{"method.json": _method(whole, head_width=10**12)}),
            "head_width",
        ),
        "wide": (_rewritten(whole, _nothing, **{"method.json": _method(whole, head_width=10**6)}), "shape"),
        "layers": (_rewritten(whole, _nothing, **{"method.json": _method(whole, head_layers=10**5)}), "shapes"),
        "encoder": (_rewritten(whole, _nothing, **{"method.json": _method(whole, encoder="x")}), "'x'"),
        "unknown": (
            _rewritten(whole, _nothing, **{"method.json": b'{"name": "os.system", "meta": {}}'}),
            r"os\.system",
        ),
    }
    foreign = dict.fromkeys(("empty", "text", "pickle", "other zip", "many", "foreign"), ForeignModelError)
    kinds = {**foreign, "newer": NewerVersionError, "unknown": ModelFileError}
    for name, (data, words) in files.items():
        path = tmp_path / "odd.mgm"
        path.write_bytes(data)
        with pytest.raises(kinds.get(name, DamagedModelError), match=words) as error:
            load_model(path)
        assert "\n" not in error.value.message, name


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(MissingFileError, match=r"none\.mgm"):
        load_model(tmp_path / "none.mgm")
    with pytest.raises(CannotReadError):
        load_model(tmp_path)
    with pytest.raises(CannotWriteError, match=r"folder\.mgm"):
        model_of(series(8)).save(tmp_path / "no" / "such" / "folder.mgm")


def test_a_failed_save_leaves_the_old_file(saved, tmp_path, monkeypatch):
    path = tmp_path / "kept.mgm"
    path.write_bytes(saved[1])
    model = load_model(path)
    monkeypatch.setattr(archive.zipfile.ZipFile, "writestr", lambda *_: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(CannotWriteError, match="disk"):
        model.save(path)
    assert path.read_bytes() == saved[1] and len(list(tmp_path.iterdir())) == 1
