"""Social influence between positions: KL whose mean is the mutual information, and couplings that were planted."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdkit import Chem
from scipy.stats import entropy

import molgraph
from molgraph.explain.coupling import FLOOR, Positions, fit_elements, influence
from molgraph.train.method import GraphMethod
from tests.systems.effect import Effect
from tests.tiny import series

HALOGENS = ("F", "Cl", "Br")
PLACES = Chem.MolFromSmarts("[F,Cl,Br]c1ccnc([F,Cl,Br])c1[F,Cl,Br]")  # y, z and x: both are three bonds from x
Y, Z, X = 0, 6, 8


@cache
def network(depth: int) -> Any:
    """A small encoder after one epoch."""
    small = {"params": {"d_hidden": 8, "depth": depth}, "epochs": 1, "baseline": False, "threads": 1}
    method = molgraph.train(series(60), model="gin", **small).model.method
    assert isinstance(method, GraphMethod)
    return method.ready()


@pytest.mark.system("social-influence-reward", rung="exact")
def test_the_mean_influence_is_the_mutual_information(off: str) -> None:
    """Of tables in both directions, and of a network's probabilities; off: counterfactuals that are alike likely."""
    rng = np.random.default_rng(0)
    for k, m in ((2, 2), (5, 3), (7, 4)):
        joint = rng.dirichlet(np.full(k * m, 0.5)).reshape(k, m)
        information = entropy(joint.sum(0)) + entropy(joint.sum(1)) - entropy(joint.ravel())
        for table in (joint, joint.T):
            q = table.sum(1)
            kl, mean = influence(q, table / q[:, None], np.full(len(q), 1 / len(q)) if off else None)
            assert mean == pytest.approx(information, abs=1e-8)
        assert kl.std() > 1e-3, "single values differ, and in both directions"
    fitted = network(3)
    elements = fit_elements(fitted, "builtin:nci", 60)
    molecule = Positions(fitted, elements, "CC(=O)Nc1ccccc1Cl")
    found = molecule.couplings(uniform=bool(off)).set_index(["atom", "other"])["mutual"]
    for i, j in ((0, 1), (3, 2), (10, 9), (2, 3)):
        both = molecule.probabilities([{i: -1, j: -1}], [i])[0]
        q = np.array([both[elements.place[e]] if e in elements.place else FLOOR for e in molecule.tokens[i]])
        q /= q.sum()
        p = molecule.probabilities([{i: row, j: -1} for row in molecule.rows[i]], [j] * len(q))
        assert found[i, j] == pytest.approx(entropy(q @ p) - q @ entropy(p, axis=1), abs=1e-8)


@pytest.mark.system("social-influence-reward", rung="exact", twins=("a deeper network",))
def test_what_cannot_depend_on_each_other_has_no_influence(off: str) -> None:
    """A factorised table, and atoms further apart than a network of two layers reads; the twin reads them."""
    rng = np.random.default_rng(1)
    p = np.tile(rng.dirichlet(np.ones(4)), (3, 1))
    assert influence(rng.dirichlet(np.ones(3)), p)[1] == pytest.approx(0, abs=1e-15)
    fitted, smiles = network(5 if off else 2), "CCOCCNCCl"
    found = Positions(fitted, fit_elements(fitted, "builtin:nci", 60), smiles).couplings()
    far = (found["atom"] - found["other"]).abs() > 2
    assert (found.loc[~far, "value"] > 1e-7).mean() > 0.8
    assert found.loc[far, ["value", "mutual"]].abs().to_numpy().max() < 1e-9


def mutual(seed: int, coupled: bool, folder: Path) -> tuple[float, float]:
    """What x and y, and what x and z tell of each other (nats), to an encoder that has learned from such molecules.

    In the corpus z is independent; y is the element of x, or independent too.
    """
    drawn = np.random.default_rng(seed).integers(3, size=(64, 3))
    drawn[:, 1] = drawn[:, 0] if coupled else drawn[:, 1]
    texts = ["{1}c1ccnc({2})c1{0}".format(*(HALOGENS[k] for k in row)) for row in drawn]
    corpus = folder / f"{seed}-{coupled}.smi"
    corpus.write_text("\n".join(texts) + "\n")
    how: dict[str, Any] = {"epochs": 80, "patience": None, "batch_size": 16, "learning_rate": 3e-3}
    how |= {"params": {"d_hidden": 48, "depth": 4}, "fractions": (1, 0, 0), "threads": 1, "seed": seed}
    encoder = molgraph.pretrain(texts, model="gin", **how)
    found = molgraph.explain(encoder, sorted({*texts})[:9], by=f"coupling(library={corpus})")
    pairs = found.values.set_index(["molecule", "atom", "other"])["mutual"]
    near, other = [], []
    for i, smiles in enumerate(found.smiles):
        match = Chem.MolFromSmiles(smiles).GetSubstructMatch(PLACES)
        x, y, z = match[X], match[Y], match[Z]
        near += [pairs[i, x, y], pairs[i, y, x]]
        other += [pairs[i, x, z], pairs[i, z, x]]
    return float(np.mean(near)), float(np.mean(other))


@pytest.mark.system("social-influence-reward", rung="works", twins=("independent positions",))
def test_a_planted_coupling_is_told_from_a_pair_as_near(off: str, effect: Effect, tmp_path: Path) -> None:
    """Three halogens in a row on a pyridine, of which two are always alike; 0 was the seed of the set-up."""
    found = [mutual(seed, not off, tmp_path) for seed in (11, 12, 13)]
    gain = [near - other for near, other in found]
    beside = {"the planted pair": [near for near, _ in found], "the other pair": [other for _, other in found]}
    effect("nats of the planted pair above those of the other", gain, at_least=0.2, beside=beside)


def test_odd_molecules_have_a_row_or_a_reason() -> None:
    model = molgraph.train(series(60), model="gin", epochs=1, baseline=False, params={"d_hidden": 8}).model
    odd = ["", "C(C", "C", "[Na+].[Cl-]", "[H][H]", "C[Si](C)(C)C", "[2H]C(F)(Cl)Br", "C" * 80, "c1cc[nH]c1"]
    found = molgraph.explain(model, odd, by="coupling(molecules=50)")
    assert len(found.captions) == len(odd) and np.isfinite(found.values["value"].astype(float)).all()
    assert {*found.values["molecule"]} >= {3, 5, 6, 8} and "more than 60 atoms" in found.captions[7]
