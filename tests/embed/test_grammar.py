"""Searches by a pattern with likeness: several places, the command, and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import molgraph
from molgraph.base.errors import BadValueError, ConflictError, FormatError, MissingOptionError
from molgraph.chem.substituents import on_methyl, substituent_properties, substituents
from molgraph.cli.main import app
from molgraph.embed.encoder import MoleculeEncoder
from molgraph.embed.grammar import COMMON, Likeness
from tests.tiny import series

LIBRARY = ["CCO", "OC(=O)c1ccccc1C", "xx", "c1nnn[nH]1", "c1ccc2c(c1)CCC2", "Clc1ccc(C(=O)O)cc1", "Oc1ccccc1"]
PATTERN, LIKE = "c1ccccc1[*:1]", "[*:1]C(=O)O"


def test_places_are_cut_at_bonds_outside_rings_and_anything_may_stand_where_nothing_is_asked_for() -> None:
    assert substituents(PATTERN, ["c1ccc2c(c1)CCC2"]) == [("", ())]
    two = "[*:2]c1ccc([*:1])cc1"
    assert substituents(two, ["Clc1ccc(C(=O)O)cc1"]) == [("", (("*C(=O)O", "*Cl"), ("*Cl", "*C(=O)O")))]
    frame = molgraph.nearest(LIBRARY, smarts=two, like=LIKE)
    assert frame[["smiles", "R1", "R2"]].values.tolist() == [["Clc1ccc(C(=O)O)cc1", "*C(=O)O", "*Cl"], ["xx", "", ""]]
    assert substituents("C~[*:1]", ["CC=O"]) == [("", (("*=O",), ("*C",), ("*C=O",)))]


def test_the_command_and_python_give_the_same_and_rows_that_cannot_be_read_come_last(tmp_path: Path) -> None:
    file, out = tmp_path / "lib.csv", tmp_path / "out.csv"
    pd.DataFrame({"id": [f"m{i}" for i in range(7)], "smiles": LIBRARY}).to_csv(file, index=False)
    command = ["nearest", str(file), "--smarts", PATTERN, "--like", LIKE, "--eps", "2", "-o", str(out)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    found, wanted = pd.read_csv(out), molgraph.nearest(str(file), smarts=PATTERN, like=[LIKE], eps=2)
    assert found["id"].tolist() == wanted["id"].tolist() and found["id"].iloc[-1] == "m2"
    assert found["distance"][:2].tolist() == [0, 0] and 0 < found["distance"][2] < 2
    assert wanted["reason"].iloc[-1] and (wanted["reason"].iloc[:-1] == "").all()
    assert len(molgraph.nearest(str(file), smarts=PATTERN, like=[LIKE], eps=2, k=1)) == 2
    assert len(molgraph.nearest(str(file), smarts=PATTERN, like=[LIKE])) == 3


def test_vectors_of_an_encoder_are_compared_and_what_has_none_is_far() -> None:
    model = molgraph.pretrain(series(40), model="gin", params={"d_hidden": 8, "depth": 2}, epochs=1, threads=1)
    likeness, encoder = Likeness(MoleculeEncoder(model), 1), MoleculeEncoder(model)
    raw = encoder.vectors([on_methyl(text) for text in COMMON]).x.astype(float)
    mean, spread = raw.mean(axis=0), raw.std(axis=0)
    z = (encoder.vectors(["CO", "CN"]).x - mean) / np.where(spread > 1e-9, spread, 1)
    wanted = 1 - z[0] @ z[1] / np.linalg.norm(z[0]) / np.linalg.norm(z[1])
    assert likeness.distances(["*O"], ["*N"])[0, 0] == pytest.approx(wanted, abs=1e-5)
    assert likeness.distances(["*C*", "*O"], ["*C*", "*O"]).tolist() == [[0, np.inf], [np.inf, 0]]
    assert np.isfinite(substituent_properties(["*[Si](C)(C)C", "*=O", "*#N", "*[Pt]"])).all()


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"smarts": "c1cc(("}, FormatError, "no SMARTS"),
        ({"smarts": "c1ccccc1"}, BadValueError, "no place"),
        ({"smarts": "C[*:1]C"}, BadValueError, "2 neighbours"),
        ({"smarts": "C[*:1].C[*:2]"}, BadValueError, "several parts"),
        ({"like": "[*:1]C(=O"}, FormatError, "cannot be read"),
        ({"like": "CC"}, BadValueError, "hangs on"),
        ({"like": "[*:2]C"}, BadValueError, ":2"),
        ({"like": ()}, BadValueError, "no place has an exemplar"),
        ({"eps": -0.1}, BadValueError, "eps"),
        ({"csls": True}, ConflictError, "one library"),
        ({"by": "fingerprint"}, ConflictError, "one library"),
    ],
)
def test_what_makes_no_pattern_is_refused(how: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        molgraph.nearest(LIBRARY, **{"smarts": PATTERN, "like": LIKE, "eps": 0.3, **how})


def test_the_options_of_a_pattern_are_read_with_one_alone() -> None:
    with pytest.raises(ConflictError, match="like and eps"):
        molgraph.nearest("CCO", LIBRARY, eps=0.3)
    with pytest.raises(MissingOptionError, match="no library"):
        molgraph.nearest("CCO")
    assert CliRunner().invoke(app, ["nearest", "CCO", "--like", LIKE]).exit_code == 2
