"""Readouts and encoders of the long tail: prototypes, sparse attention, inverted residual blocks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import Tensor, nn

from molgraph.auxiliary.readout.protores import ProtoRes
from molgraph.auxiliary.readout.sparsemax import Sparsemax, sparsemax
from molgraph.base.registry import get
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.models.gin import GIN
from molgraph.models.inverted_residual import InvertedResidual
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.relation import Relation
from tests.systems.effect import Effect


def one_set(n: int, sets: int = 1) -> Relation:
    return Relation.from_pairs(torch.arange(n * sets), torch.arange(sets).repeat_interleave(n), n * sets, sets)


@pytest.mark.system("protores", rung="exact")
def test_order_and_doubling_change_nothing(off: str) -> None:
    torch.manual_seed(0)
    h, readout = torch.randn(7, 6), ProtoRes(6)
    whole, _ = readout(h, one_set(7))
    doubled, _ = (get("readout", "sum")(6) if off else readout)(h.repeat(2, 1), one_set(14))
    torch.testing.assert_close(readout(h[torch.randperm(7)], one_set(7))[0], whole, rtol=0, atol=1e-6)
    torch.testing.assert_close(doubled, whole, rtol=0, atol=1e-6)


@pytest.mark.system("protores", rung="exact")
def test_blocks_are_the_papers_by_hand(off: str) -> None:
    torch.manual_seed(0)
    h, readout = torch.randn(5, 4), ProtoRes(4, blocks=3)
    b, p = h, torch.zeros(4)
    for r in range(3):
        x = (b - (0 if off else p) / max(r, 1)).relu()
        p = p + readout.prototypes[r](x).mean(0)
        b = (readout.skips[r](x) + readout.rows[r](x)).relu() if r < 2 else b
    torch.testing.assert_close(readout(h, one_set(5))[0][0], p, rtol=0, atol=1e-6)


class Before(nn.Module):
    """A perceptron of each row, and the mean."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.rows, self.mean = Perceptron(d, 40, d, 5), get("readout", "mean")(d)

    def forward(self, h: Tensor, relation: Relation) -> tuple[Tensor, dict]:
        return self.mean(self.rows(h), relation)


