"""Pairs of atoms with the bonds between them, against RDKit's distance matrices."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem

from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.nn import atom_pairs as module
from molgraph.nn.atom_pairs import FAR, atom_pairs
from tests.tiny import series


def test_hops_are_those_of_rdkit(monkeypatch: pytest.MonkeyPatch) -> None:
    smiles = ["C", "CCO", "N.C.CC", *map(str, series(12).smiles), "C" * 15]
    batch = collate(featurize(smiles), np.arange(len(smiles)))
    offsets = batch["atom"].offsets.tolist()
    for most in (module.MOST_ATOMS, 6):
        monkeypatch.setattr(module, "MOST_ATOMS", most)
        batch._made.clear()
        found = atom_pairs(batch)
        expected = []
        for first, text in zip(offsets, smiles, strict=False):
            far = Chem.GetDistanceMatrix(Chem.MolFromSmiles(text))[:most, :most]
            i, j = np.triu_indices(len(far), 1)
            expected += zip(i + first, j + first, np.minimum(far[i, j], FAR), strict=True)
        assert [*zip(found.source.tolist(), found.target.tolist(), found.hops.tolist(), strict=True)] == expected
