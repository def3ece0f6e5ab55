"""AlphaFold 1's distogram (structures, gradients, a trained head) and the rigid way between conformers of Nerfies."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import numpy as np
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import AllChem
from scipy.optimize import approx_fprime
from scipy.spatial.transform import Rotation
from torch import Tensor

import molgraph
from molgraph.chem.conformer_pair import pair_of
from molgraph.chem.distance_geometry import DistanceBins, DistancePotential, place_atoms
from molgraph.chem.morph import morph
from molgraph.chem.rigidity import rigidity_loss
from molgraph.chem.superpose import superpose
from molgraph.data.batch import collate
from molgraph.data.datasets import load_dataset
from molgraph.data.position_labels import with_positions
from molgraph.data.table import Table
from molgraph.nn.atom_pairs import AtomPairs, atom_pairs
from molgraph.nn.distogram import DistogramHead
from molgraph.train.inputs import input_graphs
from molgraph.train.model import Model
from molgraph.train.objectives.distogram import HEAD
from molgraph.train.objectives.masked_atoms import elements
from tests.systems.effect import Effect

BINS = DistanceBins()
N_TRAIN, N_TEST = 1000, 300


@cache
def qm9() -> Table:
    return load_dataset("qm9@geometry").table


def structures(n: int) -> list[np.ndarray]:
    """Heavy atoms of molecules of three or more of them, drawn at random."""
    shapes = qm9().entity("geometry").values
    heavy = [shapes[i].positions[shapes[i].numbers > 1] for i in np.random.default_rng(0).permutation(len(shapes))]
    return [np.asarray(x, dtype=np.float64) for x in heavy if len(x) > 2][:n]


def one_hot(x: np.ndarray) -> DistancePotential:
    i, j = np.triu_indices(len(x), 1)
    return DistancePotential(np.stack([i, j]), np.eye(BINS.n)[BINS.of(np.linalg.norm(x[i] - x[j], axis=1))], BINS)


@pytest.mark.data
@pytest.mark.system("alphafold-1", rung="exact")
def test_exact_distograms_of_fifty_molecules_give_their_structures_up_to_mirror_images(off: str) -> None:
    rng = np.random.default_rng(1)
    for x in structures(50):
        potential = one_hot(x)
        if off:  # the distances of other pairs
            potential = DistancePotential(potential.pairs, rng.permutation(potential.probabilities), BINS)
        best, *_ = place_atoms(potential, len(x), rng, restarts=3)
        assert superpose(best.positions, x, mirror=True)[1] < 0.3


@pytest.mark.system("alphafold-1", rung="exact")
def test_the_gradient_of_the_potential_is_that_of_finite_differences(off: str) -> None:
    rng = np.random.default_rng(0)
    x, (i, j) = rng.normal(size=(7, 3)) * 3, np.triu_indices(7, 1)
    shares = rng.dirichlet(np.full(BINS.n, 0.3), len(i))
    potential = DistancePotential(np.stack([i, j]), shares, BINS)
    _, gradient = potential(x)
    other = DistancePotential(np.stack([i, j]), shares[::-1], BINS) if off else potential
    for k in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[k] = 1e-5
        assert abs((other(x + step)[0] - other(x - step)[0]) / 2e-5 - gradient[k]) < 1e-3 * max(1, abs(gradient[k]))


@pytest.mark.system("alphafold-1", rung="exact")
def test_logits_are_those_of_the_equation_whichever_atom_comes_first(off: str) -> None:
    torch.manual_seed(0)
    head, h = DistogramHead(5, DistanceBins(n=4), d_pair=6).double(), torch.randn(3, 5, dtype=torch.float64)
    pairs = AtomPairs(torch.tensor([0, 0, 1]), torch.tensor([1, 2, 2]), torch.tensor([1, 2, 1]))
    found = head(h.roll(1, 0) if off else h, pairs)
    torch.testing.assert_close(
        found, head(h.roll(1, 0) if off else h, AtomPairs(pairs.target, pairs.source, pairs.hops))
    )
    for k, (i, j, n) in enumerate(zip(*pairs, strict=True)):
        z = head.ends.weight @ (h[i] + h[j]) + 2 * head.ends.bias + head.both.weight @ (h[i] * h[j])
        z = (z + head.apart.weight[n]).relu()
        torch.testing.assert_close(found[k], head.out.weight @ z + head.out.bias)


@cache
def pretrained(seed: int) -> Model:
    options = {"params": {"d_hidden": 64}, "objective": "distogram", "epochs": 10, "threads": 1, "seed": seed}
    return molgraph.pretrain(qm9().take(np.arange(N_TRAIN)), model="gin", learning_rate=2e-3, **options)


def pairs_of(model: Model, rows: np.ndarray) -> tuple[list[tuple[int, int, int]], Tensor, Tensor]:
    """For each pair of known distance its elements and hops, its bin, and its atoms' logits."""
    fitted = model.method.ready()
    table = qm9().take(rows)
    (graphs,) = input_graphs(table, fitted.inputs)
    graphs, _ = with_positions(table, table.entity(), graphs)
    batch = collate(graphs.store, graphs.graph_of_row[graphs.graph_of_row >= 0])
    head, pairs = fitted.network.parts[HEAD], atom_pairs(batch)
    with torch.no_grad():
        h = next(each.h for each in fitted.network.encoder(batch, rows=True).rows if each.level == "atom")
        logits = [head(h, pairs), head(h[torch.randperm(len(h))], pairs)]
    labels = head.labels(batch["atom"].arrays["position"], pairs)
    element = elements(batch["atom"].table)[batch["atom"].code]
    a, b = element[pairs.source], element[pairs.target]
    keys = torch.stack([torch.minimum(a, b), torch.maximum(a, b), pairs.hops], dim=1)
    known = labels >= 0
    return [tuple(k) for k in keys[known].tolist()], labels[known], torch.stack(logits)[:, known]


