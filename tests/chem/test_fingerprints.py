"""Morgan fingerprints against RDKit's generator, one molecule at a time."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator

from molgraph.chem import fingerprints
from molgraph.chem.fingerprints import morgan
from molgraph.chem.smiles import parse_smiles

SMILES = ["CC(=O)Oc1ccccc1C(=O)O", "bad", "C" * 300, "", "[Na+].[Cl-]", "CN(C)(C)C", "C[Hg]C", "CCO>>CC=O", "CCO"]


@pytest.mark.parametrize("radius", [0, 2, 3])
@pytest.mark.parametrize("n_bits", [64, 2048])
@pytest.mark.parametrize("counts", [False, True])
def test_rows_are_rdkits(radius: int, n_bits: int, counts: bool) -> None:
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=n_bits)
    found = morgan(SMILES, radius, n_bits, counts)
    assert found.x.dtype == np.uint8
    for i in np.flatnonzero(found.ok):
        mol = Chem.MolFromSmiles(SMILES[i])
        want = generator.GetCountFingerprintAsNumPy(mol) if counts else generator.GetFingerprintAsNumPy(mol)
        np.testing.assert_array_equal(found.x[i], np.minimum(want, 255))


def test_the_same_rows_are_refused_as_by_the_parser_with_its_reasons() -> None:
    found = morgan(SMILES, n_bits=64)
    assert found.reasons.tolist() == [parse_smiles(text).reason for text in SMILES]
    assert found.ok.tolist() == [parse_smiles(text).mol is not None for text in SMILES]
    assert not found.x[~found.ok].any()
    assert found.x[found.ok].any(axis=1).all()


def test_chunks_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = morgan(SMILES)
    monkeypatch.setattr(fingerprints, "CHUNK", 2)
    apart = morgan(SMILES, threads=2)
    np.testing.assert_array_equal(whole.x, apart.x)
    assert morgan([]).x.shape == (0, 2048)


@pytest.mark.parametrize(("radius", "n_bits"), [(-1, 64), (2, 0), (2, 100)])
def test_sizes_that_cannot_be_are_refused(radius: int, n_bits: int) -> None:
    with pytest.raises(ValueError, match="multiple of 8"):
        morgan(["C"], radius, n_bits)
