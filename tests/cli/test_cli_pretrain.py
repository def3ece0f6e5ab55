"""Pretraining, starting from an encoder and embedding at the shell; every key of a recipe is an option there."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import molgraph
from molgraph import api
from molgraph.base.recipe_keys import KEYWORDS, PRETRAIN_KEYWORDS, TrainingSection
from molgraph.base.run_config import RunConfig
from molgraph.cli.main import VERBS, app, load
from molgraph.train.method import GraphMethod
from tests.tiny import series

SMALL = ("--epochs", "1", "--batch-size", "16", "--threads", "1")


def run(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    return done.exit_code, done.output


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with molecules, and with molecules that have a value."""
    table = series(60)
    (tmp_path / "corpus.smi").write_text("\n".join([*table.smiles, "xx"]) + "\n")
    pd.DataFrame({"smiles": [*table.smiles, "xx"], "y": np.arange(61.0)}).to_csv(tmp_path / "assay.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_from_a_corpus_to_a_model_and_vectors(folder: Path) -> None:
    code, out = run("pretrain", "corpus.smi", "-s", "params.d_hidden=8", *SMALL, "--optimizer", "adamw", "-o", "e")
    assert (
        code == 0 and "an encoder pretrained by masked-atoms: 1 epoch," in out and "molgraph finetune e.mgm" in out
    ), out
    assert [path.name for path in folder.glob("e.*")] == ["e.mgm"], "no working folder is left"
    assert molgraph.load("e.mgm").method.optimizer == "adamw"
    code, out = run("verify", "e.mgm")
    assert code == 0 and "pretrained by masked-atoms" in out and "ok: 25 test molecules" in out
    code, out = run("predict", "e.mgm", "assay.csv", "-o", "never.csv")
    assert code == 2 and "predicts no target" in out and "molgraph embed" in out and not Path("never.csv").exists()
    code, out = run("train", "assay.csv", "-t", "y", "--init", "e.mgm", *SMALL, "--no-baseline", "--split", "random")
    assert code == 0, out
    assert any("started from e.mgm" in note for note in molgraph.load("model.mgm").card.notes)
    for model in ("e.mgm", "model.mgm"):
        code, out = run("embed", model, "assay.csv", "-o", "v.csv", "--keep-columns")
        assert code == 0 and "61 rows to v.csv" in out and "1 without a vector" in out, out
        frame = pd.read_csv("v.csv")
        assert len(frame) == 61 and list(frame["y"]) == list(range(61))
        assert list(frame.columns) == ["smiles", "y", *(f"embedding_{i}" for i in range(8)), "status", "reason"]
    code, out = run("embed", "e.mgm", "CCO", "xx")
    assert code == 0 and "embedding_7" in out
    code, out = run("pretrain", "corpus.smi", *SMALL, "-o", "e.csv")
    assert code == 2 and "model files end in .mgm" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pretrain", "corpus.smi", "--objective", "masked-atom"), "did you mean 'masked-atoms'"),
        (("pretrain", "corpus.smi", "--objective", "supervised"), "supervised learns targets"),
        (("pretrain", "corpus.smi", "--schedule", "cosin"), "did you mean 'cosine'"),
        (("train", "assay.csv", "-t", "y", "--optimizer", "adma"), "did you mean 'adam"),
        (("train", "assay.csv", "-t", "y", "--objective", "masked-atoms"), "molgraph pretrain"),
        (("train", "assay.csv", "-t", "y", "--init", "none.mgm"), "there is no model file"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one(folder: Path, words: tuple[str, ...], said: str) -> None:
    code, out = run(*words)
    assert code in (2, 5) and said in out, out


@pytest.mark.parametrize("key", sorted(TrainingSection.model_fields))
def test_a_key_reaches_recipe_method_python_and_shell(key: str) -> None:
    verbs = {verb.path: verb for verb in VERBS}
    shell = {name: {p.name for p in load(verbs[name]).params} for name in ("train", "pretrain")}
    default = getattr(RunConfig().training, key)
    assert key in shell["train"] and key in inspect.signature(molgraph.train).parameters
    assert f"        {key}: {KEYWORDS[key].option.help}" in (api.train.__doc__ or "")
    assert (key in shell["pretrain"]) == (key in PRETRAIN_KEYWORDS)
    if key not in ("ensemble", "baseline", "compare", "budget"):
        assert inspect.signature(GraphMethod).parameters[key].default == default
        assert GraphMethod().get_params()[key] == default


def test_finetune_is_train_from_an_encoder(folder: Path) -> None:
    small = ("-m", "gin", "-s", "params.d_hidden=8", "-s", "params.objective.d_score=8", *SMALL)
    code, out = run("pretrain", "corpus.smi", "--method", "infograph", *small, "-o", "e.mgm")
    assert code == 0 and "an encoder pretrained by infograph" in out, out
    how = ("-t", "y", *SMALL, "--no-baseline", "--split", "random")
    code, out = run("finetune", "e.mgm", "assay.csv", *how, "-o", "tuned.mgm")
    assert code == 0, out
    assert run("train", "assay.csv", "--init", "e.mgm", *how, "-o", "trained.mgm")[0] == 0
    tuned, trained = (molgraph.load(f"{name}.mgm") for name in ("tuned", "trained"))
    assert any("pretrained by infograph" in note for note in tuned.card.notes)
    assert tuned.predict(["CCO"]).value.tobytes() == trained.predict(["CCO"]).value.tobytes()
    code, out = run("finetune", "none.mgm", "assay.csv", *how, "-o", "never.mgm")
    assert code == 5 and "there is no model file" in out, out
    forest = Path(__file__).parents[1] / "golden" / "0.1.0-forest.mgm"
    code, out = run("finetune", forest, "assay.csv", *how, "-o", "never.mgm")
    assert code == 2 and "holds a random_forest, which has no encoder to start from" in out, out
    assert "molgraph pretrain library.smi -m gin" in out
    code, out = run("finetune", "e.mgm", "assay.csv", *how, "-m", "gin", "-o", "never.mgm")
    assert code == 2 and "the model is the one in e.mgm" in out and "leave -m out" in out, out
    assert re.search(r"objective\.\s+\(masked-atoms\)", run("pretrain", "--help")[1])
    assert "init" not in {p.name for p in load(next(v for v in VERBS if v.path == "finetune")).params}
