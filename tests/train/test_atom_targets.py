"""Models of atoms' and bonds' values: what they learn, in which order they answer, in files and after a stop."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem

from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import ConflictError, EmptyError, LabelError, MissingOptionError, UnsupportedError
from molgraph.base.packed import Packed
from molgraph.data.graph_values import Geometry
from molgraph.data.read import read_table
from molgraph.data.table import Entities, Table, make_table
from molgraph.evaluate.metrics import score
from molgraph.evaluate.verdict import verdict
from molgraph.train.make_method import make_method
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from molgraph.train.stream import predict_stream

TEXTS = [
    "CC(=O)Nc1ccc(O)cc1", "OCC(=O)c1ccccc1F", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "FC(F)(F)c1ccccc1", "C#CCN", "CC(C)CO",
    "CC(=O)Oc1ccccc1C(=O)O", "OC1CCC1C=O", "c1ccncc1C#N", "NCC(=O)O", "CC1CC1(C)C=C", "O=C1CCCN1", "C", "[2H]OC",
]  # fmt: skip
NAN = float("nan")


def rule(level: str, mol: Chem.Mol) -> list[float]:
    """A linear function of the features of each atom, or of each bond and its ends."""
    if level == "atom":
        return [0.2 * a.GetAtomicNum() - 0.5 * a.GetDegree() + a.GetIsAromatic() for a in mol.GetAtoms()]
    ends = [(b, (b.GetBeginAtom(), b.GetEndAtom())) for b in mol.GetBonds()]
    return [b.GetBondTypeAsDouble() + sum(0.3 * a.GetAtomicNum() - a.GetDegree() for a in pair) for b, pair in ends]


def table_of(level: Any, texts: list[str] = TEXTS, **columns: Any) -> Table:
    values = Packed.of([rule(level, Chem.MolFromSmiles(text)) for text in texts])
    return make_table(texts, targets=(Target("q", level=level),), packed={"q": values}, **columns)


def quick(encoder: str = "dmpnn", **params: Any) -> GraphMethod:
    given: dict[str, Any] = {"params": {"d_hidden": 24}, "epochs": 3, "batch_size": 4, "learning_rate": 0.005}
    return GraphMethod(encoder=encoder, **(given | {"store": None, "head_width": 32} | params))


def error(p: Prediction, table: Table) -> float:
    return float(np.sqrt(np.mean((p.packed["q"].values - table.packed["q"].values) ** 2)))


@pytest.fixture(scope="module")
def charges() -> GraphMethod:
    """A small model of atoms."""
    return quick().fit(table_of("atom"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoder", "level"),
    [("dmpnn", "atom"), ("dmpnn", "bond"), ("mpnn", "bond"), ("gin", "atom"), ("pyg_conv", "atom")],
)
def test_every_encoder_learns_a_linear_rule_in_any_order_of_atoms(encoder: str, level: str) -> None:
    table = table_of(level)
    own = {"depth": 2, "norm": "none"} if encoder == "gin" else {}  # batch norm asks for larger batches
    method = quick(encoder, epochs=30, params={"d_hidden": 24, **own}).fit(table)
    assert error(method.predict(table), table) < 0.3 * table.packed["q"].values.std()
    rng, texts, orders = np.random.default_rng(0), [], []
    for mol in map(Chem.MolFromSmiles, TEXTS):
        order = rng.permutation(mol.GetNumAtoms()).tolist()
        turned = Chem.RenumberAtoms(mol, order)
        texts.append(Chem.MolToSmiles(turned, canonical=False))
        orders.append([order[i] for i in turned.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]])
    before, after = (method.predict(make_table(each)).packed["q"].lists() for each in (TEXTS, texts))
    for old, new, text, other, order in zip(before, after, TEXTS, texts, orders, strict=True):
        places = order
        if level == "bond":
            was, now = Chem.MolFromSmiles(text), Chem.MolFromSmiles(other)
            ends = [(order[b.GetBeginAtomIdx()], order[b.GetEndAtomIdx()]) for b in now.GetBonds()]
            places = [was.GetBondBetweenAtoms(*pair).GetIdx() for pair in ends]
        np.testing.assert_allclose(new, old[np.array(places, dtype=int)], atol=2e-5)


def test_rows_alone_and_together_and_rows_that_cannot_be_read(charges: GraphMethod) -> None:
    texts = [TEXTS[0], "oops", "C", TEXTS[0]]
    together = charges.predict(make_table(texts))
    assert list(together.status) == ["ok", "unreadable", "ok", "ok"]
    lists = together.packed["q"].lists()
    assert [len(each) for each in lists] == [Chem.MolFromSmiles(TEXTS[0]).GetNumAtoms(), 0, 1, len(lists[0])]
    for text, values in zip(texts, lists, strict=True):
        alone = charges.predict(make_table([text])).packed["q"].values
        np.testing.assert_allclose(alone, values, atol=1e-6)
    frame = together.to_frame()
    assert frame["q"][1] is None and len(frame["q"][2]) == 1


@pytest.mark.slow
def test_scales_masks_weights_and_targets_that_teach_nothing() -> None:
    rules = [rule("atom", Chem.MolFromSmiles(text)) for text in TEXTS]
    far = [[1000 + 10 * v if i % 3 else NAN for i, v in enumerate(each)] for each in rules]
    targets = (Target("q", level="atom"), Target("hit", "binary", "atom"), Target("none", level="atom"))
    packed = {
        "q": Packed.of(far),
        "hit": Packed.of([[float(v > 1) for v in each] if i else None for i, each in enumerate(rules)]),
        "none": Packed.of([[NAN] * len(each) for each in rules]),
    }
    rng = np.random.default_rng(0)
    weights, extra = rng.uniform(0.5, 2, len(TEXTS)), rng.normal(size=(len(TEXTS), 2))
    table = make_table(TEXTS, targets=targets, packed=packed, weights=weights, features=extra, feature_names=("a", "b"))
    method = quick(epochs=30).fit(table, table.take(np.arange(6)))
    outputs, flat = method.ready().outputs, packed["q"].values
    known, each = ~np.isnan(flat), np.repeat(weights, packed["q"].sizes)
    assert outputs.mean[0] == pytest.approx(np.average(flat[known], weights=each[known]))
    p = method.predict(table)
    assert p.unlearned == {"none": "no training label"} and np.isnan(p.packed["none"].values).all()
    assert ((p.packed["hit"].values >= 0) & (p.packed["hit"].values <= 1)).all() and p.ok.all()
    hidden = np.abs(p.packed["q"].values - np.concatenate([1000 + 10 * np.array(each) for each in rules]))[~known]
    assert np.median(hidden) < flat[known].std()  # masked atoms were predicted from the others
    assert method.best_epoch is not None


def test_scores_pool_atoms_and_count_those_without_a_prediction(charges: GraphMethod) -> None:
    table = table_of("atom")
    p = charges.predict(table)
    (rmse,) = score(table, p, metrics=["rmse"])
    assert (rmse.value, rmse.n, rmse.note) == (pytest.approx(error(p, table)), len(table.packed["q"].values), "")
    lost = charges.predict(table.with_smiles(np.array(["oops", *TEXTS[1:]], dtype=object)))
    n, first = rmse.n, int(table.packed["q"].sizes[0])
    (fewer,) = score(table, lost, metrics=["rmse"])
    assert (fewer.n, fewer.note) == (n - first, f"{first} of {n} measured atoms have no prediction")
    floor = make_method("mean").fit(table).predict(table)
    said = verdict(table, {"dmpnn": p, "mean": floor}, table.targets[0])
    assert said.n == n and "intervals too narrow" in said.detail


def test_the_floor_is_the_mean_of_each_element_or_type_of_bond() -> None:
    for level, texts, means in (("atom", ["CO", "CC", "N"], [2, 9, 2, 2, 4]), ("bond", ["CO", "C=O"], [1, 7])):
        target = Target("q", level=level)  # type: ignore[arg-type]
        values = Packed.of([[1, 9], [2, 3], [4]] if level == "atom" else [[1], [7]])
        table = make_table(texts, targets=(target,), packed={"q": values})
        method = make_method("mean").fit(table)
        again = type(method).from_state(method.state())
        assert again.predict(table).packed["q"].values.tolist() == method.predict(table).packed["q"].values.tolist()
        assert method.predict(table).packed["q"].values.tolist() == pytest.approx(means)
        assert again.predict(make_table(["[Fe]" if level == "atom" else "C#C"])).packed["q"].values.tolist() == (
            pytest.approx([values.values.mean()])
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["graph", "ensemble", "mean"])
def test_a_model_file_answers_the_same_in_the_order_that_was_given(name: str, tmp_path: Path) -> None:
    made = {"graph": quick(), "mean": make_method("mean")}.get(name)
    inner = {"epochs": 1, "params": {"d_hidden": 8}, "store": None}
    method = (made or make_method("ensemble", method="dmpnn", n=2, params=inner)).fit(table_of("atom"))
    model = Model(method, targets=table_of("atom").targets)
    path = model.save(tmp_path / "m.mgm")
    assert verify(path).largest_gap == 0
    salt, clean = model.predict(["[Na+].[O-]C(C)=O"]), model.predict(["CC(=O)O"])
    values, own = (p.packed["q"].lists()[0] for p in (salt, clean))
    assert np.isnan(values[0])  # what the standardiser removes has no value
    np.testing.assert_allclose(values[[3, 2, 4, 1]], own, atol=1e-6)
    assert (
        load_model(path).predict(TEXTS).packed["q"].values.tolist() == model.predict(TEXTS).packed["q"].values.tolist()
    )
    assert ("q_spread" in salt.packed) == (name == "ensemble")


@pytest.mark.slow
@pytest.mark.parametrize("end", ["csv", "parquet", "sdf"])
def test_what_is_written_is_read_again_as_the_same_values(charges: GraphMethod, end: str, tmp_path: Path) -> None:
    model = Model(charges, targets=table_of("atom").targets)
    texts = [*TEXTS[:9], "[Na+].[O-]C(C)=O", "oops"]
    pd.DataFrame({"smiles": texts, "q": [json.dumps([1.0])] * len(texts)}).to_csv(tmp_path / "in.csv", index=False)
    rows = 4 if end == "csv" else 99  # of several chunks the graphs are made ahead
    predict_stream(model, tmp_path / "in.csv", tmp_path / f"out.{end}", chunk_rows=rows)
    expected, column = model.predict(texts).packed["q"], "q_predicted"
    table = read_table(tmp_path / f"out.{end}", targets=[f"{column}:atom:regression"])
    assert len(table) == len(texts) and table.packed[column].sizes.tolist() == expected.sizes.tolist()
    if end != "sdf":
        np.testing.assert_allclose(table.packed[column].values, expected.values, rtol=1e-6)
        return
    for mol, values in zip(Chem.SDMolSupplier(str(tmp_path / "out.sdf")), expected.lists(), strict=True):
        found = [a.GetPropsAsDict().get(column, NAN) for a in mol.GetAtoms()]  # as RDKit reads property lists
        np.testing.assert_allclose(found, values, rtol=1e-6)
    predict_stream(model, tmp_path / "out.sdf", tmp_path / "again.sdf", keep_columns=True)
    for mol in [m for m in Chem.SDMolSupplier(str(tmp_path / "again.sdf")) if m.GetNumAtoms()][:9]:
        for atom in mol.GetAtoms():
            assert atom.GetDoubleProp("q_predicted") == pytest.approx(atom.GetDoubleProp("q"), abs=1e-5)


@pytest.mark.slow
def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of("bond")
    whole = quick(checkpoint_seconds=0.0).fit(table, table.take(np.arange(5)))
    from molgraph.train import engine

    calls, step = [], engine.Fit._step
    monkeypatch.setattr(engine.Fit, "_step", lambda *a: calls.append(1) or (step(*a) if len(calls) < 6 else 1 / 0))
    with pytest.raises(ZeroDivisionError):
        quick(checkpoint_seconds=0.0).fit(table, table.take(np.arange(5)), workdir=tmp_path)
    monkeypatch.setattr(engine.Fit, "_step", step)
    resumed = quick(checkpoint_seconds=0.0).fit(table, table.take(np.arange(5)), workdir=tmp_path)
    for name, value in whole.ready().network.state_dict().items():
        assert torch.equal(value, resumed.ready().network.state_dict()[name])


@pytest.mark.slow
def test_atoms_in_space() -> None:
    rng = np.random.default_rng(0)
    shapes = [
        Geometry(rng.choice([1, 6, 8], n).astype(np.uint8), rng.normal(size=(n, 3)).astype(np.float32))
        for n in (4, 6, 5)
    ]
    values = np.empty(12, dtype=object)
    values[:] = shapes * 4
    packed = {"q": Packed.of([g.numbers / 4.0 for g in values])}
    table = replace(
        make_table(["C"] * 12),
        entities=(Entities("shape", "geometry", values),),
        targets=(Target("q", level="atom"),),
        packed=packed,
    )
    method = quick("schnet", epochs=40).fit(table)
    assert error(method.predict(table), table) < 0.4 * packed["q"].values.std()
    assert make_method("mean").fit(table).predict(table).packed["q"].values == pytest.approx(packed["q"].values)
    model = Model(method, targets=table.targets)
    both = replace(
        table, entities=(Entities("salt", "molecule", np.full(12, "[Na+].C", dtype=object)), *table.entities)
    )
    assert model.predict_table(both).packed["q"].values.tolist() == method.predict(table).packed["q"].values.tolist()
    with pytest.raises(UnsupportedError, match="'shape'"):
        quick("schnet").fit(replace(table, targets=(Target("q", level="bond"),)))


def test_lists_that_do_not_fit_the_graphs_are_passed_over_and_others_learned() -> None:
    table = table_of("atom")
    wrong = table.packed["q"].lists()
    wrong[0] = [1e6] * 3
    method = quick().fit(replace(table, packed={"q": Packed.of(wrong)}))
    right = quick().fit(table.take(np.arange(1, len(table))))
    assert method.ready().outputs.mean[0] == right.ready().outputs.mean[0] < 1e3
    three = replace(table.take(np.arange(1)), packed={"q": Packed.of([[1, 2, 3]])})
    with pytest.raises(EmptyError, match=r"3 atoms.* 11"):
        quick().fit(three)


def test_what_cannot_be_learned_is_one_sentence() -> None:
    table = table_of("atom")
    mixed = replace(table, targets=(*table.targets, Target("y")), y=np.arange(len(table))[:, None] * 1.0)
    two = replace(table, entities=(*table.entities, Entities("solvent", "molecule", table.smiles)))
    vectors = replace(
        table, packed={"q": Packed(table.packed["q"].offsets, np.zeros((len(table.packed["q"].values), 3)))}
    )
    for given, encoder, error, words in (
        (mixed, "dmpnn", ConflictError, "'q'.*'y'"),
        (two, "dmpnn", MissingOptionError, "smiles, solvent"),
        (table, "deepdta", UnsupportedError, "deepdta"),
        (vectors, "dmpnn", LabelError, "vectors"),
    ):
        with pytest.raises(error, match=words) as caught:
            quick(encoder, params={}).fit(given)
        assert caught.value.hint
    with pytest.raises(UnsupportedError, match="random_forest"):
        make_method("random_forest").fit(table)
