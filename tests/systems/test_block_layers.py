"""Block options of layers: exits, reversible layers, layers as a differential equation, symbols of atoms."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor, nn

from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.models.gin import GIN
from molgraph.nn.blocks.exits import Halting, Heads, Lookback, layers_read, lookback, stop_chances
from molgraph.nn.blocks.stacks import ODE, Reversible, forward_pairs, inverse, runge_kutta
from molgraph.nn.blocks.symbols import draw
from tests.systems.test_block_options import _double, encoder

BATCH = collate(featurize(["CC(=O)Oc1ccccc1C(=O)O", "CCO", "C1CCC2CCCCC2C1"]), np.arange(3))
SPEC = featurize(["C"]).spec


def layers(n: int, d: int = 8) -> list[nn.Module]:
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(d, d), nn.Tanh(), nn.Linear(d, d)) for _ in range(n)]


@pytest.mark.system("reformer", rung="exact")
def test_inputs_come_back_from_outputs(off: str) -> None:
    stack, x = layers(6), torch.randn(50, 8, generator=torch.Generator().manual_seed(1))
    halves = forward_pairs(stack, x)[-2:] if not off else (stack[0](x), stack[1](x))
    for back in inverse(stack, halves):
        torch.testing.assert_close(back, x, rtol=0, atol=1e-5)


@pytest.mark.system("reformer", rung="exact")
def test_gradients_are_those_of_stored_layers(off: str) -> None:
    x = torch.randn(50, 8, generator=torch.Generator().manual_seed(1))
    found = []
    for stored in (True, False):
        stack, start = layers(5), x.clone().requires_grad_()
        option = Reversible()
        option.norms = []
        if stored:
            pairs = forward_pairs(stack, start)
            states = [(a + b) / 2 for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
        else:
            states = option.run(stack, start)
        if off and not stored:
            states = [layer(start) for layer in stack]
        sum((k + 1) * h.square().sum() for k, h in enumerate(states)).backward()
        found.append([start.grad, *(p.grad for layer in stack for p in layer.parameters())])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-4)


@pytest.mark.system("reformer", rung="exact")
def test_what_is_saved_does_not_grow_with_depth(off: str) -> None:
    counts = []
    for depth in (2, 16):
        saved, option, start = [], Reversible(), torch.ones(50, 8, requires_grad=True)
        option.norms = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, saved=saved: saved.append(t.numel()) or t, lambda t: t):
            if off:
                h = start
                for layer in layers(depth):
                    h = layer(h)
            else:
                h = option.run(layers(depth), start)[-1]
            h.sum()
        counts.append(sum(saved))
    assert counts[1] == counts[0] > 0


@pytest.mark.system("reformer", rung="exact")
def test_an_encoder_trains_as_with_stored_layers(off: str) -> None:
    """Batch norm's running statistics move once a step, and all weights have the gradients of stored layers."""
    found = []
    for stored in (True, False):
        own = encoder(GIN, SPEC, stack="reversible").double().train()
        if stored:
            own.options[0].run = lambda stack, h, skips=(): [
                (a + b) / 2 for a, b in zip(*[iter(forward_pairs(stack, h))] * 2, strict=True)
            ]
        elif off:
            own.options[0].run = lambda stack, h, skips=(): [layer(h) for layer in stack]
        own(_double(BATCH)).graphs.square().sum().backward()
        found.append({**{k: p.grad for k, p in own.named_parameters()}, **dict(own.named_buffers())})
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, rtol=1e-6, atol=1e-6)


@pytest.mark.system("tisode", rung="exact")
def test_layers_that_give_nothing_decay(off: str) -> None:
    h = torch.randn(20, 4, generator=torch.Generator().manual_seed(0)).double()
    for time in (0.5, 1.0, 2.0):
        states = ODE(time).run([torch.zeros_like] * 8, h)
        states = [torch.zeros_like(h)] * 8 if off else states
        for k, state in enumerate(states):
            torch.testing.assert_close(state, h * np.exp(-time * (k + 1) / 8), rtol=0, atol=1e-4)


@pytest.mark.system("tisode", rung="exact")
def test_runge_kutta_is_of_fourth_order(off: str) -> None:
    def slope(h: Tensor) -> Tensor:
        return torch.sin(3 * h) + 1

    def error(n: int) -> float:
        h = torch.tensor([0.3], dtype=torch.float64)
        for _ in range(n):
            h = h + slope(h) / n if off else runge_kutta(slope, h, 1 / n)
        return float(h)

    fine = error(4096)
    assert 3.5 < np.log2(abs(error(16) - fine) / abs(error(32) - fine)) < 4.6


