"""Objectives that match two descriptions: shapes of molecules, bags and rows of two columns."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import rdShapeHelpers
from torch.nn import functional as F

import molgraph
from molgraph.chem.conformer import Conformers, make_conformers
from molgraph.chem.fingerprints import morgan
from molgraph.chem.shape_grid import TURNS, principal, shape_grids
from molgraph.nn.contrastive import info_nce
from molgraph.nn.match_embedding import Gaussians, MatchEmbedding
from molgraph.nn.matching import attention_scores, mil_nce, padded
from molgraph.train.objectives.shape_match import shape_gaussians, triplet_ratio
from molgraph.train.shape_labels import shape_tanimoto
from tests.systems.effect import Effect

DATA = Path(os.environ.get("MOLGRAPH_DATA", "/none"))
SHAPED = ["CCCCCCCC", "c1ccccc1", "CC(C)(C)C", "c1ccc2ccccc2c1", "CCCCCCO", "OC1CCCCC1", "CC(=O)Nc1ccc(O)cc1"]


@pytest.mark.system("pr-vipe", rung="exact")
def test_without_variance_a_match_is_a_sigmoid_of_the_distance(off: str) -> None:
    """And with variance it is the mean over all pairs of points."""
    torch.manual_seed(0)
    embed = MatchEmbedding(6, 4, 8)
    with torch.no_grad():
        embed.raw_scale.fill_(0.3)
        embed.bias.fill_(1.2)
    mean = torch.randn(5, 4)
    sharp = Gaussians(mean, torch.full_like(mean, 0.0 if off else -60.0))
    p = embed.probability(sharp, sharp, torch.Generator().manual_seed(1))
    a = math.log1p(math.exp(0.3))
    torch.testing.assert_close(p, torch.sigmoid(-a * (mean[:, None] - mean[None]).norm(dim=2) + 1.2), atol=1e-6, rtol=0)
    wide, random = Gaussians(mean, torch.randn(5, 4)), torch.Generator().manual_seed(2)
    found = embed.probability(wide, wide, random)
    random = torch.Generator().manual_seed(2)
    x, y = wide.sample(8, random), wide.sample(8, random)
    each = torch.stack([torch.sigmoid(-a * (i[:, None] - j[None]).norm(dim=2) + 1.2) for i in x for j in y])
    torch.testing.assert_close(found, each.mean(dim=0), atol=1e-6, rtol=0)
    target = torch.distributions.Normal(wide.mean, (wide.log_variance / 2).exp())
    kl = torch.distributions.kl_divergence(target, torch.distributions.Normal(0.0, 1.0)).sum(dim=1)
    torch.testing.assert_close(wide.divergence(), kl, atol=1e-5, rtol=1e-5)


@pytest.mark.system("pr-vipe", rung="exact")
def test_the_triplet_ratio_loss_takes_the_nearest_negative_beyond_the_match(off: str) -> None:
    torch.manual_seed(0)
    distance, margin = torch.rand(7, 7), 0.1
    match = torch.rand(7, 7) < 0.3
    other = ~match
    match[0], other[1] = False, False
    expected = []
    for i in range(7):
        losses = []
        for p in torch.nonzero(match[i])[:, 0].tolist():
            negatives = [distance[i, n].item() for n in range(7) if other[i, n]]
            farther = [d for d in negatives if d > distance[i, p].item()]
            if negatives:
                chosen = min(farther) if farther else max(negatives)
                losses.append(max(0.0, distance[i, p].item() - chosen + margin))
        expected.append(sum(losses) / len(losses) if losses else 0.0)
    found = triplet_ratio(distance, other if off else match, other, margin)
    torch.testing.assert_close(found, torch.tensor(expected), atol=1e-6, rtol=0)


def shaped(each: Conformers, axes: tuple[int, ...] = ()) -> Chem.Mol:
    """Heavy atoms in space along their principal axes, some of these reversed."""
    heavy = each.numbers > 1
    sign, mol = np.ones(3), Chem.RWMol()
    sign[list(axes)] = -1
    for z in each.numbers[heavy]:
        mol.AddAtom(Chem.Atom(int(z)))
    conformer = Chem.Conformer(int(heavy.sum()))
    conformer.SetPositions(principal(each.positions[0][heavy]) * sign)
    mol.AddConformer(conformer)
    return mol.GetMol()


def of_rdkit(smiles: list[str]) -> np.ndarray:
    """float [n, n]: 1 - ``ShapeTanimotoDist`` in the best of the four rotations; NaN without a conformer."""
    found = make_conformers(smiles, relax="none", workers=1)
    mols = [shaped(each) if len(each.positions) else None for each in found]
    turned = [[shaped(each, axes) for axes in TURNS] if len(each.positions) else None for each in found]
    out = np.full((len(smiles), len(smiles)), np.nan)
    for i, mol in enumerate(mols):
        for j in range(i, len(mols)):
            if mol is not None and turned[j] is not None:
                distances = [rdShapeHelpers.ShapeTanimotoDist(mol, each, gridSpacing=0.8) for each in turned[j] or ()]
                out[i, j] = out[j, i] = 1 - min(distances)
    return out


@pytest.mark.system("pr-vipe", rung="exact")
def test_the_overlap_of_volumes_is_that_of_rdkit(off: str) -> None:
    """Up to the spacing of both grids; a molecule's own is 1, and none has NaN."""
    grids = torch.from_numpy(shape_grids([*SHAPED, "not a molecule"]))
    if off:
        grids = grids[[1, 2, 3, 4, 5, 6, 0, 7]]
    found = shape_tanimoto(grids, grids).numpy()
    assert np.isnan(found[-1]).all()
    np.testing.assert_allclose(found[:-1, :-1], of_rdkit(SHAPED), atol=0.1)
    np.testing.assert_allclose(found.diagonal()[:-1], 1)


