"""Reactions in the shell: made by rules, trained on, predicted row for row."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tests.chem.test_reaction_rules import TEXTBOOK
from tests.cli.test_cli_entities import call


def test_made_reactions_are_trained_on_and_predicted(tmp_path: Path) -> None:
    texts = [text for blocks, _ in TEXTBOOK.values() for text in blocks]
    (tmp_path / "library.smi").write_text("\n".join(texts))
    made = ("data", "reactions", "library.smi", "--rules", "amide,ether,suzuki", "--count", "8", "-o", "rxn.csv")
    code, said = call(tmp_path, *made)
    assert code == 0 and "made by rules and not measured" in said, said
    frame = pd.read_csv(tmp_path / "rxn.csv")
    assert [*frame] == ["rxn_smiles", "rule", "reactants", "product"] and set(frame["rule"]) == {*made[4].split(",")}
    quick = ("--epochs", "1", "-s", "params.d_hidden=8", "--no-baseline", "--fractions", "0.8,0.2,0")
    asked = ("--reaction", "rxn_smiles", "-t", "rule:multiclass", "-m", "gin", *quick, "-o", "m.mgm")
    code, said = call(tmp_path, "train", "rxn.csv", *asked)
    assert code == 0, said
    with open(tmp_path / "rxn.csv", "a") as file:
        file.write("CC>>CO,amide,CC,CO\n,amide,CC,CO\n")
    code, said = call(tmp_path, "predict", "m.mgm", "rxn.csv", "-o", "out.csv")
    out = pd.read_csv(tmp_path / "out.csv")
    assert code == 0 and out["status"].tolist() == ["ok"] * len(frame) + ["unreadable", "missing"], said
    assert "is mapped" in out["reason"].iloc[-2]
    frame.rename(columns={"rxn_smiles": "equation"}).to_csv(tmp_path / "other.csv", index=False)
    code, said = call(tmp_path, "predict", "m.mgm", "other.csv", "-o", "other_out.csv")
    assert code == 3 and "--reaction COLUMN" in said, said
    code, said = call(tmp_path, "predict", "m.mgm", "other.csv", "--reaction", "equation", "-o", "other_out.csv")
    assert code == 0, said
    code, said = call(tmp_path, "predict", "m.mgm", frame["rxn_smiles"][0])
    assert code == 0 and "ok" in said, said
    code, said = call(tmp_path, "data", "reactions", "library.smi", "--rules", "suzki", "-o", "other.csv")
    assert code == 2 and "suzuki" in said
