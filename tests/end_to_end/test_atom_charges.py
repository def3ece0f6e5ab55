"""Charges of atoms by the lines of docs/tables.md: made, trained, predicted and scored, against each element's mean."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

from tests.end_to_end.conftest import Run
from tests.house.test_house_papers import commands


@pytest.mark.slow
def test_charges_are_learned_by_the_lines_of_the_page(run: Run, tmp_path: Path, root: Path) -> None:
    page = (root / "docs" / "tables.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    with contextlib.chdir(tmp_path):
        exec(compile(code, "tables.md", "exec"), {})
    frame = pd.read_csv(tmp_path / "charges.csv")
    assert len(frame) == 1017
    frame = frame[:90]  # the first of them, with one cell of another length
    measured = [json.loads(cell) for i, cell in enumerate(frame["charge"]) if i != 4]
    frame.loc[4, "charge"] = "[0.1, 0.2]"
    frame.to_csv(tmp_path / "charges.csv", index=False)
    train, predict = [words[1:] for words in commands(page) if "charges.csv" in words]
    quick = ("--epochs", "12", "--threads", "1", "-s", "params.d_hidden=64", "--batch-size", "8")
    done = run(*train, *quick)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "charge (regression, of each atom)" in said and "charge has 2 values, the molecule" in said
    assert "not clearly better" not in said and "worse than the mean" not in said
    assert "left out" in said and "intervals too narrow" in " ".join(said.split())

    done = run(*predict)
    assert done.returncode == 0, done.stderr
    written = pd.read_csv(tmp_path / "predicted.csv")
    for text, cell in zip(frame["smiles"], written["charge_predicted"], strict=True):
        assert len(json.loads(cell)) == Chem.MolFromSmiles(text).GetNumAtoms()
    done = run("evaluate", "charges.mgm", "charges.csv", "-o", "scores.csv", "--report", "page.html")
    assert done.returncode == 0, done.stderr
    scores = pd.read_csv(tmp_path / "scores.csv").set_index("metric")
    predicted = [json.loads(cell) for i, cell in enumerate(written["charge_predicted"]) if i != 4]
    errors = np.concatenate(predicted) - np.concatenate(measured)
    assert scores.loc["rmse", "n"] == len(errors)
    np.testing.assert_allclose(scores.loc["rmse", "value"], np.sqrt(np.mean(errors**2)), rtol=1e-4)
    assert "charge" in (tmp_path / "page.html").read_text("utf-8")
    assert run("verify", "charges.mgm").returncode == 0
    refused = run("predict", "charges.mgm", "charges.csv", "-o", "out.npy")
    assert refused.returncode == 2 and ".npy holds one number a column" in refused.stderr
