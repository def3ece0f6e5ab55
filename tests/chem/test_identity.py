"""One key for every writing of a molecule, and reasons for what RDKit reads and is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem

from molgraph.chem.identity import canonical_smiles, identities_of, molecule_key, molecule_keys, reasons_of_none, relate
from molgraph.chem.organic import is_doubtful, why_no_molecule
from molgraph.chem.smiles import parse_smiles, quiet
from molgraph.chem.standardise import standardise_smiles
from molgraph.data.sources.builtin import chembl2321810, nci

NASTY = [line.split("\t")[0] for line in (Path(__file__).parents[1] / "nasty.tsv").read_text("utf-8").splitlines()[1:]]
NCI = [str(text) for text in nci().smiles[::10]]
STEREO = [
    "C[C@H](N)C(=O)O",
    "F/C=C/F",
    "C[C@@H]1CC[C@H](O)CC1",
    "O=C(N1C[C@H]2CC=CC[C@@H]2C1)c1cccnc1",
    "CC(C)[C@@](C)(O)F",
]
NONE = {
    "an open attachment point (*)": ["*CCO", "[*:1]c1ccccc1", "[*]N", "*CC |$R1;;$|", "*CC.Cl"],
    "no heavy atom": ["[H+]", "[H][H]", "[2H-][H]"],
    "a bare ion": ["[Na+]", "[Zn+2]", "[Cl-]", "[OH-]"],
    "no organic part: it has no carbon": ["[He]", "O", "N", "NN", "[Na+].[Cl-]", "[K+].[Cl-]", "Cl", "N[Pt](N)(Cl)Cl"],
    "a compound of a metal": ["C[Mg]Br", "CCCC[Sn](Cl)CCCC", "C1CC2(C1)C(=O)O[Pt]OC2=O", "[Li]CCCC"],
    "an organometallic compound of Fe": ["[Fe+2].c1cc[cH-]c1.c1cc[cH-]c1"],
}
NONES = [text for texts in NONE.values() for text in texts]
MOLECULES = ["C", "CC(=O)O[Na]", "[Fe+3].CC(=O)[O-].CC(=O)[O-].CC(=O)[O-]", "C[N+](C)(C)C", "C[Si](C)(C)C", "[13CH4]",
             "C[As](C)C", "[K+].[S-]C#N", "C[Se]C", "OB(O)c1ccccc1", "[CH3:7][OH:2]", "CCS[K]", "CO[Mg]OC"]  # fmt: skip


def mapped(text: str, seed: int) -> str:
    """Another writing of a molecule, with atom maps in no order."""
    mol, rng = Chem.MolFromSmiles(text), np.random.default_rng(seed)
    mol = Chem.RenumberAtoms(mol, rng.permutation(mol.GetNumAtoms()).tolist())
    for atom in mol.GetAtoms():
        atom.SetAtomMapNum(int(rng.integers(0, 99)))
    return str(Chem.MolToSmiles(mol, canonical=False))


@given(st.sampled_from([*STEREO, *NCI, *map(str, chembl2321810().smiles)]), st.integers(0, 999))
def test_atom_maps_and_order_change_neither_text_nor_key(text: str, seed: int) -> None:
    with quiet():
        if parse_smiles(text).mol is None:
            return
        other = mapped(text, seed)
    one, two = identities_of([text, other])
    assert one == two and one.written == Chem.CanonSmiles(text)
    assert canonical_smiles([other])[0] == canonical_smiles([text])[0] and relate(text, other) == "duplicate"
    assert standardise_smiles([other], "canonical").values[0] == standardise_smiles([text], "canonical").values[0]


def test_atoms_that_maps_alone_tell_apart_are_no_stereo_centre() -> None:
    assert canonical_smiles(["[CH3:1][C@H:2]([OH:3])[CH3:4]"])[0].smiles == "CC(C)O"


@pytest.mark.parametrize("stereo", [True, False])
def test_a_standardised_molecule_is_the_same_one(stereo: bool) -> None:
    texts = [*STEREO, *MOLECULES, *NCI, *NASTY, *NONES]
    keys = molecule_keys(texts, stereo=stereo)
    for preset in ("desalt", "standard", "canonical"):
        again = molecule_keys(standardise_smiles(texts, preset).values, stereo=stereo)
        assert [t for t, a, b in zip(texts, keys.values, again.values, strict=True) if a != b] == []


def test_stereo_is_kept_where_it_is_asked_for() -> None:
    left, right, free = (Chem.MolFromSmiles(text) for text in ("C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "CC(N)C(=O)[O-]"))
    assert len({molecule_key(mol, stereo=True) for mol in (left, right, free)}) == 3
    assert {molecule_key(mol, stereo=False) for mol in (left, right, free)} == {"CC(N)C(=O)O"}


def test_what_is_no_molecule_is_not_taken_for_its_parts() -> None:
    texts = ["[Na+].[Cl-]", "Cl", "[K+].[Cl-]", "[Fe+2].c1cc[cH-]c1.c1cc[cH-]c1", "[cH-]1cccc1", "*C.Cl", "C*"]
    assert len({*molecule_keys(texts, stereo=True).values}) == len(texts)


def test_reasons() -> None:
    for reason, texts in NONE.items():
        assert [
            text for text, why in zip(texts, reasons_of_none(texts), strict=True) if not why.startswith(reason)
        ] == []
    assert [*zip(MOLECULES, reasons_of_none(MOLECULES), strict=True)] == [(text, "") for text in MOLECULES]


def test_the_look_at_the_characters_lets_no_doubtful_molecule_through() -> None:
    with quiet():
        for text in [*NCI, *NASTY, *MOLECULES, *NONES]:
            mol = parse_smiles(text).mol
            assert mol is None or is_doubtful(text) or not why_no_molecule(mol), text
    assert sum(map(is_doubtful, NCI)) < 0.1 * len(NCI)
