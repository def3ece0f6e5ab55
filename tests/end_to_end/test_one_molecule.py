"""Audits, scores, generators and predictions agree on which molecule a text is, and on what is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

import molgraph
from molgraph.base.registry import get
from molgraph.data.table import make_table
from molgraph.generate.generated import judge
from molgraph.train.model import Model
from molgraph.train.modelfile import verify
from molgraph.train.training_molecules import distinct, molecule_hashes
from tests.tiny import series

PLAIN = ["N#Cc1ccc(-c2ccc(O[C@@H](C(=O)N3CCCC3)c3ccccc3)cc2)cc1", "O=C(Nc1nc[nH]n1)c1cccnc1Nc1cccc(F)c1",
         "O=C(N1CCc2c(F)ccc(F)c2C1)C1(O)Cc2ccccc2C1", "O=C(NCCNC(=O)N1C[C@H]2CC=CC[C@@H]2C1)c1cccnc1",
         "OCC[C@@]1(c2cc3ccccc3o2)CCCNC1", "CC(=O)O"]  # fmt: skip
SALTS = ["CC(=O)O[Na]", "CC(=O)[O-].[Na+]", "CC(=O)O"]
NONE = ["[Na+].[Cl-]", "Cl", "[K+].[Cl-]", "[Fe+2].c1cc[cH-]c1.c1cc[cH-]c1", "*CCO", "[He]", "[H+]"]
COPIES = {"mapped": "[CH3:9][C:1](=[O:2])[OH:4]", "covalent": "CC(=O)O[K]", "charged": "CC(=O)[O-]",
          "heavy": "[13CH3]C(=O)O", "stereo-free": "OCCC1(c2cc3ccccc3o2)CCCNC1",
          "other stereo": "OCC[C@]1(c2cc3ccccc3o2)CCCNC1"}  # fmt: skip


def mapped(text: str) -> str:
    mol = Chem.MolFromSmiles(text)
    for number, atom in enumerate(mol.GetAtoms(), 1):
        atom.SetAtomMapNum(number)
    return str(Chem.MolToSmiles(mol))


MAPPED = [mapped(text) for text in PLAIN]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = molgraph.train(series(), model="knn", params={"n_bits": 64}, baseline=False).model
    return made.save(tmp_path_factory.mktemp("model") / "knn.mgm")


def test_atom_mapped_copies_are_duplicates_everywhere() -> None:
    data = {"smiles": PLAIN + MAPPED, "y": [*range(6), *range(6)]}
    assert molgraph.audit(data, targets=["y"]).n_molecules == len(PLAIN)
    table = molgraph.read_table(data, targets=["y"])
    for alone in (False, True):  # curate, and train --duplicates
        assert list(molgraph.curate(table, replicates_alone=alone).table.smiles) == PLAIN


@pytest.mark.parametrize("standardise", ["none", "canonical"])
def test_atom_mapped_copies_are_not_novel(standardise: str) -> None:
    found = molgraph.judge_generation(MAPPED, train=PLAIN, standardise=standardise, controls=False)
    assert [found.value("sample", name) for name in ("valid", "unique", "novel")] == [1, 1, 0]


@pytest.mark.parametrize("copy", COPIES)
def test_novel_is_one_word(copy: str) -> None:
    drawn = [COPIES[copy], "CCBr"]
    found = molgraph.judge_generation(drawn, train=PLAIN, controls=False)
    assert judge(drawn, distinct(molecule_hashes(make_table(PLAIN)))).novel.tolist() == [False, True]  # type: ignore[union-attr]
    assert found.value("sample", "novel") == 0.5


@pytest.mark.parametrize("name", ["gru", "ngram", "chemvae"])
def test_generators_learn_neither_atom_maps_nor_what_is_no_molecule(name: str) -> None:
    options = {"gru": {"epochs": 1, "d_hidden": 8, "d_embedding": 8}, "chemvae": {"epochs": 1}}.get(name, {})
    learned = [get("generator", name)(**options).fit(make_table(texts)) for texts in (PLAIN, MAPPED + NONE)]
    plain, other = (each.state().meta["vocabulary"] for each in learned)
    assert plain == other and ":" not in "".join(other["tokens"] if name == "chemvae" else other)


def test_what_is_no_molecule_is_counted_apart_from_the_valid() -> None:
    drawn = ["*CCO", "[*:1]c1ccccc1", "[*]N", "CCO", "C1CC"]
    report = molgraph.judge_generation(drawn, train=PLAIN, controls=False)
    assert [report.value("sample", name) for name in ("valid", "no_molecule")] == [0.2, 0.6]
    found = judge(drawn, None)
    assert (found.n_valid, found.n_unique, found.n_no_molecule) == (1, 1, 3)
    assert found.reason[0] == "an open attachment point (*)"


def test_predict_gives_no_value_to_what_is_no_molecule(model: Path, tmp_path: Path) -> None:
    loaded = molgraph.load(model)
    found = loaded.predict(SALTS + NONE)
    assert found.status.tolist() == ["ok"] * 3 + ["not a molecule"] * len(NONE) and all(found.reason[3:])
    assert len({*found.value[:3, 0]}) == 1 and np.isnan(found.value[3:]).all()
    make_file = tmp_path / "in.smi"
    make_file.write_text("\n".join(SALTS + NONE) + "\n")
    assert molgraph.predict_file(loaded, make_file, tmp_path / "out.csv").failed == len(NONE)


def test_measured_rows_are_learnt_and_scored_with_a_note(model: Path) -> None:
    target = molgraph.load(model).targets[0].name
    data = {"smiles": [*series(30).smiles, *NONE], target: np.linspace(4, 8, 30 + len(NONE))}
    result = molgraph.train(data, targets=[target], model="mean", split="random", baseline=False)
    assert sum(result.split.sizes.values()) == 30 + len(NONE)
    assert any(note.startswith(f"{len(NONE)} rows of no molecule") for note in result.model.card.notes)
    assert set(molgraph.load(model).evaluate(data)["n"]) == {30 + len(NONE)}


def test_files_of_the_first_version_answer_as_they_did(model: Path, tmp_path: Path) -> None:
    new = molgraph.load(model)
    old = molgraph.load(Model(new.method, targets=new.targets, standardiser="standard/1").save(tmp_path / "old.mgm"))
    assert (new.standardiser, old.standardiser) == ("standard", "standard/1")
    assert old.predict(SALTS + NONE[:4]).status.tolist() == ["ok"] * 7
    assert len({*old.predict(SALTS).value[:, 0]}) == 2, "a bound metal stays"
    assert verify(tmp_path / "old.mgm").n_molecules >= 20
