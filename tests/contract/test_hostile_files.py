"""What model files must withstand: those of every method and generator, of two encoders, and of each stored layout."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from molgraph.base import registry
from molgraph.base.contracts import Method, Target
from molgraph.base.errors import BadValueError, ModelFileError
from molgraph.train import archive, modelwriter
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from molgraph.train.network import encoder_params
from pipelines.attack.mutate import mutated, pack, unpack
from pipelines.attack.run import Worker
from tests.contract.members import LAYOUTS, standing
from tests.contract.test_generators import NAMES as GENERATORS
from tests.contract.test_generators import quick as quick_generator
from tests.contract.test_methods import NAMES, labelled, quick, readable

OTHERS = sorted({*registry.names("encoder")} - {*NAMES})


@pytest.fixture(scope="module", params=[*NAMES, *LAYOUTS])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small file of each method."""
    fitted = quick(request.param).fit(labelled("regression", 48))  # of which conformal holds some out
    return Model(fitted, targets=(Target("y"),)).save(tmp_path_factory.mktemp("file") / "a.mgm").read_bytes()


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


def parts_of(method: Method) -> list[Method]:
    return [method, *(part for member in getattr(method, "members", ()) for part in parts_of(member))]


@pytest.mark.slow
def test_run_only_parameters_are_dropped_on_load(whole, tmp_path):
    opened = unpack(whole)
    meta = opened.parts["method.json"]["meta"]
    folder = tmp_path / "made by a stranger"
    hostile = {"store": str(folder), "threads": 1_000_000, "device": "cuda:7", "devices": 99, "strategy": "ddp"}
    hostile |= {"predict_batch": 0, "checkpoint_seconds": -1.0}
    cls = registry.get("method", opened.parts["method.json"]["name"])
    for each, kind in [(meta, cls), *((m, registry.get("method", meta["member"])) for m in meta.get("members", []))]:
        each["params"] |= {name: value for name, value in hostile.items() if name in kind.param_names()}
        if "method" in each["params"]:
            each["params"]["params"] |= hostile
    (tmp_path / "odd.mgm").write_bytes(pack(opened))
    model = load_model(tmp_path / "odd.mgm")
    for part in parts_of(model.method):
        run_only = set(part.run_only) & set(part.param_names())
        given = part.get_params()
        plain = type(part)().get_params()
        assert {name: given[name] for name in run_only} == {name: plain[name] for name in run_only}
    model.predict(["CCO"] * 20)
    assert not folder.exists() and sorted(p.name for p in tmp_path.iterdir()) == ["odd.mgm"]


@pytest.mark.parametrize("name", registry.names("encoder"))
def test_no_encoder_calls_a_parameter_by_a_run_only_name(name):
    assert not set(encoder_params(name)) & set(Method.run_only)


def _whole_numbers(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [path] if isinstance(value, int) and not isinstance(value, bool) else []
    return found + [place for key, each in items for place in _whole_numbers(each, (*path, key))]


@pytest.mark.slow
def test_no_whole_number_of_a_file_is_a_bomb(whole, worker, tmp_path):
    check_no_bomb(whole, worker, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATORS)
def test_no_file_of_a_generator_is_a_bomb(name, worker, tmp_path):
    fitted = quick_generator(name).fit(labelled("regression", 16))
    whole = Model(fitted, targets=()).save(tmp_path / "a.mgm").read_bytes()
    check_no_bomb(whole, worker, tmp_path)
    for i in range(60 if name in standing("generator") else 0):
        (tmp_path / "odd.mgm").write_bytes(mutated(whole, i)[0])
        told = worker.ask(tmp_path / "odd.mgm")
        assert told["ended"] in ("refused", "answered") and told["seconds"] < 5, (i, told)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_no_number_of_an_encoder_in_a_file_is_a_bomb(name, worker, tmp_path):
    """Its own numbers alone: those of the training around it are the same in every file of a network."""
    fitted = quick(name).fit(readable(labelled("regression", 16), name))
    whole = Model(fitted, targets=(Target("y"),)).save(tmp_path / "a.mgm").read_bytes()
    check_no_bomb(whole, worker, tmp_path, under=("params", "params"))


def check_no_bomb(whole: bytes, worker: Worker, tmp_path: Path, under: tuple[str, ...] = ()) -> None:
    """Every number of the description at two absurd values: refused, or answered, in no more memory."""
    (tmp_path / "sound.mgm").write_bytes(whole)
    assert worker.ask(tmp_path / "sound.mgm")["ended"] == "answered"
    opened = unpack(whole)
    meta = opened.parts["method.json"]["meta"]
    places = [p for p in _whole_numbers(meta) if "curves" not in p and p[:2] != ("members", 1)]
    places = [place for place in places if place[: len(under)] == under]
    assert places or under or meta["params"] == {}
    for place in places:
        for number in (4096, 1 << 20):
            changed = unpack(whole)
            holder = changed.parts["method.json"]["meta"]
            for key in place[:-1]:
                holder = holder[key]
            holder[place[-1]] = number
            (tmp_path / "odd.mgm").write_bytes(pack(changed))
            told = worker.ask(tmp_path / "odd.mgm")
            assert told["ended"] in ("refused", "answered"), (place, number, told)
            assert told["peak_mb"] - told["before_mb"] < 300, (place, number, told)


def test_a_model_that_could_not_be_loaded_is_not_written(tmp_path):
    fitted = quick("gp").fit(labelled("regression", 16))
    fitted.set_params(radius="two")
    with pytest.raises(BadValueError, match="radius is 'two'"):
        Model(fitted, targets=(Target("y"),)).save(tmp_path / "a.mgm")
    assert not list(tmp_path.iterdir())


def test_learning_curves_that_no_file_has_room_for_are_left_out(tmp_path, monkeypatch):
    fitted = quick("dmpnn").fit(labelled("regression", 16))
    model = Model(fitted, targets=(Target("y"),))
    size = archive.json_size(unpack(model.save(tmp_path / "a.mgm").read_bytes()).parts)
    assert load_model(tmp_path / "a.mgm").method.curves is not None
    for module in (archive, modelwriter):
        monkeypatch.setattr(module, "LARGEST_JSON", size - 1)
    assert load_model(model.save(tmp_path / "b.mgm")).method.curves is None
    for module in (archive, modelwriter):
        monkeypatch.setattr(module, "LARGEST_JSON", 100)
    with pytest.raises(ModelFileError, match="members"):
        model.save(tmp_path / "c.mgm")
    assert not (tmp_path / "c.mgm").exists()
