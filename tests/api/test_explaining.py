"""Explanations of any method: sums that are exact, motifs that are found, and curves that say how faithful they are."""

from __future__ import annotations

from itertools import combinations
from math import factorial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

import molgraph
from molgraph.auxiliary.tabular.shapley import Trees, shapley_values
from molgraph.base.contracts import Target
from molgraph.base.errors import UnknownNameError, UnsupportedError
from molgraph.chem.delete_atoms import delete_atoms
from molgraph.cli.main import app
from molgraph.data.sources import builtin
from molgraph.data.table import Table, make_table
from molgraph.train.model import Model
from tests.tiny import mixed, series

NASTY = [line.split("\t")[0] for line in (Path(__file__).parents[1] / "nasty.tsv").read_text("utf-8").splitlines()[1:]]
ACID = Chem.MolFromSmarts("C(=O)[OX2H]")


def fitted(model: str, table: Table, **params: object) -> Model:
    network = (
        {"epochs": 2, "threads": 1} if model in ("dmpnn", "gin", "attentivefp", "additive", "tokens", "grover") else {}
    )
    return molgraph.train(table, model=model, params=params, baseline=False, **network).model


def plain(table: Table) -> Table:
    """Without feature columns."""
    kinds = {name: name for name in ("targets", "y", "weights")}
    return make_table(list(table.smiles), **{name: getattr(table, name) for name in kinds})


@pytest.mark.parametrize("model", ["dmpnn", "gin", "attentivefp"])
def test_integrated_gradients_sum_to_the_answer_less_that_for_zero_features(model: str) -> None:
    made = fitted(model, series(60), d_hidden=16)
    smiles = [str(text) for text in series(6, 70).smiles]
    found = molgraph.explain(made, smiles, by="gradients", faithfulness=False).values
    size = found["value"].abs().groupby(found["molecule"]).sum()
    assert (found.groupby("molecule")["gap"].first() <= 0.005 * size + 1e-5).all()
    smooth = molgraph.explain(made, smiles, by="gradients(smooth=1)", faithfulness=False).values
    assert smooth["gap"].max() < 1e-4 * size.max() + 1e-5 and np.abs(smooth["value"] - found["value"]).max() > 1e-5
    # the sum is that of the model's own answers
    zero = molgraph.explain.occlusion.answers_without_atoms(
        made,
        smiles,
        {i: [(), tuple(range(Chem.MolFromSmiles(t).GetNumAtoms()))] for i, t in enumerate(smiles)},
        [0] * 6,
    )
    value = made.predict(smiles).value[:, 0]
    np.testing.assert_allclose([zero[i][0] for i in range(6)], value, atol=1e-5)


def test_shapley_values_of_trees_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    offsets, left, feature, threshold, value = [0], [], [], [], []
    for _ in range(7):  # full trees of depth 4, in which features repeat
        n = 2**5 - 1
        left += [2 * i + 1 if i < 2**4 - 1 else 0 for i in range(n)]
        feature += rng.integers(0, 5, n).tolist()
        threshold += rng.random(n).tolist()
        value += rng.normal(size=n).tolist()
        offsets.append(len(left))
    trees = Trees(*map(np.array, (offsets, left, feature, threshold, value)))

    def answer(x: np.ndarray) -> float:
        total = 0.0
        for root in offsets[:-1]:
            node = root
            while trees.left[node]:
                node = root + trees.left[node] + int(x[trees.feature[node]] > trees.threshold[node])
            total += trees.value[node]
        return total

    x, r = rng.random(5), rng.random(5)
    wanted = np.zeros(5)
    for i in range(5):
        for k in range(5):
            for own in combinations([j for j in range(5) if j != i], k):
                with_i, without = r.copy(), r.copy()
                with_i[[*own, i]], without[[*own]] = x[[*own, i]], x[[*own]]
                wanted[i] += factorial(k) * factorial(4 - k) / factorial(5) * (answer(with_i) - answer(without))
    np.testing.assert_allclose(shapley_values(trees, x, r), wanted, atol=1e-12)
    assert abs(wanted.sum() - answer(x) + answer(r)) < 1e-12


