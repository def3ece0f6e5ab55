"""InfoGraph, InfoGraph* and arch2vec: their losses against loops over rows, graphs, pairs, atoms and bonds."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.nn.mutual_information import JensenShannon, jsd_local_global
from molgraph.train.objective import StepState
from molgraph.train.objectives.arch2vec import N_BOND_TYPES
from molgraph.train.objectives.masked_atoms import elements
from tests.nn.test_mutual_information import GRAPH_OF
from tests.train import test_arch2vec as arch2vec
from tests.train import test_infograph as infograph
from tests.train import test_semi_supervised as semi_supervised


def by_pairs(local: Tensor, global_: Tensor, graph_of: Tensor) -> Tensor:
    """The loss of each graph, pair by pair."""
    losses = []
    for i in range(len(global_)):
        rows = [u for u in range(len(local)) if graph_of[u] == i]
        total = torch.zeros((), dtype=local.dtype)
        for u in rows:
            for k in range(len(global_)):
                score = local[u] @ global_[k]
                share = 1 / (len(global_) - 1)
                total = total + (torch.log1p((-score).exp()) if k == i else share * torch.log1p(score.exp()))
        losses.append(total / max(len(rows), 1))
    return torch.stack(losses)


@pytest.mark.parametrize("block", [1, 9, 1 << 18])
@pytest.mark.system("infograph-infograph", rung="exact")
def test_the_loss_and_its_gradients_are_those_of_a_double_loop(block: int, off: str) -> None:
    torch.manual_seed(0)
    local = torch.randn(9, 5, dtype=torch.float64, requires_grad=True)
    global_ = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    weights = torch.tensor([1.0, 0.5, 2.0, 3.0], dtype=torch.float64)
    paired = GRAPH_OF.roll(3) if off else GRAPH_OF  # each row with its own graph, or with another
    found, peer = jsd_local_global(local, global_, paired, block=block), by_pairs(local, global_, GRAPH_OF)
    torch.testing.assert_close(found, peer, atol=1e-6, rtol=0)
    of_found, of_peer = (torch.autograd.grad((loss * weights).sum(), [local, global_]) for loss in (found, peer))
    torch.testing.assert_close(of_found, of_peer, atol=1e-6, rtol=0)
    single = jsd_local_global(local.float(), global_.float(), GRAPH_OF, block=block)
    torch.testing.assert_close(single.double(), peer, atol=1e-6, rtol=0)


@pytest.mark.system("infograph-infograph", rung="exact")
def test_the_score_is_learned(off: str) -> None:
    """States that name their graph: the bound comes close to its best, 0."""
    torch.manual_seed(0)
    global_ = torch.eye(4)
    score = JensenShannon(4, 4, 16)
    optimizer = torch.optim.Adam(score.parameters(), lr=0.01)
    for _ in range(100):
        rows = torch.rand(9, 4) if off else global_[GRAPH_OF]
        loss = score(rows, global_, GRAPH_OF).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1 < 3 * 2 * math.log(2)


@pytest.mark.system("infograph-infograph", rung="exact")
def test_the_score_is_three_layers_with_a_relu_each_beside_a_shortcut(off: str) -> None:
    """The authors' perceptron, written out."""
    torch.manual_seed(0)
    score, local, global_ = JensenShannon(5, 3, 4).double(), torch.randn(9, 5).double(), torch.randn(4, 3).double()
    vectors = []
    for half, x in ((score.phi, local), (score.psi, global_)):
        known = x
        for linear in half.layers.layers:
            known = (known @ linear.weight.T + linear.bias).relu()
        vectors.append(known + x @ half.shortcut.weight.T + half.shortcut.bias)
        assert len(half.layers.layers) == 3
    if off:
        nn.init.zeros_(score.psi.shortcut.weight)
    torch.testing.assert_close(score(local, global_, GRAPH_OF), by_pairs(*vectors, GRAPH_OF))


@pytest.mark.system("infograph-infograph", rung="exact")
def test_the_loss_contrasts_each_graphs_rows_with_the_other_graphs(off: str) -> None:
    batch, network, objective = infograph.made("gin", d_hidden=8, depth=2, norm="none")
    batch.weights[1] = 0.0  # a graph that does not count
    if off:  # another graph's vector beside the rows
        objective.score.psi.register_forward_hook(lambda _, __, vectors: vectors.roll(1, 0))
    found = objective(network, batch, StepState(0, 1, 0))
    graphs = batch.parts[0].batch
    encoded = network.encoder(graphs, rows=True)
    local, global_ = objective.score.phi(encoded.rows[0].h), objective.score.psi(encoded.graphs)
    global_ = global_.roll(-1, 0) if off else global_
    expected, of = 0.0, graphs.graph_of("atom").tolist()
    for i in (0, 2, 3):
        rows = [u for u in range(len(of)) if of[u] == i]
        for u in rows:
            expected += F.softplus(-local[u] @ global_[i]).item() / len(rows)
            others = [F.softplus(local[u] @ global_[k]).item() for k in range(4) if k != i]
            expected += sum(others) / 3 / len(rows)
    assert local.shape == (len(of), 6) and encoded.rows[0].h.shape[1] == 3 * 8, "all layers side by side"
    assert found.count == 3 and found.total.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("layer", ["last", "random"])
