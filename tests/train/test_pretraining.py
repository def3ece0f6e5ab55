"""Pretraining without targets: the objective's loss, exact resume, starting from a file, vectors of rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import molgraph
from molgraph.base import errors, registry
from molgraph.base.contracts import Target
from molgraph.data.table import Table, make_table
from molgraph.train import archive
from molgraph.train.inputs import trial_inputs
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from molgraph.train.network import build_network
from molgraph.train.objective import Loss, Objective, StepState, make_objective
from molgraph.train.objectives.masked_atoms import MaskedAtoms
from molgraph.train.outputs import Outputs
from molgraph.train.preparation import prepare
from molgraph.train.runtime import Interrupted
from tests.tiny import OF_WORDS, same_bits, series, small, weights_of

GOLDEN = Path(__file__).parents[1] / "golden"
OBJECTIVES = {name: registry.get("objective", name) for name in registry.names("objective")}
UNLABELLED = [n for n, each in OBJECTIVES.items() if not (each.labelled or each.tasks or n in OF_WORDS)]
SMILES = ["CO", "CC(=O)N", "not a molecule", "c1ccncc1Cl", "C", "CCCCCCCCCCCCCC"]


def bare(n: int = 48, start: int = 0) -> Table:
    """Molecules without targets, one of which cannot be read."""
    return make_table([*series(n, start).smiles, "not a molecule"])


def pretrained(**params: Any) -> GraphMethod:
    return small(objective="masked-atoms", **params)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a pretrained encoder."""
    model = molgraph.pretrain(bare(), params={"d_hidden": 8, "depth": 4}, epochs=2, batch_size=16)
    return model.save(tmp_path_factory.mktemp("encoder") / "encoder.mgm")


def parts_of(smiles: list[str], name: str = "masked-atoms", **params: Any) -> tuple[Any, Any, Any]:
    """An objective, a network and the samples of some molecules."""
    inputs = trial_inputs("dmpnn")
    torch.manual_seed(0)
    network = build_network(inputs, {"d_hidden": 8, **params}, joiner="concat", d_extra=0)
    own = {f"objective.{key}": value for key, value in params.items() if key == "rate"}
    objective = make_objective(name, own, network, inputs, Outputs((), np.zeros(0), np.ones(0)))
    return objective, network, prepare(make_table(smiles), None, "dmpnn", None, None, {}, targets=False).train


