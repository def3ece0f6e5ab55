"""Counterfactuals: on the other side, one group away, and where a motif was planted the motif is exchanged."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from typer.testing import CliRunner

import molgraph
from molgraph.base.errors import UnsupportedError
from molgraph.chem.exchange import exchanges
from molgraph.chem.matched_pairs import cuts_of
from molgraph.cli.main import app
from molgraph.data.sources import builtin
from molgraph.explain.counterfactuals import ANALOGUE, PAIR
from molgraph.train.model import Model

NASTY = [line.split("\t")[0] for line in (Path(__file__).parents[1] / "nasty.tsv").read_text("utf-8").splitlines()[1:]]
ACID = Chem.MolFromSmarts("C(=O)[OX2H]")


def _without_acid(smiles: Iterable[str]) -> float:
    return float(np.mean([not Chem.MolFromSmiles(text).HasSubstructMatch(ACID) for text in smiles]))


@pytest.fixture(scope="module")
def acids() -> tuple[Model, list[str]]:
    """A forest that learnt which molecules are acids, and acids that it did not learn from."""
    table = builtin.nci()
    smiles = [str(text) for text in table.smiles[:1500]]
    known = [(text, int(mol.HasSubstructMatch(ACID))) for text in smiles if (mol := Chem.MolFromSmiles(text))]
    frame = pd.DataFrame(known, columns=["smiles", "acid"])
    held = frame[frame["acid"] == 1].tail(12)
    made = molgraph.train(
        frame.drop(held.index),
        targets=["acid"],
        model="random_forest",
        params={"n_estimators": 60, "features": "morgan"},
        split="random",
        baseline=False,
    )
    return made.model, held["smiles"].tolist()


def test_the_planted_group_is_exchanged(acids: tuple[Model, list[str]]) -> None:
    model, smiles = acids
    found = molgraph.counterfactuals(model, smiles, n=1)
    pairs = found[(found["kind"] == PAIR) & (found["value_before"] > 0.5)]
    assert len(pairs) >= 5 and (pairs["value"] <= 0.5).all()
    assert _without_acid(pairs["smiles"]) >= 0.8
    blind = [each.smiles for i in pairs["molecule"] for each in exchanges(smiles[i], ["C[*:1]", "N[*:1]"])]
    assert _without_acid(blind) <= 0.6, "exchanges that do not look at the prediction"
    measured = found[found["kind"] == ANALOGUE]
    assert ((measured["measured"] > 0.5) != (measured["value_before"] > 0.5)).all()
    assert (measured["id"] != "").all() and (found.loc[found["kind"] == PAIR, "id"] == "").all()
    for _, own in found.groupby(["molecule", "kind"]):
        assert own["similarity"].is_monotonic_decreasing and len(own) == 1


def test_a_pair_differs_in_one_group_and_its_new_atoms_are_known() -> None:
    text = "CCOC(=O)c1ccccc1O"
    for made in exchanges(text, ["C[*:1]", "O=C(O)[*:1]", "c1ccc([*:1])cc1"]):
        mol = Chem.MolFromSmiles(made.smiles)
        assert any(cut.context == made.cut.context for cut in cuts_of(text))
        new = Chem.MolFragmentToSmiles(mol, made.atoms, canonical=True)
        assert Chem.CanonSmiles(new) == Chem.CanonSmiles(made.group.replace("([*:1])", "").replace("[*:1]", ""))
        assert Chem.MolToSmiles(Chem.MolFromSmiles(text)) != made.smiles


def test_numbers_need_an_interval_or_a_difference_and_every_row_survives(acids: tuple[Model, list[str]]) -> None:
    model = molgraph.train("builtin:chembl2321810", model="linear", split="random", baseline=False).model
    found = molgraph.counterfactuals(model, ["", "C(C", *NASTY[:12]], n=1)
    assert (np.abs(found["value"] - found["value_before"]) > 0)[found["kind"] == PAIR].all()
    model.confidence = None
    with pytest.raises(UnsupportedError, match="interval"):
        molgraph.counterfactuals(model, "CCO")
    assert set(molgraph.counterfactuals(model, "CCO", n=1, change=0.01)["kind"]) <= {PAIR}


def test_they_stand_on_the_page(acids: tuple[Model, list[str]], tmp_path: Path) -> None:
    model, smiles = acids
    file, page = model.save(tmp_path / "m.mgm"), tmp_path / "page.html"
    args = ["explain", str(file), smiles[0], "--counterfactuals", "1", "--no-faithfulness", "-o", str(page)]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 0, done.output
    text = page.read_text("utf-8")
    assert text.count("<svg") == 1 + len(molgraph.counterfactuals(model, smiles[0], n=1)) and "measured" in text


def test_the_report_of_a_training_explains_its_highest_predictions_and_largest_errors(tmp_path: Path) -> None:
    result = molgraph.train("builtin:chembl2321810", model="linear", split="random", baseline=False)
    page = result.report(tmp_path / "report.html").read_text("utf-8")
    assert "explained by shap" in page and "among the largest errors" in page and "deletion area" in page
    plain = molgraph.train("builtin:chembl2321810", model="mean", split="random", baseline=False)
    assert "explained by" not in plain.report(tmp_path / "plain.html").read_text("utf-8")
