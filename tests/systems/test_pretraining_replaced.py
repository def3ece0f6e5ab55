"""Replaced atoms: labels, gradients, and an encoder that knows wrong atoms from how they fit, not how rare they are."""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import log

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch.nn import functional as F

from molgraph.data.batch import GraphBatch
from molgraph.data.sources import builtin
from molgraph.train.objective import StepState
from tests.systems.by_hand import Pretraining, pretraining
from tests.systems.effect import Effect
from tests.tiny import series

STATE = StepState(0, 1, 0)
TRAIN, HELD = np.arange(3000), np.arange(4000, 4500)


def made() -> Pretraining:
    return pretraining(list(series(8).smiles), "replaced-atoms(temperature=3)", d_hidden=8, depth=2, norm="none")


@pytest.mark.system("electra", rung="exact")
def test_an_atom_that_is_drawn_as_it_was_counts_as_the_molecules(off: str) -> None:
    """And the loss is that of equations 1 to 3, atom by atom, one molecule not counting."""
    objective, network, _ = run = made()
    batch = run.batch(range(8))
    batch.weights[2] = 0.0
    masked = batch.parts[0].batch
    filled, rows, scores, replaced = objective.fill(masked, batch.y)
    kinds = filled["atom"].code[rows]
    hits = kinds == batch.y
    assert 0 < hits.sum() < len(rows), "some are lucky, some are not"
    expected = torch.zeros(masked.n_atoms, dtype=torch.bool)
    expected[rows] = True if off else ~hits
    torch.testing.assert_close(replaced, expected)
    counts = masked.graph_of("atom") != 2
    judged = objective.head(network.encoder(filled, rows=True).rows[0].h)[:, 0]
    of_atom = torch.where(expected, -F.logsigmoid(judged), -F.logsigmoid(-judged))[counts].mean()
    logp = scores.log_softmax(1)[torch.arange(len(rows)), batch.y][counts[rows]]
    loss = objective(network, batch, STATE)
    assert loss.count == len(logp) and loss.parts["replaced"] == (~hits & counts[rows]).sum()
    torch.testing.assert_close(loss.total / loss.count, -logp.mean() + 50 * of_atom)


@pytest.mark.system("electra", rung="exact")
def test_no_gradient_of_the_discriminator_reaches_the_generator(off: str) -> None:
    objective, network, _ = run = made()
    loss = objective(network, run.batch(range(8)), STATE)
    theirs = [*objective.generator.parameters(), *objective.kind.parameters()]
    judged = loss.total if off else loss.parts["discriminator"]
    assert all(g is None for g in torch.autograd.grad(judged, theirs, retain_graph=True, allow_unused=True))
    own = torch.autograd.grad(judged, [*network.encoder.embed.parameters()], retain_graph=True)
    assert all(g.abs().sum() > 0 for g in own)


@pytest.mark.system("electra", rung="exact")
def test_kinds_are_drawn_by_the_generators_chances(off: str) -> None:
    """Shares of 20,000 draws within 4 standard errors, at another temperature."""
    objective = made().objective
    scores = torch.tensor([[0.0, 2.0, -1.0, 0.5]]).expand(20_000, -1)
    p = (scores[0] / (1.0 if off else objective.temperature)).softmax(0)
    uniform = torch.rand(20_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    share = torch.bincount(objective.draw(scores, uniform), minlength=4) / 20_000
    assert ((share - p).abs() < 4 * (p * (1 - p) / 20_000).sqrt()).all()


def neighbours(graphs: GraphBatch) -> list[int]:
    return torch.bincount(graphs.target, minlength=graphs.n_atoms).tolist()


def plausible(graphs: GraphBatch) -> torch.Tensor:
    """Which atoms have as many neighbours as their features say: degree less hydrogens."""
    x = graphs.features("atom")
    degree, hydrogens = x[:, 38:45].argmax(1), x[:, 56:62].argmax(1)
    return degree - hydrogens == torch.tensor(neighbours(graphs))


@cache
def judged(seed: int, weight: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Of atoms of new molecules: which are replaced and plausible, the encoder's score and rarity's; the share."""
    run = pretraining(
        [str(text) for text in builtin.nci().smiles],
        f"replaced-atoms(weight={weight})", seed=seed, d_hidden=32, depth=3, norm="none",
    )  # fmt: skip
    run.learn(TRAIN, 400 if weight else 50, seed=seed)
    seen = run.samples.sample(TRAIN).parts[0].batch
    counts = Counter(zip(seen["atom"].code.tolist(), neighbours(seen), strict=True))
    of_degree = Counter(neighbours(seen))
    batch = run.batch(HELD, seed=7)
    with torch.no_grad():
        filled, rows, _, replaced = run.objective.fill(batch.parts[0].batch, batch.y)
        scores = run.objective.head(run.network.encoder(filled, rows=True).rows[0].h)[:, 0]
    pairs = zip(filled["atom"].code.tolist(), neighbours(filled), strict=True)
    rare = np.array([-log((counts[pair] + 0.5) / (of_degree[pair[1]] + 1)) for pair in pairs])
    return replaced.numpy(), plausible(filled).numpy(), scores.numpy(), rare, float(replaced[rows].float().mean())


@pytest.mark.parametrize(("among", "bound"), [("all", 0.0), ("plausible", 0.02)])
@pytest.mark.system("electra", rung="works")
def test_the_encoder_finds_replaced_atoms_of_new_molecules(among: str, bound: float, off: str, effect: Effect) -> None:
    """AUROC beside how rare an atom is among those with as many neighbours; also where degrees alone tell nothing.

    Off: the discriminator's loss has no weight. A better generator makes the task harder: after 200 steps a quarter of
    the masked atoms are replaced, after 400 a fifth, and both figures fall.
    """
    ours, theirs, shares = [], [], []
    for seed in range(2):
        replaced, fits, scores, rare, share = judged(seed, 0 if off else 50)
        keep = fits if among == "plausible" else np.ones_like(fits)
        ours.append(roc_auc_score(replaced[keep], scores[keep]))
        theirs.append(roc_auc_score(replaced[keep], rare[keep]))
        shares.append(share)
    gain = [a - b for a, b in zip(ours, theirs, strict=True)]
    effect("AUROC of replaced atoms above rarity's", gain, at_least=bound,
           beside={"AUROC": ours, "rarity among as many neighbours": theirs, "share replaced": shares})  # fmt: skip