def test_the_loss_is_the_cross_entropy_of_the_masked_elements() -> None:
    """Against features that are masked by hand, every atom computed by itself, and the softmax written out."""
    objective, network, samples = parts_of(SMILES)
    whole = samples.sample(np.arange(5))
    whole.weights[1] = 0.0  # a row that does not count
    batch = objective.corrupt(whole, np.random.default_rng(3))
    found = objective(network, batch, StepState(0, 1, 0))

    rng = np.random.default_rng(3)
    atoms = whole.parts[0].batch["atom"]
    n_atoms = atoms.offsets.diff().tolist()
    key, hidden = rng.random(sum(n_atoms)), []
    for first, n in zip(np.cumsum([0, *n_atoms]), n_atoms, strict=False):
        hidden += sorted(first + np.argsort(key[first : first + n])[: int(0.15 * n) + 1])
    features = atoms.table[atoms.code].clone()
    element = features[hidden, :38].argmax(dim=1)
    features[hidden] = 0
    network.encoder.distinct = False
    plain = whole.parts[0].batch.with_level("atom", code=torch.arange(len(features)), table=features)
    scores = objective.head(network.encoder(plain, rows=True).rows[0].h[hidden]).double()
    losses = torch.log(scores.exp().sum(dim=1)) - scores[torch.arange(len(hidden)), element]
    counted = torch.from_numpy(np.repeat(np.arange(5), n_atoms)[hidden] != 1)
    assert n_atoms == [2, 4, 7, 1, 14] and len(hidden) == 1 + 1 + 2 + 1 + 3
    assert set(element.tolist()) <= {5, 6, 7, 16} and batch.y.tolist() == element.tolist()
    assert found.count == len(hidden) - 1
    torch.testing.assert_close(found.total.double(), losses[counted].sum(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [n for n in UNLABELLED if OBJECTIVES[n].corrupt is not Objective.corrupt])
def test_what_an_objective_hides_depends_on_its_generator_alone(name: str) -> None:
    objective, network, samples = parts_of(list(series(24).smiles), name)
    network.encoder.distinct = False

    def loss(seed: int) -> float:
        sample = samples.sample(np.arange(24))
        before = sample.parts[0].batch.features("atom").clone()
        made = objective.corrupt(sample, np.random.default_rng(seed))
        assert torch.equal(sample.parts[0].batch.features("atom"), before), "the batch itself is not changed"
        return float(objective(network, made, StepState(0, 1, 0)).total)

    assert loss(1) == loss(1) != loss(2)


def test_equal_rows_are_computed_once_under_a_mask_too() -> None:
    objective, network, samples = parts_of(SMILES)
    batches = [objective.corrupt(samples.sample(np.arange(5)), np.random.default_rng(0)) for _ in range(2)]
    once = objective(network, batches[0], StepState(0, 1, 0)).total
    network.encoder.distinct = False
    torch.testing.assert_close(once, objective(network, batches[1], StepState(0, 1, 0)).total)


@pytest.mark.parametrize("stop_after", [1, 4, 10])
def test_a_killed_pretraining_goes_on_exactly(stop_after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"epochs": 4, "checkpoint_seconds": 0.0, "params": {"d_hidden": 8, "dropout": 0.2}}
    train, valid = bare(), bare(16, 100)
    whole = pretrained(**options).fit(train, valid, workdir=tmp_path / "whole")
    steps = []

    def stop(self: Any, network: Any, state: StepState) -> None:
        steps.append(state.step)
        if len(steps) == stop_after + 1:
            raise Interrupted("killed")

    monkeypatch.setattr(MaskedAtoms, "after_step", stop)
    with pytest.raises(Interrupted):
        pretrained(**options).fit(train, valid, workdir=tmp_path / "cut")
    monkeypatch.undo()
    again = pretrained(**options).fit(train, valid, workdir=tmp_path / "cut")
    assert same_bits(weights_of(again), weights_of(whole))
    assert again.curves.drop(columns="seconds").equals(whole.curves.drop(columns="seconds"))
    assert whole.curves["train_loss"].iloc[-1] < whole.curves["train_loss"].iloc[0]


def test_the_file_has_the_encoder_and_no_targets(encoder: Path) -> None:
    parts, arrays = archive.read_archive(encoder)
    assert parts["targets.json"]["targets"] == [] == parts["method.json"]["meta"]["targets"]
    assert {name.split(".")[1] for name in arrays if name.startswith("network.")} == {"encoder"}
    meta = parts["method.json"]["meta"]
    assert meta["params"]["objective"] == "masked-atoms" and len(meta["curves"]) == 2
    assert np.shape(parts["vectors.json"]["value"]) == (25, 8)
    assert verify(encoder).largest_gap == 0
    model = load_model(encoder)
    assert "pretrained by masked-atoms" in repr(model)
    for ask in (model.predict, model.evaluate, lambda data: molgraph.predict_file(model, data, "never.csv")):
        with pytest.raises(errors.UnsupportedError, match="masked-atoms"):
            ask(["CCO"])


@pytest.mark.parametrize("target", ["added", "taken"])
def test_targets_and_objective_of_a_file_must_agree(target: str, encoder: Path, tmp_path: Path) -> None:
    parts, arrays = archive.read_archive(encoder if target == "added" else GOLDEN / "0.1.0-dmpnn.mgm")
    meta = parts["method.json"]["meta"]
    if target == "added":
        one = {"name": "y", "kind": "regression", "classes": [], "bounds": None}
        meta["targets"] = parts["targets.json"]["targets"] = [one]
        arrays |= {"target.mean": np.zeros(1), "target.scale": np.ones(1)}
    else:
        meta["params"]["objective"] = "masked-atoms"
    archive.write_archive(tmp_path / "odd.mgm", parts, arrays)
    with pytest.raises(errors.DamagedModelError):
        load_model(tmp_path / "odd.mgm")


def test_training_starts_from_the_files_weights(encoder: Path) -> None:
    """At a step size of next to nothing the encoder stays the file's, and the head is that of any other start."""
    theirs = weights_of(load_model(encoder).method)  # type: ignore[arg-type]
    still = {"epochs": 1, "learning_rate": 1e-30, "head_width": 8, "batch_size": 16}
    plain = GraphMethod(params={"d_hidden": 8, "depth": 4}, **still).fit(series(32))
    started = GraphMethod(init=str(encoder), **still).fit(series(32))
    found, other = weights_of(started), weights_of(plain)
    for name, value in found.items():
        same = theirs if name.startswith("encoder.") else other
        np.testing.assert_allclose(value, same[name], atol=1e-25, rtol=0, err_msg=name)
    assert not np.allclose(other["encoder.w_h.weight"], theirs["encoder.w_h.weight"])
    assert started.params == {"d_hidden": 8, "depth": 4}
    (note,) = (note for note in started.notes if "started from" in note)
    assert "encoder.mgm (an encoder pretrained by masked-atoms; sha256 " in note
    assert started.state().meta["params"]["init"] is None, "no path of this machine in a file"


def test_train_takes_the_files_model_and_says_so_on_the_card(encoder: Path, tmp_path: Path) -> None:
    options = {"split": "random", "epochs": 1, "baseline": False, "workdir": tmp_path}
    result = molgraph.train(series(60), init=str(encoder), ensemble=2, params={"depth": 4}, **options)
    assert result.model.name == "dmpnn" and any("started from encoder.mgm" in note for note in result.model.card.notes)
    assert result.recipe.model.init == str(encoder)
    assert load_model(result.save(tmp_path / "m.mgm")).predict(["CCO"]).ok.all()
    gin = molgraph.pretrain(bare(), model="gin", params={"depth": 2}, epochs=1).save(tmp_path / "gin.mgm")
    assert molgraph.train(series(60), init=str(gin), **options).model.name == "gin"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"params": {"depth": 5}}, errors.ConflictError, "depth is 5"),
        ({"params": {"readout": "sum"}}, errors.ConflictError, "readout is 'sum'"),
        ({"model": "gin"}, errors.ConflictError, "gin"),
        ({"model": "random_forest"}, errors.UnsupportedError, "random_forest"),
        ({"init": str(GOLDEN / "0.1.0-forest.mgm")}, errors.UnsupportedError, r"forest\.mgm"),
        ({"init": str(GOLDEN / "0.1.0-ensemble.mgm"), "model": "dmpnn"}, errors.UnsupportedError, r"ensemble\.mgm"),
        ({"objective": "masked-atoms", "init": None}, errors.UnsupportedError, "masked-atoms"),
        ({"objective": "masked-atom", "init": None}, errors.UnknownNameError, "'masked-atom'"),
        ({"optimizer": "adamm", "init": None}, errors.UnknownNameError, "'adamm'"),
        ({"schedule": "cosin", "init": None}, errors.UnknownNameError, "'cosin'"),
        ({"optimiser": "sgd"}, errors.UnknownNameError, "'optimiser'"),
    ],
)
def test_what_contradicts_the_file_is_said_before_the_table_is_read(
    options: dict[str, Any], error: type[errors.MolgraphError], words: str, encoder: Path
) -> None:
    with pytest.raises(error, match=words):
        molgraph.train("is not looked for.csv", **{"init": str(encoder), **options})


