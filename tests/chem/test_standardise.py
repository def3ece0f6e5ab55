"""Standardiser presets: what they do, that twice is once, and that the fast look agrees with the slow one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem
from rdkit.Chem.MolStandardize import rdMolStandardize

from molgraph.base import registry
from molgraph.base.errors import UnknownNameError
from molgraph.chem.smiles import parse_smiles, quiet
from molgraph.chem.standardise import has_dot_or_charge, preset, standardise_smiles
from molgraph.data.sources.builtin import nci
from molgraph.data.standardise import standardise
from molgraph.data.table import make_table

PRESETS = ("none", "desalt", "standard")
NCI = list(nci().smiles)


def one(text: str, name: str) -> str:
    return standardise_smiles([text], name).values[0]


@pytest.mark.parametrize(
    ("text", "desalted", "standard"),
    [
        ("CCO", "CCO", "CCO"),
        ("OCC", "OCC", "OCC"),
        ("CC(=O)[O-].[Na+]", "CC(=O)[O-]", "CC(=O)O"),
        ("C[NH+](C)C.[Cl-]", "C[NH+](C)C", "CN(C)C"),
        ("C[N+](C)(C)C.[I-]", "C[N+](C)(C)C", "C[N+](C)(C)C"),
        ("C[N+](=O)[O-]", "C[N+](=O)[O-]", "C[N+](=O)[O-]"),
        ("c1ccccc1-c1ccccc1", "c1ccccc1-c1ccccc1", "c1ccccc1-c1ccccc1"),
        ("[NH3+]CC([O-])=O", "[NH3+]CC([O-])=O", "NCC(=O)O"),
        ("CCO.CCO", "CCO", "CCO"),
        ("C1.C1", "C1.C1", "C1.C1"),
        ("C[C@H](N)C(=O)[O-].[K+]", "C[C@H](N)C(=O)[O-]", "C[C@H](N)C(=O)O"),
        ("Oc1ccccn1", "Oc1ccccn1", "Oc1ccccn1"),
        # charges that make a ring aromatic: without them no Kekule structure is left
        ("[cH-]1cccc1", "[cH-]1cccc1", "[cH-]1cccc1"),
        # what is no molecule stays as it is
        *[(text, text, text) for text in ("[cH-]1cccc1.[cH-]1cccc1.[Fe+2]", "[Na+].[Cl-]", "[K+].[Cl-]", "*C.Cl")],
        ("CC(=O)O[Na]", "CC(=O)[O-]", "CC(=O)O"),
        ("CCS[K].C[Mg]Br", "CC[S-]", "CCS"),
        ("C.OS(=O)(=O)O", "C", "C"),
        ("[cH+]1cccccc1", "[cH+]1cccccc1", "[cH+]1cccccc1"),
    ],
)
def test_presets(text: str, desalted: str, standard: str) -> None:
    assert [one(text, name) for name in PRESETS] == [text, desalted, standard]


@pytest.mark.parametrize("name", PRESETS)
def test_twice_is_once(name: str) -> None:
    first = standardise_smiles(NCI, name)
    again = standardise_smiles(first.values, name)
    assert (again.values == first.values).all()
    assert ((first.reasons == "") | (first.values == np.array(NCI, dtype=object))).all()


def test_texts_passed_verbatim_are_those_rdkit_would_not_change() -> None:
    """The oracle runs RDKit's chooser and neutraliser on every molecule that the fast look let through."""
    chooser, uncharger = rdMolStandardize.LargestFragmentChooser(), rdMolStandardize.Uncharger(True)
    texts = [t for t in NCI[:2000] if not has_dot_or_charge(t)]
    with quiet():
        for text in texts:
            mol = parse_smiles(text).mol
            if mol is not None:
                changed = uncharger.uncharge(chooser.choose(mol))
                assert Chem.MolToSmiles(changed) == Chem.MolToSmiles(mol)


def test_changed_texts_are_what_rdkit_makes_of_them() -> None:
    chooser, uncharger = rdMolStandardize.LargestFragmentChooser(), rdMolStandardize.Uncharger(True)
    texts = [t for t in NCI if has_dot_or_charge(t) and parse_smiles(t).mol is not None]
    made, first = (standardise_smiles(texts, name).values for name in ("standard", "standard/1"))
    assert (first != np.array(texts, dtype=object)).sum() > 50
    assert sum(a not in (b, text) for a, b, text in zip(made, first, texts, strict=True)) <= 1  # organic before larger
    with quiet():
        for text, new in zip(texts, first, strict=True):
            expected = uncharger.uncharge(chooser.choose(parse_smiles(text).mol))
            assert Chem.MolToSmiles(parse_smiles(new).mol) == Chem.CanonSmiles(Chem.MolToSmiles(expected))


def test_the_order_of_parts_does_not_matter() -> None:
    parts = ["CCO", "[Na+]", "CCN", "OCC"]
    rng = np.random.default_rng(0)
    results = {one(".".join(rng.permutation(parts)), "standard") for _ in range(12)}
    assert len(results) == 1


@given(st.lists(st.text(alphabet="CNO[]+-.()=#1 ", max_size=12), max_size=5), st.sampled_from(PRESETS))
def test_any_text_comes_out(texts: list[str], name: str) -> None:
    done = standardise_smiles(texts, name)
    assert len(done.values) == len(done.reasons) == len(texts)
    assert all(r == "" or v == t for t, v, r in zip(texts, done.values, done.reasons, strict=True))


def test_unknown_preset_and_version() -> None:
    assert preset("standard/1").label == "standard/1"
    with pytest.raises(UnknownNameError, match="'standrad'"):
        preset("standrad")
    with pytest.raises(UnknownNameError, match="standard/99"):
        preset("standard/99")
    assert set(PRESETS) <= set(registry.names("standardiser"))


def test_a_table_keeps_its_rows_and_marks_what_cannot_be_read() -> None:
    table = make_table(["CC(=O)[O-].[Na+]", None, "C(C.[Na+]", "CCO"])
    done = standardise(table)
    assert list(done.smiles) == ["CC(=O)O", "", "C(C.[Na+]", "CCO"]
    assert list(done.status) == ["ok", "missing", "unreadable", "ok"]
    assert done.reason[1] == "no molecule in this row" and "open parentheses" in done.reason[2]
    assert table.smiles[0] == "CC(=O)[O-].[Na+]"


def test_the_canonical_preset_gives_one_text_for_each_writing_of_a_molecule() -> None:
    """RDKit's chiral tags depend on the order in which neighbours are written."""
    alanine = Chem.MolFromSmiles("C[C@H](N)C(=O)O")
    writings = [*{Chem.MolToSmiles(alanine, doRandom=True) for _ in range(50)}, "C[C@H](N)C(=O)[O-].[Na+]"]
    made = standardise_smiles(writings, "canonical").values
    assert len(writings) > 5 and set(made) == {"C[C@H](N)C(=O)O"}
    assert standardise_smiles(["C[C@@H](N)C(=O)O"], "canonical").values[0] == "C[C@@H](N)C(=O)O"
