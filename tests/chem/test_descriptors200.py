"""The 200 descriptors, counts and reduced graphs, against RDKit's own."""

from __future__ import annotations

import numpy as np
from rdkit import Chem
from rdkit.Avalon.pyAvalonTools import GetAvalonCountFP
from rdkit.Chem import Descriptors, rdReducedGraphs
from rdkit.Chem.rdMolDescriptors import GetHashedMorganFingerprint
from rdkit.DataStructs import ConvertToNumpyArray

from molgraph.chem.descriptors200 import NAMES_200, descriptors_200
from molgraph.chem.fingerprints import avalon_counts, erg, morgan
from tests.tiny import series

SMILES = [*series(12).smiles, "[Na+].[Cl-]", "C", "c1ccccc1[Hg]Cl", "C(C", "CC(=O)Oc1ccccc1C(=O)O"]
READ = [i for i, text in enumerate(SMILES) if text != "C(C"]


def mols() -> list[Chem.Mol]:
    return [Chem.MolFromSmiles(SMILES[i]) for i in READ]


def test_the_200_are_rdkits() -> None:
    found = descriptors_200(SMILES, workers=1)
    assert len(NAMES_200) == 200 == len(set(NAMES_200)) and found.ok.tolist() == [text != "C(C" for text in SMILES]
    assert sum(name.startswith("fr_") for name in NAMES_200) == 85
    functions = dict(Descriptors._descList)
    with np.errstate(over="ignore"):
        expected = np.array([[functions[n](mol) for n in NAMES_200] for mol in mols()], dtype=np.float32)
    expected[~np.isfinite(expected)] = np.nan
    np.testing.assert_allclose(found.x[READ], expected, rtol=2e-5, atol=2e-5)
    assert np.isnan(found.x[SMILES.index("C(C")]).all()


def test_a_large_molecule_lacks_what_is_beyond_float32_and_takes_no_time_for_it() -> None:
    chain = "C" * 256
    found = descriptors_200([chain, "C" * 60], workers=1)
    ipc = found.names.index("Ipc")
    assert np.isnan(found.x[0, ipc]) and Descriptors.Ipc(Chem.MolFromSmiles(chain)) > np.finfo(np.float32).max
    assert np.isfinite(found.x[1]).all() and np.isnan(found.x[0]).sum() == 1


def test_any_number_of_workers_gives_the_same() -> None:
    smiles = list(series(600).smiles)
    few, many = (descriptors_200(smiles[:8], workers=w).x for w in (1, 2))
    np.testing.assert_array_equal(few, many)


def array(fingerprint: object) -> np.ndarray:
    out = np.zeros(0)
    ConvertToNumpyArray(fingerprint, out)
    return out


def test_counts_and_reduced_graphs_are_rdkits() -> None:
    expected = {
        "morgan": [array(GetHashedMorganFingerprint(mol, 2, nBits=1024)) for mol in mols()],
        "avalon": [array(GetAvalonCountFP(mol, nBits=1024)) for mol in mols()],
        "erg": [rdReducedGraphs.GetErGFingerprint(mol) for mol in mols()],
    }
    found = {"morgan": morgan(SMILES, 2, 1024, counts=True), "avalon": avalon_counts(SMILES, 1024), "erg": erg(SMILES)}
    for name, rows in expected.items():
        np.testing.assert_array_equal(found[name].x[READ], np.array(rows, dtype=found[name].x.dtype), err_msg=name)
        assert not found[name].x[SMILES.index("C(C")].any() and found[name].reasons[SMILES.index("C(C")]
    assert found["erg"].x.shape == (len(SMILES), 315)