@pytest.mark.parametrize("model", ["random_forest", "xgboost", "linear"])
def test_shapley_values_of_atoms_and_descriptors_sum_to_the_prediction(model: str) -> None:
    small = {} if model == "linear" else {"n_estimators": 10}
    table, smiles = plain(mixed()), [str(text) for text in series(4, 60).smiles]
    made = fitted(model, table, n_bits=256, **small)
    for place, target in enumerate(made.targets):
        found = molgraph.explain(made, smiles, by=f"shap(target={target.name})", faithfulness=False)
        assert float(found.notes[1].split("within ")[1].split(";")[0]) < 1e-6
        if target.kind == "regression":
            shares = made.method.feature_shares(make_table(smiles), [place] * 4)
            value = made.predict(smiles).value[:, place]
            np.testing.assert_allclose(shares.base + shares.shares.sum(1), value, atol=1e-6)
            sums = found.values.groupby("molecule")["value"].sum() + found.values.groupby("molecule")["rest"].first()
            np.testing.assert_allclose(sums, value - shares.base, atol=1e-6)
    with pytest.raises(UnknownNameError, match="zzz"):
        molgraph.explain(made, "CCO", by="shap(target=zzz)")


@pytest.mark.parametrize(
    ("model", "by"),
    [("additive", "contributions"), ("random_forest", "shap"), ("gin", "gradients"), ("knn", "occlusion"),
     ("ensemble", "occlusion"), ("tokens", "occlusion")],
)  # fmt: skip
def test_the_model_chooses_its_explainer_and_each_row_has_values_or_a_reason(model: str, by: str) -> None:
    forest = {"n_estimators": 3, "features": "morgan"}
    params = {"ensemble": {"method": "random_forest", "n": 2, "params": forest}, "random_forest": forest, "knn": {}}
    made = fitted(model, series(60), **params.get(model, {"d_hidden": 8}))
    given = NASTY if model in ("additive", "gin", "random_forest") else NASTY[::4]
    found = molgraph.explain(made, given)
    assert found.by == by and len(found.svgs) == len(found.captions) == len(given)
    explained = {*found.values["molecule"]}
    assert all((i in explained) != bool(reason) for i, reason in enumerate(found.reasons))
    assert np.isfinite(found.values["value"]).all() and len(found.faithfulness) > 2
    assert {"deletion_area", "random_area", "beats_random"} <= {*found.values} and "faithfulness" in found._repr_html_()
    assert molgraph.explain(made, ["", None]).values.empty  # type: ignore[list-item]
    assert molgraph.explain(made, []).svgs == ()


@pytest.mark.parametrize(("model", "readout"), [("attentivefp", "attentive"), ("gin", "self_attentive"),
                                                ("gin", "set2set"), ("grover", "self_attentive")])  # fmt: skip
def test_attention_weights_sum_to_1_and_the_audit_keeps_answers_within_eps(model: str, readout: str) -> None:
    made = fitted(model, series(40), d_hidden=8, readout=readout)
    before = made.predict(["CCO"]).value
    found = molgraph.explain(made, [*map(str, series(4, 60).smiles), "C(C", "C"], by="attention(audit=true)")
    np.testing.assert_allclose(found.values.groupby("molecule")["value"].sum(), 1, atol=1e-5)
    own = found.values.groupby("molecule").first()
    assert (own["distance"] <= 0.01).all() and own["jsd"].between(0, np.log(2) + 1e-6).all() and own["jsd"].max() > 0.05
    assert "tau" in found.captions[0] and found.reasons[4] and (made.predict(["CCO"]).value == before).all()


def test_a_pretrained_encoder_predicts_nothing_to_explain() -> None:
    encoder = molgraph.pretrain(series(30), model="gin", params={"d_hidden": 8}, epochs=1, threads=1)
    with pytest.raises(UnsupportedError, match="predicts nothing"):
        molgraph.explain(encoder, "CCO")


