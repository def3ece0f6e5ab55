"""How a loaded model runs, and that a default stands in one place."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, UnknownNameError
from molgraph.base.packed import Packed
from molgraph.base.recipe_keys import GENERATOR_KEYWORDS, KEYWORDS, PRETRAIN_KEYWORDS
from molgraph.base.run_config import RunConfig
from molgraph.chem.descriptors import NAMES
from molgraph.cli import train as shell
from molgraph.data.featurize import featurize
from molgraph.data.table import Table, make_table
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.trust.ensemble import Ensemble
from tests.end_to_end.conftest import molgraph as run
from tests.tiny import series, small


@pytest.mark.parametrize("ensemble", [False, True])
def test_load_says_where_and_how_a_model_runs(ensemble: bool, tmp_path: Path) -> None:
    params = {"params": {"d_hidden": 8}, "head_width": 8, "epochs": 1}
    method = (Ensemble("dmpnn", n=2, params=params) if ensemble else small(epochs=1, threads=2)).fit(series(16))
    path = Model(method, targets=(Target("pActivity"),)).save(tmp_path / "m.mgm")
    model = molgraph.load(path, device="auto", threads=1, precision="bfloat16")
    for part in getattr(model.method, "members", [model.method]):
        assert (part.device, part.threads, part.precision) == ("auto", 1, "bfloat16")
    assert model.predict(["CCO"]).ok.all()
    plain = molgraph.load(path)
    for part in getattr(plain.method, "members", [plain.method]):
        assert (part.device, part.threads, part.precision) == ("cpu", None, "float32")
    for key, wrong, error in (("device", "gpux", UnknownNameError), ("precision", "float8", BadValueError)):
        with pytest.raises(error, match=wrong):
            molgraph.load(path, **{key: wrong})


def test_the_recipe_is_the_methods_signature() -> None:
    values = RunConfig().training.model_dump()
    own = {p.name: p.default for p in inspect.signature(GraphMethod).parameters.values()}
    shared = own.keys() & values.keys()
    assert shared == values.keys() - {"ensemble", "baseline", "compare", "budget"}
    assert {name: own[name] for name in shared} == {name: values[name] for name in shared}
    assert own["patience"] == 15 and own["gradient_clip"] == 10


def test_the_shells_help_tells_the_recipes_defaults() -> None:
    recipe = RunConfig()
    known = recipe.data.model_dump() | {"model": recipe.model.name}
    known |= {"split": recipe.split.splitter, "fractions": ",".join(map(str, recipe.split.fractions))}
    known |= recipe.training.model_dump() | {"baseline": "on", "out": "a new model.mgm"}
    known["keep"] = inspect.signature(shell.train).parameters["keep"].default
    told = {}
    for name, parameter in inspect.signature(shell.train, eval_str=True).parameters.items():
        found = re.search(r"\[dim\]\((.*)\)\[/dim\]", parameter.annotation.__metadata__[0].help)
        if found:
            told[name] = found[1]
    assert len(told) >= 12
    assert told == {name: str(known[name]) for name in told}


def test_the_usual_model_reads_descriptors_of_molecules_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = series(40)

    def learnt(data: Table = table, *, params: dict[str, Any] | None = None, **more: Any) -> list[int]:
        """How many descriptors each member reads."""
        size = {"d_hidden": 8, "head_width": 8} | (params or {})
        model = molgraph.train(data, params=size, epochs=1, baseline=False, split="random", **more).model
        return [len(part.ready().descriptors.names) for part in model.method.members or [model.method]]

    assert learnt() == [len(NAMES)] and learnt(ensemble=2) == [len(NAMES)] * 2
    assert learnt(params={"descriptors": "none"}) == [0] and learnt(model="gin") == [0]
    start = Model(small(epochs=1).fit(table), targets=table.targets).save(tmp_path / "m.mgm")
    assert learnt(init=str(start)) == [0], "a model that starts from a file reads no more than the file's"
    described = Model(small(epochs=1, descriptors="rdkit").fit(table), targets=table.targets).save(tmp_path / "d.mgm")
    assert learnt(init=str(described)) == [len(NAMES)], "and no less"
    assert learnt(init=str(described), params={"descriptors": "none"}) == [0]
    assert learnt(objective="infograph-star", unlabelled=list(table.smiles[:9])) == [0], "nor of a library's molecules"
    charges = {"q": Packed.of([[0.1 * n] * n for n in range(2, 22)])}
    alkanes = make_table(["C" * n for n in range(2, 22)], targets=(Target("q", level="atom"),), packed=charges)
    assert learnt(alkanes) == [0], "a value for each atom"
    monkeypatch.setattr("molgraph.run.descriptors.MOST_DESCRIBED", 39)
    assert learnt() == [0]


def test_graphs_are_kept_and_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"params": {"d_hidden": 8, "head_width": 8}, "epochs": 1, "threads": 1, "baseline": False}
    table, store = series(60), tmp_path / "stores"
    plain = molgraph.train(table, split="random", ensemble=2, **options)
    kept = molgraph.train(table, split="random", ensemble=2, store=str(store), **options)
    assert len(list(store.iterdir())) == 1
    smiles = list(table.smiles)
    assert kept.predict(smiles).value.tobytes() == plain.predict(smiles).value.tobytes()
    path = kept.save(tmp_path / "m.mgm")
    assert all(part.store is None for part in molgraph.load(path).method.members), "no path of this machine in a file"
    made = []
    monkeypatch.setattr(
        "molgraph.data.featurize.featurize", lambda texts, **_: made.append(len(texts)) or featurize(texts)
    )
    molgraph.train(table, split="random", seed=5, store=str(store), **options)
    assert made and max(made) < 15, "only the test part's, for its prediction"


def test_featurize_from_the_shell_serves_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = series(60)
    pd.DataFrame({"smiles": [*table.smiles, "oops", ""], "y": np.arange(62.0)}).to_csv(tmp_path / "in.csv")
    (tmp_path / "stores").mkdir()
    done = run("data", "featurize", "in.csv", "-o", "stores/mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = []
    monkeypatch.setattr(
        "molgraph.data.featurize.featurize", lambda texts, **_: made.append(len(texts)) or featurize(texts)
    )
    words = ("--epochs", "1", "-s", "params.d_hidden=8", "--no-baseline", "--split", "random", "--store", "stores")
    done = run("train", "in.csv", "-t", "y", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert max(made, default=0) < 40, "the test part and the model file's own molecules alone"
    assert [p.name for p in (tmp_path / "stores").iterdir()] == ["mine"]


@pytest.mark.parametrize("verb", ["train", "pretrain", "train_generator"])
def test_help_shows_the_true_defaults(verb: str) -> None:
    known = {"train": KEYWORDS, "pretrain": PRETRAIN_KEYWORDS, "train_generator": GENERATOR_KEYWORDS}[verb]
    function = getattr(molgraph, verb)
    shown = inspect.signature(function).parameters
    tables = ("test", "unlabelled")
    assert all(shown[name].default == each.default for name, each in known.items() if name not in tables)
    assert str(inspect.signature(function)).count(f"batch_size: int = {known['batch_size'].default}") == 1
