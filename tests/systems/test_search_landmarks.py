"""Landmarks: softmax rows against RDKit's similarities, the limits of their weight, and what a ridge learns of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_score

import molgraph
from molgraph.chem.fingerprints import morgan
from molgraph.data.datasets import load_dataset
from molgraph.data.sources import builtin
from molgraph.data.splits.make import split_table
from molgraph.embed.landmarks import Landmarks, read_vectors
from tests.systems.effect import Effect

SMILES = [str(text) for text in dict.fromkeys(builtin.chembl2321810().smiles)]


def by_rdkit(smiles: list[str], landmarks: list[str], alpha: float) -> np.ndarray:
    """The rows by RDKit's bulk similarities."""
    make = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    a, b = ([make.GetFingerprint(Chem.MolFromSmiles(text)) for text in texts] for texts in (smiles, landmarks))
    similarity = np.array([DataStructs.BulkTanimotoSimilarity(one, b) for one in a])
    weight = np.exp(-alpha * (1 - similarity))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


@pytest.mark.system("citynav-multicitynav", rung="exact")
def test_rows_are_a_softmax_of_rdkits_distances(off: str) -> None:
    """Mirowski et al. 2018, section 3.2; the twin's rows are similarities."""
    landmarks, smiles = SMILES[:40], SMILES[40:100]
    prints = morgan(landmarks).x
    for alpha in (0.5, 10.0):
        rows = Landmarks(prints, alpha).vectors(smiles).x
        rows = rows * 2 if off else rows
        np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-6)
        np.testing.assert_allclose(rows, by_rdkit(smiles, landmarks, alpha), atol=1e-6)


@pytest.mark.system("citynav-multicitynav", rung="exact")
def test_an_infinite_alpha_is_the_nearest_molecule_and_none_is_uniform(off: str) -> None:
    """The twin has an alpha of 1 in both places."""
    landmarks, smiles = SMILES[:40], SMILES[40:100]
    prints, near = morgan(landmarks).x, by_rdkit(smiles, landmarks, 1.0).argmax(axis=1)
    rows = Landmarks(prints, 1.0 if off else np.inf).vectors(smiles).x
    assert np.array_equal(rows, np.eye(40)[near])
    rows = Landmarks(prints, 1.0 if off else 0.0).vectors(smiles).x
    np.testing.assert_allclose(rows, 1 / 40, rtol=1e-6)


@pytest.mark.system("citynav-multicitynav", rung="exact")
def test_a_model_file_has_its_landmarks(off: str, tmp_path: Path) -> None:
    """A model predicts the same after its table of landmarks is gone; the twin has other landmarks."""
    file = tmp_path / "refs.smi"
    file.write_text("".join(f"{text}\n" for text in SMILES[:60]), encoding="utf-8")
    text = f"landmarks({file}, 16)"
    table = builtin.chembl2321810().take(np.arange(60, 160))
    model = molgraph.train(
        table, model="linear", params={"descriptors": text, "features": "vectors"}, split="random", baseline=False
    ).model
    first = model.predict(SMILES[:20]).value
    model.save(tmp_path / "model.mgm")
    file.unlink()
    again = molgraph.load(tmp_path / "model.mgm")
    features = again.method._fitted.features
    assert features.encoder.width == 16 and again.method.descriptors == "landmarks(refs.smi, 16)"
    if off:
        again.method._fitted.features.encoder.prints[:] = morgan(SMILES[60:76]).x
    assert np.array_equal(again.predict(SMILES[:20]).value, first)


@pytest.mark.system("citynav-multicitynav", rung="works")
def test_a_ridge_on_landmarks_comes_near_one_on_ecfp(off: str, effect: Effect, tmp_path: Path) -> None:
    """R2 of held-out scaffolds of ESOL, of 256 columns, as a share of that of 2,048 bits; the twin's alpha is 0.

    alpha and the ridges' penalties are chosen by cross-validation within the training part.
    """
    table = load_dataset("esol").table
    smiles, y = [str(text) for text in table.smiles], np.asarray(table.y)[:, 0]
    bits, r2 = morgan(smiles).x.astype(float), {"landmarks": list[float](), "ECFP": list[float]()}
    chosen = []
    for seed in range(5):
        parts = split_table(table, "scaffold", seed=seed)
        train, held = parts.train, np.concatenate([parts.valid, parts.test])
        file = tmp_path / f"refs{seed}.smi"
        file.write_text("".join(f"{smiles[row]}\n" for row in train), encoding="utf-8")

        def ridge() -> RidgeCV:
            return RidgeCV(np.logspace(-9, 3, 13))

        columns, scores = {}, {}
        for alpha in (0.0,) if off else (0.1, 0.3, 1.0, 3.0):
            x = read_vectors(f"landmarks({file}, 256, {alpha})").vectors(smiles).x.astype(float)
            columns[alpha], scores[alpha] = x, cross_val_score(ridge(), x[train], y[train], cv=5).mean()
        chosen.append(max(scores, key=lambda alpha: scores[alpha]))
        for name, x in (("landmarks", columns[chosen[-1]]), ("ECFP", bits)):
            r2[name].append(float(ridge().fit(x[train], y[train]).score(x[held], y[held])))
    shares = [a / b for a, b in zip(r2["landmarks"], r2["ECFP"], strict=True)]
    effect("R2 of 256 landmarks / R2 of 2,048 bits", shares, at_least=0.9, beside={**r2, "alpha": chosen})
