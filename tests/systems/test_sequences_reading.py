"""Transformers that read long sequences, or have several experts: their equations, cost and loads."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from molgraph.nn.sequence import make_sequence
from molgraph.nn.sequences.big_bird import BigBirdAttention
from molgraph.nn.sequences.funnel import FunnelBlock
from molgraph.nn.sequences.switch import SwitchFeedForward
from molgraph.nn.transformer import FeedForward, SelfAttention, Span, TransformerBlock
from tests.systems.effect import Effect
from tests.systems.token_layers import SEEDS, D, cost, layers, reach, recalls, tokens


@pytest.mark.system("big-bird", rung="exact")
def test_tokens_see_the_window_random_and_global_blocks(off: str) -> None:
    """Zaheer et al. 2020, section 2, with 12 blocks of 4; the random ones are distinct, and outside of the others."""
    t, block = 46, 4
    counted = torch.zeros(12, 12, dtype=torch.bool)
    made = layers("big_bird(random=2, n_global=1, block=4)")
    index, free = made.blocks[0].attention.blocks_of(torch.tensor([12]), 12)
    for i in range(12):
        near, drawn = {i - 1, i, i + 1} & {*range(12)}, index[0, i, 4:][free[0, i, 4:]].tolist()
        assert not {*drawn} & ({0} | near) and len({*drawn}) == len(drawn), "each key is counted once"
        counted[i, [*(near | {0} | {*drawn})]] = True
    assert counted[1:].sum() >= 40 and counted.sum(dim=1).max() <= 3 + 2 + 1
    counted[0] = True
    expected = counted.repeat_interleave(block, 0).repeat_interleave(block, 1)[:t, :t]
    assert reach("attention" if off else "big_bird(random=2, n_global=1, block=4)", t).equal(expected)


@pytest.mark.system("big-bird", rung="exact")
def test_a_window_of_the_whole_sequence_is_full_attention(off: str) -> None:
    whole, x, mask = layers("attention", 2), tokens(2, 30), torch.arange(30) < torch.tensor([[30], [17]])
    how = "random=0, n_global=0" if off else "window=17"
    made = layers(f"big_bird(block=4, {how})", 2, like=whole)
    torch.testing.assert_close(made(x, mask)[0], whole(x, mask)[0], rtol=0, atol=1e-10)
    assert isinstance(made.blocks[0].attention, BigBirdAttention)


@pytest.mark.system("funnel-transformer", rung="exact")
def test_queries_are_means_of_pairs_and_states_are_repeated(off: str) -> None:
    """Dai et al. 2020, equation 2, by loops over the queries; with size 1 it is the plain block."""
    torch.manual_seed(0)
    block, h = FunnelBlock(D, 2, 0.0, 1 if off else 2, 1).double(), tokens(1, 7)
    mask = torch.ones(1, 7, dtype=torch.bool)
    out, _ = block(h, Span(mask))
    plain = TransformerBlock(D, SelfAttention(D, 2), FeedForward(D), 0.0).double()
    plain.load_state_dict(block.state_dict())
    whole = FunnelBlock(D, 2, 0.0, 1, 1).double()
    whole.load_state_dict(block.state_dict())
    torch.testing.assert_close(whole(h, Span(mask))[0], plain(h, Span(mask))[0], rtol=0, atol=1e-10)
    attention, norm = block.attention, block.norms[0]
    k, v = attention.keys_values(norm(h))
    expected = []
    for p, pair in enumerate(h.split(2, dim=1)):
        mean = pair.mean(dim=1, keepdim=True)
        q = turned(attention.queries(norm(mean)), 2 * p)
        scores = [q[0, :, 0] @ turned(k[:, :, j : j + 1], j)[0, :, 0].T for j in range(7)]
        weights = (torch.stack([each.diagonal() for each in scores], dim=1) / attention.width**0.5).softmax(dim=1)
        read = torch.einsum("hj,hje->he", weights, v[0])[None, :, None]
        mean = mean + attention.joined(read)
        expected.append(mean + block.feed_forward(block.norms[1](mean), Span()))
    torch.testing.assert_close(out, torch.cat(expected, dim=1), rtol=0, atol=1e-10)
    made = layers("funnel(2)", 3)
    made.norm = torch.nn.Identity()
    x = tokens(1, 8)
    first = made.layers[0](made.enter(x), Span(mask.new_ones(1, 8)))[0]
    lasting = (made(x)[0] - first)[0]
    for start in (0, 4):
        torch.testing.assert_close(lasting[start : start + 4], lasting[start].expand(4, -1), rtol=0, atol=1e-10)


def turned(x: Tensor, place: int) -> Tensor:
    """Channels as complex numbers, multiplied by ``exp(i place rate)``."""
    half = x.shape[3] // 2
    rates = 10_000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    z = torch.complex(*x.chunk(2, dim=3)) * torch.polar(torch.ones(half, dtype=torch.float64), place * rates)
    return torch.cat([z.real, z.imag], dim=3)


@pytest.mark.system("switch-transformer", rung="exact")
def test_each_token_goes_through_its_likeliest_expert(off: str) -> None:
    """Fedus et al. 2021, equations 1, 2 and 4, token by token; one expert is the dense layer."""
    torch.manual_seed(0)
    layer, h = SwitchFeedForward(D, 3, 1.0).double(), tokens(2, 9)
    span = Span(torch.arange(9) < torch.tensor([[9], [4]]), penalties={})
    chosen, p, expected = [], [], torch.zeros_like(h)
    for row, length in enumerate((9, 4)):
        for t in range(length):
            p.append(layer.router(h[row, t]).softmax(dim=0))
            chosen.append(int(p[-1].argmax()))
            y = layer.experts[0 if off else chosen[-1]].layers(h[row, t])
            expected[row, t] = p[-1][chosen[-1]] * y
    torch.testing.assert_close(layer(h, span), expected, rtol=0, atol=1e-10)
    share = torch.tensor([chosen.count(i) / 13 for i in range(3)], dtype=torch.float64)
    torch.testing.assert_close(span.penalties["balance"], 3 * share @ torch.stack(p).mean(dim=0))
    one, dense = SwitchFeedForward(D, 1, 1.0).double(), FeedForward(D).double()
    one.experts[0].load_state_dict(dense.state_dict())
    torch.testing.assert_close(one(h, Span()), dense(h, Span()), rtol=0, atol=1e-10)


@pytest.mark.system("switch-transformer", rung="exact")
@pytest.mark.parametrize(("scale", "expected"), [(0.0, 1.0), (1e3, 4.0)], ids=["even", "collapsed"])
def test_the_balance_is_1_where_it_is_even_and_the_number_of_experts_where_one_has_all(
    off: str, scale: float, expected: float
) -> None:
    layer = SwitchFeedForward(D, 4, 0.0 if off else 0.01).double()
    layer.router.weight.data = scale * torch.eye(4, D, dtype=torch.float64)
    h = (1 + tokens(1, 40).abs()) * (torch.arange(D) < 1) if scale else torch.randn(1, 40, D, dtype=torch.float64)
    span = Span(penalties={})
    layer(h, span)
    assert float(span.penalties["balance"].detach()) == pytest.approx(0.01 * expected, rel=1e-3)


@pytest.mark.system("funnel-transformer", rung="works")
def test_a_funnel_saves_two_fifths_of_the_operations_and_recalls_as_well(off: str, effect: Effect) -> None:
    name = "funnel(1)" if off else "funnel(2)"
    own, full = (recalls(each) for each in (name, "attention"))
    assert min(own) >= min(full) - 0.02, (own, full)
    effect("operations of six layers at 1,024 residues as a share of full attention's", [cost(name, 1024, 6)],
           at_most=0.6, beside={"accuracy": own, "accuracy of attention": full})  # fmt: skip


def largest_load(balance: float, seed: int, experts: int = 4, t: int = 24) -> float:
    """Largest share of held-out tokens that one expert has, after learning to name the token before."""
    torch.manual_seed(seed)
    sequence = make_sequence(f"switch({experts}, balance={balance}, causal=true)", 16, 32, 2)
    parts = nn.ModuleList([nn.Embedding(32, 16), sequence, nn.Linear(32, 32)])
    optimiser = torch.optim.AdamW(parts.parameters(), 3e-3)
    embed, _, line = parts
    for _ in range(150):
        x = torch.randint(32, (16, t))
        h, penalties = sequence.penalised(embed(x))
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(line(h[:, 1:]).flatten(0, 1), x[:, :-1].flatten())
        (loss + penalties["balance"]).backward()
        optimiser.step()
    loads: list[Tensor] = []
    for block in sequence.blocks:
        block.feed_forward.router.register_forward_hook(
            lambda _, __, out: loads.append(torch.bincount(out.argmax(dim=1), minlength=experts) / len(out))
        )
    with torch.no_grad():
        sequence(embed(torch.randint(32, (100, t))))
    return float(torch.stack(loads).max())


@pytest.mark.system("switch-transformer", rung="works")
def test_the_balance_keeps_the_loads_of_experts_even(off: str, effect: Effect) -> None:
    own, without = ([largest_load(weight, seed) for seed in SEEDS] for weight in (0.01, 0.0))
    effect("largest share of tokens of one of four experts", without if off else own, at_most=0.35,
           beside={"balance=0": without, "even": [0.25]})  # fmt: skip
