"""Charges of atoms from the shell: trained, predicted and scored through files, against the mean of each element."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem import rdPartialCharges

from molgraph.data.sources.builtin import chembl2321810
from tests.end_to_end.conftest import Run


def gasteiger(text: str) -> list[float]:
    """RDKit's Gasteiger charge of each atom."""
    mol = Chem.MolFromSmiles(text)
    rdPartialCharges.ComputeGasteigerCharges(mol)
    return [atom.GetDoubleProp("_GasteigerCharge") for atom in mol.GetAtoms()]


@pytest.mark.slow
def test_charges_are_learned_from_the_shell(run: Run, tmp_path: Path) -> None:
    texts = list(chembl2321810().smiles[:90])
    cells = [json.dumps(gasteiger(text)) for text in texts]
    cells[4] = "[0.1, 0.2]"
    pd.DataFrame({"smiles": texts, "charge": cells}).to_csv(tmp_path / "charges.csv", index=False)
    words = ["train", "charges.csv", "-t", "charge:atom", "--split", "random", "--epochs", "12", "--threads", "1"]
    done = run(*words, "-s", "params.d_hidden=64", "--batch-size", "8", "-o", "c.mgm")
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "charge (regression, of each atom)" in said and "charge has 2 values, the molecule" in said
    assert "not clearly better" not in said and "worse than the mean" not in said
    assert "left out" in said and "intervals too narrow" in " ".join(said.split())

    done = run("predict", "c.mgm", "charges.csv", "-o", "out.csv")
    assert done.returncode == 0, done.stderr
    written = pd.read_csv(tmp_path / "out.csv")
    for text, cell in zip(texts, written["charge_predicted"], strict=True):
        assert len(json.loads(cell)) == Chem.MolFromSmiles(text).GetNumAtoms()
    done = run("evaluate", "c.mgm", "charges.csv", "-o", "scores.csv", "--report", "page.html")
    assert done.returncode == 0, done.stderr
    scores = pd.read_csv(tmp_path / "scores.csv").set_index("metric")
    predicted = np.concatenate([json.loads(c) for i, c in enumerate(written["charge_predicted"]) if i != 4])
    measured = np.concatenate([gasteiger(text) for i, text in enumerate(texts) if i != 4])
    assert scores.loc["rmse", "n"] == len(measured)
    rmse = np.sqrt(np.mean((predicted - measured) ** 2))
    np.testing.assert_allclose(scores.loc["rmse", "value"], rmse, rtol=1e-4)
    assert "charge" in (tmp_path / "page.html").read_text("utf-8")
    assert run("verify", "c.mgm").returncode == 0
    refused = run("predict", "c.mgm", "charges.csv", "-o", "out.npy")
    assert refused.returncode == 2 and ".npy holds one number a column" in refused.stderr
