"""``molgraph report``: the training's page on any labelled table, with the user's ids and how far to trust it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import molgraph
from molgraph.cli.main import app
from molgraph.data.read import read_table
from molgraph.evaluate.coverage import GRADES
from molgraph.evaluate.report_reliability import reliability_tables


def test_a_report_has_the_users_ids_the_coverage_and_the_error_by_grade(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = read_table("dataset:chembl2321810").take(np.arange(300))
    names = [f"AB-{i:04d}" for i in range(300)]
    frame = pd.DataFrame({"Compound Name": names, "smiles": table.smiles, "y": table.y[:, 0]})
    frame[:200].to_csv("a.csv", index=False)
    later = pd.concat([frame[200:], pd.DataFrame({"Compound Name": ["AB-odd"], "smiles": ["C(("], "y": [1.0]})])
    later.to_csv("later.csv", index=False)
    made = molgraph.train("a.csv", targets=["y"], model="domain(conformal(knn))", split="random")
    made.save("m.mgm")
    done = CliRunner().invoke(app, ["report", "m.mgm", "later.csv", "-o", "page.html"], prog_name="molgraph")
    assert done.exit_code == 0, done.output
    page = Path("page.html").read_text()
    worst = re.findall(r'<div class="id">(.*?)</div>', page)
    assert len(worst) == 8 and set(worst) <= set(names[200:]) and "AB-odd" in page
    assert "within intervals" in page and ">inside<" in page
    own = made.report("own.html").read_text()
    assert "AB-0" in own and "within intervals" in own

    read = read_table("later.csv", targets=["y"])
    prediction = made.model.predict_table(read)
    (found,) = reliability_tables(read, {"knn": prediction})
    low, high = (each[:, 0] for each in prediction.interval)
    known = np.isfinite(prediction.value[:, 0])
    inside = ((read.y[:, 0] >= low) & (read.y[:, 0] <= high))[known].mean()
    rows = {row[1]: row for row in found["rows"]}
    assert rows["all"][2] == f"{inside:.1%}" and rows["all"][5] == str(known.sum())
    assert sum(int(row[5]) for grade, row in rows.items() if grade in GRADES) == known.sum()


def test_ids_are_found_by_name_and_the_plain_name_goes_first() -> None:
    both = {"ChEMBL ID": ["X"], "id": ["7"], "smiles": ["C"]}
    assert read_table(both).ids.tolist() == ["7"]
    assert read_table({"Molecule Name": ["E-1"], "smiles": ["C"]}).ids.tolist() == ["E-1"]
    assert read_table({"x": ["E-1"], "smiles": ["C"]}, id="x").ids.tolist() == ["E-1"]


def test_an_explanation_has_the_users_ids(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = {"model": "additive", "epochs": 1, "baseline": False, "params": {"d_hidden": 8}}
    molgraph.train("builtin:chembl2321810", **options).save("m.mgm")
    pd.DataFrame({"code": ["AB-1", "AB-2"], "smiles": ["CCO", "CCN"]}).to_csv("a.csv", index=False)
    words = ["explain", "m.mgm", "a.csv", "--by", "contributions", "--id", "code", "-o", "e.html"]
    done = CliRunner().invoke(app, words, prog_name="molgraph")
    assert done.exit_code == 0, done.output
    page = Path("e.html").read_text()
    assert "AB-1: CCO" in page and "AB-2: CCN" in page
