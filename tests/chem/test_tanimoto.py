"""Tanimoto similarities and nearest neighbours against RDKit's, one pair at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import DataStructs
from rdkit.Chem import MolFromSmiles, rdFingerprintGenerator

from molgraph.chem import tanimoto
from molgraph.chem.fingerprints import morgan
from molgraph.chem.tanimoto import find_nearest
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


@given(st.integers(0, 10_000), st.integers(1, 700), st.floats(0, 1), st.booleans())
def test_any_width_density_and_layout(seed: int, bits: int, density: float, small: bool) -> None:
    rng = np.random.default_rng(seed)
    x, others = ((rng.random((n, bits)) < density).astype(np.uint8) for n in (7, 11))
    with pytest.MonkeyPatch.context() as patch:  # a layout of two parts, and several blocks of columns
        patch.setattr(tanimoto, "_SMALL", 2**20 if small else 0)
        patch.setattr(tanimoto, "_AT_ONCE", 4)
        found, every = find_nearest(x, others), tanimoto.tanimoto(x, others)
    common = (x[:, None].astype(int) & others[None]).sum(axis=2)
    union = (x[:, None].astype(int) | others[None]).sum(axis=2)
    want = common / np.maximum(union, 1)
    assert found.similarity.tolist() == want.max(axis=1).tolist()
    assert found.row.tolist() == want.argmax(axis=1).tolist()
    assert (every == want.astype(np.float32)).all()


@pytest.mark.parametrize(("m", "n"), [(0, 3), (2, 0), (0, 0)])
def test_nothing_to_compare(m: int, n: int) -> None:
    found = find_nearest(np.zeros((m, 16), np.uint8), np.zeros((n, 16), np.uint8))
    assert len(found.similarity) == m and (found.row == -1).all() and np.isnan(found.similarity).all()