@pytest.mark.data
@pytest.mark.system("alphafold-1", rung="works")
def test_a_trained_head_knows_more_than_elements_and_hops(off: str, effect: Effect) -> None:
    """Cross-entropy of held-out molecules beside the histogram of pairs of the same elements and hops."""
    ours, theirs = [], []
    for seed in (0, 1):
        torch.manual_seed(seed)
        model = pretrained(seed)
        keys, labels, _ = pairs_of(model, np.arange(N_TRAIN))
        counts: dict[tuple[int, int, int], np.ndarray] = defaultdict(lambda: np.full(BINS.n, 0.1))
        for key, label in zip(keys, labels.tolist(), strict=True):
            counts[key][label] += 1
        keys, labels, logits = pairs_of(model, np.arange(2000, 2000 + N_TEST))
        shares = np.array(
            [counts[key][label] / counts[key].sum() for key, label in zip(keys, labels.tolist(), strict=True)]
        )
        marginal = float(-np.log(shares).mean())
        own = float(torch.nn.functional.cross_entropy(logits[1 if off else 0], labels))  # off: states of other atoms
        ours.append(own / marginal)
        theirs.append(marginal)
    effect(
        "cross-entropy as a share of the marginal's by elements and hops",
        ours,
        at_most=0.9,
        beside={"marginal": theirs},
    )


@pytest.mark.system("nerfies", rung="exact")
def test_turns_have_no_rigidity_loss_and_its_gradient_is_that_of_finite_differences(off: str) -> None:
    turns = Rotation.random(50, rng=np.random.default_rng(0)).as_matrix()
    assert rigidity_loss(1.1 * turns if off else turns)[0].max() < 1e-8 < 0.02 < rigidity_loss(1.1 * turns)[0].min()
    jacobian = turns[0] @ np.diag([1.2, 0.9, 0.7]) @ turns[1]
    numeric = approx_fprime(jacobian.ravel(), lambda x: rigidity_loss(x.reshape(1, 3, 3))[0][0], 1e-7)
    np.testing.assert_allclose(rigidity_loss(jacobian[None])[1].ravel(), numeric, atol=1e-4)


@pytest.mark.system("nerfies", rung="works")
def test_bonds_of_a_hinge_keep_their_lengths_on_the_way(off: str, effect: Effect) -> None:
    """The largest change of a bond's length between conformers of three molecules with a hinge; and straight lines."""
    ours, straight = [], []
    for smiles in ("CCCC", "c1ccccc1-c1ccccn1", "CC(=O)OCc1ccccc1"):
        mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
        AllChem.EmbedMultipleConfs(mol, 8, randomSeed=3)
        mols = [Chem.Mol(mol, confId=each.GetId()) for each in mol.GetConformers()]
        pair = max((pair_of(mols[0], each) for each in mols[1:]), key=lambda each: superpose(each.b, each.a)[1])
        ours.append(morph(pair.a, pair.b, pair.bonds, pair.stiff, rigid=not off).strain.max())
        straight.append(morph(pair.a, pair.b, pair.bonds, rigid=False).strain.max())
    effect("largest change of a bond's length", ours, at_most=0.05, beside={"straight lines": straight})
