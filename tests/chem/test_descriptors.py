"""Descriptors against RDKit's own functions, on drug-like and on nasty molecules."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem, rdBase
from rdkit.Chem import Descriptors as rdkit_own
from rdkit.Chem.EState import EState

from molgraph.chem import parallel
from molgraph.chem.descriptors import NAMES, rdkit_descriptors
from molgraph.chem.estate import estate_indices

NASTY = ["[H+]", "[Na+].[Cl-]", "[H][H]", "C[Hg]C", "Cl[Pt](Cl)(N)N", "*c1ccccc1", "[2H]O[2H]", "[He]", "C", "[U]"]
USUAL = [
    "CC(=O)Oc1ccccc1C(=O)O",
    "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
    "C[C@H](N)C(=O)O",
    "CS(=O)(=O)c1ccc(cc1)C2=C(C(=O)OC2)c3ccccc3",
    "OC(=O)CCCC#Cc1ccc(F)c(Cl)c1.[Na+]",
    "C1CC2(CC1)CCN(C2)C(=O)c1cnc(Br)s1",
    "[O-][N+](=O)c1ccccc1B(O)O",
    "C12C3C4C1C5C2C3C45",
    "C" * 60,
]


@pytest.mark.parametrize("smiles", NASTY + USUAL)
def test_every_descriptor_is_rdkits(smiles: str) -> None:
    with rdBase.BlockLogs():
        mol = Chem.MolFromSmiles(smiles)
        own = dict(rdkit_own._descList)
        want = [own[name](mol) for name in NAMES]
        states = EState.EStateIndices(mol)
    found = rdkit_descriptors([smiles])
    assert found.ok.all()
    np.testing.assert_allclose(found.x[0], want, rtol=2e-6, atol=2e-5)
    np.testing.assert_allclose(estate_indices(mol), states, rtol=1e-9, atol=1e-12)


def test_rows_that_cannot_be_read_are_nan_with_a_reason() -> None:
    found = rdkit_descriptors(["CCO", "CN(C)(C)C", "", "CCO"])
    assert found.ok.tolist() == [True, False, False, True]
    assert np.isnan(found.x[~found.ok]).all()
    assert np.isfinite(found.x[found.ok]).all()
    assert all(found.reasons[~found.ok]) and not any(found.reasons[found.ok])
    assert (found.x[0] == found.x[3]).all()


def test_names_are_unique_and_fit_the_columns() -> None:
    assert len(set(NAMES)) == len(NAMES) == rdkit_descriptors([]).x.shape[1]
    assert rdkit_descriptors([]).x.shape[0] == 0


def test_processes_and_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    smiles = (NASTY + USUAL + ["bad"]) * 2
    whole = rdkit_descriptors(smiles, workers=1)
    monkeypatch.setattr(parallel, "PIECE", 7)
    apart = rdkit_descriptors(smiles, workers=2)
    np.testing.assert_array_equal(whole.x, apart.x)
    assert whole.reasons.tolist() == apart.reasons.tolist()