def pretrain(smiles: list[str], objective: str, seed: int, **how: Any) -> molgraph.Model:
    """A small gin."""
    usual = {"epochs": 15, "batch_size": 64, "learning_rate": 1e-3, "patience": None, "threads": 1, "seed": seed}
    return molgraph.pretrain(smiles, model="gin", params={"d_hidden": 64}, objective=objective, **{**usual, **how})


@cache
def esol() -> tuple[list[str], list[str], np.ndarray]:
    """Molecules to learn from, 200 that are held out, and how alike the shapes of these are by RDKit."""
    smiles = pd.read_csv(DATA / "esol" / "delaney-processed.csv").smiles.drop_duplicates().tolist()
    order = np.random.default_rng(0).permutation(len(smiles))
    held = [smiles[i] for i in order[:200]]
    return [smiles[i] for i in order[200:]], held, np.nan_to_num(of_rdkit(held))


@cache
def grid_of(text: str) -> np.ndarray:
    """Kept between seeds and the twin."""
    made: np.ndarray = shape_grids([text], 1)[0]
    return made


def hits(likeness: np.ndarray, match: np.ndarray) -> float:
    """The share of the molecules with a match that have one among their 10 nearest."""
    near, match = likeness.copy(), match & ~np.eye(len(match), dtype=bool)
    np.fill_diagonal(near, -np.inf)
    top = np.argsort(-near, axis=1, kind="stable")[:, :10]
    return float(np.take_along_axis(match, top, 1).any(axis=1)[match.any(axis=1)].mean())


def nearness(x: np.ndarray) -> np.ndarray:
    return -np.linalg.norm(x[:, None] - x[None], axis=2)


