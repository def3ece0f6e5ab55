"""Trials of every encoder of atoms in space on odd structures: a finite value, or a reason, and the others alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import AllChem

from molgraph.base.registry import get
from molgraph.data.batch import collate
from molgraph.data.featurize_geometry import METHANE, WATER
from molgraph.data.graph_values import Geometry
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.train.forces import forces_of, with_gradient
from molgraph.train.inputs import featuriser_of
from molgraph.train.method import GraphMethod
from molgraph.train.samples import InputBatch, Sample
from tests.contract.test_encoder_positions import READERS

RNG = np.random.default_rng(0)


def shape(numbers: list[int], positions: object) -> Geometry:
    return Geometry(np.array(numbers), np.array(positions, np.float32).reshape(-1, 3))


def flat_block() -> str:
    """A drawing whose header says 3D."""
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CC(C)C(N)C(=O)O"))
    return block.replace("2D", "3D", 1)


ODD = {
    "linear": shape([6, 8, 6, 8], [0, 0, 0, 1.2, 0, 0, 2.4, 0, 0, 3.6, 0, 0]),
    "planar": shape([6, 8, 1, 1], [0, 0, 0, 1.2, 0, 0, -0.5, 0.9, 0, -0.5, -0.9, 0]),
    "one atom": shape([2], [5, 5, 5]),
    "rare elements": shape([118, 92, 0], [0, 0, 0, 2, 0, 0, 0, 2, 0]),
    "nobody near": shape([6, 6, 6], [0, 0, 0, 1e4, 0, 0, -1e4, 1e4, 0]),
    "far away": shape([8, 1, 1], WATER.positions + 1e5),
    "2,000 atoms": shape([6] * 2000, RNG.uniform(size=(2000, 3)) * 28),
}
MARKED = {
    "coincident atoms": (shape([6, 6, 1], [0, 0, 0, 0, 0, 0, 0, 0, 1]), "atoms 1 and 2 are less than"),
    "all at one place": (shape([6] * 4, [1.0] * 12), "less than 0.001 angstrom apart"),
    "not finite": (shape([6, 6], [0, 0, 0, np.nan, 0, 0]), "finite"),
    "infinite": (shape([6, 6], [0, 0, 0, np.inf, 0, 0]), "finite"),
    "no such element": (shape([119], [0, 0, 0]), "atomic number of 119"),
    "2,001 atoms": (shape([6] * 2001, RNG.uniform(size=(2001, 3)) * 28), "2,000 are read at most"),
    "in nanometres": (shape([6] * 300, RNG.uniform(size=(300, 3))), "are positions in angstrom"),
    "no atoms": (shape([], []), "no atoms"),
    "a drawing": (Chem.MolToMolBlock(Chem.MolFromSmiles("CCO")), "a drawing in the plane"),
    "a drawing called 3D": (flat_block(), "called 3D: all z are 0"),
    "nothing": (None, "no geometry"),
}


def table() -> Table:
    odd = [*ODD.values(), *(value for value, _ in MARKED.values())]
    return read_table({"geometry": [WATER, *odd, METHANE]}, geometry="geometry")


@pytest.mark.parametrize("name", READERS)
def test_odd_structures_have_a_finite_value_or_a_reason(name: str) -> None:
    values = [Geometry(g.numbers, g.positions * (1 + 0.02 * i)) for i in range(6) for g in (WATER, METHANE)]
    values += [ODD["linear"], ODD["one atom"]]  # which are learned from, too
    train = read_table({"geometry": values, "y": np.arange(len(values)) * 0.1}, geometry="geometry", targets="y")
    how = {"epochs": 1, "head_width": 8, "batch_size": 4, "threads": 1, "predict_batch": 8}
    method = GraphMethod(name, dict(get("encoder", name).small), **how).fit(train)
    assert all(weight.isfinite().all() for weight in method.ready().network.parameters())
    found = method.predict(table())
    odd, marked = slice(1, 1 + len(ODD)), slice(1 + len(ODD), -1)
    for label, value, reason in zip(ODD, found.value[odd, 0], found.reason[odd], strict=True):
        assert np.isfinite(value) or (label == "2,000 atoms" and "too large" in reason), (label, reason)
    rows = zip(MARKED.items(), found.value[marked, 0], found.reason[marked], strict=True)
    for (label, (_, words)), value, reason in rows:
        assert np.isnan(value) and words in reason, (label, reason)
    alone = method.predict(read_table({"geometry": [WATER, METHANE]}, geometry="geometry"))
    np.testing.assert_allclose(found.value[[0, -1]], alone.value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("label", ["linear", "one atom", "nobody near", "nearly coincident"])
@pytest.mark.parametrize("name", READERS)
def test_gradients_in_single_precision_are_finite(name: str, label: str) -> None:
    """Of the energy to the positions and to the weights; and of the forces' squares to the weights, as training has."""
    odd = {**ODD, "nearly coincident": shape([6, 6, 8, 1], [0, 0, 0, 0.01, 0, 0, 1.2, 0.3, 0, -0.6, 0.8, 0.1])}
    torch.manual_seed(0)
    store = featuriser_of(name, "geometry").featurise([odd[label], WATER])
    encoder = get("encoder", name)(store.spec, **get("encoder", name).small)
    sample, at = with_gradient(Sample((InputBatch(collate(store, np.arange(2)), None),), None, None, None))
    energy = encoder(sample.parts[0].batch).graphs.square().sum(dim=1)
    forces = forces_of(energy, at, training=True)
    assert energy.dtype == forces.dtype == torch.float32 and energy.isfinite().all() and forces.isfinite().all()
    for loss in (energy.sum(), forces.square().sum()):
        slopes = torch.autograd.grad(loss, [*encoder.parameters()], retain_graph=True, allow_unused=True)
        assert all(slope.isfinite().all() for slope in slopes if slope is not None)


def test_a_planar_structure_with_its_hydrogens_is_no_drawing() -> None:
    mol = Chem.AddHs(Chem.MolFromSmiles("c1ccccc1"))
    AllChem.EmbedMolecule(mol, randomSeed=1)
    AllChem.MMFFOptimizeMolecule(mol)
    at = mol.GetConformer().GetPositions()
    _, axes = np.linalg.eigh(np.cov(at.T))
    flat = (at - at.mean(0)) @ axes[:, ::-1]
    for i, xyz in enumerate(flat):
        mol.GetConformer().SetAtomPosition(i, [*xyz[:2], 0.0])
    assert read_table({"shape": [Chem.MolToMolBlock(mol)]}, geometry="shape").ok.all()
