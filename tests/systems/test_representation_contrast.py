"""Contrastive pretraining: InfoNCE with its bound, and its form with negatives corrected for the anchor's class."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from molgraph.chem.scaffold import scaffolds
from molgraph.nn.contrastive import debiased_info_nce, info_nce
from molgraph.nn.perceptron import Perceptron
from molgraph.train.objectives.contrast import Contrast
from tests.systems.contrasts import SMILES, STEP, VIEWS, made, molecules, pretrained, top_1, untrained, vectors
from tests.systems.effect import Effect


def nt_xent(z: Tensor, temperature: float) -> list[float]:
    """The loss of each of 2 n vectors of length 1, sum by sum (Chen et al. 2020, equation 1)."""
    n, losses = len(z) // 2, []
    for i in range(2 * n):
        score = [math.exp(float(z[i] @ z[k]) / temperature) for k in range(2 * n)]
        losses.append(-math.log(score[(i + n) % (2 * n)] / sum(score[k] for k in range(2 * n) if k != i)))
    return losses


@pytest.mark.system("infonce-cpc", rung="exact")
def test_the_loss_is_that_of_two_views_of_each_molecule_sum_by_sum(off: str) -> None:
    learns, network, batch = made("contrast(temperature=0.2)")
    batch.weights[[1, 5]] = 0.0  # a molecule that does not count
    found = learns(network, batch, STEP)
    z = vectors(learns, network, batch)
    known = nt_xent(z.roll(1, 0)[: len(z) // 2].repeat(2, 1) if off else z, 0.2)
    assert found.count == 6
    assert found.total.item() == pytest.approx(sum(known[i] for i in (0, 2, 3, 4, 6, 7)), rel=1e-5)


@pytest.mark.system("infonce-cpc", rung="exact")
def test_it_is_the_cross_entropy_of_the_positive_and_its_bound_is_below_log_n(off: str) -> None:
    torch.manual_seed(0)
    scores, positive = 30 * torch.randn(16, 16, dtype=torch.float64), torch.randperm(16)
    found = info_nce(scores.T if off else scores, positive)
    torch.testing.assert_close(found.losses, F.cross_entropy(scores, positive, reduction="none"), rtol=0, atol=1e-6)
    sharp = torch.eye(16, dtype=torch.float64)[positive] * 100
    for each in (scores, sharp, -sharp):
        assert info_nce(each, positive).bound <= math.log(16)
    assert info_nce(sharp, positive).bound > math.log(16) - 1e-6, "and reaches it"


@pytest.mark.system("infonce-cpc", rung="exact")
def test_a_duplicate_of_a_molecule_is_no_negative_and_leaves_the_loss_unchanged(off: str) -> None:
    losses = []
    for smiles in (SMILES, [SMILES[0], *SMILES]):
        learns, network, batch = made("contrast", smiles, views=None)
        if off:
            batch.graphs = torch.arange(len(batch.graphs) // 2).repeat(2)
        loss = learns(network, batch, STEP)
        losses.append([part / loss.count for part in (loss.total, *loss.parts.values())])
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-5, atol=1e-6)
    learns, network, batch = made("contrast", ["CCO", "CCO"], views=None)
    if off:
        batch.graphs = torch.arange(len(batch.graphs) // 2).repeat(2)
    assert learns(network, batch, STEP).total.item() == pytest.approx(0, abs=1e-6), "nothing but duplicates"


def gaussians(n: int, rho: float, seed: int) -> tuple[Tensor, Tensor]:
    """Two columns of normal numbers with that correlation."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    y = rho * x + math.sqrt(1 - rho**2) * rng.normal(size=(n, 1))
    return torch.from_numpy(x).float(), torch.from_numpy(y).float()


@pytest.mark.system("infonce-cpc", rung="works")
def test_the_bound_of_a_learned_score_is_the_mutual_information_of_gaussians(off: str, effect: Effect) -> None:
    """0.511 nats at a correlation of 0.8, on pairs that were not learned from; without the pairing there are none."""
    bounds = []
    for seed in range(3):
        torch.manual_seed(seed)
        score = torch.nn.ModuleList(Perceptron(1, 64, 16, n_layers=3) for _ in range(2))
        optimizer = torch.optim.Adam(score.parameters(), lr=3e-3)
        for step in range(400):
            x, y = gaussians(256, 0.8, 1000 * seed + step)
            y = y.roll(1, 0) if off else y
            loss = info_nce(score[0](x) @ score[1](y).T, torch.arange(256)).losses.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            held = [gaussians(256, 0.8, 10**6 + k) for k in range(20)]
            found = [info_nce(score[0](x) @ score[1](y).T, torch.arange(256)).bound for x, y in held]
        bounds.append(float(torch.stack(found).mean()))
    known = -0.5 * math.log(1 - 0.8**2)
    effect("bound in nats", bounds, at_least=known - 0.05, at_most=known + 0.05, beside={"shuffled pairs": [0.0]})