@pytest.mark.skipif(not DATA.is_dir(), reason="needs MOLGRAPH_DATA")
@pytest.mark.system("pr-vipe", rung="works")
def test_molecules_of_like_shape_are_near(off: str, effect: Effect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 200 held-out molecules of ESOL, 3 seeds; the twin learns the shapes of other molecules."""
    train, held, alike = esol()
    bits = morgan(held).x.astype(float)
    shared, n = bits @ bits.T, bits.sum(axis=1)
    fingerprints = hits(shared / (n[:, None] + n[None] - shared), alike >= 0.7)

    def grids(smiles: list[str], workers: int | None = None) -> np.ndarray:
        return np.stack([grid_of(text) for text in ([*smiles[7:], *smiles[:7]] if off else smiles)])

    monkeypatch.setattr("molgraph.train.shape_labels.shape_grids", grids)
    learned, untrained = list[float](), list[float]()
    for seed in range(1 if off else 3):
        model = pretrain(train, "shape-match", seed)
        states = torch.from_numpy(molgraph.embed(model, held).value).float()
        means = shape_gaussians(model.method.ready().network, states).mean.numpy()
        learned.append(hits(nearness(means), alike >= 0.7))
        fresh = pretrain(train[:80], "masked-atoms", seed, epochs=1, learning_rate=1e-9)
        untrained.append(hits(nearness(molgraph.embed(fresh, held).value), alike >= 0.7))
    bound = max(fingerprints, float(np.mean(untrained))) + 0.02
    effect("hit@10 of shapes", learned, at_least=bound, beside={"Morgan": [fingerprints], "untrained": untrained})


@pytest.mark.system("vatt", rung="exact")
def test_one_positive_is_a_cross_entropy_and_several_are_a_bag(off: str) -> None:
    torch.manual_seed(0)
    scores, rows = torch.randn(5, 9, dtype=torch.float64), torch.arange(5)
    one = torch.zeros(5, 9, dtype=torch.bool)
    one[rows, (rows + 1) if off else rows] = True
    torch.testing.assert_close(mil_nce(scores, one), F.cross_entropy(scores, rows, reduction="none"), atol=1e-6, rtol=0)
    bags = torch.rand(5, 9) < 0.4
    bags[:, 0], bags[4] = True, False
    share = [math.log(scores[i].exp().sum() / scores[i][bags[i]].exp().sum()) for i in range(4)]
    torch.testing.assert_close(mil_nce(scores, bags), torch.tensor([*share, 0.0], dtype=torch.float64))


@pytest.mark.system("attngan-damsm", rung="exact")
def test_one_row_each_is_info_nce_of_their_cosine(off: str) -> None:
    """And the order of rows does not count, nor do rows that are padding."""
    torch.manual_seed(0)
    words, regions = (F.normalize(torch.randn(n, 1, 6, dtype=torch.float64), dim=2) for n in (4, 4))
    mask = torch.ones(4, 1, dtype=torch.bool)
    scores = attention_scores(words, mask, regions, mask, 5.0, 5.0)
    cosine = words[:, 0] @ (regions.roll(1, 0) if off else regions)[:, 0].T
    of = torch.arange(4)
    found, known = info_nce(10 * scores, of).losses, F.cross_entropy(10 * cosine, of, reduction="none")
    torch.testing.assert_close(found, known, atol=1e-6, rtol=0)


@pytest.mark.system("attngan-damsm", rung="exact")
def test_a_residue_attends_to_atoms_as_in_the_paper(off: str) -> None:
    """Loops over proteins, ligands, residues and atoms, with rows in another order."""
    torch.manual_seed(0)
    e_of, v_of = torch.tensor([0, 0, 1, 0, 1]), torch.tensor([1, 0, 1, 2, 1, 0, 2])
    e, v = (torch.randn(len(of), 3, dtype=torch.float64) for of in (e_of, v_of))
    order = torch.randperm(7)
    dense = (*padded(e, e_of, 2), *padded(v[order], v_of[order], 3))
    found = attention_scores(*dense, 5.0, 0.5 if off else 4.0)
    for i in range(2):
        for j in range(3):
            words, regions = e[e_of == i], v[v_of == j]
            s = (words @ regions.T).softmax(dim=0)
            context = (5.0 * s).softmax(dim=1) @ regions
            cosines = F.cosine_similarity(context, words, dim=1)
            assert found[i, j].item() == pytest.approx(((4.0 * cosines).exp().sum().log() / 4.0).item(), abs=1e-9)