def test_features_must_be_the_files(encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method = load_model(encoder).method
    other = tuple(replace(i, spec=replace(i.spec, widths={"atom": 9, "bond": 3})) for i in method.ready().inputs)  # type: ignore[attr-defined]
    fitted = replace(method.ready(), inputs=other)  # type: ignore[attr-defined]
    start = GraphMethod(init=str(encoder)).start()
    monkeypatch.setattr(start.method, "fitted", fitted)
    monkeypatch.setattr(GraphMethod, "start", lambda self: start)
    with pytest.raises(errors.UnsupportedError, match="'atom': 9"):
        GraphMethod(params={"d_hidden": 8, "depth": 4}, epochs=1).fit(series(16))


@pytest.mark.parametrize(
    ("data", "options", "error", "words"),
    [
        (["xx", None], {}, errors.EmptyError, "row 1"),
        (["CCO"] * 40, {"objective": "supervised"}, errors.UnsupportedError, "supervised"),
        (["CCO"] * 40, {"model": "random_forest"}, errors.UnsupportedError, "random_forest"),
        (["CCO"] * 40, {"model": "deepdta"}, errors.UnsupportedError, "masked-atoms"),
        (["CCO"] * 40, {"params": {"objective.rate": 2.0}}, errors.BadValueError, "rate is 2.0"),
        (["CCO"] * 40, {"params": {"objective.share": 0.2}}, errors.UnknownNameError, "'share'"),
        (["CCO"] * 40, {"targets": ["y"]}, errors.UnusedSettingError, "masked-atoms"),
    ],
)
def test_what_cannot_be_pretrained_is_one_sentence(
    data: list[Any], options: dict[str, Any], error: type[errors.MolgraphError], words: str
) -> None:
    with pytest.raises(error, match=words):
        molgraph.pretrain(data, epochs=1, **options)


def test_an_objective_that_gives_no_number_is_one_sentence_with_the_cure() -> None:
    @registry.register("objective", "broken-objective", summary="for a test")  # here: others go over all that are there
    class Broken(MaskedAtoms):
        """A loss that is no number."""

        def forward(self, network: Any, batch: Any, state: StepState) -> Loss:
            return Loss(super().forward(network, batch, state).total * float("nan"), 1)

    with pytest.raises(errors.MolgraphError, match=r"is nan.*\n.*learning_rate") as caught:
        molgraph.pretrain(bare(), objective="broken-objective", params={"d_hidden": 8}, epochs=1)
    assert "\n" not in caught.value.message


def test_embed_gives_one_row_a_row_over_the_nasty_list(encoder: Path, tmp_path: Path) -> None:
    lines = (Path(__file__).parents[1] / "nasty.tsv").read_text(encoding="utf-8").splitlines()[1:]
    smiles = [line.split("\t")[0] for line in lines]
    taught = Model(small(epochs=1).fit(series(16)), targets=(Target("y"),))
    found = molgraph.embed(encoder, smiles)
    golden = GOLDEN / "0.1.0-dmpnn.mgm"
    for model in (encoder, taught, golden):
        made = molgraph.embed(model, smiles)
        status = ["ok" if each == "not a molecule" and model == golden else each for each in found.status]
        assert len(made) == len(smiles) and [*made.status] == status, "older files know no such status"
        assert np.isfinite(made.value[made.ok]).all() and np.isnan(made.value[~made.ok]).all()
        assert all(made.reason[~made.ok]) and made.ok.any() and not made.ok.all()
    readable = [text for text, ok in zip(smiles, found.ok, strict=True) if ok]
    pd.DataFrame({"smiles": [*readable, "xx"], "note": "kept"}).to_csv(tmp_path / "in.csv", index=False)
    for name in ("a.csv", "a.parquet", "a.npy"):
        done = molgraph.embed(encoder, tmp_path / "in.csv", tmp_path / name, keep_columns=name == "a.csv")
        assert (done.rows, done.failed) == (len(readable) + 1, 1)
    expected = np.float32([*found.value[found.ok], np.full(8, np.nan)])
    for frame in (pd.read_csv(tmp_path / "a.csv"), pd.read_parquet(tmp_path / "a.parquet")):
        vectors = frame.filter(regex="^embedding_[0-7]$").to_numpy(np.float32)
        np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-6)
        assert frame["status"].iloc[-1] == "unreadable" and frame["reason"].iloc[-1].startswith("SMILES Parse Error")
    array = np.load(tmp_path / "a.npy", allow_pickle=False)
    np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6, strict=True)


def test_models_without_one_encoder_are_not_embedded() -> None:
    for name in ("ensemble", "forest"):
        with pytest.raises(errors.UnsupportedError, match=name):
            molgraph.embed(GOLDEN / f"0.1.0-{name}.mgm", ["CCO"])


def test_optimiser_and_schedule_reach_the_weights() -> None:
    table, params = series(48), {"d_hidden": 8, "head_width": 8}
    options: dict[str, Any] = {"params": params, "epochs": 2, "baseline": False, "split": "random", "batch_size": 16}
    options |= {"fractions": (0.9, 0.0, 0.1), "warmup_epochs": 0.0}
    found = [
        weights_of(molgraph.train(table, **options, **own).model.method)  # type: ignore[arg-type]
        for own in ({}, {"optimizer": "adam", "schedule": "exponential"}, {"optimizer": "sgd"}, {"schedule": "cosine"})
    ]
    assert same_bits(found[0], found[1]) and not same_bits(found[0], found[2]) and not same_bits(found[0], found[3])
