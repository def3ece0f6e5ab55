"""Pairs of molecules and proteins in the shell: trained, predicted and scored, no column ignored in silence."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem import AllChem
from typer.testing import CliRunner

import molgraph
from molgraph.chem.xyz import write_frame
from molgraph.cli.main import app
from molgraph.data.featurize_geometry import METHANE, WATER

PROTEINS = ("MKTAYIAKQRQISFVKSHFSRQ", "GIVEQCCTSICSLYQLENYCN", "ACDEFGHIKLMNPQRSTVWY")
DRUGS = ("CCO", "c1ccccc1", "CC(=O)O", "CCN", "CCCl", "C1CC1", "CCCC", "OCCO")
QUICK = ("--epochs", "2", "-s", "params.head_width=8", "--no-baseline", "--split", "random")
EARLY = ("duplicates:", "learning ", "left out:", "training ")  # what is said once the table is accepted


def call(folder: Path, *words: str) -> tuple[int, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(app, list(words), prog_name="molgraph", env={"MOLGRAPH_QUIET": "1"})
    return done.exit_code, done.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with open(tmp_path / "pairs.csv", "w", newline="", encoding="utf-8") as file:
        write = csv.writer(file)
        write.writerow(["drug", "solvent", "protein", "affinity"])
        for i in range(40):
            drug, protein = DRUGS[i % 8], PROTEINS[i % 3]
            row = {5: ("C1CC", "O", protein), 9: (drug, "O", "MKJ"), 11: (drug, "O", "")}.get(i)
            drug, solvent, protein = row or (drug, DRUGS[(i + 1) % 8], protein)
            write.writerow([drug, solvent, protein, len(drug) + i % 5])
    return tmp_path


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("model", ["deepdta", "dmpnn+deepdta"])
def test_a_drug_and_its_protein(folder: Path, model: str) -> None:
    asked = ("--smiles", "drug", "--sequence", "protein", "-t", "affinity", "-m", model)
    code, said = call(folder, "train", "pairs.csv", *asked, *QUICK, "-o", "m.mgm")
    assert code == 0, said
    code, said = call(folder, "predict", "m.mgm", "pairs.csv", "-o", "out.csv")
    assert code == 0, said
    found = rows(folder / "out.csv")
    assert list(found[0])[:3] == ["id", "drug", "protein"] and len(found) == 40
    assert [row["drug"] for row in found] == [row["drug"] for row in rows(folder / "pairs.csv")]
    bad = {i: row["reason"] for i, row in enumerate(found) if row["status"] != "ok"}
    assert list(bad) == [5, 9, 11]
    assert bad[5].startswith("drug: SMILES Parse Error") and bad[11] == "protein: no sequence in this row"
    assert bad[9] == "protein: 'J' is no amino acid (X stands for an unknown one)"
    code, said = call(folder, "evaluate", "m.mgm", "pairs.csv")
    assert code == 0 and "rmse" in said and " ci " in said
    assert call(folder, "verify", "m.mgm")[0] == 0


def test_a_split_by_new_proteins_is_made_and_trained_on(folder: Path) -> None:
    asked = ("--smiles", "drug", "--sequence", "protein", "-t", "affinity")
    for splitter in ("cold-protein", "cold-both"):
        words = ("--split", splitter, "--fractions", "0.4,0.3,0.3", "-o", "split.json")
        code, said = call(folder, "data", "split", "pairs.csv", *asked, *words)
        assert code == 0 and ("different parts" in said) == (splitter == "cold-both"), said
        words = ("-m", "deepdta", *QUICK[:-1], "split.json", "-o", f"{splitter}.mgm")
        code, said = call(folder, "train", "pairs.csv", *asked, *words)
        assert code == 0 and " ci " in said, said
    words = ("-m", "deepdta", *QUICK[:-1], "cold-drug", "-s", "split.fractions=[0.6,0.2,0.2]")
    code, said = call(folder, "train", "pairs.csv", *asked, *words)
    assert code == 0 and "ci" in said, said


@pytest.mark.slow
def test_a_table_of_pairs_is_benchmarked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("molgraph.api.benchmarking.IMPORTS", ("molgraph.auxiliary",))  # less to start
    head = 'datasets = ["mine"]\n[[table]]\nname = "mine"\npath = "pairs.csv"\ntargets = ["affinity"]\n'
    columns = 'smiles = ["drug", "solvent"]\nsequence = "protein"\n[[split]]\nsplitter = "cold-protein"\nfolds = 3\n'
    methods = '[[method]]\nname = "mean"\n[[method]]\nname = "knn"\ninputs = ["drug"]\n'
    (folder / "mine.toml").write_text(head + columns + methods)
    code, said = call(folder, "bench", "run", "mine.toml", "-o", "out", "--only", "fold=0")
    assert code == 0 and "2 ok" in said and "mine cold-protein" in said, said


def test_two_molecules_a_row(folder: Path) -> None:
    asked = ("--smiles", "drug", "--smiles", "solvent", "-t", "affinity", "-m", "dmpnn")
    settings = ("-s", "params.joiner=bilinear", "-s", "params.d_hidden=8")
    code, said = call(folder, "train", "pairs.csv", *asked, *settings, *QUICK, "-o", "m.mgm")
    assert code == 0, said
    code, said = call(folder, "predict", "m.mgm", "pairs.csv", "-o", "out.csv")
    assert code == 0, said
    assert list(rows(folder / "out.csv")[0])[:3] == ["id", "drug", "solvent"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-m", "dmpnn"), "dmpnn does not read the column 'protein' (sequence)"),
        (("-m", "random_forest"), "random_forest reads one column of molecules, and would ignore 'protein' (sequence)"),
        (("-m", "gin+deepdta", "--input", "drug"), "deepdta has no column to read"),
        (("-m", "schnet"), "schnet does not read the column 'drug' (molecule)"),
        (("-m", "dmpnn", "--input", "drugs"), "no entity column 'drugs'"),
    ],
)
def test_a_column_that_is_not_read_is_said(folder: Path, words: tuple[str, ...], said: str) -> None:
    asked = ("--smiles", "drug", "--sequence", "protein", "-t", "affinity", "--split", "random", "--no-baseline")
    code, out = call(folder, "train", "pairs.csv", *asked, *words)
    assert code in (2, 3) and said in " ".join(out.split()) and not [early for early in EARLY if early in out]
    hinted = words in (("-m", "dmpnn"), ("-m", "random_forest"))
    assert ("--input drug (in Python inputs=['drug'])" in " ".join(out.split())) == hinted


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("deepdta", "deepdta gives no states of the atoms"),
        ("random_forest", "random_forest learns targets of whole rows"),
    ],
)
def test_targets_of_atoms_that_are_not_learned_are_said_first(folder: Path, model: str, said: str) -> None:
    (folder / "charges.csv").write_text("smiles,charge\n" + 'CO,"[0.1, 0.2]"\n' * 12)
    code, out = call(folder, "train", "charges.csv", "-t", "charge:atom", "-m", model, "--split", "random")
    assert code == 2 and said in " ".join(out.split()) and not [early for early in EARLY if early in out]


def test_a_column_may_be_left_out_by_name(folder: Path) -> None:
    asked = ("--smiles", "drug", "--sequence", "protein", "-t", "affinity", "--input", "drug", *QUICK)
    code, said = call(folder, "train", "pairs.csv", *asked, "-m", "dmpnn", "-s", "params.d_hidden=8", "-o", "m.mgm")
    assert code == 0, said


def test_files_that_lack_a_column_are_refused(folder: Path) -> None:
    asked = ("--smiles", "drug", "--sequence", "protein", "-t", "affinity", "-m", "deepdta")
    assert call(folder, "train", "pairs.csv", *asked, *QUICK, "-o", "m.mgm")[0] == 0
    (folder / "other.csv").write_text("drug,y\nCCO,1\n")
    code, said = call(folder, "predict", "m.mgm", "other.csv", "-o", "out.csv")
    assert code == 3 and "'protein'" in said and not (folder / "out.csv").exists()


def test_a_baseline_that_was_not_trained_is_not_written(folder: Path) -> None:
    code, said = call(folder, "data", "get", "mutag")
    if code:
        pytest.skip("the graphs are not here")
    words = ("-m", "gin", "--epochs", "1", "-s", "params.d_hidden=8", "--keep", "baseline", "-o", "g.mgm")
    code, said = call(folder, "train", "dataset:mutag", *words)
    assert code == 2 and "none was trained for this table" in said and not (folder / "g.mgm").exists()


def test_pairs_are_audited_and_curated_as_pairs(folder: Path) -> None:
    lines = ["drug,protein,affinity", "CCO,MKT,1", "OCC,MKT,3", "CCO,ACD,5", "CCN,ACD,6"]
    (folder / "p.csv").write_text("\n".join(lines) + "\n")
    asked = ("--smiles", "drug", "--sequence", "protein", "-t", "affinity")
    code, said = call(folder, "data", "audit", "p.csv", *asked)
    assert code == 0 and "several rows of one pair" in said, said
    code, said = call(folder, "data", "curate", "p.csv", *asked, "-o", "c.csv")
    assert code == 0 and "molgraph train c.csv --smiles drug --sequence protein -t affinity" in said, said
    kept = [(row["drug"], row["protein"], row["affinity"]) for row in rows(folder / "c.csv")]
    assert kept == [("CCO", "MKT", "2"), ("CCO", "ACD", "5"), ("CCN", "ACD", "6")]


def test_a_table_of_proteins_alone(folder: Path) -> None:
    with open(folder / "proteins.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [("protein", "y"), *((PROTEINS[i % 3][i % 7 :], i % 5) for i in range(40)), ("MKJ", 1)]
        )
    asked = ("train", "proteins.csv", "--sequence", "protein", "-t", "y", "-m", "deepdta", *QUICK[:-2])
    code, said = call(folder, *asked, "-o", "m.mgm")
    assert code == 0 and "split random" in said, said  # there are no scaffolds
    code, said = call(folder, "predict", "m.mgm", "proteins.csv", "-o", "out.csv")
    assert code == 0, said
    out = rows(folder / "out.csv")
    assert [row["status"] for row in out] == ["ok"] * 40 + ["unreadable"] and out[0]["protein"] == PROTEINS[0]
    code, said = call(folder, *asked[:6], "-m", "linear", "--split", "random", "-o", "f.mgm")
    assert code == 2 and "not 'protein' (sequence)" in said and "--search sequence" in said


def test_atoms_in_space_of_an_sd_file(tmp_path: Path) -> None:
    blocks = []
    for i in range(24):
        mol = Chem.AddHs(Chem.MolFromSmiles(DRUGS[i % 8]))
        AllChem.EmbedMolecule(mol, randomSeed=i)
        blocks.append(Chem.MolToMolBlock(mol))
    blocks[5] = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    text = "".join(f"{block}> <E>\n{i % 8}\n\n$$$$\n" for i, block in enumerate(blocks))
    (tmp_path / "shapes.sdf").write_text(text)
    wide = ("-s", "params.d_hidden=8")
    code, said = call(tmp_path, "train", "shapes.sdf", "-t", "E", "-m", "schnet", *QUICK, *wide, "-o", "m.mgm")
    assert code == 0 and "new.sdf" in said, said
    code, said = call(
        tmp_path,
        "pretrain",
        "shapes.sdf",
        "-m",
        "schnet",
        "--method",
        "infograph",
        "--epochs",
        "1",
        *wide,
        "--fractions",
        "1,0,0",
        "-o",
        "e.mgm",
    )
    assert code == 0 and "finetune e.mgm assay.sdf" in said and "embed e.mgm library.sdf" in said, said
    for ending in ("csv", "sdf"):
        code, said = call(tmp_path, "predict", "m.mgm", "shapes.sdf", "-o", f"out.{ending}")
        assert code == 0, said
    found = rows(tmp_path / "out.csv")
    assert [i for i, row in enumerate(found) if row["status"] != "ok"] == [5] and "plane" in found[5]["reason"]
    assert (tmp_path / "out.sdf").read_text().count("$$$$") == 24
    assert call(tmp_path, "evaluate", "m.mgm", "shapes.sdf")[0] == 0
    (tmp_path / "flat.csv").write_text("smiles,E\nCCO,1\n")
    for words in (("predict", "m.mgm", "flat.csv", "-o", "x.csv"), ("train", "flat.csv", "-t", "E", "-m", "schnet")):
        code, said = call(tmp_path, *words)
        assert code == 3 and "no atoms in space" in said and "--geometry" in said
    texts = pd.DataFrame({"xyz": [write_frame(m.numbers, m.positions) for m in (WATER, METHANE)], "E": [1, 2]})
    texts.to_csv(tmp_path / "xyz.csv", index=False)
    code, said = call(tmp_path, "predict", "m.mgm", "xyz.csv", "--geometry", "xyz", "-o", "xyz.out.csv")
    assert code == 0 and [row["status"] for row in rows(tmp_path / "xyz.out.csv")] == ["ok", "ok"], said
    assert call(tmp_path, "evaluate", "m.mgm", "xyz.csv", "--geometry", "xyz")[0] == 0
    model = molgraph.load(tmp_path / "m.mgm")
    assert model.predict([WATER, METHANE]).status.tolist() == ["ok", "ok"]


def test_a_column_of_smiles_called_geometry_holds_no_atoms_in_space(tmp_path: Path) -> None:
    (tmp_path / "odd.tsv").write_text(
        "geometry\ty\n" + "".join(f"{smiles}\t{i % 5}\n" for i, smiles in enumerate(DRUGS * 3))
    )
    wide = ("--smiles", "geometry", "-s", "params.d_hidden=8")
    code, said = call(tmp_path, "train", "odd.tsv", "-t", "y", "-m", "gin", *QUICK, *wide, "-o", "m.mgm")
    assert code == 0 and "new.csv" in said and "new.sdf" not in said, said


def test_a_table_of_smiles_trains_a_model_of_atoms_in_space_by_its_conformers(tmp_path: Path) -> None:
    lines = [f"{smiles},{i % 5}.5\n" for i, smiles in enumerate(DRUGS * 3)]
    (tmp_path / "lib.csv").write_text("smiles,y\n" + "".join(lines))
    how = ("-m", "schnet", "--conformers", "1", "--relax", "none", "-s", "params.d_hidden=8", "-o", "m.mgm")
    code, said = call(tmp_path, "train", "lib.csv", "-t", "y", *QUICK, *how)
    assert code == 0 and "new.csv" in said, said
    (tmp_path / "new.csv").write_text("smiles\nCCO\nC(\nc1ccccc1C(=O)O\n")
    code, said = call(tmp_path, "predict", "m.mgm", "new.csv", "-o", "out.csv")
    assert code == 0 and [row["status"] for row in rows(tmp_path / "out.csv")] == ["ok", "unreadable", "ok"], said
    code, said = call(tmp_path, "verify", "m.mgm")
    assert code == 0 and "made here: 1 conformer a molecule (ETKDGv3, seed 0, not relaxed)" in " ".join(said.split())
