"""The audit: every kind of finding with its rows, the same from one process or two, and how it shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from molgraph.base.contracts import Target
from molgraph.chem.parallel import map_texts
from molgraph.data.audit import audit
from molgraph.data.sources.builtin import nci
from molgraph.data.standardise import check_molecules, reasons_of
from molgraph.data.table import Entities, make_table

SMILES = [
    "CCO",  # 0
    "OCC",  # 1 the same
    "C(C",  # 2 unreadable
    "",  # 3 missing
    "CC(=O)[O-].[Na+]",  # 4 salt of 5
    "CC(=O)O",  # 5
    "CC(O)CN",  # 6 open centre
    "C[C@H](O)CN",  # 7 stated: another molecule than 6
    "CC=CC",  # 8 open double bond
    "C/C=C/C",  # 9
    "C(C)O",  # 10 as 0
]
Y = [1.0, 1.0, 3.0, 4.0, 5.0, 7.5, 1.0, 2.0, 3.0, 4.0, np.nan]


@pytest.fixture(scope="module")
def found():
    return audit(make_table(SMILES, ids=[f"<{i}>" for i in range(11)], targets=(Target("y"),), y=Y))


def test_findings(found) -> None:
    rows = {f.kind: f.rows.tolist() for f in found.findings}
    assert rows == {
        "unreadable": [2],
        "missing": [3],
        "not a molecule": [],
        "duplicate": [0, 1, 10, 4, 5],
        "contradiction in y": [4, 5],
        "undefined stereo": [6, 8],
        "salt or mixture": [4],
    }
    assert found.n_molecules == 6
    assert found.finding("contradiction in y").details[0] == "5; the molecule has 5 to 7.5"
    assert list(found.finding("undefined stereo").details) == ["1 stereo centre", "1 double bond"]
    groups = found.finding("duplicate").groups
    assert len(set(groups[:3])) == 1 and len(set(groups[3:])) == 1 and groups[0] != groups[3]


def test_how_it_shows(found) -> None:
    frame = found.to_frame()
    assert len(frame) == sum(len(f) for f in found.findings)
    assert frame[frame["finding"] == "unreadable"].iloc[0][["row", "id", "input"]].tolist() == [3, "<2>", "C(C"]
    text = found.text()
    assert "11 rows, 6 different molecules" in text and "contradiction in y" in text and "<2>" in text
    html = found._repr_html_()
    assert "&lt;2&gt;" in html and "<2>" not in html


def test_labels_of_classes_and_several_targets() -> None:
    targets = (Target("c", "multiclass", classes=("red", "blue")), Target("b", "binary"))
    found = audit(make_table(["CCO", "OCC", "CCN"], targets=targets, y=[[0, 1], [1, 1], [0, 0]]))
    assert list(found.finding("contradiction in c").details) == [
        "red; the molecule has red to blue",
        "blue; the molecule has red to blue",
    ]
    assert len(found.finding("contradiction in b")) == 0


def test_a_drug_with_another_target_is_no_duplicate() -> None:
    table = make_table(["CCO", "OCC", "CCO", "CCN"], targets=(Target("y"),), y=[1.0, 2.0, 3.0, 1.0])
    proteins = Entities("protein", "sequence", np.array(["MKV", "MKV", "MAA", "MKV"], dtype=object))
    found = audit(replace(table, entities=(*table.entities, proteins)))
    assert found.finding("duplicate").rows.tolist() == [0, 1]
    assert "one pair" in found.finding("duplicate").meaning
    assert found.finding("contradiction in y").rows.tolist() == [0, 1]
    assert found.n_molecules == 2


@pytest.mark.parametrize("smiles", [[], [""], ["C(C"], ["CCO"]])
def test_tables_with_little_in_them(smiles: list[str]) -> None:
    found = audit(make_table(smiles))
    assert sum(len(f) for f in found.findings) == sum(s != "CCO" for s in smiles)
    assert found.text() and found._repr_html_()


def test_two_processes_find_the_same() -> None:
    table = nci().take(np.arange(600))
    one, two = audit(table, workers=1), audit(table, workers=2)
    assert one.to_frame().equals(two.to_frame())
    texts = [str(s) for s in table.smiles]
    assert map_texts(reasons_of, texts, workers=2) == reasons_of(texts)


def test_checking_marks_every_row_of_a_bad_molecule() -> None:
    table = check_molecules(make_table(["C(C", "CCO", "C(C", None]))
    assert list(table.status) == ["unreadable", "ok", "unreadable", "missing"]
    assert table.reason[0] == table.reason[2] != ""
