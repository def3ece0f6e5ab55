"""Transformers with a memory or a part of the tokens before: their equations, what each token sees, and their cost."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from molgraph.nn.sequences.compressive import CompressiveAttention
from molgraph.nn.sequences.xl import RelativeAttention, sinusoids
from molgraph.nn.transformer import Span
from tests.systems.effect import Effect
from tests.systems.token_layers import PLAIN, SEEDS, D, cost, layers, operations, places, reach, recalls, tokens


@pytest.mark.system("transformer-xl", rung="exact")
def test_segments_with_a_full_memory_are_one_pass(off: str) -> None:
    """40 tokens in segments of 8, also in pieces of other lengths, against one segment of 64."""
    whole, x = layers("xl(segment=64, memory=0)", 2), tokens(3, 40)
    made = layers(f"xl(segment=8, memory={0 if off else 64})", 2, like=whole)
    torch.testing.assert_close(made(x)[0], whole(x)[0], rtol=0, atol=1e-10)
    state, h = None, []
    for piece in x.split([3, 5, 1, 20, 11], dim=1):
        out, state = made(piece, None, state)
        h.append(out)
    torch.testing.assert_close(torch.cat(h, dim=1), whole(x)[0], rtol=0, atol=1e-10)


@pytest.mark.system("transformer-xl", rung="exact")
def test_scores_have_four_terms(off: str) -> None:
    """Against Dai et al. 2019, section 3.3, by loops; with u = v = R = 0 it is torch's attention."""
    torch.manual_seed(0)
    layer, h, t = RelativeAttention(D, 2, segment=16, memory=4).double(), tokens(1, 10), 10
    q, (k, v) = layer.queries(h)[0], (each[0] for each in layer.keys_values(h))
    r = layer.relative(sinusoids(t, D, h.device).double()).unflatten(1, (2, -1))
    read = torch.zeros(1, 2, t, q.shape[2], dtype=torch.float64)
    for head in range(2):
        for i in range(t):
            by_content, by_place = (q[head, i] + each[head, 0, 0] for each in (layer.u, layer.v))
            scores = [by_content @ k[head, j] + by_place @ r[i - j, head] for j in range(i + 1)]
            read[0, head, i] = (torch.stack(scores) / q.shape[2] ** 0.5).softmax(dim=0) @ v[head, : i + 1]
    expected = layer.joined(read).detach()
    if off:
        layer.relative.weight.data.zero_()
    torch.testing.assert_close(layer(h, Span())[0], expected, rtol=0, atol=1e-10)
    for each in (layer.relative.weight, layer.u, layer.v):
        each.data.zero_()
    plain = F.scaled_dot_product_attention(layer.queries(h), *layer.keys_values(h), is_causal=True)
    torch.testing.assert_close(layer(h, Span())[0], layer.joined(plain), rtol=0, atol=1e-10)


