"""Nearest neighbours against RDKit's similarities, one pair at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import DataStructs
from rdkit.Chem import MolFromSmiles, rdFingerprintGenerator

from molgraph.chem.fingerprints import morgan
from molgraph.chem.nearest import find_nearest
from molgraph.data.sources.builtin import nci


def test_similarities_are_rdkits_to_the_last_bit() -> None:
    smiles = [s for s in nci().smiles[::23] if MolFromSmiles(s)]
    asked, others = smiles[:60], smiles[60:]
    found = find_nearest(morgan(asked).x, morgan(others).x)
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    prints = [generator.GetFingerprint(MolFromSmiles(s)) for s in smiles]
    for i in range(60):
        want = np.array(DataStructs.BulkTanimotoSimilarity(prints[i], prints[60:]))
        assert found.similarity[i] == want.max() and found.row[i] == want.argmax()


@given(st.integers(0, 10_000), st.integers(1, 700), st.floats(0, 1))
def test_any_width_and_density(seed: int, bits: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    x, others = ((rng.random((n, bits)) < density).astype(np.uint8) for n in (7, 11))
    found = find_nearest(x, others)
    common = (x[:, None].astype(int) & others[None]).sum(axis=2)
    union = (x[:, None].astype(int) | others[None]).sum(axis=2)
    want = common / np.maximum(union, 1)
    assert found.similarity.tolist() == want.max(axis=1).tolist()
    assert found.row.tolist() == want.argmax(axis=1).tolist()


@pytest.mark.parametrize(("m", "n"), [(0, 3), (2, 0), (0, 0)])
def test_nothing_to_compare(m: int, n: int) -> None:
    found = find_nearest(np.zeros((m, 16), np.uint8), np.zeros((n, 16), np.uint8))
    assert len(found.similarity) == m and (found.row == -1).all() and np.isnan(found.similarity).all()
