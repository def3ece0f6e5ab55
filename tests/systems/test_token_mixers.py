"""Layers that mix tokens by kernels, levels or offsets: loops, torch's LSTM, a linear layer, and their effects."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from molgraph.nn.sequence import make_sequence
from molgraph.nn.sequences.cycle import CycleLinear
from molgraph.nn.sequences.dynamic_conv import KernelConvolution
from molgraph.nn.sequences.trellis import Trellis
from tests.systems.effect import Effect
from tests.systems.smiles_nll import SEEDS, nll
from tests.systems.test_space_harmonic import auc

D = 8


def tokens(n: int = 2, t: int = 20, d: int = D) -> Tensor:
    return torch.randn(n, t, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.system("lightweight-dynamic-convolution", rung="exact")
@pytest.mark.parametrize("dynamic", [True, False])
def test_kernels_are_softmax_normalised_and_shared_by_the_channels_of_a_head(off: str, dynamic: bool) -> None:
    """Equations 3 and 4 by loops over tokens, channels and places; without a softmax it is another layer."""
    torch.manual_seed(0)
    layer, x = KernelConvolution(D, 5, 2, 0.0, dynamic=dynamic).double(), tokens()
    with torch.no_grad():
        y, last = layer(x)
        logits = layer.query(x).view(2, 20, 2, 5) if layer.query else layer.logits.expand(2, 20, 2, 5)
        kernels = layer.kernels(x)
        expected = torch.zeros_like(x)
        for t in range(20):
            for c in range(D):
                w = logits[:, t, c // 4] if off else logits[:, t, c // 4].softmax(dim=1)
                for j in range(5):
                    if t - 4 + j >= 0:
                        expected[:, t, c] += w[:, j] * x[:, t - 4 + j, c]
    torch.testing.assert_close(y, expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(kernels.sum(dim=3), torch.ones(2, 20, 2).double(), atol=1e-12, rtol=0)
    assert last.equal(x[:, -4:])


class Attention(nn.Module):
    """A layer of causal attention of the same width and heads."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads, self.inputs, self.leave = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.inputs(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(2, 3)).masked_fill(torch.ones(x.shape[1], x.shape[1]).triu(1).bool(), -torch.inf)
        return self.leave((scores.softmax(dim=3) @ v).transpose(1, 2).flatten(2))


def growth(layer: Any) -> float:
    """CPU time of 1,024 tokens as a multiple of that of 256, the least of several runs each."""
    times = {256: list[float](), 1024: list[float]()}
    with torch.inference_mode():
        for _ in range(7):
            for length, seconds in times.items():
                x = torch.randn(2, length, 64)
                start = time.thread_time()
                layer(x)
                seconds.append(time.thread_time() - start)
    return min(times[1024]) / min(times[256])


@pytest.mark.system("lightweight-dynamic-convolution", rung="works")
def test_time_is_linear_in_the_length(off: str, effect: Effect) -> None:
    attention = Attention(64, 4)
    own = attention if off else KernelConvolution(64, 15, 4, 0.0, dynamic=True)
    effect("time of 1,024 tokens by that of 256", [growth(own)], at_most=5, beside={"attention": [growth(attention)]})


@pytest.mark.system("trellisnet", rung="exact")
@pytest.mark.parametrize("n_layers", [1, 2])
def test_a_sparse_kernel_is_a_truncated_lstm(off: str, n_layers: int) -> None:
    """Theorem 1: M tokens of an LSTM of L layers by depth M + L - 1 and width L d; without neighbours none."""
    torch.manual_seed(0)
    m, d = 5, 4
    lstm, x = nn.LSTM(3, d, n_layers, batch_first=True, bias=n_layers == 1).double(), tokens(2, 12, 3)
    made = Trellis(3, n_layers * d, m + n_layers - 1).double()
    with torch.no_grad():
        for parameter in made.parameters():
            nn.init.zeros_(parameter)
        inject, mix = made.inject.weight.view(4, n_layers, d, 6), made.mix.weight.view(4, n_layers, d, 2, n_layers, d)
        for layer in range(n_layers):
            w, u = (getattr(lstm, f"weight_{name}_l{layer}").view(4, d, -1) for name in ("ih", "hh"))
            if not off:
                mix[:, layer, :, 0, layer] = u  # from h_(t-1) of its own layer
            if layer:
                mix[:, layer, :, 1, layer - 1] = w  # from h_t of the layer below
            else:
                inject[:, 0, :, 3:] = w  # from x_t
        if n_layers == 1:
            made.inject.bias.copy_(lstm.bias_ih_l0 + lstm.bias_hh_l0)
        y = made(x)[0][:, :, -d:]
        expected = torch.stack([lstm(x[:, max(t - m + 1, 0) : t + 1])[0][:, -1] for t in range(12)], dim=1)
    torch.testing.assert_close(y, expected, atol=1e-10, rtol=0)


@pytest.mark.system("trellisnet", rung="exact")
def test_weights_do_not_depend_on_the_depth(off: str) -> None:
    name = "convolution(window={})" if off else "trellis(depth={})"
    counts = [sum(p.numel() for p in make_sequence(name.format(n), 3, D, 1).parameters()) for n in (2, 12)]
    assert counts[0] == counts[1]


@pytest.mark.system("cyclemlp", rung="exact")
def test_channels_read_tokens_in_a_cycle_of_offsets(off: str) -> None:
    """Against a sum by loops, and torch's linear layer at a cycle of 1; beyond the offsets gradients are 0."""
    torch.manual_seed(0)
    layer, x = CycleLinear(D, 5, 1 if off else 3).double(), tokens(1).requires_grad_()
    expected = layer.bias.detach().repeat(20, 1)
    for t in range(20):
        for c in range(D):
            if 0 <= (place := t + c % 3 - 1) < 20:
                expected[t] += (layer.weight[:, c] * x[0, place, c]).detach()
    y = layer(x)
    torch.testing.assert_close(y[0], expected, atol=1e-12, rtol=0)
    (slope,) = torch.autograd.grad(y[0, 10].sum(), x)
    reached = slope[0].abs().sum(dim=1).nonzero()[:, 0].tolist()
    assert reached == [9, 10, 11]
    plain, one = nn.Linear(D, 5).double(), CycleLinear(D, 5, 1).double()
    one.load_state_dict(plain.state_dict())
    assert one(x).equal(plain(x))
    assert sum(p.numel() for p in layer.parameters()) == sum(p.numel() for p in plain.parameters())


@pytest.mark.system("cyclemlp", rung="works")
def test_a_linear_layer_in_cycles_tells_amphipathic_peptides(off: str, effect: Effect) -> None:
    """Beside the same layer without offsets, and convolutions of one and three tokens."""
    names = ("cycle", "cycle(step=1)", "convolution(window=1)", "convolution(window=3)")
    own, *others = ([auc(name, seed) for seed in SEEDS] for name in names)
    beside = dict(zip(names[1:], others, strict=True))
    effect("AUC of amphipathic peptides", others[0] if off else own, at_least=0.85, beside=beside)


@pytest.mark.system("trellisnet", rung="works")
def test_its_nll_is_near_that_of_an_lstm(off: str, effect: Effect) -> None:
    """At equal epochs; the twin has one level, which sees two tokens."""
    own, lstm = ([nll(name, seed) for seed in SEEDS] for name in (f"trellis(depth={1 if off else 6})", "lstm"))
    ratio = [a / b for a, b in zip(own, lstm, strict=True)]
    beside = {"trellis": own, "lstm": lstm}
    effect("NLL of a token as a share of an LSTM's", ratio, at_most=1.05, beside=beside)
