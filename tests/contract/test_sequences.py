"""Trials that every registered sequence layer meets, and an oracle of each of molgraph's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from molgraph.base.parts import read_part
from molgraph.base.registry import entry, names
from molgraph.nn.sequence import SequenceLayers, make_sequence

D_IN, D = 3, 6
LENGTHS = torch.tensor([5, 1, 9, 2])
MASK = torch.arange(int(LENGTHS.max())) < LENGTHS.unsqueeze(1)


def build(name: str, n_layers: int = 2, dropout: float = 0.0, **params: Any) -> SequenceLayers:
    torch.manual_seed(0)
    part = read_part(name)
    return entry("sequence", part.name).value(D_IN, D, n_layers, dropout, **part.settings, **params).eval()


def tokens(n: int = len(LENGTHS), t: int = MASK.shape[1]) -> Tensor:
    return torch.randn(n, t, D_IN, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", [*names("sequence"), "attention(causal=true)"])
class TestEverySequence:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("sequence", read_part(name).name)
        assert issubclass(found.value, SequenceLayers) and found.summary and found.paper and found.value.__doc__

    @pytest.mark.parametrize("n_layers", [1, 3])
    def test_padding_changes_no_row(self, name: str, n_layers: int) -> None:
        layers, x = build(name, n_layers=n_layers), tokens()
        together, _ = layers(x, MASK)
        assert together.shape == (*MASK.shape, D) and together[~MASK].abs().max() == 0
        noise, _ = layers(torch.where(MASK.unsqueeze(2), x, 100.0), MASK)
        torch.testing.assert_close(noise, together, rtol=0, atol=1e-5)
        for row, length in enumerate(LENGTHS.tolist()):
            alone, _ = layers(x[row : row + 1, :length])
            torch.testing.assert_close(alone[0], together[row, :length], rtol=0, atol=1e-5)

    def test_the_order_of_tokens_means_something(self, name: str) -> None:
        x = tokens(1)
        assert not torch.allclose(build(name)(x.flip(1))[0].flip(1), build(name)(x)[0], atol=1e-3)

    @pytest.mark.parametrize("length", [1, 2000])
    def test_gradients_are_finite_and_reach_every_parameter(self, name: str, length: int) -> None:
        layers, x = build(name).train(), tokens(2, length).requires_grad_()
        h, penalties = layers.penalised(x)
        sum(penalties.values(), h.sin().sum()).backward()
        assert h.isfinite().all() and x.grad is not None and x.grad.isfinite().all() and x.grad.abs().sum() > 0
        for label, parameter in layers.named_parameters():
            assert parameter.grad is not None and parameter.grad.isfinite().all(), f"{label} is not used"

    def test_what_comes_later_changes_nothing_where_it_is_causal(self, name: str) -> None:
        layers, x = build(name), tokens(2, 150)
        h, place = layers(x)[0], 100
        later = layers(torch.cat([x[:, :place], -x[:, place:]], dim=1))[0]
        if layers.causal:
            assert later[:, :place].equal(h[:, :place]), "exactly 0"
        else:
            assert not later[:, :place].equal(h[:, :place]), "it could write, and should say that it is causal"
        assert (later[:, place:] - h[:, place:]).abs().amax(dim=(0, 2)).min() > 0
        earlier = layers(torch.cat([x[:, :place], -x[:, place : place + 1], x[:, place + 1 :]], dim=1))[0]
        assert (earlier - h)[:, place + 1].abs().max() > 0

    @pytest.mark.parametrize("pieces", [(1,) * 9, (4, 1, 4), (150, 1, 70)])
    def test_a_sequence_in_pieces_has_the_states_of_the_whole(self, name: str, pieces: tuple[int, ...]) -> None:
        layers, x = build(name), tokens(3, sum(pieces))
        if not layers.causal:
            assert layers(x)[1] is None
            return
        h, state = [], None
        for piece in x.split(list(pieces), dim=1):
            made, state = layers(piece, None, state)
            h.append(made)
        torch.testing.assert_close(torch.cat(h, dim=1), layers(x)[0], rtol=0, atol=1e-5)

    def test_drops_values_in_training_alone(self, name: str) -> None:
        layers, x = build(name, dropout=0.5), tokens()
        assert layers(x)[0].equal(layers(x)[0])
        layers.train()
        assert not layers(x)[0].equal(layers(x)[0])

    def test_computes_in_float64_and_bfloat16(self, name: str) -> None:
        layers, x = build(name), tokens()
        single, _ = layers(x, MASK)
        double, _ = build(name).double()(x.double(), MASK)
        assert double.dtype == torch.float64
        torch.testing.assert_close(double.float(), single, rtol=1e-4, atol=1e-5)
        with torch.autocast("cpu", torch.bfloat16):
            near, _ = layers(x, MASK)
        torch.testing.assert_close(near.float(), single, rtol=0.1, atol=0.1)


@pytest.mark.parametrize(("name", "theirs"), [("gru", nn.GRU), ("lstm", nn.LSTM)])
def test_recurrent_layers_are_those_of_torch(name: str, theirs: Any) -> None:
    layers, own = build(name, n_layers=2), theirs(D_IN, D, 2, batch_first=True)
    own.load_state_dict({key.removeprefix("layers."): value for key, value in layers.state_dict().items()})
    assert layers(tokens())[0].equal(own(tokens())[0])


@pytest.mark.parametrize("window", [1, 4, 5])
def test_convolutions_are_sums_over_windows(window: int) -> None:
    layers, x = build("convolution", n_layers=1, window=window), tokens(1, 7)
    weight, bias = (each.detach().numpy() for each in layers.parameters())
    expected = np.tile(bias, (7, 1))
    for t in range(7):
        for k in range(window):
            if 0 <= (place := t + k - window // 2) < 7:
                expected[t] += weight[:, :, k] @ x[0, place].numpy()
    np.testing.assert_allclose(layers(x)[0][0].detach().numpy(), np.maximum(expected, 0), atol=1e-5)


def test_attention_is_that_of_torch_with_the_positions_turned() -> None:
    """A block of one head, its queries and keys as complex numbers times ``exp(i place rate)``."""
    layers, x = build("attention", n_layers=1, heads=1), tokens(1, 7)
    block, h = layers.blocks[0], layers.enter(x)
    attention, normed = block.attention, block.norms[0](h)
    q, k, v = (each[0, 0] for each in (attention.queries(normed), *attention.keys_values(normed)))
    turn = torch.polar(torch.ones(7, 3), torch.arange(7)[:, None] * 10_000 ** (-torch.arange(3) / 3))
    q, k = (torch.view_as_real(torch.complex(*each.chunk(2, dim=1)) * turn).flatten(1) for each in (q, k))
    h = h + attention.out((q @ k.T / 6**0.5).softmax(dim=1) @ v)
    expected = layers.norm(h + block.feed_forward.layers(block.norms[1](h)))
    torch.testing.assert_close(layers(x)[0], expected, rtol=0, atol=1e-5)


def test_a_generator_makes_layers_causal_that_can_be_either() -> None:
    assert make_sequence("attention", 3, 4, writes=True).causal and not make_sequence("attention", 3, 4).causal
    assert not make_sequence("attention(causal=false)", 3, 4, writes=True).causal