def enumerated(p: np.ndarray) -> np.ndarray:
    """The chance of each first stop, over all ways to stop or go on at each layer."""
    total = np.zeros(len(p))
    for ways in product([0, 1], repeat=len(p) - 1):
        chance = np.prod([q if way else 1 - q for way, q in zip(ways, p, strict=False)])
        total[ways.index(1) if 1 in ways else len(p) - 1] += chance
    return total


P = torch.rand(5, 7, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
U = torch.randn(5, 7, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.system("monotonic-attention", rung="exact")
def test_stops_are_those_of_all_ways(off: str) -> None:
    stop = P / P.sum(0) if off else stop_chances(P)
    for i, j in product(range(7), range(2)):
        np.testing.assert_allclose(stop[:, i, j], enumerated(P[:, i, j].numpy()), atol=1e-6)
    torch.testing.assert_close(stop.sum(0), torch.ones_like(stop[0]))


@pytest.mark.system("milk", rung="exact")
def test_lookback_is_that_of_all_stops(off: str) -> None:
    stop = stop_chances(P)
    beta = stop if off else lookback(stop, U)
    known = torch.zeros_like(beta)
    for k in range(5):
        known[: k + 1] += stop[k] * U[: k + 1].softmax(0)
    torch.testing.assert_close(beta, known, rtol=0, atol=1e-6)
    torch.testing.assert_close(beta.sum(0), stop.sum(0))


@pytest.mark.system("milk", rung="exact")
def test_a_stop_at_the_last_layer_is_jumping_knowledge_by_attention(off: str) -> None:
    h = torch.randn(5, 7, 6, generator=torch.Generator().manual_seed(2))
    option = Lookback()
    option.energy = nn.Linear(6, 1)
    last = torch.zeros(5, 7, 1).index_fill(0, torch.tensor([4]), 1.0)
    weights = last if off else option.weights(last, h)
    torch.testing.assert_close((weights * h).sum(0), (option.energy(h).softmax(0) * h).sum(0), rtol=0, atol=1e-6)


@pytest.mark.system("mma", rung="exact")
def test_one_head_is_halting_and_depth_is_that_of_each_head(off: str) -> None:
    heads, one = encoder(GIN, SPEC, exit="heads(n=2)" if off else "heads(n=1)"), encoder(GIN, SPEC, exit="halting")
    assert isinstance(one.options[0], Halting) and isinstance(heads.options[0], Heads)
    if not off:
        heads.load_state_dict(one.state_dict())
    assert torch.equal(heads(BATCH).graphs, one(BATCH).graphs)
    stop = torch.eye(5)[[1, 3]].T[:, None, :]  # two heads stop at the second and the fourth layer
    assert layers_read(stop).tolist() == [[2.0, 4.0]]


@pytest.mark.system("emergent-discrete-communication", rung="exact")
def test_draws_have_the_chances_of_the_softmax(off: str) -> None:
    torch.manual_seed(0)
    logits = torch.tensor([0.0, 1.0, -1.0, 0.5])
    rows = logits.expand(100_000, 4)
    drawn = nn.functional.one_hot(rows.argmax(1), 4) if off else draw(rows, 1.0)
    counts = drawn.sum(0).double().numpy()
    assert chisquare(counts, 100_000 * logits.double().softmax(0).numpy(), sum_check=False).pvalue > 0.01


@pytest.mark.system("emergent-discrete-communication", rung="exact")
def test_one_hot_draws_have_the_gradient_of_soft_ones(off: str) -> None:
    weight, found = torch.randn(30, 4, generator=torch.Generator().manual_seed(3)), []
    for hard in (True, False):
        torch.manual_seed(1)
        logits = torch.randn(30, 4, generator=torch.Generator().manual_seed(2)).requires_grad_()
        rows = draw(logits, 0.7, hard=hard)
        rows = rows.detach() + 0 * logits if off and hard else rows
        (rows * weight).sum().backward()
        found.append(logits.grad)
        assert not hard or set(rows.detach().unique().tolist()) <= {0.0, 1.0} or off
    torch.testing.assert_close(*found)
