"""Switch transformer: several feed-forward experts, one of which each token uses."""

from __future__ import annotations

from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.transformer import FeedForward, HeadCount, SelfAttention, Span, Transformer


class SwitchFeedForward(nn.Module):
    """``y = p_i(x) E_i(x)`` with ``i = argmax p(x)`` and ``p(x) = softmax(W_r x)``: one expert for each token.

    Fedus et al. 2021, "Switch Transformers", equations 1 and 2 and section 2.2. The router computes in single
    precision. The penalty ``balance`` is ``weight * N sum_i f_i P_i`` (equation 4) with the share f_i of the tokens
    that go to expert i and its mean probability P_i, over the tokens of the batch: weight at an even load, N times the
    weight where one expert has all.

    Args:
        d: width of a token's state.
        experts: N.
        weight: of the balance.
    """

    def __init__(self, d: int, experts: int, weight: float) -> None:
        super().__init__()
        self.weight, self.router = weight, nn.Linear(d, experts, bias=False)
        self.experts = nn.ModuleList(FeedForward(d) for _ in range(experts))

    def forward(self, h: Float[Tensor, "n t d"], span: Span) -> Float[Tensor, "n t d"]:
        """float [n, t, d] to the same shape; zeros at padded places."""
        flat, n = h.flatten(0, 1), len(self.experts)
        index = torch.arange(len(flat), device=h.device) if span.mask is None else span.mask.flatten().nonzero()[:, 0]
        x = flat.index_select(0, index)
        with torch.autocast(h.device.type, enabled=False):
            wide = torch.promote_types(x.dtype, self.router.weight.dtype)
            p = self.router(x.to(wide)).softmax(dim=1)
        most, chosen = p.max(dim=1)
        if span.penalties is not None:
            share = torch.bincount(chosen, minlength=n) / max(len(x), 1)
            span.penalise("balance", self.weight * n * (share * p.sum(dim=0) / max(len(x), 1)).sum())
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            mine = (chosen == i).nonzero()[:, 0]
            y = expert(x.index_select(0, mine)[None], span)[0] * most.index_select(0, mine)[:, None]
            out = out.index_copy(0, index.index_select(0, mine), y.to(out.dtype))
        return out.view_as(h)


@register(
    "sequence",
    "switch",
    systems=(
        SystemCard(
            "switch-transformer",
            left_out="the capacity of an expert and tokens beyond it, which skip the layer; several machines",
            off="attention",
            beside=("switch(balance=0)", "attention"),
            command="molgraph train dataset:chembl2321810 -m tokens -s params.sequence=switch",
            modules=("molgraph.nn.transformer",),
        ),
    ),
    summary="attention with several feed-forward experts, one of which each token uses",
    paper="Fedus et al. 2021, arXiv:2101.03961",
)
class Switch(Transformer):
    """Layers of ``attention`` whose feed-forward part is ``y = p_i(x) E_i(x)`` of the likeliest of several experts i.

    As many operations for each token as with one expert, and as many weights as experts. The penalty ``balance`` keeps
    the experts' loads even.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        experts: in each layer.
        balance: weight of the penalty.
        heads, causal: as ``attention`` has them.
    """

    def __init__(
        self,
        d_in: int,
        d: int,
        n_layers: int,
        dropout: float,
        experts: Annotated[int, Range(1, 256)] = 4,
        balance: NotNegative = 0.01,
        heads: HeadCount = 4,
        causal: bool = False,
    ) -> None:
        attention, experts_of = (
            (lambda _: SelfAttention(d, heads, causal)),
            (lambda: SwitchFeedForward(d, experts, balance)),
        )
        super().__init__(d_in, d, n_layers, dropout, attention, experts_of)
        self.causal = causal