@pytest.mark.system("transformer-xl", rung="exact")
def test_a_segment_reads_its_memory_and_sends_it_no_gradient(off: str) -> None:
    i, j = places(30)
    seen = (j <= i) & (j >= i // 8 * 8 - 5)
    assert reach(f"xl(segment=8, memory={0 if off else 5})", 30).equal(seen)
    x = tokens(1, 30).requires_grad_()
    (gradient,) = torch.autograd.grad(layers("xl(segment=8, memory=5)")(x)[0][0, 20, 0], x)
    assert (gradient[0].abs().amax(dim=1) > 0).nonzero()[:, 0].tolist() == [16, 17, 18, 19, 20]
    deep = reach("xl(segment=8, memory=8)", 30, n_layers=2)
    assert deep.equal((j <= i) & (j >= i // 8 * 8 - 16)), "each layer reaches further"


@pytest.mark.system("image-transformer", rung="exact")
def test_a_block_sees_itself_and_its_memory(off: str) -> None:
    i, j = places(29)
    assert reach(PLAIN if off else "blocks(8, 5)", 29).equal((j <= i) & (j >= i // 8 * 8 - 5))
    whole, x = layers(PLAIN, 2), tokens(2, 29)
    torch.testing.assert_close(layers("blocks(32, 0)", 2, like=whole)(x)[0], whole(x)[0], rtol=0, atol=1e-10)
    torch.testing.assert_close(layers("blocks(4, 29)", 2, like=whole)(x)[0], whole(x)[0], rtol=0, atol=1e-10)


def factors(kind: str, t: int, stride: int, summary: int) -> tuple[Tensor, Tensor]:
    """bool [t, t], A1 and A2 of Child et al. 2019, section 4.3."""
    i, j = places(t)
    if kind == "strided":
        return (j <= i) & (j >= i - stride), (j <= i) & ((i - j) % stride == 0)
    return (j <= i) & (j // stride == i // stride), (j <= i) & (j % stride >= stride - summary)


@pytest.mark.system("sparse-transformer", rung="exact")
@pytest.mark.parametrize("kind", ["strided", "fixed"])
def test_both_factors_are_masked_attention_and_together_reach_everything(off: str, kind: str) -> None:
    """Each layer against dense attention with a mask, n = 64 and l = 8; two layers see every place before."""
    n, stride = 64, 8
    name = f"{kind}(8)" if kind == "strided" else f"{kind}(8, summary=2)"
    both, h = factors(kind, n, stride, 2), tokens(2, n)
    for block, mask in zip(layers(name, 2).blocks, both, strict=True):
        q, k, v = torch.randn(3, 2, 4, n, 2, dtype=torch.float64)
        dense = F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones_like(mask).tril() if off else mask)
        torch.testing.assert_close(block.attention.attend(q, k, v, Span(), None)[0], dense, rtol=0, atol=1e-10)
    assert sum(int(mask.sum()) for mask in both) <= 3 * n * n**0.5
    assert reach(name, n, n_layers=2).equal(torch.ones(n, n).tril().bool())
    assert layers(name, 2)(h)[0].isfinite().all()


@pytest.mark.system("compressive-transformer", rung="exact")
def test_a_rate_of_one_is_a_longer_memory(off: str) -> None:
    """With f_c the identity it is Transformer-XL, and nothing is lost; at a rate of 4 something is."""
    longer, x = layers("xl(segment=8, memory=24)", 2), tokens(2, 60)
    made = layers("compressive(rate=4, segment=8, slots=4)" if off else "compressive(rate=1, segment=8, slots=16)", 2)
    made.load_state_dict(longer.state_dict(), strict=False)
    h, penalties = made.penalised(x)
    torch.testing.assert_close(h, longer(x)[0], rtol=0, atol=1e-10)
    assert float(penalties["reconstruction"].detach()) < 1e-6


@pytest.mark.system("compressive-transformer", rung="exact")
def test_the_reconstruction_loss_trains_the_compression_alone(off: str) -> None:
    """And a token depends on ``segment + rate * slots`` tokens before its own segment."""
    i, j = places(70)
    name = "xl(segment=8, memory=8)" if off else "compressive(rate=4, segment=8, slots=5)"
    assert reach(name, 70).equal((j <= i) & (j >= i // 8 * 8 - 8 - 4 * 5))
    made, x = layers(name, 2), tokens(2, 70).requires_grad_()
    h, penalties = made.penalised(x)
    penalties["reconstruction"].backward(retain_graph=True)
    learned = {name for name, each in made.named_parameters() if each.grad is not None and each.grad.abs().max() > 0}
    assert learned == {f"blocks.{b}.attention.compress.{part}" for b in (0, 1) for part in ("weight", "bias")}
    assert x.grad is None or x.grad.abs().max() == 0
    made.zero_grad()
    h.sum().backward()
    unmoved = [made.get_parameter(name).grad for name in learned]
    assert all(each is None or each.abs().max() == 0 for each in unmoved)


@pytest.mark.system("transformer-xl", rung="works")
def test_a_memory_of_segments_recalls_what_stands_two_segments_back(off: str, effect: Effect) -> None:
    own, without, full = (recalls(name) for name in ("xl(12, 12)", "xl(12, 0)", PLAIN))
    effect("accuracy of the first token two segments of 12 later", without if off else own, at_least=0.95,
           beside={"memory=0": without, "attention": full})  # fmt: skip


@pytest.mark.system("compressive-transformer", rung="works")
def test_compressed_places_recall_what_left_the_memory(off: str, effect: Effect) -> None:
    own, without, full = (recalls(name, 1) for name in ("compressive(4, segment=4, slots=8)", "xl(4, 4)", PLAIN))
    effect("accuracy of the first token 31 places later in one layer", without if off else own, at_least=0.9,
           beside={"xl, a memory of 4": without, "attention": full})  # fmt: skip


@pytest.mark.system(
    "compressive-transformer", rung="works", null="0.94 of the mean's loss: of random states the mean is good"
)
def test_the_reconstruction_loss_makes_a_better_compression_than_the_mean(off: str, effect: Effect) -> None:
    """On held-out states with a pattern in them: the first of four tokens is the one that queries look for."""
    shares = list[float]()
    for seed in SEEDS:
        torch.manual_seed(seed)
        layer = CompressiveAttention(16, 2, 8, 4, 8, 1.0)
        layer.kv.weight.data *= 3
        optimiser = torch.optim.Adam(layer.compress.parameters(), 0.0 if off else 1e-2)
        loud = torch.where(torch.arange(64) % 4 == 0, 2.0, 0.5)[:, None]

        def loss(n: int) -> Tensor:
            span = Span(penalties={})
            layer(torch.randn(n, 64, 16) * loud, span)  # noqa: B023
            return span.penalties["reconstruction"]  # type: ignore[index]

        with torch.no_grad():
            before = float(loss(100))
        for _ in range(200):
            optimiser.zero_grad()
            loss(8).backward()
            optimiser.step()
        with torch.no_grad():
            shares.append(float(loss(100)) / before)
    effect("reconstruction loss as a share of the mean's", shares, at_most=0.9)


@pytest.mark.system("image-transformer", rung="works")
def test_blocks_cost_a_part_of_full_attention(off: str, effect: Effect) -> None:
    name = "attention" if off else "blocks(32, 64)"
    growth = operations(name, 2048) / operations(name, 512)
    assert growth < 4.05, f"{growth} for four times the length"
    effect("operations at 2,048 residues as a share of full attention's", [cost(name)], at_most=0.4,
           beside={"at 512": [cost(name, 512)]})  # fmt: skip


@pytest.mark.system("sparse-transformer", rung="works")
@pytest.mark.parametrize("name", ["strided(4)", "fixed(4, summary=1)"])
def test_two_factors_recall_the_first_token_at_a_part_of_the_cost(off: str, effect: Effect, name: str) -> None:
    own, near, full = (recalls(each) for each in ("blocks(4, 4)" if off else name, "blocks(4, 4)", PLAIN))
    share = cost(name.replace("4", "32"))
    assert share <= 0.5, share
    effect("accuracy of the first token 31 places later", own, at_least=0.95,
           beside={"blocks": near, "attention": full, "operations at 2,048": [share]})  # fmt: skip