@pytest.fixture(scope="module")
def acids() -> tuple[Table, list[str]]:
    """Molecules that have an acid or not, half of each, and others that have one."""
    found: dict[bool, list[str]] = {True: [], False: []}
    for text in builtin.nci().smiles:
        mol = Chem.MolFromSmiles(str(text))
        if mol is not None and 8 <= mol.GetNumAtoms() <= 30 and "." not in str(text):
            found[mol.HasSubstructMatch(ACID)].append(str(text))
    smiles = [*found[True][:100], *found[False][:100]]
    return make_table(smiles, targets=(Target("acid"),), y=[1.0] * 100 + [0.0] * 100), found[True][150:165]


EXPLAINED = ["gin gradients", "random_forest shap", "linear shap", "additive contributions"]


@pytest.mark.parametrize(("model", "by"), [each.split() for each in EXPLAINED])
def test_a_planted_motif_is_found_and_its_deletion_curve_is_steeper_than_that_of_random_orders(
    model: str, by: str, acids: tuple[Table, list[str]]
) -> None:
    table, held = acids
    params = {"features": "morgan"} if model in ("random_forest", "linear") else {}
    network = {"epochs": 15, "threads": 1, "seed": 1} if model in ("gin", "additive") else {}
    params |= {"d_hidden": 32} if network else {}
    made = molgraph.train(table, model=model, params=params, baseline=False, **network).model
    found = molgraph.explain(made, held, by=by)
    aucs = []
    for i, text in enumerate(found.smiles):
        mol = Chem.MolFromSmiles(text)
        inside = np.zeros(mol.GetNumAtoms(), dtype=bool)
        inside[[a for match in mol.GetSubstructMatches(ACID) for a in match]] = True
        aucs.append(roc_auc_score(inside, found.values.loc[found.values["molecule"] == i, "value"]))
    beats = found.faithfulness["beats_random"].mean()
    print(f"{model} by {by}: ROC AUC of the acid's atoms {np.mean(aucs):.3f}, random orders beaten {beats:.0%}")
    assert np.mean(aucs) > 0.7 and beats > 0.7  # 0.5 is chance in both


def test_atoms_are_deleted_from_any_molecule() -> None:
    for text in NASTY:
        mol = Chem.MolFromSmiles(text) if text else None
        for atoms in () if mol is None or mol.GetNumAtoms() > 60 else ((0,), tuple(range(mol.GetNumAtoms() // 2))):
            left = delete_atoms(text, atoms)
            assert left is None or Chem.MolFromSmiles(left).GetNumAtoms() == mol.GetNumAtoms() - len(atoms)
    assert delete_atoms("c1cc[nH]c1", [0]) == "C=CNC" or Chem.MolFromSmiles(str(delete_atoms("c1cc[nH]c1", [0])))
    assert delete_atoms("not a molecule", [0]) is None


def test_the_shell_explains_any_model(tmp_path: Path) -> None:
    path = str(fitted("dmpnn", series(40), d_hidden=8).save(tmp_path / "m.mgm"))
    page, frame = tmp_path / "page.html", tmp_path / "atoms.csv"
    done = CliRunner().invoke(app, ["explain", path, "CC(=O)Nc1ccc(O)cc1", "C(C", "-o", str(page)])
    assert done.exit_code == 0 and "deletion" in page.read_text("utf-8") and "faithfulness" in done.output
    words = [
        "explain",
        path,
        "CC(=O)Nc1ccc(O)cc1",
        "--how",
        "gradients",
        "--smooth",
        "1",
        "--fragility",
        "-o",
        str(frame),
    ]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and {"fragility", "gap", "beats_random"} <= {*pd.read_csv(frame)}
    assert "beta 1" in done.output and "fragility" in done.output
    done = CliRunner().invoke(app, ["explain", path, "CCO", "--how", "occlusion", "--smooth", "1"])
    assert done.exit_code != 0 and "no parameter 'smooth'" in done.output
    assert CliRunner().invoke(app, ["explain", path, "CCO", "--no-faithfulness"]).output.count("faithfulness") == 0