@pytest.mark.system("infograph-infograph", rung="exact")
def test_the_loss_of_infograph_star_is_its_three_terms(layer: str, off: str) -> None:
    _, network, objective, batch = semi_supervised.made(
        "infograph-star", layer=layer, weight=0.0 if off else 0.5, d_score=6
    )
    torch.manual_seed(1)
    found = objective(network, batch, semi_supervised.STEP)
    graphs = batch.parts[0].batch
    student, teacher = network.encoder(graphs, rows=True), objective.teacher(graphs, rows=True)
    raw = network.head(student.graphs)
    supervised = (raw[:4] - batch.y[:4]).square().sum()
    rows = teacher.rows[0]
    unsupervised = jsd_local_global(objective.score.phi(rows.h), objective.score.psi(teacher.graphs), rows.graph_of)
    torch.manual_seed(1)
    k = int(torch.randint(2, ())) if layer == "random" else 0
    if layer == "random":  # gin's rows hold the embedding, then each layer
        of, own = graphs.graph_of("atom"), slice(8 * k + 8, 8 * k + 16)
        ours, theirs = (torch.stack([e.rows[0].h[of == i, own].sum(0) for i in range(8)]) for e in (student, teacher))
    else:
        ours, theirs = student.graphs, teacher.graphs
    score = objective.transfer[k]
    transfer = jsd_local_global(score.phi(ours), score.psi(theirs), torch.arange(8))
    assert found.count == 4 and len(objective.transfer) == (2 if layer == "random" else 1)
    expected = supervised + 4 * unsupervised.mean() + 4 * 0.5 * transfer.mean()
    torch.testing.assert_close(found.total, expected, rtol=1e-4, atol=1e-4)
    assert set(found.parts) == {"infograph", "transfer"}
    found.parts["transfer"].backward()
    moved = [p.grad for p in network.encoder.parameters() if p.grad is not None]
    assert any(grad.abs().max() > 0 for grad in moved), "the transfer teaches the student"
    judged = objective(network, batch, semi_supervised.STEP._replace(training=False))
    torch.testing.assert_close(judged.total, supervised)


@pytest.mark.system("arch2vec", rung="exact")
def test_the_loss_is_that_of_every_pair_atom_and_bond(off: str) -> None:
    batch, network, objective = arch2vec.made()
    objective.beta = 0.0 if off else 0.3  # without the divergence it is an autoencoder
    found = objective(network, batch, StepState(0, 1, 0, training=False))
    graphs = batch.parts[0].batch
    h = network.encoder(graphs, rows=True).rows[0].h
    mean, log_variance = objective.posterior(h).chunk(2, dim=1)
    noise = torch.randn(mean.shape, generator=torch.Generator().manual_seed(0))
    z = (mean + (0.5 * log_variance).exp() * noise).detach()
    peer = torch.distributions.kl_divergence(
        torch.distributions.Normal(mean, (0.5 * log_variance).exp()), torch.distributions.Normal(0.0, 1.0)
    )
    expected = 0.3 * float(peer.sum().detach())
    bonds = {(int(a), int(b)): i for i, (a, b) in enumerate(zip(graphs.source, graphs.target, strict=True))}
    of, types = graphs.graph_of("atom").tolist(), graphs["bond"].table[:, :N_BOND_TYPES]
    target = elements(graphs["atom"].table)[graphs["atom"].code.long()]
    with torch.no_grad():
        for i in range(len(z)):
            expected += float(F.cross_entropy(objective.element(z[i]), target[i]))
            for j in range(i):
                if of[i] == of[j]:
                    bonded = (i, j) in bonds
                    expected -= float(F.logsigmoid(z[i] @ z[j] if bonded else -(z[i] @ z[j])))
                    if bonded:
                        kind = types[graphs["bond"].code.long()[bonds[i, j]]].argmax()
                        expected += float(F.cross_entropy(objective.bond_type(z[i] * z[j]), kind))
    assert found.count == len(arch2vec.SMILES)
    assert found.total.item() == pytest.approx(expected, rel=1e-4)