@pytest.mark.system("infonce-cpc", rung="works")
def test_views_of_held_out_molecules_are_found_among_hundreds(off: str, effect: Effect) -> None:
    """Six epochs of 1,500 molecules, then 256 others."""
    corpus, held = molecules()[:1500], molecules()[1500:1756]
    name, views = ("masked-atoms", None) if off else ("contrast", VIEWS)
    shares = [top_1(pretrained(name, seed, corpus, views), held) for seed in range(3)]
    first = [top_1(untrained(seed), held) for seed in range(3)]
    effect("top-1 of 511", shares, at_least=0.5, beside={"without training": first, "chance": [1 / 511]})


def classes(seed: int, n: int = 100) -> tuple[Tensor, Tensor, Tensor]:
    """Anchors and positives of length 1 about the centres of ten classes, and the class of each."""
    rng = np.random.default_rng(seed)
    centre, label = rng.normal(size=(10, 16)), rng.integers(0, 10, n)
    a, b = (torch.from_numpy(centre[label] + rng.normal(size=(n, 16))) for _ in range(2))
    return F.normalize(a, dim=1), F.normalize(b, dim=1), torch.from_numpy(label)


@pytest.mark.system("debiased-contrastive-loss", rung="exact")
def test_the_correction_is_that_of_the_equation_and_nothing_without_a_prior(off: str) -> None:
    a, b, _ = classes(0, 12)
    scores, positive, prior = a @ b.T / 0.5, torch.arange(12), 0.0 if off else 0.1
    torch.testing.assert_close(debiased_info_nce(scores, positive, 0.0, -2.0), info_nce(scores, positive))
    found, known = debiased_info_nce(scores, positive, prior, -2.0).losses, []
    for i in range(12):
        e = [math.exp(float(s)) for s in scores[i]]
        mean = sum(e[j] for j in range(12) if j != i) / 11
        g = max((mean - 0.1 * e[i]) / 0.9, math.exp(-2.0))
        known.append(-math.log(e[i] / (e[i] + 11 * g)))
    torch.testing.assert_close(found, torch.tensor(known, dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.system("debiased-contrastive-loss", rung="exact")
def test_the_negatives_are_never_less_than_the_smallest_score_makes_them(off: str) -> None:
    scores = torch.full((2, 5), -10.0)
    scores[:, 0] = 10.0  # a positive whose share outweighs all negatives
    found = debiased_info_nce(scores, torch.zeros(2, dtype=torch.long), 0.0 if off else 0.5, -10.0).losses
    clamped = torch.full((2,), math.log1p(4 * math.exp(-20.0)))
    assert torch.isfinite(found).all()
    torch.testing.assert_close(found, clamped, rtol=1e-4, atol=0)
    weaker = scores.index_fill(1, torch.tensor([3]), 0.0)
    corrected = debiased_info_nce(weaker, torch.zeros(2, dtype=torch.long), 0.0 if off else 0.5, -10.0).losses
    torch.testing.assert_close(corrected, clamped, rtol=1e-4, atol=0)  # what is too little is clamped too


@pytest.mark.system("debiased-contrastive-loss", rung="exact")
def test_the_prior_is_the_share_of_pairs_with_one_scaffold(off: str) -> None:
    smiles = ["Cc1ccccc1", "Oc1ccccc1", "Nc1ccccc1", "C1CC1", "CCO", "CCN", "Cc1ccncc1"]
    learns, network, batch = made("contrast(debias=0)" if off else "contrast(debias=auto)", smiles)
    labels = Contrast.row_labels(debias="auto")
    assert labels is not None
    batch.y = torch.from_numpy(labels.make(smiles, 1)).repeat(2, 1)
    found = learns(network, batch, STEP)
    keys = [key for key, _ in zip(*scaffolds(smiles), strict=True)]
    pairs = [keys[i] == keys[j] for i in range(7) for j in range(i)]
    assert sum(pairs) == 4 and learns.prior(batch) == pytest.approx(4 / 21)
    z = vectors(learns, network, batch)
    excluded = batch.graphs[:, None] == batch.graphs[None]
    known = debiased_info_nce(z @ z.T / 0.1, torch.arange(14).roll(7), 4 / 21, -10.0, excluded)
    torch.testing.assert_close(found.total, known.losses.sum(), rtol=1e-5, atol=1e-5)


@pytest.mark.system("debiased-contrastive-loss", rung="works")
def test_the_loss_is_nearer_to_that_of_true_negatives(off: str, effect: Effect) -> None:
    """Ten classes of a tenth each: the distance from the loss whose negatives are of other classes alone."""
    shares = []
    for seed in range(20):
        a, b, label = classes(seed)
        scores, positive = a @ b.T / 0.5, torch.arange(len(a))
        same = label[:, None] == label[None]
        n = (~same).sum(dim=1, keepdim=True)
        other = (scores.exp() * ~same).sum(dim=1, keepdim=True) / n * (len(a) - 1)  # as many negatives
        own = scores.exp().diagonal()[:, None]
        true = -(own / (own + other)).log().mean()
        biased = info_nce(scores, positive).losses.mean()
        found = debiased_info_nce(scores, positive, 0.0 if off else 0.1, -2.0).losses.mean()
        shares.append(float((found - true).abs() / (biased - true).abs()))
    effect("distance as a share of the biased loss's", shares, at_most=0.5, beside={"the biased loss": [1.0]})
