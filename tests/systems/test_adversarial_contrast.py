"""Contrast with changed features: the change stays in its box and raises the loss, and what it costs and brings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.data.subgraph import last_graphs
from molgraph.data.table import make_table
from molgraph.train.adversary import attack, perturbed, with_features
from molgraph.train.preparation import prepare
from tests.systems.contrasts import STEP, made, molecules, pretrained, top_1, vectors
from tests.systems.effect import Effect


def changed(learns: Any, network: Any, batch: Any, z: Tensor, by: Tensor) -> Any:
    """What the objective gets where the features of the second views' atoms are changed by so much."""
    graphs = last_graphs(batch.parts[0].batch, len(z) // 2)
    with perturbed(network.encoder):
        near = learns.vectors(network.encoder(with_features(graphs, graphs.features("atom") + by)).graphs)
    return learns.against(z, near, batch).losses


def change(learns: Any, network: Any, batch: Any, z: Tensor, steps: int, eps: float) -> Tensor:
    """The change that the objective makes."""
    graphs = last_graphs(batch.parts[0].batch, len(z) // 2)

    def loss(of: Any) -> Tensor:
        return learns.against(z, learns.vectors(network.encoder(of).graphs), batch).losses.sum()

    with perturbed(network.encoder):
        return attack(loss, graphs, steps, eps)


@pytest.mark.system("clae", rung="exact")
@pytest.mark.system("rocl", rung="exact")
@pytest.mark.parametrize("how", ["adversarial=1", "adversarial=7, positive=true"])
def test_no_change_gives_the_same_loss(how: str, off: str) -> None:
    learns, network, batch = made(f"contrast({how}, eps={0.1 if off else 0})")
    z = vectors(learns, network, batch)
    near = learns.attacked(network.encoder, z, batch)
    torch.testing.assert_close(near, z[len(z) // 2 :], rtol=0, atol=1e-5)
    own, known = learns(network, batch, STEP), made("contrast")[0](network, batch, STEP)
    if "positive" not in how:
        torch.testing.assert_close(own.total, 2 * known.total, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(own.parts["adversarial"], known.total, rtol=1e-5, atol=1e-5)


@pytest.mark.system("clae", rung="exact")
@pytest.mark.system("rocl", rung="exact")
def test_changed_molecules_leave_running_means_as_they_are(off: str) -> None:
    learns, network, batch = made("contrast(adversarial=1)", norm="batch")
    before = {name: value.clone() for name, value in network.named_buffers() if "running" in name}
    with torch.no_grad():
        z = vectors(learns, network, batch)
        after = {name: value.clone() for name, value in network.named_buffers() if "running" in name}
        learns.attacked(network.encoder, z, batch) if not off else vectors(learns, network, batch)
    assert any(not torch.equal(after[name], before[name]) for name in after), "the clean molecules move the means"
    assert all(torch.equal(dict(network.named_buffers())[name], value) for name, value in after.items())
    assert network.encoder.distinct


@pytest.mark.system("clae", rung="exact")
def test_a_small_change_raises_the_loss_by_its_size_times_the_gradients_sum(off: str, monkeypatch: Any) -> None:
    learns, network, batch = made("contrast(adversarial=1)")
    eps, z = 1e-3, vectors(learns, network, batch).detach()
    second = last_graphs(batch.parts[0].batch, len(z) // 2)
    delta = torch.zeros_like(second.features("atom"), requires_grad=True)
    first = changed(learns, network, batch, z, delta).sum()
    (gradient,) = torch.autograd.grad(first, delta)
    by = change(learns, network, batch, z, 1, eps)
    if off:  # the signs of other atoms
        by = by.roll(1, 0)
    rise = changed(learns, network, batch, z, by).sum() - first
    assert rise.item() == pytest.approx(eps * gradient.abs().sum().item(), rel=0.05)


@pytest.mark.system("rocl", rung="exact")
def test_changes_stay_in_the_box_and_raise_the_loss_of_nearly_all_anchors(off: str) -> None:
    learns, network, batch = made("contrast(adversarial=7, positive=true)", molecules()[:64], norm="batch")
    z = vectors(learns, network, batch).detach()
    by = change(learns, network, batch, z, 7, 0.03)
    assert by.abs().max() <= 0.03 and (by.abs() == 0.03).float().mean() > 0.3
    if off:
        by = by[torch.randperm(len(by))]
    rises = changed(learns, network, batch, z, by) - changed(learns, network, batch, z, 0 * by)
    assert (rises >= 0).float().mean() >= 0.95
    once = changed(learns, network, batch, z, change(learns, network, batch, z, 1, 0.03)).sum()
    assert changed(learns, network, batch, z, by).sum() > once, "more steps find more"


@pytest.mark.system("rocl", rung="exact")
def test_the_changed_molecule_is_another_positive_and_an_anchor(off: str, monkeypatch: Any) -> None:
    learns, network, batch = made("contrast(adversarial=7, positive=true, weight=0.5, temperature=0.2)")
    learns.positive = not off
    z = vectors(learns, network, batch).detach()
    torch.manual_seed(0)
    near = F.normalize(torch.randn_like(z[: len(z) // 2]), dim=1)
    monkeypatch.setattr(learns, "attacked", lambda *_: near)
    loss = learns(network, batch, STEP)
    e, cross = (torch.exp(a @ z.T / 0.2).double() for a in (z, near))
    n = len(near)
    extra, known = torch.exp((z * torch.cat([near, near])).sum(dim=1) / 0.2), 0.0
    for i in range(2 * n):
        p, others = (i + n) % (2 * n), [a for a in range(2 * n) if a != i]
        own = e[i, p] + extra[i]
        known -= float(torch.log(own / (sum(e[i, a] for a in others) + extra[i])))
    for i in range(n):  # for each of the views that count
        others = [a for a in range(2 * n) if a != i + n]
        known -= 2 * 0.5 * float(torch.log(cross[i, i] / sum(cross[i, a] for a in others)))
    assert loss.total.item() == pytest.approx(known, rel=1e-4)


@pytest.mark.system(
    "clae", rung="works", null="views under attack take from the search of plain ones, with so few molecules and steps"
)
def test_views_of_held_out_molecules_are_found_more_often(off: str, effect: Effect) -> None:
    corpus, held = molecules()[:1000], molecules()[1500:1756]
    plain = [top_1(pretrained("contrast", seed, corpus), held) for seed in range(3)]
    how = f"contrast(adversarial={0 if off else 1}, eps=0.1)"
    gains = [top_1(pretrained(how, seed, corpus), held) - plain[seed] for seed in range(3)]
    effect("top-1 of 511 above contrast's", gains, at_least=0.01, beside={"contrast": plain})


def drop_under_attack(encoder: nn.Module, smiles: list[str], y: np.ndarray, eps: float) -> tuple[float, float]:
    """ROC AUC of a logistic regression on an encoder's states, and what of it a change of features takes."""
    found = prepare(make_table(smiles), None, "gin", None, None, {}, targets=False)
    encoder.eval()
    first, rest = (found.train.sample(rows).parts[0].batch for rows in np.split(np.arange(len(smiles)), [600]))
    with torch.no_grad():
        h = encoder(first).graphs
    mean, spread = h.mean(dim=0), h.std(dim=0) + 1e-6
    model = LogisticRegression(C=0.1, max_iter=500).fit(((h - mean) / spread).numpy(), y[:600])
    weight = torch.from_numpy(model.coef_[0]).float()
    sign = torch.from_numpy(1 - 2 * y[600:]).float()

    def score(graphs: Any) -> Tensor:
        return ((encoder(graphs).graphs - mean) / spread) @ weight

    with perturbed(encoder):
        by = attack(lambda graphs: F.softplus(sign * score(graphs)).sum(), rest, 7, eps)
        with torch.no_grad():
            clean, moved = score(rest), score(with_features(rest, rest.features("atom") + by))
    own, left = (float(roc_auc_score(y[600:], each.numpy())) for each in (clean, moved))
    return own, own - left


@pytest.mark.system("rocl", rung="works")
def test_a_probe_of_its_encoder_loses_less_under_attack(off: str, effect: Effect) -> None:
    """Molecules with two nitrogens or more in rings; features of held-out ones are changed by up to 0.02."""
    from rdkit import Chem

    pattern = Chem.MolFromSmarts("[n,N;R]")
    smiles = molecules()[:900]
    y = np.array([len(Chem.MolFromSmiles(text).GetSubstructMatches(pattern)) >= 2 for text in smiles]) * 1.0
    gains, clean, drops = [], [], []
    for seed in range(2):
        plain = drop_under_attack(pretrained("contrast", seed, smiles[:600]), smiles, y, 0.02)
        how = "contrast" if off else "contrast(adversarial=7, positive=true, eps=0.02)"
        own = drop_under_attack(pretrained(how, seed, smiles[:600]), smiles, y, 0.02)
        gains.append(plain[1] - own[1])
        clean.append(own[0] - plain[0])
        drops.append(plain[1])
    effect("ROC AUC lost less", gains, at_least=0.05, beside={"lost by contrast": drops, "gained without": clean})