@pytest.mark.system("protores", rung="works", null="0.065 beside 0.063 of as many layers of each row before a mean")
def test_the_largest_less_the_mean_is_learned_better_than_by_a_mean(off: str, effect: Effect) -> None:
    shares, errors = [], {"protores": [], "perceptron and mean": []}
    for seed in range(2):
        rng = torch.Generator().manual_seed(seed)
        h = torch.randn(600, 12, 4, generator=rng)
        y = h[..., 0].amax(1) - h[..., 0].mean(1)
        for name in errors:
            torch.manual_seed(seed)
            readout: nn.Module = Before(4) if off or name != "protores" else ProtoRes(4, blocks=4)
            up, head = nn.Linear(4, 4), Perceptron(4, 32, 1)
            every = [p for m in (readout, up, head) for p in m.parameters()]
            optimizer, relation = torch.optim.Adam(every, lr=5e-3), one_set(12, 400)
            for _ in range(150):
                loss = (head(readout(up(h[:400].reshape(-1, 4)), relation)[0])[:, 0] - y[:400]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                value = head(readout(up(h[400:].reshape(-1, 4)), one_set(12, 200))[0])[:, 0]
            errors[name].append(float((value - y[400:]).square().mean()))
        shares.append(errors["protores"][-1] / errors["perceptron and mean"][-1])
    effect("squared error / of a perceptron of each row before the mean", shares, at_most=0.95, beside=errors)


@pytest.mark.system("mixed-random-variables", rung="exact")
def test_sparsemax_is_the_nearest_point_of_the_simplex(off: str) -> None:
    torch.manual_seed(0)
    z = 2 * torch.randn(60, dtype=torch.float64)
    y = (z.reshape(6, 10).softmax(1) if off else sparsemax(z, one_set(10, 6)).reshape(6, 10)).numpy()
    for row, scores in zip(y, z.reshape(6, 10).numpy(), strict=True):
        low, high = scores.min() - 1, scores.max()
        for _ in range(100):  # bisection for the threshold
            middle = (low + high) / 2
            low, high = (middle, high) if np.maximum(scores - middle, 0).sum() > 1 else (low, middle)
        np.testing.assert_allclose(row, np.maximum(scores - low, 0), atol=1e-8)


@pytest.mark.system("mixed-random-variables", rung="exact")
def test_the_chance_of_an_exact_zero_is_the_gaussians(off: str) -> None:
    """Of two rows: P(y_1 = 0) = Phi((-1 - (m_1 - m_2)) / (sqrt(2) s)), and vertices and inside have the mass 1."""
    torch.manual_seed(0)
    n, s, m = 100_000, 0.7, torch.tensor([0.2, 0.5], dtype=torch.float64)
    z = (m + s * torch.randn(n, 2, dtype=torch.float64)).reshape(-1)
    y = z.reshape(n, 2).softmax(1) if off else sparsemax(z, one_set(2, n)).reshape(n, 2)
    share, known = float((y[:, 0] == 0).double().mean()), float(norm.cdf((-1 - (0.2 - 0.5)) / (np.sqrt(2) * s)))
    assert abs(share - known) < 3 * np.sqrt(known * (1 - known) / n)
    inside = torch.linspace(0, 1, 4001, dtype=torch.float64)  # y_1 = (1 + z_1 - z_2) / 2 between 0 and 1
    density = 2 * norm.pdf(2 * inside.numpy() - 1, 0.2 - 0.5, np.sqrt(2) * s)
    other = float(norm.sf((1 - (0.2 - 0.5)) / (np.sqrt(2) * s)))
    assert abs(np.trapezoid(density, inside.numpy()) + known + other - 1) < 1e-3
    one = Sparsemax(3, sigma=0.0)
    assert torch.equal(one.train()(torch.ones(2, 3), one_set(2))[0], one.eval()(torch.ones(2, 3), one_set(2))[0])


@pytest.mark.system("mixed-random-variables", rung="works")
def test_attention_finds_the_rows_that_count_and_leaves_the_others_out(off: str, effect: Effect) -> None:
    """Two of twelve rows carry the label; of the weights of the others most are exactly zero."""
    shares = []
    for seed in range(3):
        rng = torch.Generator().manual_seed(seed)
        h = torch.randn(500, 12, 4, generator=rng)
        h[..., 3] = (torch.arange(12) < 2).float()
        y = h[:, :2, 0].mean(1)
        torch.manual_seed(seed)
        readout = Sparsemax(4, sigma=0.5)
        head = nn.Linear(4, 1)
        optimizer = torch.optim.Adam([*readout.parameters(), *head.parameters()], lr=2e-2)
        for _ in range(300):
            loss = (head(readout(h.reshape(-1, 4), one_set(12, 500))[0])[:, 0] - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        z = readout.score(h.reshape(-1, 4))[:, 0]
        weights = z.reshape(500, 12).softmax(1) if off else sparsemax(z, one_set(12, 500)).reshape(500, 12)
        shares.append(float((weights[:, 2:] == 0).float().mean()))
    effect("share of the weights of rows without label that are exactly 0", shares, at_least=0.9)


@pytest.mark.system("mobilenetv2", rung="exact")
def test_a_fifth_of_the_weights_of_a_wide_network(off: str) -> None:
    spec = featurize(["C"]).spec
    wide = GIN(spec, d_hidden=6 * 64, depth=4)
    own = wide if off else InvertedResidual(spec, d_hidden=64, expansion=6, depth=4)
    count = [sum(p.numel() for p in each.parameters()) for each in (own, wide)]
    assert count[0] <= count[1] / 5


@pytest.mark.system("mobilenetv2", rung="exact")
def test_a_block_is_its_equation(off: str) -> None:
    torch.manual_seed(0)
    store = featurize(["CCO", "c1ccccc1O"])
    batch = collate(store, np.arange(2))
    own = InvertedResidual(store.spec, d_hidden=8, expansion=3, depth=1, norm="none")
    if off:  # channels mix
        own.narrow[0].weight.data[:, 0] += 1
    h = own.embed(batch.features("atom"))
    a = nn.functional.relu6(own.widen[0](h))
    gate = own.gates[0](batch.features("bond")).sigmoid()
    m = torch.zeros_like(a).index_add(0, batch.target, gate * a[batch.source])
    wide = nn.functional.relu6(m + own.own[0] * a)
    weight = own.narrow[0].weight.clone()
    weight[:, 0] -= 1 if off else 0
    known = h + wide @ weight.T + own.narrow[0].bias
    torch.testing.assert_close(own.states(batch)[0], known, rtol=0, atol=1e-5)
